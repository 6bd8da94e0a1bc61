// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/log_private.h"

G_BEGIN_DECLS

/* The command's log, on stderr: one line for each message, as text or JSON, or journald's entries.
 * A separate thread writes it (cli/output/log_queue.h), so logging never waits for a disk or a
 * reader.
 *
 *   2026-11-23T03:17:10.123Z info    claim  'digits' has a chief  model=digits epoch=4
 *   {"time":"2026-11-23T03:17:10.123Z","level":"info","event":"claim","message":…,"model":"digits"}
 *
 * Before --log-level and --log-format are known, and in a command that is given neither, only what
 * its user should read is printed, at once, without time and level. */

/* Makes the command's writer GLib's. Once, before anything is logged. */
void muster_cli_log_begin (void);

/* Applies --log-level and --log-format (nullable). The log of a service is its report
 * (--log-level=info); a command reports to its user, and the log is extra (notice).
 * INVALID_ARGUMENT for an unknown one. */
gboolean muster_cli_log_set (const char *level, const char *format, gboolean is_service,
                             GError **error);

/* TRUE if a program reads the log (JSON, the journal), and so expects what ends the command there.
 */
gboolean muster_cli_log_is_parsed (void);

/* Waits until the log is written, for 3 s at most. Before the process ends. */
void muster_cli_log_flush (void);

/* Prints lines by a function, such as above a display; NULL: to stderr. */
typedef void (*MusterLogPrint) (const char *line, gpointer user_data);
void muster_cli_log_print_by (MusterLogPrint print, gpointer user_data);

/* The options' help, up to the default. */
#define MUSTER_LOG_LEVEL_HELP                                                                      \
  "least severe messages of the log on stderr: error, warning, notice, info or debug (default: "
#define MUSTER_LOG_FORMAT_HELP                                                                     \
  "format of the log: text, json or journald (default: journald if stderr is the journal, else "   \
  "text)"

G_END_DECLS

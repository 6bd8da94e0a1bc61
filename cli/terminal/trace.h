// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/terminal/report.h"

G_BEGIN_DECLS

/* MusterCliTrace collects what took the time, in lanes, for Chrome's trace format. */

typedef struct _MusterCliTrace MusterCliTrace;

/* Instants are those of the machine's clock; the trace begins at began_us. */
MusterCliTrace *muster_cli_trace_new (gint64 began_us);
void muster_cli_trace_free (MusterCliTrace *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterCliTrace, muster_cli_trace_free)

/* Adds a box. lane and name are static. The first 100,000 are kept. */
void muster_cli_trace_add (MusterCliTrace *self, const char *lane, const char *name,
                           const char *detail, gint64 from_us, gint64 until_us);
/* Adds the phases of an operation of the session manager that began at from_us. */
void muster_cli_trace_add_report (MusterCliTrace *self, const MusterSessionReport *report,
                                  gint64 from_us);

/* Writes it to options->trace, if given. Failing to write is a warning. */
void muster_cli_trace_write (MusterCliTrace *self, const MusterCliOptions *options,
                             const char *command);

/* The same for one operation. */
void muster_cli_write_trace (const MusterCliResult *self, const char *command);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/common/cli.h"
#include "cli/output/json.h"

G_BEGIN_DECLS

/* The result of an operation of the session manager, or why it failed, as text and JSON. */

typedef struct {
  const MusterCliOptions *options;
  const MusterSessionReport *report;
  const GError *error; /* (nullable) it failed */
  gint64 took_us;
} MusterCliResult;

/* The exit code. If the master never answered, it is the code for no answer, not for a model that
 * isn't ready. */
MusterExit muster_cli_result_exit (const MusterCliResult *self);

/* Prints a failure to stderr: the cause, what is missing, what took the time, the remedy. */
void muster_cli_report_failure (const MusterCliResult *self);

/* The same as " (connect 3 ms, init 41 ms)", or "". (transfer full) */
char *muster_cli_in_phases (const MusterSessionReport *report);
/* A phase's duration; 0 if there was none. */
gint64 muster_cli_phase_us (const MusterSessionReport *report, const char *name);
/* "restored run/model.ckpt-1200, 3.4 GB in 2.9 s (1.2 GB/s)", for a report of a restore. (transfer
 * full) */
char *muster_cli_restored (const MusterSessionReport *report);

/* "reasons": [{…}, …]; reasons is (nullable). */
void muster_cli_reasons_json (JsonBuilder *builder, GPtrArray *reasons);
/* Adds the result to the current JSON object. */
void muster_cli_result_json (JsonBuilder *builder, const MusterCliResult *self);

G_END_DECLS

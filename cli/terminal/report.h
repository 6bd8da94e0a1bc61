// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/common/cli.h"
#include "cli/output/json.h"

G_BEGIN_DECLS

/* What a verb of the session manager did and why it failed, for people and for programs: both are
 * drawn from the report. */

typedef struct {
  const MusterCliOptions *options;
  const MusterSessionReport *report;
  const GError *error; /* (nullable) it failed */
  gint64 took_us;
} MusterCliResult;

/* "ready", "not ready", "fenced", "over", "failed" */
const char *muster_cli_outcome_name (MusterOutcome outcome);

/* With which code to exit. Where the server never answered, it is the master that didn't answer in
 * time, not the model that wasn't ready. */
MusterExit muster_cli_result_exit (const MusterCliResult *self);

/* Prints a failure to stderr: what happened, what is missing, what took the time, what to try. */
void muster_cli_report_failure (const MusterCliResult *self);

/* "connect 3 ms, init 41 ms": the phases that took a millisecond or more; of a model that is ready,
 * those that led to it. May be empty. (transfer full) */
char *muster_cli_phases (const MusterSessionReport *report);
/* The same as " (connect 3 ms, init 41 ms)", or "". (transfer full) */
char *muster_cli_in_phases (const MusterSessionReport *report);
/* How long a phase took; 0 if there was none. */
gint64 muster_cli_phase_us (const MusterSessionReport *report, const char *name);
/* "restored run/model.ckpt-1200, 3.4 GB in 2.9 s (1.2 GB/s)", of a report of which that is true.
 * (transfer full) */
char *muster_cli_restored (const MusterSessionReport *report);

/* "reasons": [{…}, …]; reasons is (nullable). */
void muster_cli_reasons_json (JsonBuilder *builder, GPtrArray *reasons);
/* Adds all of it to the JSON object being built. */
void muster_cli_result_json (JsonBuilder *builder, const MusterCliResult *self);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/cli.h"

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
void muster_cli_tell_failure (const MusterCliResult *self);

/* "connect 3 ms, init 41 ms" */
char *muster_cli_phases (const MusterSessionReport *report);

/* "reasons": [{…}, …]; reasons is (nullable). */
void muster_cli_reasons_json (JsonBuilder *builder, GPtrArray *reasons);
/* Adds all of it to the JSON object being built. */
void muster_cli_result_json (JsonBuilder *builder, const MusterCliResult *self);

/* Writes the report's timeline to options->trace, if that is given: the Chrome trace format. A
 * trace that can't be written is a warning. */
void muster_cli_write_trace (const MusterCliResult *self, const char *command);

G_END_DECLS

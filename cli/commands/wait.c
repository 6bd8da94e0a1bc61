// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/commands.h"

#include "cli/commands/operation.h"
#include "cli/common/cli.h"
#include "cli/output/json.h"

static const char summary[] =
    "Runs as a worker: opens a session on the master, waits until another task has made the\n"
    "model ready, then runs the local init op. Reports what is missing: on a terminal in a block\n"
    "that is updated in place, otherwise as a line for each change and every 30 s. muster's "
    "master\n"
    "pushes readiness and the chief's phase; other masters are polled in one session, at "
    "intervals\n"
    "of at most --recovery-wait.";

/* Prints the result: of a success as text, of any outcome as JSON. */
static void
report_result (const MusterCliResult *result)
{
  if (result->options->json) {
    g_autoptr (JsonBuilder) builder = muster_json_new_line ();
    muster_cli_result_json (builder, result);
    muster_json_print_line (builder);
  } else if (result->error == NULL) {
    g_autofree char *took = muster_format_duration (result->took_us);
    g_autofree char *spent = muster_cli_in_phases (result->report);
    muster_cli_say (stdout, "ready after %s%s\n", took, spent);
  }
}

static MusterExit
wait_for_model (const MusterCliOptions *options, gint64 recovery_wait_us, gboolean json_lines)
{
  g_autoptr (GError) error = NULL;
  g_auto (MusterCliOperation) operation = {0};
  if (!muster_cli_operation_begin (&operation, options, "waiting for", recovery_wait_us, json_lines,
                                   &error))
    return muster_cli_fail (error);
  g_autoptr (MusterSession) session = muster_session_manager_wait_for_session (
      operation.manager, operation.master, options->timeout_us, &operation.report,
      muster_live_cancellable (operation.live), &error);
  MusterCliResult result;
  muster_cli_operation_end (&operation, "wait", session, error, &result);
  report_result (&result);
  return muster_cli_result_exit (&result);
}

int
muster_cli_wait (int argc, char **argv)
{
  g_autofree char *recovery_wait = NULL;
  gboolean json_lines = FALSE;
  gint64 recovery_wait_us = 0;
  g_auto (MusterCliOptions) options = {0};
  g_autoptr (GError) error = NULL;
  const GOptionEntry entries[] = {
      {"recovery-wait", 0, 0, G_OPTION_ARG_STRING, &recovery_wait,
       "maximum poll interval on a master that doesn't push readiness (default: 30s)", "TIME"},
      {"progress", 0, 0, G_OPTION_ARG_NONE, &json_lines,
       "with --json: also print a line for each change", NULL},
      {NULL}};
  if (!muster_cli_parse (argc, argv, "", summary, entries, MUSTER_CLI_OPERATION | MUSTER_CLI_SHARED,
                         &options, NULL, &error) ||
      (recovery_wait != NULL && !muster_cli_duration (recovery_wait, &recovery_wait_us, &error)))
    return muster_cli_fail (error);
  return wait_for_model (&options, recovery_wait_us, json_lines);
}

// SPDX-License-Identifier: Apache-2.0
#include "cli/cli.h"
#include "cli/live.h"
#include "cli/notify.h"
#include "cli/report.h"

static const char summary[] =
    "A worker's part: opens a session on the master and waits until another task has made the "
    "model "
    "ready, then runs\n"
    "the local init op. While it waits it says what for: on a terminal in a block that changes in "
    "place, piped in a line\n"
    "for each change and every 30 s. muster's master pushes readiness and knows what the chief "
    "does; on another one this\n"
    "looks, at most every --recovery-wait, in one session.";

static void
tell_ready (const MusterCliResult *result)
{
  if (result->options->json)
    return;
  g_autofree char *took = muster_format_duration (result->took_us);
  g_autofree char *spent = muster_cli_phases (result->report);
  muster_cli_say (stdout, "ready after %s (%s)\n", took, spent);
}

/* Tells what came of it, and says with which code to exit. */
static MusterExit
conclude (const MusterCliResult *result)
{
  muster_cli_write_trace (result, "wait");
  if (result->error == NULL) {
    muster_notify ("READY=1\nSTATUS=ready");
    tell_ready (result);
  } else {
    muster_notify_status (result->error->message);
    muster_cli_tell_failure (result);
  }
  if (result->options->json) {
    g_autoptr (JsonBuilder) builder = muster_json_new_line ();
    muster_cli_result_json (builder, result);
    muster_json_print_line (builder);
  }
  return muster_cli_result_exit (result);
}

static MusterExit
wait_for_model (const MusterCliOptions *options, gint64 recovery_wait_us, gboolean json_lines)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterScaffold) scaffold = muster_scaffold_load (options->meta_graph, &error);
  if (scaffold == NULL)
    return muster_cli_fail (error);
  MusterLive *live = muster_live_new ("waiting for", options, json_lines);
  g_autoptr (MusterMaster) master = muster_cli_master (options, &error);
  g_autoptr (MusterSessionManager) manager =
      master == NULL ? NULL : muster_cli_manager (scaffold, options, recovery_wait_us, &error);
  if (manager == NULL) {
    muster_live_end (live);
    return muster_cli_fail (error);
  }
  muster_session_manager_set_progress (manager, muster_live_progress, live);
  gint64 started_us = muster_clock_now_us (muster_system_clock ());
  g_auto (MusterSessionReport) report = {0};
  g_autoptr (MusterSession) session = muster_session_manager_wait_for_session (
      manager, master, options->timeout_us, &report, muster_live_cancellable (live), &error);
  MusterCliResult result = {
      .options = options,
      .report = &report,
      .error = error,
      .took_us = muster_clock_now_us (muster_system_clock ()) - started_us,
  };
  if (session != NULL)
    muster_session_close_quietly (session);
  muster_live_end (live);
  return conclude (&result);
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
       "the longest pause between two looks on a master that can't push (default 30s)", "TIME"},
      {"progress", 0, 0, G_OPTION_ARG_NONE, &json_lines, "with --json: a line for each change too",
       NULL},
      {NULL}};
  if (!muster_cli_parse (argc, argv, "", summary, entries, MUSTER_CLI_VERB, &options, NULL,
                         &error) ||
      (recovery_wait != NULL && !muster_cli_duration (recovery_wait, &recovery_wait_us, &error)))
    return muster_cli_fail (error);
  return wait_for_model (&options, recovery_wait_us, json_lines);
}

// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/finish.h"

#include "cli/commands/commands.h"
#include "cli/common/cli.h"
#include "cli/output/json.h"
#include "master/lease.h"
#include "train/train.h"

static const char summary[] =
    "Marks a job as over on the master: workers that wait for the model, or start later, exit at\n"
    "once with code 5 instead of waiting or training a finished model again. The final step is\n"
    "--step, or is read from the model of --meta-graph. The variables don't change.\n"
    "While the model's chief lives, that is refused: end the job's tasks first (SIGTERM), so that\n"
    "the chief saves. To train further, start the chief with --overwrite and a higher --steps.";

static void
tell (const MusterCliOptions *options, const MusterAnnouncement *before, gint64 step)
{
  if (options->json) {
    g_autoptr (JsonBuilder) builder = muster_json_new_line ();
    muster_json_add_string (builder, "finished", options->model);
    muster_json_add_step (builder, "final_step", step);
    muster_json_add_string (builder, "before",
                            before == NULL ? NULL : muster_chief_phase_name (before->phase));
    muster_json_print_line (builder);
    return;
  }
  if (before == NULL)
    muster_cli_say (stderr, "warning: no chief has registered for %s on this master\n",
                    options->model);
  if (step >= 0)
    muster_cli_say (stdout, "finished %s at step %" G_GINT64_FORMAT "\n", options->model, step);
  else
    muster_cli_say (stdout, "finished %s\n", options->model);
}

gboolean
muster_cli_end_job (MusterSession *session, const MusterCliOptions *options, gint64 step,
                    gint64 deadline_us, GError **error)
{
  g_autoptr (MusterAnnouncement) before = NULL;
  MusterClaim claim = {.model = options->model,
                       .task = options->task,
                       .take_over = TRUE,
                       .spares_living = muster_session_manager_lease (session) == NULL};
  g_autoptr (GError) failure = NULL;
  g_autoptr (MusterLease) lease =
      muster_session_claim (session, &claim, &before, deadline_us, NULL, &failure);
  if (muster_error_is (failure, MUSTER_ERROR_UNIMPLEMENTED)) {
    return muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED,
                        "%s doesn't store job state, so a job can't be marked as over there; use a "
                        "gateway: `muster serve --master=%s`",
                        options->target, options->target);
  }
  if (lease == NULL) {
    muster_cli_explain_no_answer (options, deadline_us, &failure);
    g_propagate_error (error, g_steal_pointer (&failure));
    return FALSE;
  }
  g_auto (MusterAnnouncement) over = MUSTER_ANNOUNCEMENT_INIT;
  over.phase = MUSTER_CHIEF_OVER;
  over.step = step;
  if (before != NULL) {
    /* what was saved may not have been announced as a step yet */
    over.step = step >= 0 ? step : MAX (before->step, before->durable_step);
    over.durable_step = before->durable_step;
    over.durable = g_strdup (before->durable);
  }
  if (!muster_lease_announce (lease, &over, deadline_us, NULL, error))
    return FALSE;
  tell (options, before, over.step);
  return TRUE;
}

/* The model's global step, if it has one and is initialised. */
static gint64
read_step (MusterSession *session, MusterScaffold *scaffold, gint64 deadline_us)
{
  if (scaffold == NULL || muster_scaffold_global_step (scaffold) == NULL)
    return -1;
  return muster_read_global_step (session, scaffold, deadline_us, NULL, NULL);
}

static MusterExit
finish (const MusterCliOptions *options, gint64 step)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterScaffold) scaffold = NULL;
  g_autoptr (MusterGraph) graph = NULL;
  if (options->meta_graph != NULL) {
    scaffold = muster_cli_scaffold (options, &error);
    if (scaffold == NULL)
      return muster_cli_fail (error);
    graph = muster_graph_ref (muster_scaffold_graph (scaffold));
  } else { /* a claim needs a session, and a session a graph */
    g_autoptr (GBytes) nothing = g_bytes_new_static ("", 0);
    graph = muster_graph_new (nothing);
  }
  g_autoptr (MusterMaster) master = muster_cli_master (options, &error);
  if (master == NULL)
    return muster_cli_fail (error);
  gint64 deadline_us =
      muster_deadline_after (muster_clock_now_us (muster_system_clock ()), options->timeout_us);
  g_autoptr (MusterSession) session =
      muster_cli_create_session (master, graph, options, deadline_us, &error);
  if (session != NULL) {
    gint64 last = step >= 0 ? step : read_step (session, scaffold, deadline_us);
    (void)muster_cli_end_job (session, options, last, deadline_us, &error);
    muster_session_close_quietly (session);
  }
  return error != NULL ? muster_cli_fail (error) : MUSTER_EXIT_DONE;
}

int
muster_cli_finish (int argc, char **argv)
{
  gint64 step = MUSTER_CLI_NOT_GIVEN;
  g_auto (MusterCliOptions) options = {0};
  g_autoptr (GError) error = NULL;
  const GOptionEntry entries[] = {
      {"meta-graph", 0, 0, G_OPTION_ARG_FILENAME, &options.meta_graph,
       "meta graph file: gives the model's name and step (default: none; requires --model)",
       "FILE"},
      {"step", 0, 0, G_OPTION_ARG_INT64, &step, "final step (default: the model's global step)",
       "N"},
      {NULL}};
  if (!muster_cli_parse (argc, argv, "", summary, entries,
                         MUSTER_CLI_MASTER | MUSTER_CLI_TIMEOUT | MUSTER_CLI_JSON |
                             MUSTER_CLI_MODEL | MUSTER_CLI_TASK | MUSTER_CLI_SECURITY |
                             MUSTER_CLI_SHARED,
                         &options, NULL, &error))
    return muster_cli_fail (error);
  if (step != MUSTER_CLI_NOT_GIVEN && step < 0) {
    muster_fail (&error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "finish: --step=%" G_GINT64_FORMAT " is out of range (use 0 or more)", step);
    return muster_cli_fail (error);
  }
  if (options.model == NULL) {
    fprintf (stderr,
             "muster: finish needs --model=NAME or --meta-graph=FILE; see `muster help finish`\n");
    return MUSTER_EXIT_BAD_INPUT;
  }
  return finish (&options, step);
}

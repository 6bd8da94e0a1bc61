// SPDX-License-Identifier: Apache-2.0
#include "cli/cli.h"

#include "bundle/checkpoint_state.h"
#include "train/training.h"

static const char summary[] =
    "The chief's part: opens a session on the master and makes the model ready. With "
    "--checkpoint-dir the latest\n"
    "checkpoint there is restored, with --checkpoint that one; where there is none, the model's "
    "init op runs. The model\n"
    "stays initialised on the master for the workers, which wait with `muster wait`.";

static void
print_person (const MusterSessionReport *report, MusterScaffold *scaffold, gint64 step)
{
  g_autofree char *spent = muster_cli_phases (report);
  gsize n = muster_scaffold_n_variables (scaffold);
  if (report->restored_from != NULL)
    printf ("restored %s: %" G_GSIZE_FORMAT " variables\n", report->restored_from, n);
  else
    printf ("initialised %" G_GSIZE_FORMAT " variables\n", n);
  if (step >= 0)
    printf ("ready at step %" G_GINT64_FORMAT " (%s)\n", step, spent);
  else
    printf ("ready (%s)\n", spent);
}

static void
print_json (const MusterSessionReport *report, MusterScaffold *scaffold, gint64 step)
{
  g_autoptr (JsonBuilder) builder = json_builder_new ();
  json_builder_begin_object (builder);
  json_builder_set_member_name (builder, "state");
  json_builder_add_string_value (builder, "ready");
  json_builder_set_member_name (builder, "restored_from");
  if (report->restored_from != NULL)
    json_builder_add_string_value (builder, report->restored_from);
  else
    json_builder_add_null_value (builder);
  json_builder_set_member_name (builder, "passed_over");
  if (report->passed_over != NULL)
    json_builder_add_string_value (builder, report->passed_over);
  else
    json_builder_add_null_value (builder);
  json_builder_set_member_name (builder, "variables");
  json_builder_add_int_value (builder, (gint64)muster_scaffold_n_variables (scaffold));
  json_builder_set_member_name (builder, "step");
  json_builder_add_int_value (builder, step);
  muster_cli_report_json (builder, report);
  json_builder_end_object (builder);
  muster_cli_print_json (builder);
}

/* The saver that restoring needs; NULL where nothing is to be restored, or with an error. */
static MusterSaver *
make_saver (MusterScaffold *scaffold, const char *directory, const char *prefix, GError **error)
{
  if (directory == NULL && prefix == NULL)
    return NULL;
  return muster_saver_new (muster_scaffold_meta_graph (scaffold), NULL, error);
}

int
muster_cli_prepare (int argc, char **argv)
{
  g_autofree char *directory = NULL;
  g_autofree char *prefix = NULL;
  g_auto (MusterCliOptions) options = {0};
  g_autoptr (GError) error = NULL;
  const GOptionEntry entries[] = {
      {"checkpoint-dir", 0, 0, G_OPTION_ARG_FILENAME, &directory,
       "restore the latest checkpoint of this directory, if any", "DIR"},
      {"checkpoint", 0, 0, G_OPTION_ARG_FILENAME, &prefix, "restore this checkpoint", "PREFIX"},
      {NULL}};
  if (!muster_cli_parse (argc, argv, "", summary, entries,
                         MUSTER_CLI_META_GRAPH | MUSTER_CLI_MASTER | MUSTER_CLI_TIMEOUT |
                             MUSTER_CLI_JSON,
                         &options, NULL, &error))
    return muster_cli_fail (error);
  g_autoptr (MusterScaffold) scaffold = muster_scaffold_load (options.meta_graph, &error);
  if (scaffold == NULL)
    return muster_cli_fail (error);
  g_autoptr (MusterMaster) master = muster_master_new_for_target (options.target, &error);
  g_autoptr (MusterSaver) saver =
      master == NULL ? NULL : make_saver (scaffold, directory, prefix, &error);
  g_autoptr (MusterSessionManager) manager =
      error != NULL ? NULL : muster_cli_manager (scaffold, 0, &error);
  if (manager == NULL)
    return muster_cli_fail (error);

  MusterPrepareOptions what = {
      .init_op = muster_scaffold_init_op (scaffold),
      .saver = saver,
      .checkpoint_dir = directory,
      .checkpoint_filename = prefix,
      .timeout_us = options.timeout_us,
  };
  g_auto (MusterSessionReport) report = {0};
  g_autoptr (MusterSession) session =
      muster_session_manager_prepare_session (manager, master, &what, &report, NULL, &error);
  if (session == NULL)
    return muster_cli_fail_verb (error, &report, &options);
  gint64 step =
      muster_scaffold_global_step (scaffold) == NULL
          ? -1
          : muster_read_global_step (session, scaffold, MUSTER_WAIT_FOREVER, NULL, &error);
  muster_session_close_quietly (session);
  if (error != NULL)
    return muster_cli_fail (error);
  if (report.passed_over != NULL)
    fprintf (stderr, "warning: passed over %s\n", report.passed_over);
  (options.json ? print_json : print_person) (&report, scaffold, step);
  return MUSTER_EXIT_DONE;
}

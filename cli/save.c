// SPDX-License-Identifier: Apache-2.0
#include "cli/cli.h"
#include "train/training.h"

static const char summary[] =
    "Saves the model's variables, as they are on the master, as DIR/model.ckpt-STEP, and returns "
    "once the checkpoint is\n"
    "durable and the latest of DIR. TensorFlow reads it. The master must see the same DIR.";

/* The saver numbers a checkpoint by the model's global step; one without a step is saved without a
 * number. */
static char *
save (MusterScaffold *scaffold, MusterSession *session, const char *directory, gint64 deadline_us,
      GError **error)
{
  g_autoptr (MusterSaver) saver =
      muster_saver_new (muster_scaffold_meta_graph (scaffold), NULL, error);
  if (saver == NULL || !muster_saver_adopt_directory (saver, directory, error))
    return NULL;
  gint64 step = -1;
  if (muster_scaffold_global_step (scaffold) != NULL) {
    step = muster_read_global_step (session, scaffold, deadline_us, NULL, error);
    if (step < 0)
      return NULL;
  }
  return muster_saver_save (saver, session, directory, step, deadline_us, NULL, error);
}

int
muster_cli_save (int argc, char **argv)
{
  g_autofree char *directory = NULL;
  g_auto (MusterCliOptions) options = {0};
  g_autoptr (GError) error = NULL;
  const GOptionEntry entries[] = {{"checkpoint-dir", 0, 0, G_OPTION_ARG_FILENAME, &directory,
                                   "the directory of the checkpoints", "DIR"},
                                  {NULL}};
  if (!muster_cli_parse (argc, argv, "", summary, entries, MUSTER_CLI_SESSION, &options, NULL,
                         &error))
    return muster_cli_fail (error);
  if (directory == NULL) {
    fprintf (stderr, "muster: save needs --checkpoint-dir=DIR; try `muster save --help`\n");
    return MUSTER_EXIT_BAD_INPUT;
  }
  g_autoptr (MusterScaffold) scaffold = muster_scaffold_load (options.meta_graph, &error);
  g_autoptr (MusterMaster) master = scaffold == NULL ? NULL : muster_cli_master (&options, &error);
  if (master == NULL)
    return muster_cli_fail (error);
  gint64 started_us = muster_clock_now_us (muster_system_clock ());
  gint64 deadline_us = muster_deadline_after (started_us, options.timeout_us);
  g_autoptr (MusterSession) session = muster_master_create_session (
      master, muster_scaffold_graph (scaffold), NULL, deadline_us, NULL, &error);
  if (session == NULL)
    return muster_cli_fail (error);
  g_autofree char *prefix = save (scaffold, session, directory, deadline_us, &error);
  muster_session_close_quietly (session);
  if (prefix == NULL)
    return muster_cli_fail (error);
  gint64 took_us = muster_clock_now_us (muster_system_clock ()) - started_us;
  if (options.json) {
    g_autoptr (JsonBuilder) builder = muster_json_new_line ();
    muster_json_add_string (builder, "saved", prefix);
    muster_json_add_seconds (builder, "seconds", took_us);
    muster_json_print_line (builder);
  } else {
    g_autofree char *took = muster_format_duration (took_us);
    muster_cli_say (stdout, "saved %s, durable, in %s\n", prefix, took);
  }
  return MUSTER_EXIT_DONE;
}

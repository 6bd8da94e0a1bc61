// SPDX-License-Identifier: Apache-2.0
/* A program that knows muster only as it is installed: prepares a model on the engine, trains three
 * steps, saves. */
#include <muster.h>
#include <stdio.h>

static gboolean
train (MusterSession *session, MusterScaffold *scaffold, GError **error)
{
  const char *targets[] = {muster_scaffold_train_op (scaffold)};
  const gint64 dims[] = {1};
  const float one = 1;
  g_autoptr (MusterTensor) x =
      muster_tensor_new_from_data (MUSTER_FLOAT, 1, dims, &one, sizeof one, error);
  const MusterFeed feeds[] = {{"x:0", x}, {"y:0", x}};
  MusterStep step = {.feeds = feeds, .n_feeds = 2, .targets = targets, .n_targets = 1};

  for (int i = 0; i < 3; i++)
    if (!muster_session_run (session, &step, NULL, NULL, NULL, error))
      return FALSE;
  return TRUE;
}

static gboolean
work (const char *meta_graph, const char *directory, GError **error)
{
  muster_local_master_offer ();
  g_autoptr (MusterScaffold) scaffold = muster_scaffold_load (meta_graph, error);
  g_autoptr (MusterMaster) master = muster_master_new_for_target ("local", error);
  if (scaffold == NULL || master == NULL)
    return FALSE;

  MusterSessionManagerOptions options = {.ready_op = muster_scaffold_ready_op (scaffold),
                                         .local_init_op = muster_scaffold_local_init_op (scaffold)};
  g_autoptr (MusterSessionManager) manager =
      muster_session_manager_new (muster_scaffold_graph (scaffold), &options, error);
  g_autoptr (MusterSaver) saver =
      muster_saver_new (muster_scaffold_meta_graph (scaffold), NULL, error);
  if (manager == NULL || saver == NULL)
    return FALSE;

  MusterPrepareOptions preparing = {
      .init_op = muster_scaffold_init_op (scaffold), .saver = saver, .checkpoint_dir = directory};
  g_autoptr (MusterSession) session =
      muster_session_manager_prepare_session (manager, master, &preparing, NULL, NULL, error);
  if (session == NULL || !train (session, scaffold, error))
    return FALSE;

  gint64 step = muster_read_global_step (session, scaffold, MUSTER_WAIT_FOREVER, NULL, error);
  g_autofree char *prefix = step < 0 ? NULL
                                     : muster_saver_save (saver, session, directory, step,
                                                          MUSTER_WAIT_FOREVER, NULL, error);
  if (prefix == NULL)
    return FALSE;

  printf ("saved %s\n", prefix);
  return TRUE;
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  if (argc == 3 && work (argv[1], argv[2], &error))
    return 0;

  fprintf (stderr, "%s\n", error ? error->message : "usage: user META_GRAPH DIRECTORY");
  return 1;
}

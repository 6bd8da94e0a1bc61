// SPDX-License-Identifier: Apache-2.0
/* muster's side of train_test.py: a chief trains the model of a meta graph in a monitored session,
 * by its train op alone, until a stop or the end of its input.
 *
 * train_tool META TARGET LAST_STEP [DIRECTORY]: TARGET is "local" or grpc://…; LAST_STEP 0: until
 * the input ends. With a directory: checkpoints every five steps, summaries and the speed every
 * two, timelines every three. Prints "step N", and what ended the input. */
#include "engine/session/local_master.h"
#include "master/remote/remote_master.h"
#include "train/monitored_training.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static MusterMaster *
open_master (const char *target, GError **error)
{
  if (strcmp (target, "local") == 0)
    return muster_local_master_new ();
  return muster_remote_master_new (target + strlen ("grpc://"), error);
}

static gboolean
train (MusterMonitoredSession *session, MusterScaffold *scaffold, GError **error)
{
  const char *targets[] = {muster_scaffold_train_op (scaffold)};
  MusterStep step = {.targets = targets, .n_targets = 1};
  while (!muster_monitored_session_should_stop (session))
    if (!muster_monitored_session_run (session, &step, NULL, NULL, error))
      return FALSE;
  return TRUE;
}

/* Feeds x and y where the model has them. */
static gboolean
feed (MusterTensor **feeds, gint64 deadline_us G_GNUC_UNUSED,
      GCancellable *cancellable G_GNUC_UNUSED, gpointer user_data G_GNUC_UNUSED, GError **error)
{
  const gint64 dims[] = {2};
  const float x[] = {1, 2}, y[] = {3, 5};
  feeds[0] = muster_tensor_new_from_data (MUSTER_FLOAT, 1, dims, x, sizeof x, error);
  feeds[1] = muster_tensor_new_from_data (MUSTER_FLOAT, 1, dims, y, sizeof y, error);
  return TRUE;
}

static gboolean
add (GPtrArray *hooks, MusterHook *hook)
{
  if (hook != NULL)
    g_ptr_array_add (hooks, hook);
  return hook != NULL;
}

static gboolean
add_hooks (GPtrArray *hooks, MusterScaffold *scaffold, gint64 last_step, const char *directory,
           MusterEventWriter *writer, GError **error)
{
  static const char *const fed[] = {"x:0", "y:0", NULL};
  gboolean has_feeds = muster_graph_has_node (muster_scaffold_graph (scaffold), "x");
  return (last_step == 0 || add (hooks, muster_stop_at_step_hook_new (0, last_step, error))) &&
         (directory == NULL ||
          add (hooks, muster_profiler_hook_new (3, 0, directory, writer, NULL, error))) &&
         (!has_feeds || add (hooks, muster_feed_func_hook_new (fed, feed, NULL, NULL)));
}

static gboolean
run (const char *meta, const char *target, gint64 last_step, const char *directory, GError **error)
{
  g_autoptr (MusterScaffold) scaffold = muster_scaffold_load (meta, error);
  g_autoptr (MusterMaster) master = scaffold != NULL ? open_master (target, error) : NULL;
  g_autoptr (GPtrArray) hooks = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (MusterEventWriter) writer =
      master != NULL && directory != NULL ? muster_event_writer_new (directory, NULL, error) : NULL;
  g_autoptr (GError) failure = NULL;

  if (master == NULL || (directory != NULL && writer == NULL) ||
      !add_hooks (hooks, scaffold, last_step, directory, writer, error))
    return FALSE;
  MusterMonitoredTrainingOptions options = {.scaffold = scaffold,
                                            .master = master,
                                            .saving.checkpoint_dir = directory,
                                            .saving.save_steps = 5,
                                            .saving.save_blocking = TRUE, /* as TensorFlow saves */
                                            .save_summaries_steps = 2,
                                            .log_step_count_steps = 2,
                                            .hooks = (MusterHook *const *)hooks->pdata,
                                            .n_hooks = hooks->len};
  g_autoptr (MusterMonitoredSession) session =
      muster_monitored_training_session_new (&options, NULL, NULL, error);
  if (session == NULL)
    return FALSE;
  (void)train (session, scaffold, &failure);
  if (!muster_monitored_session_finish (session, failure, MUSTER_WAIT_FOREVER, error))
    return FALSE;
  const char *end = muster_monitored_session_end_of_input (session);
  printf ("step %" G_GINT64_FORMAT "\n%s\n", muster_monitored_session_global_step (session),
          end != NULL ? end : "");
  return TRUE;
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  if (argc < 4 || argc > 5 ||
      !run (argv[1], argv[2], atoi (argv[3]), argc > 4 ? argv[4] : NULL, &error)) {
    fprintf (stderr, "%s\n",
             error != NULL ? error->message : "usage: META TARGET LAST_STEP [DIRECTORY]");
    return 1;
  }
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* A job of epochs on nodes that are processes of their own: each trains the digits model, in an
 * order of rows of its own, and all are saved together after each epoch. Killed and started again,
 * with the same nodes or new ones, it goes on after the last epoch that every node has whole.
 *
 *   muster serve --listen=localhost:7000 & muster serve --listen=localhost:7001 &
 *   mkdir run
 *   job digits.meta digits_x.npy digits_y.npy run 20 grpc://localhost:7000 grpc://localhost:7001 */
#include "graph/npy.h"
#include "jobs/job_runner.h"
#include "master/remote/target.h"
#include "train/position/batches.h"
#include "train/train.h"

#include <stdio.h>
#include <stdlib.h>

#define BATCH    32
#define OPEN_US  (60 * MUSTER_SECOND)  /* for the nodes to answer */
#define STAGE_US (300 * MUSTER_SECOND) /* for an epoch, a save, a load */
#define USAGE    "usage: job MODEL.meta IMAGES.npy LABELS.npy DIRECTORY EPOCHS TARGET...\n"

/* A node's data. */
typedef struct {
  MusterTensor *arrays[2]; /* (not owned) images and labels */
  MusterBatches *batches;  /* (owned) */
} Data;

/* One epoch: every row once. Where it begins follows from the node's global step. */
static gboolean
train (MusterClusterNode *node, gint64 deadline_us, GCancellable *cancellable, gpointer user_data,
       GError **error)
{
  Data *data = user_data;
  const gint64 n = muster_tensor_dims (data->arrays[0])[0] / BATCH;
  const gint64 step =
      muster_read_global_step (node->session, node->scaffold, deadline_us, cancellable, error);
  if (step < 0)
    return FALSE;
  muster_batches_seek (data->batches, step);
  for (gint64 i = 0; i < n; i++) {
    MusterTensor *batch[2];
    muster_batches_next (data->batches, batch);
    g_autoptr (MusterTensor) x = batch[0], y = batch[1];
    const MusterFeed feeds[] = {{"x:0", x}, {"y:0", y}};
    const char *targets[] = {"train"};
    const MusterStep run = {.feeds = feeds,
                            .n_feeds = 2,
                            .targets = targets,
                            .n_targets = 1,
                            .deadline_us = deadline_us};
    if (!muster_session_run (node->session, &run, NULL, NULL, cancellable, error))
      return FALSE;
  }
  return TRUE;
}

/* When all epochs are over: how much of it all the node's model names rightly. */
static gboolean
test (MusterClusterNode *node, gint64 deadline_us, GCancellable *cancellable, gpointer user_data,
      GError **error)
{
  Data *data = user_data;
  const MusterFeed feeds[] = {{"x:0", data->arrays[0]}, {"y:0", data->arrays[1]}};
  const char *fetch = "accuracy:0";
  const MusterStep run = {
      .feeds = feeds, .n_feeds = 2, .fetches = &fetch, .n_fetches = 1, .deadline_us = deadline_us};
  g_autoptr (MusterTensor) accuracy = NULL;
  double share;
  if (!muster_session_run (node->session, &run, &accuracy, NULL, cancellable, error) ||
      !muster_tensor_get_double (accuracy, &share, error))
    return FALSE;
  printf ("%s accuracy=%.3f\n", node->name, share);
  return TRUE;
}

static gboolean
add_task (MusterJobGroup *group, const char *node, const MusterJobStep *step, GError **error)
{
  g_autoptr (MusterJobTask) task = muster_job_task_new (NULL, node, 1);
  return muster_job_task_set_step (task, step, error) && muster_job_group_add (group, task, error);
}

/* What a node does: the model's init op, an epoch of batches, the test. */
static gboolean
add_node (MusterJob *job, const char *node, const char *init_op, Data *data, GError **error)
{
  const char *inits[] = {init_op, NULL};
  const MusterJobStep init = {.name = "init", .targets = inits};
  const MusterJobStep epoch = {.name = "train", .func = train, .user_data = data};
  const MusterJobStep last = {.name = "test", .func = test, .user_data = data};
  return add_task (muster_job_init_group (job), node, &init, error) &&
         add_task (muster_job_epoch_group (job), node, &epoch, error) &&
         add_task (muster_job_download_group (job), node, &last, error);
}

static gboolean
on_epoch (MusterJobRunner *runner G_GNUC_UNUSED, gint64 epoch, gpointer user_data G_GNUC_UNUSED)
{
  printf ("epoch %" G_GINT64_FORMAT "\n", epoch);
  return fflush (stdout) != 0; /* stops the job */
}

static gboolean
run (char **argv, int n_nodes, GError **error)
{
  g_autoptr (MusterMetaGraph) plain = muster_meta_graph_load (argv[1], error);
  g_autoptr (MusterMetaGraph) model =
      plain != NULL ? muster_epoch_counter_add (plain, error) : NULL;
  g_autoptr (MusterTensor) x = model != NULL ? muster_npy_load (argv[2], error) : NULL;
  g_autoptr (MusterTensor) y = x != NULL ? muster_npy_load (argv[3], error) : NULL;
  g_autoptr (MusterCluster) cluster = muster_cluster_new (NULL);
  g_autoptr (MusterJob) job = muster_job_new ();
  g_autofree Data *data = g_new0 (Data, n_nodes);
  gboolean well = y != NULL;
  for (int i = 0; well && i < n_nodes; i++) {
    g_autofree char *node = g_strdup_printf ("trainer_%d", i);
    g_autoptr (MusterMaster) master = muster_master_new_for_target (argv[6 + i], error);
    data[i] = (Data){.arrays = {x, y}};
    data[i].batches = muster_batches_new (data[i].arrays, 2, BATCH, i, error);
    well = master != NULL && data[i].batches != NULL &&
           muster_cluster_add (cluster, node, master, model, error) &&
           add_node (job, node, muster_meta_graph_op (model, "init_op"), &data[i], error);
  }
  g_autoptr (MusterJobStateFile) state = muster_job_state_file_new ();
  g_autoptr (MusterJobCheckpoint) checkpoint =
      muster_job_checkpoint_new (argv[4], NULL, MUSTER_JOB_METADATA (state), NULL);
  const MusterJobRunnerOptions how = {.stay_finished = TRUE, .stage_timeout_us = STAGE_US};
  g_autoptr (MusterJobRunner) runner =
      muster_job_runner_new (job, checkpoint, MUSTER_NO_EPOCH, &how);
  g_signal_connect (runner, "epoch-done", G_CALLBACK (on_epoch), NULL);
  gint64 last = 0;
  well = well && muster_job_limit_epochs (job, "trainer_0", atoll (argv[5]), error) &&
         muster_cluster_open (cluster, OPEN_US, NULL, error) &&
         muster_job_runner_train (runner, cluster, &last, MUSTER_WAIT_FOREVER, NULL, error);
  if (well)
    printf ("trained to epoch %" G_GINT64_FORMAT "\n", last);
  for (int i = 0; i < n_nodes; i++)
    g_clear_pointer (&data[i].batches, muster_batches_free);
  return well;
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  if (argc < 7) {
    fprintf (stderr, USAGE);
    return 3;
  }
  if (run (argv, argc - 6, &error))
    return 0;
  fprintf (stderr, "job: %s\n", error->message);
  return 4;
}

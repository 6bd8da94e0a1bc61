// SPDX-License-Identifier: Apache-2.0
/* One task of a training job on a TensorFlow cluster, in C: TF_CONFIG says which. The chief makes
 * the model ready and saves it, workers wait for it; each has its sessions on the server of its own
 * task, and the variables are where the model puts them, on the parameter servers.
 *
 *   TF_CONFIG='{"cluster": {"ps": ["localhost:2221"], "chief": ["localhost:2222"]},
 *               "task": {"type": "chief", "index": 0}}' task digits.meta DATA run 2000
 *
 * cluster.sh starts servers, and such a task beside one of them. */
#include "graph/npy.h"
#include "session/cluster/cluster_spec.h"
#include "train/train.h"

#include <stdio.h>

#define BATCH        32
#define SAVE_EVERY   200
#define STEP_TIMEOUT (20 * MUSTER_SECOND)  /* much longer than a step */
#define PATIENCE     (120 * MUSTER_SECOND) /* for each session */

static const char *const feeds[] = {"x:0", "y:0"};

static void
on_ready (MusterTrainingObserver *observer G_GNUC_UNUSED, const MusterSessionReport *report,
          gint64 step, gpointer user_data G_GNUC_UNUSED)
{
  const char *from = report->restored_from;
  printf ("ready at step %" G_GINT64_FORMAT "%s%s\n", step, from != NULL ? ", restored from " : "",
          from != NULL ? from : "");
}

static void
on_lost (MusterTrainingObserver *observer G_GNUC_UNUSED, const GError *why, guint n G_GNUC_UNUSED,
         gint64 pause_us G_GNUC_UNUSED, gpointer user_data G_GNUC_UNUSED)
{
  g_autofree char *line = g_strdelimit (g_strdup (why->message), "\n", ' ');
  printf ("lost: %s\n", g_strstrip (line));
}

/* While there is no session: "up, but CreateSession has had no answer for 2.0 s; no answer from
 * ps:0". */
static void
on_waiting (MusterTrainingObserver *observer G_GNUC_UNUSED, const char *message G_GNUC_UNUSED,
            const MusterReadiness *readiness G_GNUC_UNUSED, GPtrArray *reasons,
            gpointer user_data G_GNUC_UNUSED)
{
  const MusterReason *first = muster_reasons_first (reasons);
  if (first != NULL)
    printf ("waiting: %s\n", first->text);
}

static void
on_saved (MusterTrainingObserver *observer G_GNUC_UNUSED, const MusterSaved *saved,
          gpointer user_data G_GNUC_UNUSED)
{
  if (!saved->skipped)
    printf ("saved %s\n", saved->prefix);
}

/* The data, as batches in an order of this task's own. */
static MusterBatches *
load_batches (const char *folder, guint task, GError **error)
{
  g_autofree char *x = g_build_filename (folder, "digits_x.npy", NULL);
  g_autofree char *y = g_build_filename (folder, "digits_y.npy", NULL);
  g_autoptr (MusterTensor) images = muster_npy_load (x, error);
  g_autoptr (MusterTensor) labels = images == NULL ? NULL : muster_npy_load (y, error);
  MusterTensor *arrays[] = {images, labels};
  return labels == NULL ? NULL
                        : muster_batches_new (arrays, G_N_ELEMENTS (arrays), BATCH, task, error);
}

static gboolean
train (const MusterClusterSpec *cluster, MusterScaffold *scaffold, MusterMaster *master,
       MusterBatches *batches, char **argv, GError **error)
{
  g_autoptr (MusterTrainingObserver) observer = muster_training_observer_new ();
  g_signal_connect (observer, "waiting", G_CALLBACK (on_waiting), NULL);
  g_signal_connect (observer, "ready", G_CALLBACK (on_ready), NULL);
  g_signal_connect (observer, "lost", G_CALLBACK (on_lost), NULL);
  g_signal_connect (observer, "saved", G_CALLBACK (on_saved), NULL);
  const gint number = muster_cluster_spec_trainer (cluster);
  g_autofree char *task = g_strdup_printf ("%s:%u", muster_cluster_spec_job (cluster),
                                           muster_cluster_spec_index (cluster));
  g_auto (GStrv) peers = muster_cluster_spec_peers (cluster);
  g_autofree char *chief = muster_cluster_spec_chief (cluster);
  g_autoptr (GBytes) config = muster_cluster_spec_config (cluster, NULL, NULL);
  const MusterTraining training = {.session = {.scaffold = scaffold,
                                               .master = master,
                                               .is_worker = number > 0,
                                               .n_tasks = muster_cluster_spec_n_trainers (cluster),
                                               .manager = {.task = task,
                                                           .cluster = (const char *const *)peers,
                                                           .chief = chief,
                                                           .config = config},
                                               .saving.checkpoint_dir = argv[3],
                                               .saving.save_steps = SAVE_EVERY,
                                               .timeout_us = PATIENCE,
                                               .step_timeout_us = STEP_TIMEOUT},
                                   .task_number = (guint)number,
                                   .batches = batches,
                                   .feeds = feeds,
                                   .n_feeds = G_N_ELEMENTS (feeds),
                                   .loss = "loss:0",
                                   .until_step = g_ascii_strtoll (argv[4], NULL, 10),
                                   .without_positions = TRUE, /* those are one master's */
                                   .ends_job = number == 0,
                                   .observer = observer};
  g_auto (MusterTrained) trained = {.step = -1};
  gboolean is_done = muster_train (&training, &trained, NULL, error);
  if (is_done)
    printf ("done at step %" G_GINT64_FORMAT "\n", trained.step);
  return is_done;
}

static gboolean
run (char **argv, GError **error)
{
  g_autoptr (MusterClusterSpec) cluster = muster_cluster_spec_new (g_getenv ("TF_CONFIG"), error);
  if (cluster == NULL)
    return FALSE;
  if (muster_cluster_spec_trainer (cluster) < 0) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "a %s doesn't train: its server is all there is to start",
                        muster_cluster_spec_job (cluster));
  }
  g_autoptr (MusterMaster) master = muster_cluster_spec_master (cluster, NULL, error);
  g_autoptr (MusterScaffold) scaffold =
      master == NULL ? NULL : muster_scaffold_load (argv[1], error);
  g_autoptr (MusterBatches) batches =
      scaffold == NULL
          ? NULL
          : load_batches (argv[2], (guint)muster_cluster_spec_trainer (cluster), error);
  return batches != NULL && train (cluster, scaffold, master, batches, argv, error);
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  if (argc != 5) {
    fprintf (stderr, "usage: task MODEL DATA-FOLDER CHECKPOINT-DIR STEPS, with TF_CONFIG set\n");
    return 3;
  }
  setvbuf (stdout, NULL, _IOLBF, 0);
  if (run (argv, &error))
    return 0;
  fprintf (stderr, "task: %s\n", error->message);
  return 4;
}

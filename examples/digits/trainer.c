// SPDX-License-Identifier: Apache-2.0
/* One task of a training job in C. Task 0 is the chief, which prepares the model, saves it and ends
 * the job; the others are workers, which wait for it and train along. In four terminals:
 *
 *   muster serve --listen=localhost:2222
 *   trainer 0 grpc://localhost:2222 run
 *   trainer 1 grpc://localhost:2222
 *   trainer 2 grpc://localhost:2222
 *
 * `muster train` does the same with a model of yours; this is where to begin with a program of your
 * own. */
#include "graph/npy.h"
#include "master/remote/remote_master.h"
#include "train/train.h"

#include <stdio.h>

#define MODEL   "tests/fixtures/digits.meta"
#define IMAGES  "tests/fixtures/digits_x.npy"
#define LABELS  "tests/fixtures/digits_y.npy"
#define N_TASKS 3
#define BATCH   32
#define EPOCHS  40

static const char *const feeds[] = {"x:0", "y:0"};

/* The model is ready: restored, initialised, or made ready by the chief. */
static void
on_ready (MusterTrainingObserver *observer G_GNUC_UNUSED, const MusterSessionReport *report,
          gint64 step, gpointer user_data G_GNUC_UNUSED)
{
  const char *from = report->restored_from;
  printf ("ready at step %" G_GINT64_FORMAT "%s%s\n", step, from != NULL ? ", restored from " : "",
          from != NULL ? from : "");
}

/* Twenty times a second; TRUE would end the training. */
static gboolean
on_progress (MusterTrainingObserver *observer G_GNUC_UNUSED, const MusterTrainingState *state,
             gpointer user_data G_GNUC_UNUSED)
{
  printf ("step %" G_GINT64_FORMAT ", %.0f steps/s, loss %.3f\n", state->step,
          state->steps_per_second, state->loss);
  return FALSE;
}

/* How many of the digits the trained model names rightly; any program can look at it. */
static gboolean
test (MusterScaffold *scaffold, MusterMaster *master, MusterTensor *const *arrays, GError **error)
{
  const char *fetch = "accuracy:0";
  const MusterFeed fed[] = {{feeds[0], arrays[0]}, {feeds[1], arrays[1]}};
  const MusterStep step = {.feeds = fed, .n_feeds = 2, .fetches = &fetch, .n_fetches = 1};
  g_autoptr (MusterTensor) accuracy = NULL;
  g_autoptr (MusterSession) session = muster_master_create_session (
      master, muster_scaffold_graph (scaffold), NULL, MUSTER_WAIT_FOREVER, NULL, error);
  double share;
  if (session == NULL || !muster_session_run (session, &step, &accuracy, NULL, NULL, error) ||
      !muster_tensor_get_double (accuracy, &share, error))
    return FALSE;
  printf ("accuracy %.4f\n", share);
  muster_session_close_quietly (session);
  return TRUE;
}

static gboolean
run (guint task, const char *target, const char *directory, GError **error)
{
  g_autoptr (MusterTensor) images = muster_npy_load (IMAGES, error);
  g_autoptr (MusterTensor) labels = images == NULL ? NULL : muster_npy_load (LABELS, error);
  g_autoptr (MusterScaffold) scaffold = labels == NULL ? NULL : muster_scaffold_load (MODEL, error);
  g_autoptr (MusterMaster) master =
      scaffold == NULL ? NULL : muster_remote_master_new (target, error);
  if (master == NULL)
    return FALSE;
  MusterTensor *arrays[] = {images, labels};
  g_autoptr (MusterBatches) batches =
      muster_batches_new (arrays, G_N_ELEMENTS (arrays), BATCH, 1, error);
  g_autoptr (MusterTrainingObserver) observer = muster_training_observer_new ();
  g_signal_connect (observer, "ready", G_CALLBACK (on_ready), NULL);
  g_signal_connect (observer, "progress", G_CALLBACK (on_progress), NULL);
  const MusterTraining training = {.session = {.scaffold = scaffold,
                                               .master = master,
                                               .is_worker = task > 0,
                                               .n_tasks = N_TASKS,
                                               .manager = {.model = "digits"},
                                               .saving.checkpoint_dir = directory,
                                               .saving.save_steps = 500},
                                   .task_number = task,
                                   .batches = batches,
                                   .feeds = feeds,
                                   .n_feeds = G_N_ELEMENTS (feeds),
                                   .loss = "loss:0",
                                   .epochs = EPOCHS,
                                   .ends_job = task == 0,
                                   .observer = observer};
  return batches != NULL && muster_train (&training, NULL, NULL, error) &&
         test (scaffold, master, arrays, error);
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  guint64 task = 0;
  if (argc < 3 || !g_ascii_string_to_unsigned (argv[1], 10, 0, N_TASKS - 1, &task, NULL) ||
      argc != (task == 0 ? 4 : 3)) {
    fprintf (stderr, "usage: trainer 0 TARGET DIRECTORY, or trainer 1|2 TARGET\n");
    return 3;
  }
  if (run ((guint)task, argv[2], argv[3], &error))
    return 0;
  fprintf (stderr, "trainer: %s\n", error->message);
  return 4;
}

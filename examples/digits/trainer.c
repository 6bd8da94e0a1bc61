// SPDX-License-Identifier: Apache-2.0
/* One task of the digits job, as a program of yours would be: a chief that prepares the model,
 * trains and saves, or a worker that waits for it and trains along. What happens is told on stdout
 * in lines of "EVENT key=value …", times in microseconds on the machine's monotonic clock. */
#include "base/clock.h"
#include "master/remote_master.h"
#include "session/session_manager.h"
#include "train/npy.h"
#include "train/training.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TRAINING_ROWS 1500 /* the rest is for the test */
#define BATCH         32

static gboolean is_chief;
static int seed;
static char *meta_graph, *target, *images, *labels, *checkpoint_dir, *task;
static gint64 until_step = 3000;
static gint64 save_every = 500;

static void
tell (const char *event, const char *format, ...)
{
  va_list arguments;
  printf ("%s t=%" G_GINT64_FORMAT " ", event, muster_clock_now_us (muster_system_clock ()));
  va_start (arguments, format);
  vprintf (format, arguments);
  va_end (arguments);
  printf ("\n");
  fflush (stdout);
}

/* The pictures and what they show. */
typedef struct {
  MusterTensor *x; /* (not owned) */
  MusterTensor *y; /* (not owned) */
} Digits;

/* Rows of an array as a view over it. */
static MusterTensor *
rows (MusterTensor *array, gint64 first, gint64 n, GError **error)
{
  gint64 dims[MUSTER_MAX_DIMS];
  int n_dims = muster_tensor_n_dims (array);
  memcpy (dims, muster_tensor_dims (array), (gsize)n_dims * sizeof *dims);
  gsize row = muster_tensor_n_bytes (array) / (gsize)dims[0];
  g_autoptr (GBytes) all = muster_tensor_to_bytes (array);
  g_autoptr (GBytes) some = g_bytes_new_from_bytes (all, (gsize)first * row, (gsize)n * row);
  dims[0] = n;
  return muster_tensor_new_from_bytes (muster_tensor_dtype (array), n_dims, dims, some, error);
}

/* Why it waits, in a few words: what everything else waits for. */
static void
on_waiting (const char *message, const MusterTurn *turn G_GNUC_UNUSED, GPtrArray *reasons,
            gpointer user_data G_GNUC_UNUSED)
{
  for (guint i = 0; i < reasons->len; i++) {
    const MusterReason *it = g_ptr_array_index (reasons, i);
    if (it->is_well)
      continue;
    tell ("waiting", "for=%s state=%s why=%s", it->component, it->state, it->text);
    return;
  }
  tell ("waiting", "for=master state=unknown why=%s", message);
}

static gboolean
on_step (gint64 step, float loss, gpointer user_data)
{
  static gint64 told_us;
  (void)user_data;
  gint64 now_us = muster_clock_now_us (muster_system_clock ());
  if (now_us - told_us >= 50 * MUSTER_MILLISECOND) {
    tell ("step", "step=%" G_GINT64_FORMAT " loss=%.3f", step, (double)loss);
    told_us = now_us;
  }
  return TRUE;
}

static void
on_saved (const char *prefix, gint64 step, gpointer user_data)
{
  (void)user_data;
  tell ("saved", "step=%" G_GINT64_FORMAT " prefix=%s", step, prefix);
}

/* The share of the test rows that the model names rightly. */
static gboolean
test (MusterSession *session, const char *event, const Digits *digits, GError **error)
{
  gint64 n = muster_tensor_dims (digits->x)[0] - TRAINING_ROWS;
  g_autoptr (MusterTensor) some_x = rows (digits->x, TRAINING_ROWS, n, error);
  g_autoptr (MusterTensor) some_y =
      some_x == NULL ? NULL : rows (digits->y, TRAINING_ROWS, n, error);
  if (some_y == NULL)
    return FALSE;
  MusterFeed feeds[] = {{"x:0", some_x}, {"y:0", some_y}};
  const char *fetch = "accuracy:0";
  MusterStep step = {.feeds = feeds,
                     .n_feeds = 2,
                     .fetches = &fetch,
                     .n_fetches = 1,
                     .deadline_us = MUSTER_WAIT_FOREVER};
  g_autoptr (MusterTensor) accuracy = NULL;
  if (!muster_session_run (session, &step, &accuracy, NULL, NULL, error))
    return FALSE;
  tell (event, "rows=%" G_GINT64_FORMAT " accuracy=%.4f", n,
        (double)*(const float *)muster_tensor_data (accuracy));
  return TRUE;
}

/* The chief's init function, after the init op and before any worker may join: notes how well the
 * model does that has learnt nothing yet. */
static gboolean
on_initialised (MusterSession *session, gpointer user_data, GError **error)
{
  return test (session, "initialised", user_data, error);
}

/* The chief restores the latest checkpoint or runs the init ops; a worker waits until that is done.
 * NULL without an error: the job is over already. */
static MusterSession *
open_session (MusterScaffold *scaffold, MusterMaster *master, MusterSaver *saver, Digits *digits,
              GError **error)
{
  MusterSessionManagerOptions options = {
      .local_init_op = muster_scaffold_local_init_op (scaffold),
      .ready_op = muster_scaffold_ready_op (scaffold),
      .ready_for_local_init_op = muster_scaffold_ready_for_local_init_op (scaffold),
      .model = "digits",
      .task = task,
      .meta_graph = muster_scaffold_meta_graph (scaffold),
  };
  g_autoptr (MusterSessionManager) manager =
      muster_session_manager_new (muster_scaffold_graph (scaffold), &options, error);
  if (manager == NULL)
    return NULL;
  g_auto (MusterSessionReport) report = {0};
  MusterSession *session = NULL;
  if (is_chief) {
    MusterRestoreOptions restore = {.count_deaths = TRUE};
    MusterPrepareOptions prepare = {.init_op = muster_scaffold_init_op (scaffold),
                                    .init_func = on_initialised,
                                    .init_func_data = digits,
                                    .saver = saver,
                                    .restore = &restore,
                                    .checkpoint_dir = checkpoint_dir,
                                    .timeout_us = 30 * MUSTER_SECOND};
    tell ("preparing", "");
    session =
        muster_session_manager_prepare_session (manager, master, &prepare, &report, NULL, error);
  } else {
    muster_session_manager_set_progress (manager, on_waiting, NULL);
    g_autoptr (GError) failure = NULL;
    session = muster_session_manager_wait_for_session (manager, master, 30 * MUSTER_SECOND, &report,
                                                       NULL, &failure);
    if (session == NULL && report.outcome == MUSTER_OUTCOME_OVER)
      tell ("over", "step=%" G_GINT64_FORMAT, report.final_step);
    else if (session == NULL)
      g_propagate_error (error, g_steal_pointer (&failure));
  }
  if (session != NULL)
    tell ("ready", "variables=%" G_GSIZE_FORMAT " restored=%s",
          muster_scaffold_n_variables (scaffold),
          report.restored_from != NULL ? report.restored_from : "no");
  return session;
}

static gboolean
train (MusterSession *session, MusterScaffold *scaffold, MusterSaver *saver, const Digits *digits,
       GError **error)
{
  g_autoptr (MusterTensor) some_x = rows (digits->x, 0, TRAINING_ROWS, error);
  g_autoptr (MusterTensor) some_y =
      some_x == NULL ? NULL : rows (digits->y, 0, TRAINING_ROWS, error);
  if (some_y == NULL)
    return FALSE;
  MusterTensor *arrays[] = {some_x, some_y};
  g_autoptr (MusterBatches) batches = muster_batches_new (arrays, 2, BATCH, (guint64)seed, error);
  if (batches == NULL)
    return FALSE;
  const char *feeds[] = {"x:0", "y:0"};
  MusterTraining training = {.batches = batches,
                             .feeds = feeds,
                             .n_feeds = 2,
                             .loss = "loss:0",
                             .until_step = until_step,
                             .saver = saver,
                             .checkpoint_dir = checkpoint_dir,
                             .save_every_steps = save_every,
                             .lease = muster_session_manager_lease (session),
                             .ends_job = is_chief,
                             .progress = on_step,
                             .saved = on_saved};
  gint64 step = 0;
  if (!muster_train (session, scaffold, &training, &step, NULL, error))
    return FALSE;
  tell ("trained", "step=%" G_GINT64_FORMAT, step);
  return TRUE;
}

static gboolean
run (GError **error)
{
  g_autoptr (MusterTensor) x = muster_npy_load (images, error);
  g_autoptr (MusterTensor) y = x == NULL ? NULL : muster_npy_load (labels, error);
  g_autoptr (MusterScaffold) scaffold = y == NULL ? NULL : muster_scaffold_load (meta_graph, error);
  g_autoptr (MusterMaster) master =
      scaffold == NULL ? NULL : muster_remote_master_new (target, error);
  if (master == NULL)
    return FALSE;
  g_autoptr (MusterSaver) saver = NULL;
  if (is_chief) {
    saver = muster_saver_new (muster_scaffold_meta_graph (scaffold), NULL, error);
    if (saver == NULL)
      return FALSE;
  }
  Digits digits = {.x = x, .y = y};
  GError *failure = NULL;
  g_autoptr (MusterSession) session = open_session (scaffold, master, saver, &digits, &failure);
  if (session == NULL) {
    if (failure != NULL)
      g_propagate_error (error, failure);
    return failure == NULL;
  }
  gboolean ok = train (session, scaffold, saver, &digits, error) &&
                (!is_chief || test (session, "tested", &digits, error));
  muster_session_close_quietly (session);
  return ok;
}

int
main (int argc, char **argv)
{
  const GOptionEntry entries[] = {
      {"chief", 0, 0, G_OPTION_ARG_NONE, &is_chief, "be the chief; else a worker", NULL},
      {"task", 0, 0, G_OPTION_ARG_STRING, &task, "who this is, for people", "worker:1"},
      {"master", 0, 0, G_OPTION_ARG_STRING, &target, "the master", "grpc://HOST:PORT"},
      {"meta-graph", 0, 0, G_OPTION_ARG_FILENAME, &meta_graph, "the model", "FILE"},
      {"images", 0, 0, G_OPTION_ARG_FILENAME, &images, "the pixels, [rows, 64]", "FILE.npy"},
      {"labels", 0, 0, G_OPTION_ARG_FILENAME, &labels, "what they show", "FILE.npy"},
      {"checkpoint-dir", 0, 0, G_OPTION_ARG_FILENAME, &checkpoint_dir, "where the chief saves",
       "DIR"},
      {"until-step", 0, 0, G_OPTION_ARG_INT64, &until_step, "the global step to reach", "N"},
      {"save-every", 0, 0, G_OPTION_ARG_INT64, &save_every, "steps between two checkpoints", "N"},
      {"seed", 0, 0, G_OPTION_ARG_INT, &seed, "decides the order of the rows", "N"},
      {NULL}};
  g_autoptr (GOptionContext) context = g_option_context_new ("- one task of the digits job");
  g_option_context_add_main_entries (context, entries, NULL);
  g_autoptr (GError) error = NULL;
  if (!g_option_context_parse (context, &argc, &argv, &error)) {
    fprintf (stderr, "trainer: %s\n", error->message);
    return 3;
  }
  if (meta_graph == NULL || target == NULL || images == NULL || labels == NULL ||
      (is_chief && checkpoint_dir == NULL)) {
    fprintf (stderr, "trainer: needs --meta-graph, --master, --images, --labels, and for the chief "
                     "--checkpoint-dir\n");
    return 3;
  }
  if (run (&error))
    return 0;
  fprintf (stderr, "trainer: %s\n", error->message);
  return 4;
}

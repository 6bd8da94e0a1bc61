// SPDX-License-Identifier: Apache-2.0
/* Elastic jobs in one process: each task is a thread with a connection of its own. */
#include "train/train.h"

#include "checkpoint/state/checkpoint_state.h"
#include "engine/session/local_master.h"
#include "master/remote/target.h"
#include "server/server.h"
#include "tests/doubles/heard.h"
#include "tests/doubles/seen_model.h"
#include "tests/gtest_shim.h"

#define N_TASKS 4
#define EPOCHS  60
#define N_SLOTS 64

typedef struct {
  MusterServer *server;
  char *target;
  char *directory;
  MusterScaffold *scaffold;
} Job;

typedef struct {
  Job *job;
  GCancellable *cancellable;
  gint64 leaves_at; /* the step at which it is cancelled; 0: never */
  gint n_chiefs;    /* rounds as chief */
  gint n_workers;
  MusterTrained trained;
  GError *error;
} Task;

static Job
set_up (const char *name)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) engine = muster_local_master_new ();
  g_autoptr (MusterMetaGraph) model = muster_seen_model_new (&(MusterSeenModel){TRUE, 0});
  Job job = {.server = muster_server_new (engine, NULL),
             .directory = g_build_filename (muster_test_tmpdir (), name, NULL)};

  const int port = muster_server_listen (job.server, "127.0.0.1:0", &error);
  g_assert_no_error (error);
  muster_server_start (job.server);
  job.target = g_strdup_printf ("grpc://127.0.0.1:%d", port);
  job.scaffold = muster_scaffold_new (model, &error);
  g_assert_no_error (error);
  return job;
}

static void
tear_down (Job *job)
{
  muster_server_free (job->server);
  muster_scaffold_unref (job->scaffold);
  g_free (job->target);
  g_free (job->directory);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Job, tear_down)

static void
note_role (gboolean is_chief, guint slot, gpointer user_data)
{
  Task *task = user_data;
  MUSTER_EXPECT_LT (slot, (guint)N_SLOTS);
  task->n_chiefs += is_chief;
  task->n_workers += !is_chief;
}

static gboolean
note_progress (const MusterTrainingState *state, gpointer user_data)
{
  Task *task = user_data;
  if (task->leaves_at > 0 && task->n_chiefs > 0 && state->step >= task->leaves_at)
    g_cancellable_cancel (task->cancellable);
  return TRUE;
}

static MusterBatches *
make_batches (void)
{
  g_autoptr (MusterTensor) rows = muster_seen_model_rows ();
  return muster_batches_new (&rows, 1, MUSTER_SEEN_BATCH, MUSTER_SEEN_SEED, NULL);
}

static gpointer
run_task (gpointer data)
{
  static const char *const feeds[] = {"rows:0"};
  Task *task = data;
  g_autoptr (MusterMaster) master = muster_master_new_for_target (task->job->target, &task->error);
  g_autoptr (MusterBatches) batches = make_batches ();
  const MusterTrainingListener listener = {
      .role = note_role, .progress = note_progress, .user_data = task};
  const MusterTraining training = {.scaffold = task->job->scaffold,
                                   .master = master,
                                   .is_elastic = TRUE,
                                   .model = "seen",
                                   .batches = batches,
                                   .feeds = feeds,
                                   .n_feeds = 1,
                                   .epochs = EPOCHS,
                                   .checkpoint_dir = task->job->directory,
                                   .save_steps = 50,
                                   .ends_job = TRUE,
                                   .listener = &listener};

  if (master != NULL)
    (void)muster_train (&training, &task->trained, task->cancellable, &task->error);
  return NULL;
}

static void
run_tasks (Task *tasks, guint n)
{
  g_autofree GThread **threads = g_new (GThread *, n);

  for (guint i = 0; i < n; i++) {
    tasks[i].cancellable = g_cancellable_new ();
    threads[i] = g_thread_new ("task", run_task, &tasks[i]);
  }
  for (guint i = 0; i < n; i++)
    g_thread_join (threads[i]);
}

static void
clear_tasks (Task *tasks, guint n)
{
  for (guint i = 0; i < n; i++) {
    g_clear_object (&tasks[i].cancellable);
    g_clear_error (&tasks[i].error);
    muster_trained_clear (&tasks[i].trained);
  }
}

static gint64
n_batches (void)
{
  g_autoptr (MusterBatches) batches = make_batches ();
  return EPOCHS * muster_batches_per_epoch (batches);
}

/* The model itself counts how often it has seen each row. */
static void
expect_exactly_once (const Job *job)
{
  g_autofree char *latest =
      muster_latest_checkpoint (muster_local_storage (), job->directory, NULL);
  gint64 n_done = -1;
  MUSTER_ASSERT_NOT_NULL (latest);
  g_autofree char *wrong = muster_seen_model_check (latest, N_SLOTS, &n_done);
  MUSTER_EXPECT_STREQ (wrong, NULL);
  MUSTER_EXPECT_EQ (n_done, n_batches ());
}

MUSTER_TEST (Elastic, trains_each_batch_once_with_equal_tasks)
{
  g_auto (Job) job = set_up ("equal");
  Task tasks[N_TASKS] = {{.job = &job}, {.job = &job}, {.job = &job}, {.job = &job}};
  int n_chiefs = 0;

  run_tasks (tasks, N_TASKS);

  for (guint i = 0; i < N_TASKS; i++) {
    MUSTER_EXPECT_NO_ERROR (tasks[i].error);
    MUSTER_EXPECT_TRUE (tasks[i].trained.is_reached);
    n_chiefs += tasks[i].n_chiefs;
  }
  MUSTER_EXPECT_GE (n_chiefs, 1);
  expect_exactly_once (&job);
  clear_tasks (tasks, N_TASKS);
}

MUSTER_TEST (Elastic, goes_on_without_each_chief_that_leaves)
{
  g_auto (Job) job = set_up ("leaving");
  const gint64 half = n_batches () / 2;
  Task tasks[N_TASKS] = {{.job = &job, .leaves_at = half / 3},
                         {.job = &job, .leaves_at = half / 3},
                         {.job = &job, .leaves_at = half / 3},
                         {.job = &job}};
  guint n_left = 0;

  heard_begin (G_LOG_LEVEL_INFO);
  run_tasks (tasks, N_TASKS);
  /* whoever trains what one that left had in hand isn't a task more */
  MUSTER_EXPECT_EQ (heard_count ("member-joined", NULL), (guint)N_TASKS);
  heard_end ();

  for (guint i = 0; i < N_TASKS; i++) {
    if (tasks[i].error == NULL)
      continue;
    MUSTER_EXPECT_TRUE (g_cancellable_is_cancelled (tasks[i].cancellable));
    n_left++;
  }
  MUSTER_EXPECT_NO_ERROR (tasks[N_TASKS - 1].error);
  MUSTER_EXPECT_TRUE (tasks[N_TASKS - 1].trained.is_reached);
  MUSTER_EXPECT_LE (n_left, N_TASKS - 1U);
  expect_exactly_once (&job);
  clear_tasks (tasks, N_TASKS);
}

/* --- what it needs --- */

typedef struct {
  const char *model;
  gboolean has_batches;
  gboolean without_positions;
  gboolean overwrite;
  guint min_tasks, max_tasks;
  const char *says;
} Wrong;

static const Wrong wrong[] = {
    {NULL, TRUE, FALSE, FALSE, 0, 0, "needs the model's name"},
    {"seen", FALSE, FALSE, FALSE, 0, 0, "needs batches with positions"},
    {"seen", TRUE, TRUE, FALSE, 0, 0, "needs batches with positions"},
    {"seen", TRUE, FALSE, TRUE, 0, 0, "overwrite can't be combined"},
    {"seen", TRUE, FALSE, FALSE, 3, 2, "min_tasks is above max_tasks"},
    {"seen", TRUE, FALSE, FALSE, 65, 0, "min_tasks is above 64"},
};

MUSTER_TEST (Elastic, says_what_it_lacks)
{
  static const char *const feeds[] = {"rows:0"};
  g_auto (Job) job = set_up ("lacking");
  g_autoptr (MusterMaster) master = muster_master_new_for_target (job.target, NULL);
  g_autoptr (MusterBatches) batches = make_batches ();

  for (gsize i = 0; i < G_N_ELEMENTS (wrong); i++) {
    const Wrong *how = &wrong[i];
    g_autoptr (GError) error = NULL;
    const MusterTraining training = {.scaffold = job.scaffold,
                                     .master = master,
                                     .is_elastic = TRUE,
                                     .min_tasks = how->min_tasks,
                                     .max_tasks = how->max_tasks,
                                     .model = how->model,
                                     .batches = how->has_batches ? batches : NULL,
                                     .feeds = feeds,
                                     .n_feeds = how->has_batches,
                                     .until_step = 3,
                                     .without_positions = how->without_positions,
                                     .overwrite = how->overwrite};
    MUSTER_EXPECT_FALSE (muster_train (&training, NULL, NULL, &error));
    MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, how->says);
  }
}

MUSTER_TEST (Elastic, says_that_a_master_keeps_no_members)
{
  static const char *const feeds[] = {"rows:0"};
  g_auto (Job) job = set_up ("memberless");
  g_autoptr (MusterMaster) local = muster_local_master_new ();
  g_autoptr (MusterBatches) batches = make_batches ();
  g_autoptr (GError) error = NULL;
  const MusterTraining training = {.scaffold = job.scaffold,
                                   .master = local,
                                   .is_elastic = TRUE,
                                   .model = "seen",
                                   .batches = batches,
                                   .feeds = feeds,
                                   .n_feeds = 1,
                                   .epochs = 1};

  MUSTER_EXPECT_FALSE (muster_train (&training, NULL, NULL, &error));

  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_UNIMPLEMENTED, "muster serve");
}

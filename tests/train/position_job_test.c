// SPDX-License-Identifier: Apache-2.0
/* Jobs with positions: lives that end anywhere, tasks that step while the chief saves. */
#include "train/position.h"

#include "bundle/checkpoint_state.h"
#include "engine/local_master.h"
#include "master/remote_master.h"
#include "saver/saver_builder.h"
#include "server/server.h"
#include "tests/doubles/fake_clock.h"
#include "tests/doubles/seen_model.h"
#include "tests/gtest_shim.h"
#include "train/monitored_training.h"
#include "train/position_private.h"

/* Nothing here takes so long: a test that hangs fails. */
#define LIMIT_US (60 * MUSTER_SECOND)

typedef struct {
  MusterMaster *master;
  MusterServer *server; /* (nullable) it serves a master of its own, and master is its client */
  char *directory;
  guint n_tasks;
  gint64 n_batches; /* 0: as many as asked for */
  gint64 save_steps;
  gint64 rest_us;
  gint64 work;
  GMutex lock;
  GString *wrong; /* what is wrong with the checkpoints that were published */
  guint n_saved;
} Job;

static Job
set_up (guint n_tasks)
{
  Job job = {.master = muster_local_master_new (),
             .directory = g_build_filename (muster_test_tmpdir (), "run", NULL),
             .n_tasks = n_tasks,
             .save_steps = 3,
             .wrong = g_string_new (NULL)};

  g_mutex_init (&job.lock);

  return job;
}

/* Behind gRPC, with chiefs that claim their model. */
static Job
set_up_served (guint n_tasks)
{
  Job job = set_up (n_tasks);
  g_autoptr (GError) error = NULL;

  job.server = muster_server_new (job.master, NULL);
  int port = muster_server_listen (job.server, "127.0.0.1:0", &error);
  g_assert_no_error (error);
  muster_server_start (job.server);
  g_clear_object (&job.master);
  g_autofree char *target = g_strdup_printf ("grpc://127.0.0.1:%d", port);
  job.master = muster_master_new_for_target (target, &error);
  g_assert_no_error (error);
  g_free (job.directory);
  job.directory = g_build_filename (muster_test_tmpdir (), "served", NULL);

  return job;
}

static void
tear_down (Job *job)
{
  MUSTER_EXPECT_STREQ (job->wrong->str, "");
  g_string_free (job->wrong, TRUE);
  g_clear_object (&job->master);
  g_clear_pointer (&job->server, muster_server_free);
  g_free (job->directory);
  g_mutex_clear (&job->lock);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Job, tear_down)

static gboolean
after_save (G_GNUC_UNUSED MusterSession *session, G_GNUC_UNUSED gint64 step, const char *prefix,
            G_GNUC_UNUSED gint64 deadline_us, G_GNUC_UNUSED GCancellable *cancellable,
            gpointer data)
{
  Job *job = data;
  g_autofree char *wrong = muster_seen_model_check (prefix, job->n_tasks, NULL);

  g_mutex_lock (&job->lock);
  job->n_saved++;
  if (wrong)
    g_string_append_printf (job->wrong, "%s: %s\n", prefix, wrong);
  g_mutex_unlock (&job->lock);

  return TRUE;
}

/* One life of a task. */
typedef struct {
  Job *job;
  guint task;
  MusterScaffold *scaffold;
  MusterBatches *batches;
  MusterHook *hook;
  MusterMonitoredSession *session; /* NULL: it couldn't be made */
  GError *error;
  guint n_recoveries;
  MusterClock *clock; /* (not owned) (nullable) the hook's */
  gint64 hold_us;
} Life;

static MusterHook *
make_hook (Life *life)
{
  static const char *const feeds[] = {"rows:0"};
  MusterPositionOptions options = {.task = life->task,
                                   .is_worker = life->task > 0,
                                   .master = life->job->master,
                                   .batches = life->batches,
                                   .feeds = feeds,
                                   .n_feeds = 1,
                                   .n_batches = life->job->n_batches,
                                   .settle_us = 20 * MUSTER_MILLISECOND,
                                   .hold_us = life->hold_us,
                                   .clock = life->clock,
                                   .others_us = LIMIT_US};

  return muster_position_hook_new (&options, &life->error);
}

static void
begin (Life *life)
{
  g_autoptr (MusterMetaGraph) model =
      muster_seen_model_new (&(MusterSeenModel){.work = life->job->work});
  g_autoptr (MusterMetaGraph) extended =
      muster_position_add (model, life->job->n_tasks, &life->error);
  g_autoptr (MusterTensor) rows = muster_seen_model_rows ();
  MusterSaverListener listener = {.after_save = after_save, .user_data = life->job};

  g_assert_no_error (life->error);
  life->scaffold = muster_scaffold_new (extended, &life->error);
  g_assert_no_error (life->error);
  life->batches = muster_batches_new (&rows, 1, MUSTER_SEEN_BATCH, MUSTER_SEEN_SEED, NULL);
  life->hook = make_hook (life);
  MusterMonitoredTrainingOptions options = {.scaffold = life->scaffold,
                                            .master = life->job->master,
                                            .is_worker = life->task > 0,
                                            .checkpoint_dir = life->job->directory,
                                            .save_checkpoint_steps = life->job->save_steps,
                                            .save_summaries_steps = MUSTER_NEVER,
                                            .log_step_count_steps = MUSTER_NEVER,
                                            .hooks = &life->hook,
                                            .n_hooks = 1,
                                            .saver_listeners = &listener,
                                            .n_saver_listeners = 1,
                                            .max_wait_us = LIMIT_US,
                                            .model = life->job->server ? "seen" : NULL,
                                            .position_rest_us = life->job->rest_us};
  life->session = muster_monitored_training_session_new (&options, NULL, NULL, &life->error);
}

static gboolean
step (Life *life)
{
  static const char *const targets[] = {"train"};
  MusterStep what = {.targets = targets, .n_targets = 1};

  return muster_position_run (life->hook, life->session, &what, NULL, NULL, &life->error);
}

/* A crash, unless it has ended. */
static void
end (Life *life)
{
  g_clear_object (&life->session);
  g_clear_object (&life->hook);
  g_clear_pointer (&life->batches, muster_batches_free);
  g_clear_pointer (&life->scaffold, muster_scaffold_unref);
  g_clear_error (&life->error);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Life, end)

static gpointer
live (gpointer data)
{
  Life *life = data;

  if (!life->session)
    begin (life);
  if (!life->session)
    return NULL;
  while (!muster_monitored_session_should_stop (life->session) && step (life))
    ;
  life->n_recoveries = muster_monitored_session_n_recoveries (life->session);
  GError *failure = life->error;
  life->error = NULL;
  muster_monitored_session_finish (life->session, failure, MUSTER_WAIT_FOREVER, &life->error);
  g_clear_error (&failure);

  return NULL;
}

/* What is wrong with the latest checkpoint, or with how much went into it (transfer full). */
static char *
check_latest (Job *job, gint64 n_batches)
{
  g_autofree char *latest =
      muster_latest_checkpoint (muster_local_storage (), job->directory, NULL);
  gint64 n_done = -1;
  char *wrong = latest ? muster_seen_model_check (latest, job->n_tasks, &n_done)
                       : g_strdup ("there is no checkpoint");

  if (!wrong && n_done != n_batches)
    wrong = g_strdup_printf ("%" G_GINT64_FORMAT " batches are done", n_done);

  return wrong;
}

/* --- one task --- */

MUSTER_TEST (PositionJob, goes_on_with_the_batch_after_the_last_saved_one)
{
  g_auto (Job) job = set_up (1);

  for (int life_number = 0; life_number < 3; life_number++) {
    g_auto (Life) life = {.job = &job};
    g_clear_object (&job.master); /* which has died as well */
    job.master = muster_local_master_new ();
    begin (&life);
    MUSTER_ASSERT_NO_ERROR (life.error);
    MUSTER_EXPECT_EQ (muster_position_hook_position (life.hook), 3 * life_number);
    for (int i = 0; i < 5; i++) /* the fourth and fifth are lost */
      MUSTER_ASSERT_TRUE (step (&life));
    MUSTER_EXPECT_EQ (muster_position_hook_position (life.hook), 3 * life_number + 5);
  }
  g_autofree char *wrong = check_latest (&job, 9);
  MUSTER_EXPECT_TRUE (wrong == NULL);
}

static void
begin_on_a_master_that_has_gone_on (Job *job)
{
  g_auto (Life) life = {.job = job}, next = {.job = job};

  begin (&life);
  MUSTER_ASSERT_NO_ERROR (life.error);
  for (int i = 0; i < 5; i++)
    MUSTER_ASSERT_TRUE (step (&life));
  begin (&next);
  MUSTER_ASSERT_NO_ERROR (next.error);
  MUSTER_EXPECT_EQ (muster_position_hook_position (next.hook), 3);
  /* The life before has lost its session: nothing of it runs on. */
  static const char *const targets[] = {"train"};
  MusterStep what = {.targets = targets, .n_targets = 1};
  MUSTER_EXPECT_FALSE (muster_session_run (muster_monitored_session_session (life.session), &what,
                                           NULL, NULL, NULL, &life.error));
  MUSTER_EXPECT_ERROR (life.error, MUSTER_ERROR, MUSTER_ERROR_ABORTED);
}

MUSTER_TEST (PositionJob, begins_at_the_checkpoint_on_a_master_that_has_gone_on)
{
  g_auto (Job) one = set_up (1), two = set_up (2);

  begin_on_a_master_that_has_gone_on (&one);
  g_free (two.directory);
  two.directory = g_build_filename (muster_test_tmpdir (), "two", NULL);
  begin_on_a_master_that_has_gone_on (&two);
}

MUSTER_TEST (PositionJob, stops_when_the_jobs_batches_are_dealt_and_stays_so)
{
  g_auto (Job) job = set_up (1);

  job.n_batches = 10;
  for (int i = 0; i < 2; i++) {
    g_auto (Life) life = {.job = &job};
    live (&life);
    MUSTER_EXPECT_NO_ERROR (life.error);
    g_autofree char *wrong = check_latest (&job, 10);
    MUSTER_EXPECT_STREQ (wrong, NULL);
  }
}

/* --- a save from beside the job --- */

/* As `muster save`: by the meta graph that was exported, which has no positions. */
static gboolean
save_from_beside (Job *job, gboolean finds_positions, gint64 number, GError **error)
{
  const MusterPositionGuard guard = {.is_apart = TRUE, .global_step = "global_step"};
  g_autoptr (MusterMetaGraph) plain = muster_seen_model_new (&(MusterSeenModel){.work = job->work});
  g_autoptr (MusterMetaGraph) found =
      finds_positions
          ? muster_position_find (job->master, plain, NULL, MUSTER_WAIT_FOREVER, NULL, error)
          : muster_meta_graph_ref (plain);
  g_autoptr (MusterMetaGraph) model = found ? muster_saver_default (found, error) : NULL;
  g_autoptr (MusterSaver) saver = model ? muster_saver_new (model, NULL, error) : NULL;
  g_autoptr (MusterSession) session =
      saver ? muster_master_create_session (job->master, muster_meta_graph_graph (model), NULL,
                                            MUSTER_WAIT_FOREVER, NULL, error)
            : NULL;

  if (!session)
    return FALSE;
  muster_position_guard (saver, model, &guard);
  g_autofree char *prefix =
      muster_saver_adopt_directory (saver, job->directory, error)
          ? muster_saver_save (saver, session, job->directory, number,
                               g_get_monotonic_time () + LIMIT_US, NULL, error)
          : NULL;
  gint64 n_done = -1;
  g_autofree char *wrong =
      prefix && finds_positions ? muster_seen_model_check (prefix, job->n_tasks, &n_done) : NULL;
  MUSTER_EXPECT_STREQ (wrong, NULL);
  if (prefix && finds_positions) /* it is called by the step that it holds */
    MUSTER_EXPECT_EQ (muster_checkpoint_step (prefix), n_done);

  return prefix != NULL;
}

/* A master dies, and its job goes on where the latest checkpoint is. */
static void
expect_to_go_on_at (Job *job, gint64 position)
{
  g_auto (Life) life = {.job = job};

  g_clear_object (&job->master);
  job->master = muster_local_master_new ();
  begin (&life);
  MUSTER_ASSERT_NO_ERROR (life.error);
  MUSTER_EXPECT_EQ (muster_position_hook_position (life.hook), position);
  MUSTER_EXPECT_TRUE (step (&life));
}

static void
train_and_save_from_beside (Job *job, gboolean finds_positions)
{
  g_auto (Life) life = {.job = job};
  g_autoptr (GError) error = NULL;

  begin (&life);
  MUSTER_ASSERT_NO_ERROR (life.error);
  for (int i = 0; i < 5; i++)
    MUSTER_ASSERT_TRUE (step (&life));
  MUSTER_EXPECT_TRUE (save_from_beside (job, finds_positions, 99, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (PositionJob, goes_on_from_what_was_saved_beside_it)
{
  g_auto (Job) job = set_up (1);

  train_and_save_from_beside (&job, TRUE);
  expect_to_go_on_at (&job, 5);
}

/* Some other program's: TensorFlow's, say. */
MUSTER_TEST (PositionJob, passes_over_what_was_saved_without_positions)
{
  g_auto (Job) job = set_up (1);
  g_autofree char *prefix = g_build_filename (job.directory, "model.ckpt-99", NULL);

  train_and_save_from_beside (&job, FALSE);
  expect_to_go_on_at (&job, 3);
  MUSTER_EXPECT_TRUE (muster_checkpoint_exists (NULL, prefix));
}

typedef struct {
  Life life;
  gint *stop; /* atomic */
} Stepping;

static gpointer
step_until_told (gpointer data)
{
  Stepping *self = data;

  while (!g_atomic_int_get (self->stop) && step (&self->life))
    ;

  return NULL;
}

/* The chief holds as well, whether it is alone or not. */
static void
save_beside_tasks_that_step (guint n_tasks)
{
  g_auto (Job) job = set_up (n_tasks);
  gint stop = FALSE;
  Stepping tasks[2] = {{{0}, &stop}, {{0}, &stop}};
  GThread *threads[2];
  g_autoptr (GError) error = NULL;

  job.save_steps = 1000000;
  g_free (job.directory);
  job.directory = g_strdup_printf ("%s/beside%u", muster_test_tmpdir (), n_tasks);
  for (guint i = 0; i < n_tasks; i++) {
    tasks[i].life = (Life){.job = &job, .task = i};
    begin (&tasks[i].life);
    MUSTER_ASSERT_NO_ERROR (tasks[i].life.error);
  }
  for (guint i = 0; i < n_tasks; i++)
    threads[i] = g_thread_new ("task", step_until_told, &tasks[i]);
  for (gint64 number = 1; number <= 5 && !error; number++)
    MUSTER_EXPECT_TRUE (save_from_beside (&job, TRUE, number, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  g_atomic_int_set (&stop, TRUE);
  for (guint i = 0; i < n_tasks; i++) {
    g_thread_join (threads[i]);
    MUSTER_EXPECT_NO_ERROR (tasks[i].life.error);
    end (&tasks[i].life);
  }
}

MUSTER_TEST (PositionJob, holds_for_a_save_from_beside)
{
  save_beside_tasks_that_step (1);
  save_beside_tasks_that_step (2);
}

/* The end of a job is what its workers wait for. */
MUSTER_TEST (PositionJob, is_still_over_after_a_save_from_beside)
{
  g_auto (Job) job = set_up (2);
  g_auto (Life) life = {.job = &job};
  g_auto (MusterPositionState) state = {0};
  g_autoptr (GError) error = NULL;

  begin (&life);
  MUSTER_ASSERT_NO_ERROR (life.error);
  MusterSession *session = muster_monitored_session_session (life.session);
  muster_position_set_hold (session, MUSTER_POSITION_OVER, MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_EXPECT_TRUE (save_from_beside (&job, TRUE, 1, &error));
  MUSTER_EXPECT_TRUE (muster_position_read (session, 2, &state, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (state.hold, MUSTER_POSITION_OVER);
}

/* Where they can't be kept nothing is saved. */
MUSTER_TEST (PositionJob, refuses_a_save_that_would_lose_its_positions)
{
  static const guint8 no_nodes[] = {2 << 3 | 2, 0}; /* MetaGraphDef.graph_def, empty */
  g_auto (Job) job = set_up (1);
  g_auto (Life) life = {.job = &job};
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = g_bytes_new_static (no_nodes, sizeof no_nodes);
  g_autoptr (MusterMetaGraph) other = muster_meta_graph_new (bytes, NULL);

  begin (&life);
  MUSTER_ASSERT_NO_ERROR (life.error);
  g_autoptr (MusterMetaGraph) found =
      muster_position_find (job.master, other, NULL, MUSTER_WAIT_FOREVER, NULL, &error);

  MUSTER_EXPECT_NULL (found);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_TRUE (error && strstr (error->message, "positions of 1 task"));
}

MUSTER_TEST (PositionJob, leaves_a_model_without_positions_as_it_is)
{
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterMetaGraph) plain = muster_seen_model_new (&(MusterSeenModel){0});
  g_autoptr (GError) error = NULL;

  g_autoptr (MusterMetaGraph) found =
      muster_position_find (master, plain, NULL, MUSTER_WAIT_FOREVER, NULL, &error);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (found == plain);
}

/* --- several tasks --- */

#define N_TASKS 3

static void
step_while_it_is_saved (Job *job)
{
  Life lives[N_TASKS] = {{0}};
  GThread *threads[N_TASKS];

  job->n_batches = 400;
  job->save_steps = 10;
  for (guint i = 0; i < N_TASKS; i++) {
    lives[i] = (Life){.job = job, .task = i};
    threads[i] = g_thread_new ("task", live, &lives[i]);
  }
  for (guint i = 0; i < N_TASKS; i++) {
    g_thread_join (threads[i]);
    MUSTER_EXPECT_NO_ERROR (lives[i].error);
    end (&lives[i]);
  }
  MUSTER_EXPECT_TRUE (job->n_saved >= 3);
  g_autofree char *wrong = check_latest (job, 400);
  MUSTER_EXPECT_STREQ (wrong, NULL);
}

MUSTER_TEST (PositionJob, publishes_only_cuts_while_others_step)
{
  g_auto (Job) here = set_up (N_TASKS), there = set_up_served (N_TASKS);

  step_while_it_is_saved (&here);
  step_while_it_is_saved (&there);
}

typedef struct {
  Job *job;
  MusterScaffold *scaffold;
  gint stop; /* atomic */
} Deaf;

/* Task 1, which looks at nothing but its own steps. */
static gpointer
step_without_listening (gpointer data)
{
  Deaf *self = data;
  static const char *const target = "muster/step/held";
  g_autoptr (MusterSession) session =
      muster_master_create_session (self->job->master, muster_scaffold_graph (self->scaffold), NULL,
                                    MUSTER_WAIT_FOREVER, NULL, NULL);
  g_autoptr (MusterTensor) rows = muster_seen_model_rows ();
  g_autoptr (MusterBatches) batches =
      muster_batches_new (&rows, 1, MUSTER_SEEN_BATCH, MUSTER_SEEN_SEED, NULL);
  g_autoptr (MusterTensor) which = muster_tensor_new_int64 (1);

  for (gint64 i = 0; !g_atomic_int_get (&self->stop); i++) {
    g_autoptr (MusterTensor) where = muster_tensor_new_int64 (i);
    g_autoptr (MusterTensor) batch = NULL;
    muster_batches_seek (batches, muster_position_batch (i, 1, 2));
    muster_batches_next (batches, &batch);
    const MusterFeed feeds[] = {
        {"rows:0", batch}, {MUSTER_POSITION_TASK, which}, {MUSTER_POSITION_POSITION, where}};
    MusterStep what = {.feeds = feeds, .n_feeds = 3, .targets = &target, .n_targets = 1};
    g_autoptr (GError) error = NULL;
    if (!session || !muster_session_run (session, &what, NULL, NULL, NULL, &error)) {
      MUSTER_EXPECT_NO_ERROR (error);
      break;
    }
  }

  return NULL;
}

MUSTER_TEST (PositionJob, throws_away_what_a_task_that_doesnt_hold_has_torn)
{
  g_auto (Job) job = set_up (2);
  g_auto (Life) chief = {.job = &job};
  g_autofree char *directory = g_build_filename (muster_test_tmpdir (), "torn", NULL);

  job.work = 64; /* most of a step lies between its writes */
  begin (&chief);
  MUSTER_ASSERT_NO_ERROR (chief.error);
  g_autoptr (MusterSaver) saver =
      muster_saver_new (muster_scaffold_meta_graph (chief.scaffold), NULL, NULL);
  muster_position_guard (saver, muster_scaffold_meta_graph (chief.scaffold), NULL);
  Deaf deaf = {.job = &job, .scaffold = chief.scaffold};
  GThread *thread = g_thread_new ("deaf", step_without_listening, &deaf);
  for (gint64 i = 0; i < 4; i++) {
    g_autoptr (GError) error = NULL;
    g_autofree char *prefix =
        muster_saver_save (saver, muster_monitored_session_session (chief.session), directory, i,
                           MUSTER_WAIT_FOREVER, NULL, &error);
    g_autofree char *wrong = prefix ? muster_seen_model_check (prefix, 2, NULL) : NULL;
    MUSTER_EXPECT_STREQ (wrong, NULL);
    MUSTER_EXPECT_TRUE (prefix || muster_error_is (error, MUSTER_ERROR_DEADLINE_EXCEEDED));
  }
  g_atomic_int_set (&deaf.stop, 1);
  g_thread_join (thread);
}

static void
set_hold (Life *life, gint64 hold)
{
  g_autoptr (GError) error = NULL;

  muster_position_set_hold (muster_monitored_session_session (life->session), hold,
                            MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

static void
let_go (gpointer data)
{
  set_hold (data, MUSTER_POSITION_GO);
}

MUSTER_TEST (PositionJob, holds_a_worker_until_it_may_go_on_or_for_so_long)
{
  g_auto (Job) job = set_up (2);
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_auto (Life) chief = {.job = &job}, worker = {.job = &job,
                                                 .task = 1,
                                                 .clock = MUSTER_CLOCK (clock),
                                                 .hold_us = 60 * MUSTER_SECOND};

  begin (&chief);
  MUSTER_ASSERT_NO_ERROR (chief.error);
  begin (&worker);
  MUSTER_ASSERT_NO_ERROR (worker.error);
  set_hold (&worker, MUSTER_POSITION_WAIT);
  MUSTER_EXPECT_TRUE (step (&worker)); /* in which it hears of it */
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (clock), 0);
  muster_fake_clock_at (clock, 7 * MUSTER_SECOND, let_go, &worker);
  MUSTER_EXPECT_TRUE (step (&worker));
  gint64 waited_us = muster_fake_clock_elapsed_us (clock);
  MUSTER_EXPECT_TRUE (waited_us >= 7 * MUSTER_SECOND && waited_us < 8 * MUSTER_SECOND);

  set_hold (&worker, MUSTER_POSITION_WAIT);
  MUSTER_EXPECT_TRUE (step (&worker));
  MUSTER_EXPECT_TRUE (step (&worker));
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (clock) - waited_us, 60 * MUSTER_SECOND);
  MUSTER_EXPECT_EQ (muster_position_hook_position (worker.hook), 4);
}

/* A task that dies in mid-step: what it has begun is counted, and nothing else. */
static void
cut_off_a_step (Job *job, MusterScaffold *scaffold, gint64 task)
{
  static const char *const target = "muster/step/begin";
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = muster_master_create_session (
      job->master, muster_scaffold_graph (scaffold), NULL, MUSTER_WAIT_FOREVER, NULL, &error);
  g_assert_no_error (error);
  g_auto (MusterPositionState) state = {0};
  muster_position_read (session, job->n_tasks, &state, MUSTER_WAIT_FOREVER, NULL, &error);
  g_assert_no_error (error);
  g_autoptr (MusterTensor) which = muster_tensor_new_int64 (task);
  g_autoptr (MusterTensor) where =
      muster_tensor_new_int64 (muster_position_done (&state, (guint)task));
  const MusterFeed feeds[] = {{MUSTER_POSITION_TASK, which}, {MUSTER_POSITION_POSITION, where}};
  MusterStep what = {.feeds = feeds, .n_feeds = 2, .targets = &target, .n_targets = 1};

  MUSTER_EXPECT_TRUE (muster_session_run (session, &what, NULL, NULL, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (PositionJob, goes_back_to_the_checkpoint_over_a_step_that_was_cut_off)
{
  g_auto (Job) job = set_up (2);
  g_auto (Life) chief = {.job = &job};

  job.rest_us = 20 * MUSTER_MILLISECOND;
  begin (&chief);
  MUSTER_ASSERT_NO_ERROR (chief.error);
  for (int i = 0; i < 5; i++) /* saved at 3 */
    MUSTER_ASSERT_TRUE (step (&chief));
  cut_off_a_step (&job, chief.scaffold, 1);
  MUSTER_EXPECT_TRUE (step (&chief)); /* where a save is due */
  MUSTER_EXPECT_NO_ERROR (chief.error);
  MUSTER_EXPECT_EQ (muster_monitored_session_n_recoveries (chief.session), 1);
  MUSTER_EXPECT_EQ (muster_position_hook_position (chief.hook), 4); /* 3, and the run's own */
  MUSTER_EXPECT_TRUE (
      muster_monitored_session_finish (chief.session, NULL, MUSTER_WAIT_FOREVER, &chief.error));
  g_autofree char *wrong = check_latest (&job, 4);
  MUSTER_EXPECT_STREQ (wrong, NULL);
}

static void
die_in_a_step (Job *job)
{
  Life chief = {.job = job}, worker = {.job = job, .task = 1};

  job->n_batches = 60;
  job->save_steps = 1000000; /* the worker finds it */
  begin (&chief);
  MUSTER_ASSERT_NO_ERROR (chief.error);
  cut_off_a_step (job, chief.scaffold, 1);
  GThread *of_chief = g_thread_new ("chief", live, &chief);
  GThread *of_worker = g_thread_new ("worker", live, &worker);
  g_thread_join (of_chief);
  g_thread_join (of_worker);
  MUSTER_EXPECT_NO_ERROR (chief.error);
  MUSTER_EXPECT_NO_ERROR (worker.error);
  MUSTER_EXPECT_EQ (chief.n_recoveries, 1);
  end (&chief);
  end (&worker);
  g_autofree char *wrong = check_latest (job, 60);
  MUSTER_EXPECT_STREQ (wrong, NULL);
}

MUSTER_TEST (PositionJob, undoes_the_step_in_which_a_worker_died)
{
  g_auto (Job) here = set_up (2), there = set_up_served (2);

  die_in_a_step (&here);
  die_in_a_step (&there);
}

/* At three in the morning it is to be said who is to be started. */
MUSTER_TEST (PositionJob, names_the_task_that_it_waits_for)
{
  g_auto (Job) job = set_up (3);
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_auto (Life) chief = {.job = &job, .clock = MUSTER_CLOCK (clock)};
  MusterAwaited awaited = {0};
  job.n_batches = 5; /* of which the last task has one */
  begin (&chief);
  MUSTER_ASSERT_NO_ERROR (chief.error);
  gint64 began_us = muster_clock_now_us (MUSTER_CLOCK (clock));

  MUSTER_EXPECT_TRUE (step (&chief) && step (&chief));
  MUSTER_EXPECT_FALSE (muster_position_hook_awaits (chief.hook, &awaited));
  MUSTER_EXPECT_TRUE (step (&chief));
  MUSTER_ASSERT_TRUE (muster_position_hook_awaits (chief.hook, &awaited));
  MUSTER_EXPECT_STREQ (awaited.task, "worker:0");
  MUSTER_EXPECT_EQ (awaited.since_us, began_us);

  g_auto (Life) worker = {.job = &job, .task = 1};
  begin (&worker);
  MUSTER_ASSERT_NO_ERROR (worker.error);
  MUSTER_EXPECT_TRUE (step (&worker));
  MUSTER_EXPECT_TRUE (step (&chief));
  MUSTER_ASSERT_TRUE (muster_position_hook_awaits (chief.hook, &awaited));
  MUSTER_EXPECT_STREQ (awaited.task, "worker:0");
  MUSTER_EXPECT_GT (awaited.since_us, began_us); /* it has done one */
  MUSTER_EXPECT_TRUE (step (&worker));
  MUSTER_EXPECT_TRUE (step (&chief));
  MUSTER_ASSERT_TRUE (muster_position_hook_awaits (chief.hook, &awaited));
  MUSTER_EXPECT_STREQ (awaited.task, "worker:1");
  MUSTER_EXPECT_FALSE (muster_position_hook_is_over (chief.hook));

  while (step (&chief))
    ;
  MUSTER_EXPECT_ERROR (chief.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_EXPECT_TRUE (chief.error && strstr (chief.error->message,
                                             "1 of 5 are missing: start task worker:1 again"));
  MUSTER_EXPECT_TRUE (strstr (chief.error->message, "Task chief:0"));
}

static void
request_stop (gpointer coordinator)
{
  muster_coordinator_request_stop (coordinator, NULL, NULL);
}

/* Another process of the task may be in the middle of that step: who leaves undoes nothing. */
MUSTER_TEST (PositionJob, leaves_at_a_stop_without_waiting_for_a_step_that_was_cut_off)
{
  for (int is_at_once = 0; is_at_once < 2; is_at_once++) {
    g_auto (Job) job = set_up (2);
    g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
    g_autoptr (MusterCoordinator) coordinator = muster_coordinator_new (NULL, FALSE);
    g_autoptr (GError) error = NULL;
    g_auto (Life) chief = {.job = &job};
    begin (&chief);
    MUSTER_ASSERT_NO_ERROR (chief.error);
    g_autoptr (MusterTensor) rows = muster_seen_model_rows ();
    g_auto (Life) worker = {
        .job = &job,
        .task = 1,
        .clock = MUSTER_CLOCK (clock),
        .batches = muster_batches_new (&rows, 1, MUSTER_SEEN_BATCH, MUSTER_SEEN_SEED, NULL)};
    MusterHook *hook = worker.hook = make_hook (&worker);
    MUSTER_ASSERT_TRUE (MUSTER_HOOK_GET_CLASS (hook)->begin (hook, chief.scaffold, &error));
    cut_off_a_step (&job, chief.scaffold, 1);
    if (is_at_once)
      request_stop (coordinator);
    else
      muster_fake_clock_at (clock, 5 * MUSTER_MILLISECOND, request_stop, coordinator);

    MUSTER_EXPECT_FALSE (MUSTER_HOOK_GET_CLASS (hook)->after_create_session (
        hook, muster_monitored_session_session (chief.session), coordinator, MUSTER_WAIT_FOREVER,
        NULL, &error));
    MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
    MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (clock),
                      is_at_once ? 0 : 5 * MUSTER_MILLISECOND);
    MUSTER_EXPECT_TRUE (step (&chief)); /* in the session that it had */
    MUSTER_EXPECT_EQ (chief.n_recoveries, 0u);
  }
}

MUSTER_TEST (PositionJob, says_what_to_do_about_another_number_of_tasks)
{
  g_auto (Job) job = set_up (1);
  g_auto (Life) life = {.job = &job};
  g_autoptr (GError) error = NULL;

  begin (&life);
  MUSTER_ASSERT_NO_ERROR (life.error);
  g_autofree char *latest = muster_latest_checkpoint (muster_local_storage (), job.directory, NULL);
  g_autoptr (MusterMetaGraph) model = muster_seen_model_new (NULL);
  g_autoptr (MusterMetaGraph) more = muster_position_add (model, 3, NULL);
  MUSTER_EXPECT_TRUE (
      muster_position_check (muster_scaffold_meta_graph (life.scaffold), NULL, latest, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (muster_position_check (more, NULL, latest, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_TRUE (strstr (error->message, "begin it with as many as before"));
  MUSTER_EXPECT_TRUE (muster_position_check (more, NULL, "/nowhere/model.ckpt", NULL));
}

/* --- a save that isn't a cut --- */

typedef struct {
  guint n_rests, n_checks, n_releases;
  guint cut_at; /* the check that finds it at rest; 0: none */
} Script;

static gboolean
script_rest (G_GNUC_UNUSED MusterSession *session, G_GNUC_UNUSED gint64 deadline_us,
             G_GNUC_UNUSED GCancellable *cancellable, gpointer data, G_GNUC_UNUSED GError **error)
{
  ((Script *)data)->n_rests++;

  return TRUE;
}

static gboolean
script_check (G_GNUC_UNUSED MusterSession *session, gboolean *is_cut,
              G_GNUC_UNUSED gint64 deadline_us, G_GNUC_UNUSED GCancellable *cancellable,
              gpointer data, G_GNUC_UNUSED GError **error)
{
  Script *script = data;

  *is_cut = ++script->n_checks == script->cut_at;

  return TRUE;
}

static void
script_release (G_GNUC_UNUSED MusterSession *session, gpointer data)
{
  ((Script *)data)->n_releases++;
}

static guint
n_files (const char *directory)
{
  g_auto (GStrv) names = muster_storage_list (muster_local_storage (), directory, NULL);
  guint n = 0;

  for (char **name = names; name && *name; name++)
    n += g_str_has_prefix (*name, "model.ckpt") || g_str_has_prefix (*name, ".saving-");

  return n;
}

MUSTER_TEST (PositionJob, saves_again_what_has_moved_and_never_publishes_it)
{
  static const MusterSaverCut cut = {
      .rest = script_rest, .check = script_check, .release = script_release};
  g_auto (Job) job = set_up (1);
  g_auto (Life) life = {.job = &job};
  Script script = {.cut_at = 3};
  g_autofree char *directory = g_build_filename (muster_test_tmpdir (), "cuts", NULL);
  g_autoptr (GError) error = NULL;

  begin (&life);
  MUSTER_ASSERT_NO_ERROR (life.error);
  MusterSession *session = muster_monitored_session_session (life.session);
  g_autoptr (MusterSaver) saver =
      muster_saver_new (muster_scaffold_meta_graph (life.scaffold), NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  muster_saver_set_cut (saver, &cut, &script, NULL);
  g_autofree char *saved =
      muster_saver_save (saver, session, directory, 1, MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (script.n_rests, 3);
  MUSTER_EXPECT_EQ (script.n_releases, 1);
  guint n = n_files (directory);

  script = (Script){0};
  MUSTER_EXPECT_TRUE (
      muster_saver_save (saver, session, directory, 2, MUSTER_WAIT_FOREVER, NULL, &error) == NULL);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_EXPECT_EQ (script.n_checks, 5);
  MUSTER_EXPECT_EQ (script.n_releases, 1);
  MUSTER_EXPECT_EQ (n_files (directory), n);
  g_autofree char *latest = muster_latest_checkpoint (muster_local_storage (), directory, NULL);
  MUSTER_EXPECT_STREQ (latest, saved);
}

// SPDX-License-Identifier: Apache-2.0
/* Elastic jobs in one process: each task is a thread with a connection of its own. */
#include "train/train.h"

#include "checkpoint/state/checkpoint_record_private.h"
#include "checkpoint/state/checkpoint_state.h"
#include "engine/session/local_master.h"
#include "master/remote/target.h"
#include "server/server.h"
#include "tests/deadline.h"
#include "tests/doubles/heard.h"
#include "tests/doubles/seen_model.h"
#include "tests/gtest_shim.h"
#include "train/position/position_private.h"

#define N_TASKS 4
#define EPOCHS  60
#define N_SLOTS 64

typedef struct {
  MusterServer *server;
  char *target;
  char *directory;
  MusterScaffold *scaffold;
} Job;

/* What is seen of a job that needs two tasks, of which one leaves once both have made a step. */
typedef struct {
  gboolean chief_leaves; /* else the worker */
  gboolean none_leaves;
  GMutex lock;
  GCond changed;
  /* guarded by lock */
  guint n_stepped;    /* tasks */
  gboolean has_left;  /* one of them */
  guint n_paused;     /* how often the other reported a pause */
  gint64 paused_step; /* at the first of these reports */
  gint64 last_step;   /* at the last */
} Pair;

typedef struct {
  Job *job;
  Pair *pair; /* (nullable) */
  GCancellable *cancellable;
  gint64 leaves_at;  /* the step at which it is cancelled; 0: never */
  guint n_takeovers; /* how often another chief takes the directory, as soon as this one is ready */
  gint64 until_step; /* instead of epochs, if above 0 */
  gint64 timeout_us;
  GMutex lock;
  GCond changed;
  guint n_waiting;   /* how often it said that it waits for tasks; guarded by lock */
  gboolean is_chief; /* in its present round */
  gboolean has_stepped;
  gint n_chiefs; /* rounds as chief */
  gint n_workers;
  GCallback ready;    /* (nullable) */
  GCallback progress; /* (nullable) */
  MusterTrained trained;
  GError *error;
} Task;

static Job
set_up (const char *name)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) engine = muster_local_master_new ();
  g_autoptr (MusterMetaGraph) model = muster_seen_model_new (&(MusterSeenModel){.resources = TRUE});
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
note_role (MusterTrainingObserver *observer G_GNUC_UNUSED, gboolean is_chief, guint slot,
           gpointer user_data)
{
  Task *task = user_data;
  MUSTER_EXPECT_LT (slot, (guint)N_SLOTS);
  task->is_chief = is_chief;
  task->n_chiefs += is_chief;
  task->n_workers += !is_chief;
}

static gboolean
have_both_stepped (const Pair *pair)
{
  return pair->n_stepped == 2;
}

static gboolean
has_one_left (const Pair *pair)
{
  return pair->has_left;
}

static gboolean
has_paused (const Pair *pair)
{
  return pair->n_paused >= 2;
}

/* With the lock held. */
static void
await (Pair *pair, gboolean (*is_so) (const Pair *pair), const char *otherwise)
{
  const gint64 until_us = g_get_monotonic_time () + 30 * G_TIME_SPAN_SECOND;
  while (!is_so (pair))
    if (!g_cond_wait_until (&pair->changed, &pair->lock, until_us)) {
      MUSTER_FAIL ("%s", otherwise);
      return;
    }
}

/* From here on rounds are counted. The task that stays makes no step before the other is gone. */
static void
part (Task *task, Pair *pair)
{
  task->has_stepped = TRUE;
  pair->n_stepped++;
  g_cond_broadcast (&pair->changed);
  await (pair, have_both_stepped, "the other task makes no step");
  task->n_chiefs = task->n_workers = 0;
  if (task->is_chief == pair->chief_leaves)
    g_cancellable_cancel (task->cancellable);
  else
    await (pair, has_one_left, "the other task doesn't leave");
}

static void
note_pair (Task *task, Pair *pair, const MusterTrainingState *state)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&pair->lock);
  if (!task->has_stepped && !pair->none_leaves)
    part (task, pair);
  if (state->paused == NULL)
    return;
  MUSTER_EXPECT_STREQ (state->paused, "waiting for tasks: 1 of at least 2");
  if (pair->n_paused++ == 0)
    pair->paused_step = state->step;
  pair->last_step = state->step;
  g_cond_broadcast (&pair->changed);
}

/* Another task becomes chief, and ends or is stopped before anybody hears of it. */
static void
note_ready (MusterTrainingObserver *observer G_GNUC_UNUSED,
            const MusterSessionReport *report G_GNUC_UNUSED, gint64 step G_GNUC_UNUSED,
            gpointer user_data)
{
  Task *task = user_data;
  g_autoptr (GError) error = NULL;
  if (!task->is_chief || task->n_takeovers == 0)
    return;
  task->n_takeovers--;
  g_autoptr (MusterCheckpointRecord) record =
      muster_checkpoint_record_read (muster_local_storage (), task->job->directory, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  record->epoch++;
  g_free (record->chief);
  record->chief = g_strdup ("another");
  MUSTER_EXPECT_TRUE (muster_checkpoint_record_write (muster_local_storage (), task->job->directory,
                                                      record, &error));
}

static gboolean
note_progress (MusterTrainingObserver *observer G_GNUC_UNUSED, const MusterTrainingState *state,
               gpointer user_data)
{
  Task *task = user_data;
  if (task->pair != NULL)
    note_pair (task, task->pair, state);
  if (task->leaves_at > 0 && task->n_chiefs > 0 && state->step >= task->leaves_at)
    g_cancellable_cancel (task->cancellable);
  return FALSE;
}

static void
note_waiting (MusterTrainingObserver *observer G_GNUC_UNUSED, const char *message,
              const MusterReadiness *readiness G_GNUC_UNUSED, GPtrArray *reasons G_GNUC_UNUSED,
              gpointer user_data)
{
  Task *task = user_data;
  if (!g_str_has_prefix (message, "waiting for tasks: "))
    return;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&task->lock);
  task->n_waiting++;
  g_cond_broadcast (&task->changed);
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
  g_autoptr (MusterTrainingObserver) observer = muster_training_observer_new ();
  g_signal_connect (observer, "waiting", G_CALLBACK (note_waiting), task);
  g_signal_connect (observer, "ready", task->ready != NULL ? task->ready : G_CALLBACK (note_ready),
                    task);
  g_signal_connect (observer, "role", G_CALLBACK (note_role), task);
  g_signal_connect (observer, "progress",
                    task->progress != NULL ? task->progress : G_CALLBACK (note_progress), task);
  const MusterTraining training = {.session.scaffold = task->job->scaffold,
                                   .session.master = master,
                                   .is_elastic = TRUE,
                                   .session.manager.model = "seen",
                                   .batches = batches,
                                   .feeds = feeds,
                                   .n_feeds = 1,
                                   .epochs = task->until_step > 0 ? 0 : EPOCHS,
                                   .until_step = task->until_step,
                                   .min_tasks = task->pair != NULL ? 2 : 0,
                                   .session.timeout_us = task->timeout_us,
                                   .session.saving.checkpoint_dir = task->job->directory,
                                   .session.saving.save_steps = 50,
                                   .ends_job = TRUE,
                                   .observer = observer};
  if (master != NULL)
    (void)muster_train (&training, &task->trained, task->cancellable, &task->error);
  if (task->pair != NULL) {
    g_mutex_lock (&task->pair->lock);
    task->pair->has_left = TRUE;
    g_cond_broadcast (&task->pair->changed);
    g_mutex_unlock (&task->pair->lock);
  }
  return NULL;
}

static GThread *
start_task (Task *task)
{
  task->cancellable = g_cancellable_new ();
  return g_thread_new ("task", run_task, task);
}

static void
run_tasks (Task *tasks, guint n)
{
  g_autofree GThread **threads = g_new (GThread *, n);

  for (guint i = 0; i < n; i++)
    threads[i] = start_task (&tasks[i]);
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

MUSTER_TEST (Elastic, goes_on_where_another_has_taken_over_meanwhile)
{
  g_auto (Job) job = set_up ("taken");
  Task task = {.job = &job, .n_takeovers = 2};
  run_tasks (&task, 1);

  MUSTER_EXPECT_NO_ERROR (task.error);
  MUSTER_EXPECT_EQ (task.n_takeovers, 0u);
  expect_exactly_once (&job);
  clear_tasks (&task, 1);
}

/* A chief that ends before it has let any task step, while a task is on its way into the model. */
typedef struct {
  Task task;
  MusterSession *session; /* (owned) (nullable) the chief's */
  gboolean was_worker;
  gboolean has_chief_stepped; /* first */
  gboolean has_stepped;
} Held;

static void
end_the_chief (MusterTrainingObserver *observer G_GNUC_UNUSED,
               const MusterSessionReport *report G_GNUC_UNUSED, gint64 step G_GNUC_UNUSED,
               gpointer user_data)
{
  Held *held = user_data;
  held->was_worker = held->was_worker || !held->task.is_chief;
  if (held->session != NULL)
    muster_session_close_quietly (held->session);
  g_clear_object (&held->session);
}

static gboolean
note_first_step (MusterTrainingObserver *observer G_GNUC_UNUSED, const MusterTrainingState *state,
                 gpointer user_data)
{
  Held *held = user_data;
  if (state->step <= 0 || held->has_stepped)
    return FALSE;
  held->has_stepped = TRUE;
  held->has_chief_stepped = held->task.is_chief;
  return FALSE;
}

/* The model as it is once its init op has run: all tasks are held. */
static MusterSession *
prepare_held (const Job *job, MusterMaster *master)
{
  g_autoptr (MusterMetaGraph) plain = muster_seen_model_new (&(MusterSeenModel){.resources = TRUE});
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) dealt = muster_position_add_dealt (plain, N_SLOTS, &error);
  const MusterScaffoldOptions same = {.copy_from = job->scaffold};
  g_autoptr (MusterScaffold) scaffold = muster_scaffold_new_with (dealt, &same, &error);
  const MusterSessionManagerOptions options = {.ready_op = muster_scaffold_ready_op (scaffold),
                                               .local_init_op =
                                                   muster_scaffold_local_init_op (scaffold),
                                               .meta_graph = dealt,
                                               .model = "seen"};
  g_autoptr (MusterSessionManager) manager =
      muster_session_manager_new (muster_scaffold_graph (scaffold), &options, &error);
  const MusterPrepareOptions prepare = {.init_op = muster_scaffold_init_op (scaffold),
                                        .timeout_us = 60 * MUSTER_SECOND};
  MusterSession *session =
      muster_session_manager_prepare_session (manager, master, &prepare, NULL, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return session;
}

/* Another member is before it: this task's turn to claim the model comes later. */
MUSTER_TEST (Elastic, takes_over_where_the_chief_has_ended_before_it_let_anyone_step)
{
  g_auto (Job) job = set_up ("held");
  g_autoptr (MusterMaster) master = muster_master_new_for_target (job.target, NULL);
  const MusterJoin first = {.model = "seen", .slot = -1, .n_slots = N_SLOTS};
  g_autoptr (MusterMembership) before =
      muster_master_join (master, &first, test_deadline (), NULL, NULL);
  Held held = {.task = {.job = &job, .until_step = 5}, .session = prepare_held (&job, master)};
  held.task.ready = G_CALLBACK (end_the_chief);
  held.task.progress = G_CALLBACK (note_first_step);
  MUSTER_ASSERT_TRUE (before != NULL && held.session != NULL);

  run_tasks (&held.task, 1);

  MUSTER_EXPECT_NO_ERROR (held.task.error);
  MUSTER_EXPECT_TRUE (held.was_worker);
  MUSTER_EXPECT_TRUE (held.has_chief_stepped);
  clear_tasks (&held.task, 1);
}

/* The client's own classes, but for the worker's second step: before it the chief ends, the roster
 * says so and the master is reset. */
typedef struct {
  Task task;
  MusterSession *session;       /* (owned) (nullable) the chief's */
  MusterMembership *membership; /* (owned) (nullable) the worker's */
  gint has_stepped;             /* once */
} Cut;

static Cut *cut;
static MusterMembership *(*join) (MusterMaster *, const MusterJoin *, gint64, GCancellable *,
                                  GError **);
static gboolean (*run) (MusterSession *, const MusterStep *, MusterTensor **, GBytes **,
                        GCancellable *, GError **);

static MusterMembership *
note_membership (MusterMaster *master, const MusterJoin *what, gint64 deadline_us,
                 GCancellable *cancellable, GError **error)
{
  MusterMembership *membership = join (master, what, deadline_us, cancellable, error);
  g_set_object (&cut->membership, membership);
  return membership;
}

static gboolean
note_step (MusterTrainingObserver *observer G_GNUC_UNUSED,
           const MusterTrainingState *state G_GNUC_UNUSED, gpointer user_data G_GNUC_UNUSED)
{
  g_atomic_int_set (&cut->has_stepped, TRUE);
  return FALSE;
}

/* The roster's listener stops the session before this returns. */
static void
lose_the_chief (void)
{
  g_autoptr (MusterMaster) master = muster_master_new_for_target (cut->task.job->target, NULL);
  guint slot = muster_membership_slot (cut->membership);
  const MusterRoster chiefless = {.n_slots = N_SLOTS, .n_members = 1, .slots = &slot};
  muster_session_close_quietly (cut->session);
  g_clear_object (&cut->session);
  muster_membership_set_roster (cut->membership, slot, &chiefless);
  MUSTER_EXPECT_TRUE (muster_master_reset (master, NULL, test_deadline (), NULL, NULL));
}

static gboolean
run_cut (MusterSession *session, const MusterStep *step, MusterTensor **fetched, GBytes **metadata,
         GCancellable *cancellable, GError **error)
{
  if (g_atomic_int_get (&cut->has_stepped) && cut->session != NULL)
    lose_the_chief ();
  return run (session, step, fetched, metadata, cancellable, error);
}

/* Nobody else would make the model ready, for which another session in the same role waits. */
MUSTER_TEST (Elastic, takes_over_where_the_round_ends_in_the_step_that_loses_the_session)
{
  g_auto (Job) job = set_up ("cut");
  g_autoptr (MusterMaster) master = muster_master_new_for_target (job.target, NULL);
  Cut once = {
      .task = {.job = &job, .until_step = 5, .timeout_us = 20 * MUSTER_SECOND},
      .session = prepare_held (&job, master),
  };
  once.task.progress = G_CALLBACK (note_step);
  MUSTER_ASSERT_NOT_NULL (once.session);
  MUSTER_EXPECT_TRUE (
      muster_position_set_hold (once.session, MUSTER_POSITION_GO, test_deadline (), NULL, NULL));
  MusterMasterInterface *masters = MUSTER_MASTER_GET_IFACE (master);
  MusterSessionClass *sessions = MUSTER_SESSION_GET_CLASS (once.session);
  cut = &once;
  join = masters->join;
  run = sessions->run;
  masters->join = note_membership;
  sessions->run = run_cut;

  run_tasks (&once.task, 1);

  masters->join = join;
  sessions->run = run;
  MUSTER_EXPECT_NO_ERROR (once.task.error);
  MUSTER_EXPECT_TRUE (once.session == NULL);
  MUSTER_EXPECT_GE (once.task.n_workers, 1);
  MUSTER_EXPECT_TRUE (once.task.is_chief);
  MUSTER_EXPECT_EQ (once.task.trained.n_recoveries, 0u);
  g_clear_object (&once.membership);
  g_clear_object (&once.session);
  clear_tasks (&once.task, 1);
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

/* --- with too few tasks --- */

static void
pair_init (Pair *pair, gboolean chief_leaves)
{
  *pair = (Pair){.chief_leaves = chief_leaves};
  g_mutex_init (&pair->lock);
  g_cond_init (&pair->changed);
}

static void
pair_clear (Pair *pair)
{
  g_mutex_clear (&pair->lock);
  g_cond_clear (&pair->changed);
}

/* One of two tasks leaves, and a third one comes. */
static void
expect_pause (const char *name, gboolean chief_leaves)
{
  g_auto (Job) job = set_up (name);
  Pair pair;
  pair_init (&pair, chief_leaves);
  Task tasks[] = {{.job = &job, .pair = &pair}, {.job = &job, .pair = &pair}, {.job = &job}};
  GThread *one = start_task (&tasks[0]), *other = start_task (&tasks[1]);

  g_mutex_lock (&pair.lock);
  /* A second report comes after a while without another step. */
  await (&pair, has_paused, "the task that is left doesn't pause");
  /* the step that the leaving task has begun is made to its end */
  MUSTER_EXPECT_LE (pair.last_step, pair.paused_step + 1);
  g_mutex_unlock (&pair.lock);
  GThread *third = start_task (&tasks[2]);
  g_thread_join (one);
  g_thread_join (other);
  g_thread_join (third);
  const gsize left = g_cancellable_is_cancelled (tasks[0].cancellable) ? 1 : 0;
  MUSTER_EXPECT_NO_ERROR (tasks[left].error);
  MUSTER_EXPECT_TRUE (tasks[left].trained.is_reached);
  MUSTER_EXPECT_TRUE (tasks[left].is_chief);
  MUSTER_EXPECT_EQ (tasks[left].n_chiefs > 0, chief_leaves);
  MUSTER_EXPECT_NO_ERROR (tasks[2].error);
  MUSTER_EXPECT_FALSE (tasks[2].is_chief);
  expect_exactly_once (&job);
  clear_tasks (tasks, G_N_ELEMENTS (tasks));
  pair_clear (&pair);
}

MUSTER_TEST (Elastic, pauses_as_the_chief_until_there_are_enough_tasks_again)
{
  expect_pause ("without-worker", FALSE);
}

MUSTER_TEST (Elastic, takes_over_and_pauses_until_there_are_enough_tasks_again)
{
  expect_pause ("without-chief", TRUE);
}

/* Changes of the roster without another task are no news. */
MUSTER_TEST (Elastic, says_once_that_it_waits_for_tasks)
{
  g_auto (Job) job = set_up ("once");
  g_autoptr (MusterMaster) master = muster_master_new_for_target (job.target, NULL);
  const MusterJoin takeover = {.model = "seen", .slot = 5, .n_slots = N_SLOTS, .is_takeover = TRUE};
  Pair pair;
  pair_init (&pair, FALSE);
  pair.none_leaves = TRUE;
  Task tasks[] = {{.job = &job, .pair = &pair}, {.job = &job, .pair = &pair}};
  GThread *one = start_task (&tasks[0]);
  const gint64 until_us = g_get_monotonic_time () + 30 * G_TIME_SPAN_SECOND;
  g_mutex_lock (&tasks[0].lock);
  while (tasks[0].n_waiting == 0 && g_cond_wait_until (&tasks[0].changed, &tasks[0].lock, until_us))
    ;
  g_mutex_unlock (&tasks[0].lock);

  for (guint i = 0; i < 5; i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterMembership) passing =
        muster_master_join (master, &takeover, test_deadline (), NULL, &error);
    MUSTER_EXPECT_NO_ERROR (error);
  }

  GThread *other = start_task (&tasks[1]);
  g_thread_join (one);
  g_thread_join (other);
  MUSTER_EXPECT_EQ (tasks[0].n_waiting, 1u);
  expect_exactly_once (&job);
  clear_tasks (tasks, G_N_ELEMENTS (tasks));
  pair_clear (&pair);
}

MUSTER_TEST (Elastic, saves_and_ends_when_it_has_paused_for_as_long_as_it_may)
{
  g_auto (Job) job = set_up ("patience");
  Pair pair;
  pair_init (&pair, FALSE);
  Task tasks[] = {{.job = &job, .pair = &pair, .timeout_us = 10 * MUSTER_SECOND},
                  {.job = &job, .pair = &pair, .timeout_us = 10 * MUSTER_SECOND}};

  run_tasks (tasks, G_N_ELEMENTS (tasks));

  const Task *left = &tasks[g_cancellable_is_cancelled (tasks[0].cancellable) ? 1 : 0];
  MUSTER_EXPECT_SAYS (left->error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED,
                      "'seen' had 1 of at least 2 tasks for 10.0 s");
  MUSTER_EXPECT_FALSE (left->trained.is_reached);
  g_autofree char *latest = muster_latest_checkpoint (muster_local_storage (), job.directory, NULL);
  MUSTER_ASSERT_NOT_NULL (latest);
  MUSTER_EXPECT_EQ (muster_checkpoint_step (latest), left->trained.step);
  clear_tasks (tasks, G_N_ELEMENTS (tasks));
  pair_clear (&pair);
}

/* One of them leaves at that step, while the other still has to see it. */
MUSTER_TEST (Elastic, ends_at_a_step_without_the_task_that_ended_there_before)
{
  g_auto (Job) job = set_up ("until");
  Pair pair;
  pair_init (&pair, FALSE);
  pair.none_leaves = TRUE;
  Task tasks[] = {{.job = &job, .pair = &pair, .until_step = 60},
                  {.job = &job, .pair = &pair, .until_step = 60}};

  run_tasks (tasks, G_N_ELEMENTS (tasks));

  for (gsize i = 0; i < G_N_ELEMENTS (tasks); i++) {
    MUSTER_EXPECT_NO_ERROR (tasks[i].error);
    MUSTER_EXPECT_TRUE (tasks[i].trained.is_reached);
  }
  clear_tasks (tasks, G_N_ELEMENTS (tasks));
  pair_clear (&pair);
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
    const MusterTraining training = {.session.scaffold = job.scaffold,
                                     .session.master = master,
                                     .is_elastic = TRUE,
                                     .min_tasks = how->min_tasks,
                                     .max_tasks = how->max_tasks,
                                     .session.manager.model = how->model,
                                     .batches = how->has_batches ? batches : NULL,
                                     .feeds = feeds,
                                     .n_feeds = how->has_batches,
                                     .until_step = 3,
                                     .without_positions = how->without_positions,
                                     .session.overwrite = how->overwrite};
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
  const MusterTraining training = {.session.scaffold = job.scaffold,
                                   .session.master = local,
                                   .is_elastic = TRUE,
                                   .session.manager.model = "seen",
                                   .batches = batches,
                                   .feeds = feeds,
                                   .n_feeds = 1,
                                   .epochs = 1};
  MUSTER_EXPECT_FALSE (muster_train (&training, NULL, NULL, &error));

  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_UNIMPLEMENTED, "muster serve");
}

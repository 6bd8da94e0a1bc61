// SPDX-License-Identifier: Apache-2.0
#include "graph/meta_graph/meta_graph.h"
#include "tests/doubles/heard.h"
#include "train/monitored_training.h"

#include "checkpoint/state/checkpoint_state.h"
#include "engine/session/local_master.h"
#include "graph/graph_builder.h"
#include "tests/gtest_shim.h"
#include "tests/train/events.h"
#include "train/train.h"

typedef struct {
  MusterScaffold *scaffold;
  MusterMaster *master;
  char *directory;
  MusterMonitoredTrainingOptions options; /* a chief's, with these */
} Job;

static Job
set_up (void)
{
  g_autoptr (GError) error = NULL;
  Job job = {.scaffold = muster_scaffold_load ("tests/fixtures/linreg.meta", &error),
             .master = muster_local_master_new (),
             .directory = g_build_filename (muster_test_tmpdir (), "run", NULL)};
  g_assert_no_error (error);
  job.options = (MusterMonitoredTrainingOptions){.scaffold = job.scaffold,
                                                 .master = job.master,
                                                 .saving.checkpoint_dir = job.directory,
                                                 .saving.save_blocking = TRUE};
  return job;
}

static void
tear_down (Job *job)
{
  g_clear_pointer (&job->scaffold, muster_scaffold_unref);
  g_clear_object (&job->master);
  g_clear_pointer (&job->directory, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Job, tear_down)

static gboolean
train (Job *job, MusterMonitoredSession *session, int n, GError **error)
{
  const char *targets[] = {muster_scaffold_train_op (job->scaffold)};
  const gint64 dims[] = {1};
  const float one = 1;
  g_autoptr (MusterTensor) x =
      muster_tensor_new_from_data (MUSTER_FLOAT, 1, dims, &one, sizeof one, NULL);
  const MusterFeed feeds[] = {{"x:0", x}, {"y:0", x}};
  MusterStep step = {.feeds = feeds, .n_feeds = 2, .targets = targets, .n_targets = 1};

  for (int i = 0; i < n; i++)
    if (!muster_monitored_session_run (session, &step, NULL, NULL, error))
      return FALSE;
  return TRUE;
}

static guint
n_files (const char *directory, const char *start)
{
  g_auto (GStrv) names = muster_storage_list (muster_local_storage (), directory, NULL);
  guint n = 0;
  for (char **name = names; name != NULL && *name != NULL; name++)
    n += g_str_has_prefix (*name, start);
  return n;
}

/* MON.14, MON.19: the defaults save at the start and at the end, and write events */
MUSTER_TEST (MonitoredTraining, saves_and_goes_on_where_it_was)
{
  for (int life = 0; life < 2; life++) {
    g_auto (Job) job = set_up ();
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterMonitoredSession) session =
        muster_monitored_training_session_new (&job.options, NULL, NULL, &error);
    MUSTER_ASSERT_NO_ERROR (error);

    MUSTER_EXPECT_TRUE (train (&job, session, 4, &error));
    MUSTER_EXPECT_EQ (muster_monitored_session_global_step (session), 4 * (life + 1));
    MUSTER_EXPECT_TRUE (
        muster_monitored_session_finish (session, NULL, MUSTER_WAIT_FOREVER, &error));

    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_EQ (n_files (job.directory, "events.out.tfevents."), life + 1u);
    g_autofree char *latest = muster_latest_checkpoint (NULL, job.directory, &error);
    MUSTER_EXPECT_EQ (muster_checkpoint_step (latest), 4 * (life + 1));
  }
}

/* Two variables and nothing to save them by. */
static MusterScaffold *
scaffold_without_saver (GError **error)
{
  static const char *const variables[] = {"v", "global_step", NULL};
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  g_autoptr (MusterTensor) zero = muster_tensor_new_int64 (0);
  for (const char *const *name = variables; *name; name++)
    muster_graph_builder_variable (builder, *name, zero);
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (builder, error);
  g_autoptr (MusterMetaGraph) meta_graph = muster_meta_graph_new_for_graph (graph);
  return muster_scaffold_new (meta_graph, error);
}

static gint64
assign_and_read (MusterMonitoredSession *session, MusterScaffold *scaffold, gint64 value,
                 GError **error)
{
  g_autoptr (MusterTensor) tensor = muster_tensor_new_int64 (value);
  const MusterFeed feed = {"global_step/initial_value:0", tensor};
  const char *const target = "global_step/Assign";
  MusterStep step = {.feeds = &feed, .n_feeds = 1, .targets = &target, .n_targets = 1};
  gint64 before = muster_read_global_step (muster_monitored_session_session (session), scaffold,
                                           MUSTER_WAIT_FOREVER, NULL, error);
  return muster_monitored_session_run (session, &step, NULL, NULL, error) ? before : -1;
}

/* MON.6, MON.10, MON.14: as TensorFlow's scaffold builds one */
MUSTER_TEST (MonitoredTraining, builds_the_saver_of_a_model_that_has_none)
{
  for (int life = 0; life < 2; life++) {
    g_auto (Job) job = set_up ();
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterScaffold) scaffold = scaffold_without_saver (&error);
    MUSTER_ASSERT_NO_ERROR (error);
    job.options.scaffold = scaffold;
    g_autoptr (MusterMonitoredSession) session =
        muster_monitored_training_session_new (&job.options, NULL, NULL, &error);
    MUSTER_ASSERT_NO_ERROR (error);

    MUSTER_EXPECT_EQ (assign_and_read (session, scaffold, 7, &error), life == 0 ? 0 : 7);
    MUSTER_EXPECT_TRUE (
        muster_monitored_session_finish (session, NULL, MUSTER_WAIT_FOREVER, &error));

    MUSTER_ASSERT_NO_ERROR (error);
    g_autofree char *latest = muster_latest_checkpoint (NULL, job.directory, &error);
    MUSTER_EXPECT_EQ (muster_checkpoint_step (latest), 7);
  }
}

/* MON.10: a monitored session by itself restores as well */
MUSTER_TEST (MonitoredTraining, restores_by_the_scaffolds_saver_where_none_is_given)
{
  gint64 found[2] = {-1, -1};
  for (int with_directory = 0; with_directory <= 1; with_directory++) {
    g_auto (Job) job = set_up ();
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterScaffold) scaffold = scaffold_without_saver (&error);
    job.options.scaffold = scaffold;
    g_autoptr (MusterMonitoredSession) first =
        muster_monitored_training_session_new (&job.options, NULL, NULL, &error);
    (void)assign_and_read (first, scaffold, 7, &error);
    MUSTER_EXPECT_TRUE (muster_monitored_session_finish (first, NULL, MUSTER_WAIT_FOREVER, &error));
    MusterPrepareOptions prepare = {.checkpoint_dir = with_directory ? job.directory : NULL};
    g_autoptr (MusterMaster) fresh = muster_local_master_new ();
    MusterMonitoredSessionOptions options = {
        .scaffold = scaffold, .master = fresh, .prepare = &prepare};

    g_autoptr (MusterMonitoredSession) session =
        muster_monitored_session_new (&options, NULL, NULL, &error);

    MUSTER_ASSERT_NO_ERROR (error);
    found[with_directory] = assign_and_read (session, scaffold, 8, &error);
  }
  MUSTER_EXPECT_EQ (found[0], 0);
  MUSTER_EXPECT_EQ (found[1], 7);
}

/* MON.15 */
MUSTER_TEST (MonitoredTraining, saves_by_steps_where_steps_are_given_and_not_at_all_where_never)
{
  const gint64 steps[] = {2, MUSTER_NEVER};
  for (gsize i = 0; i < G_N_ELEMENTS (steps); i++) {
    g_auto (Job) job = set_up ();
    g_autoptr (GError) error = NULL;
    g_free (job.directory);
    job.directory = g_strdup_printf ("%s/%d", muster_test_tmpdir (), (int)i);
    job.options.saving.checkpoint_dir = job.directory;
    job.options.saving.save_steps = steps[i];
    g_autoptr (MusterMonitoredSession) session =
        muster_monitored_training_session_new (&job.options, NULL, NULL, &error);
    MUSTER_ASSERT_NO_ERROR (error);

    MUSTER_EXPECT_TRUE (train (&job, session, 4, &error));
    MUSTER_EXPECT_TRUE (
        muster_monitored_session_finish (session, NULL, MUSTER_WAIT_FOREVER, &error));

    g_autoptr (MusterCheckpointState) state =
        muster_checkpoint_state_read (NULL, job.directory, &error);
    MUSTER_EXPECT_EQ (state ? state->all->len : 0, i == 0 ? 3u : 0u);
  }
}

/* DMON.3: before there is a session */
MUSTER_TEST (MonitoredTraining, refuses_seconds_and_steps_at_once)
{
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL;
  job.options.saving.save_steps = 2;
  job.options.saving.save_us = 2;

  MUSTER_EXPECT_NULL (muster_monitored_training_session_new (&job.options, NULL, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

static void
expect_refused (Job *job, const char *words)
{
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_NULL (muster_monitored_training_session_new (&job->options, NULL, NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_TRUE (error != NULL && strstr (error->message, words) != NULL);
}

MUSTER_TEST (MonitoredTraining, refuses_another_place_to_restore)
{
  g_auto (Job) job = set_up ();
  job.options.restore.prefix = "/nonexistent/model.ckpt-1";
  expect_refused (&job, "checkpoint_dir");
  job.options.restore = (MusterRestoreOptions){.directory = "/nonexistent"};
  expect_refused (&job, "checkpoint_dir");
}

MUSTER_TEST (MonitoredTraining, refuses_ops_beside_the_scaffolds)
{
  static const char *const ops[] = {"init", NULL};
  g_auto (Job) job = set_up ();
  const MusterSessionManagerOptions managers[] = {
      {.local_init_op = "init"},
      {.local_init_ops = ops},
      {.ready_op = "init"},
      {.ready_for_local_init_op = "init"},
      {.meta_graph = muster_scaffold_meta_graph (job.scaffold)},
  };
  for (gsize i = 0; i < G_N_ELEMENTS (managers); i++) {
    job.options.manager = managers[i];
    expect_refused (&job, "the scaffold's");
  }
}

/* DMON.4 */
MUSTER_TEST (MonitoredTraining, leaves_saving_to_the_users_own_hook)
{
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL;
  g_autofree char *own = g_build_filename (muster_test_tmpdir (), "own", NULL);
  MusterCheckpointSaverOptions saving = {
      .checkpoint_dir = own, .save_steps = 1, .save_blocking = TRUE};
  g_autoptr (MusterHook) hook = muster_checkpoint_saver_hook_new (&saving, &error);
  job.options.hooks = &hook;
  job.options.n_hooks = 1;
  g_autoptr (MusterMonitoredSession) session =
      muster_monitored_training_session_new (&job.options, NULL, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_TRUE (train (&job, session, 1, &error));

  MUSTER_EXPECT_EQ (n_files (own, "model.ckpt-"), 6u); /* steps 0 and 1, three files each */
  MUSTER_EXPECT_EQ (n_files (job.directory, "model.ckpt-"), 0u);
}

static gboolean
count (MusterTensor *value G_GNUC_UNUSED, gint64 step G_GNUC_UNUSED, gpointer user_data,
       GError **error G_GNUC_UNUSED)
{
  ++*(int *)user_data;
  return TRUE;
}

static gboolean
note_run (MusterTensor *value G_GNUC_UNUSED, gint64 step G_GNUC_UNUSED, gpointer user_data,
          GError **error G_GNUC_UNUSED)
{
  g_string_append (*(GString **)user_data, "chief's ");
  return TRUE;
}

static gboolean
note_user (MusterTensor *value G_GNUC_UNUSED, gint64 step G_GNUC_UNUSED, gpointer user_data,
           GError **error G_GNUC_UNUSED)
{
  g_string_append (*(GString **)user_data, "user's ");
  return TRUE;
}

static gboolean
note_save (MusterSaverObserver *observer G_GNUC_UNUSED, MusterSession *session G_GNUC_UNUSED,
           gint64 step G_GNUC_UNUSED, const char *prefix G_GNUC_UNUSED,
           gint64 deadline_us G_GNUC_UNUSED, GCancellable *cancellable G_GNUC_UNUSED,
           gpointer user_data)
{
  g_string_append (*(GString **)user_data, "save ");
  return FALSE;
}

/* MON.16 */
MUSTER_TEST (MonitoredTraining, calls_hooks_in_tensorflows_order)
{
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL;
  g_autoptr (GString) order = g_string_new (NULL);
  g_autoptr (MusterHook) chiefs = muster_hook_new_for_step (NULL, note_run, &order, NULL);
  g_autoptr (MusterHook) users = muster_hook_new_for_step (NULL, note_user, &order, NULL);
  g_autoptr (MusterSaverObserver) observer = muster_saver_observer_new ();
  g_signal_connect (observer, "after-save", G_CALLBACK (note_save), &order);
  job.options.chief_only_hooks = &chiefs;
  job.options.n_chief_only_hooks = 1;
  job.options.hooks = &users;
  job.options.n_hooks = 1;
  job.options.saving.saver_observer = observer;
  job.options.saving.save_steps = 1;
  job.options.save_summaries_steps = 1;
  job.options.log_step_count_steps = 1;
  g_autoptr (MusterMonitoredSession) session =
      muster_monitored_training_session_new (&job.options, NULL, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_string_truncate (order, 0);

  MUSTER_EXPECT_TRUE (train (&job, session, 2, &error));
  MUSTER_EXPECT_STREQ (order->str, "chief's save user's chief's save user's ");
  MUSTER_EXPECT_TRUE (muster_monitored_session_finish (session, NULL, MUSTER_WAIT_FOREVER, &error));

  g_auto (GStrv) names = muster_storage_list (muster_local_storage (), job.directory, NULL);
  for (char **name = names; name != NULL && *name != NULL; name++) {
    g_autofree char *path = g_build_filename (job.directory, *name, NULL);
    g_autofree char *events = g_str_has_prefix (*name, "events") ? events_read (path) : NULL;
    if (events != NULL)
      MUSTER_EXPECT_TRUE (
          strstr (events, "2 scalar global_step/sec\n2 scalar loss_summary\n2 log 3\n") != NULL);
  }
}

/* DMON.14: wired up; tests/train/report_hooks_test.c has what it does */
MUSTER_TEST (MonitoredTraining, of_a_chief_waits_at_the_end_where_it_is_asked)
{
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL;
  job.options.finish_quiet_us = 20 * MUSTER_MILLISECOND;
  g_autoptr (MusterMonitoredSession) session =
      muster_monitored_training_session_new (&job.options, NULL, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  gint64 started_us = muster_clock_now_us (muster_system_clock ());

  MUSTER_EXPECT_TRUE (muster_monitored_session_finish (session, NULL, MUSTER_WAIT_FOREVER, &error));

  MUSTER_EXPECT_GE (muster_clock_now_us (muster_system_clock ()) - started_us,
                    20 * MUSTER_MILLISECOND);
}

/* MON.17 */
MUSTER_TEST (MonitoredTraining, of_a_worker_has_the_users_hooks_alone)
{
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL;
  int chiefs = 0, everyones = 0;
  g_autoptr (MusterMonitoredSession) chief =
      muster_monitored_training_session_new (&job.options, NULL, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  guint n_events = n_files (job.directory, "events");
  g_autoptr (MusterHook) a = muster_hook_new_for_step (NULL, count, &chiefs, NULL);
  g_autoptr (MusterHook) b = muster_hook_new_for_step (NULL, count, &everyones, NULL);
  job.options.is_worker = TRUE;
  job.options.chief_only_hooks = &a;
  job.options.n_chief_only_hooks = 1;
  job.options.hooks = &b;
  job.options.n_hooks = 1;
  g_autoptr (MusterMonitoredSession) worker =
      muster_monitored_training_session_new (&job.options, NULL, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_TRUE (train (&job, worker, 3, &error));
  MUSTER_EXPECT_TRUE (muster_monitored_session_finish (worker, NULL, MUSTER_WAIT_FOREVER, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (chiefs, 0);
  MUSTER_EXPECT_EQ (everyones, 3);
  MUSTER_EXPECT_EQ (n_files (job.directory, "events"), n_events);
}

/* MON.18, and DMON.18: it says so */
MUSTER_TEST (MonitoredTraining, without_a_directory_saves_nothing)
{
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL;
  job.options.saving.checkpoint_dir = NULL;
  heard_begin (G_LOG_LEVEL_MESSAGE);
  g_autoptr (MusterMonitoredSession) session =
      muster_monitored_training_session_new (&job.options, NULL, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_TRUE (train (&job, session, 2, &error));
  MUSTER_EXPECT_TRUE (muster_monitored_session_finish (session, NULL, MUSTER_WAIT_FOREVER, &error));

  MUSTER_EXPECT_EQ (heard_count ("no-checkpoints", "*nothing is restored or saved"), 1U);
  heard_end ();
  MUSTER_EXPECT_FALSE (g_file_test (job.directory, G_FILE_TEST_EXISTS));
}

// SPDX-License-Identifier: Apache-2.0
/* A store that can't be reached while a job trains: the model that is being trained is kept, and
 * saved once the store is back. */
#include "checkpoint/state/checkpoint_state.h"
#include "engine/session/local_master.h"
#include "master/remote/target.h"
#include "server/server.h"
#include "tests/deadline.h"
#include "tests/doubles/fake_clock.h"
#include "tests/doubles/faulty_storage.h"
#include "tests/doubles/small_model.h"
#include "tests/gtest_shim.h"
#include "tests/train/monitored_fixture.h"
#include "train/hooks/hooks.h"
#include "train/monitored_training.h"

typedef enum { LOCAL, SERVED, AT_MASTER, IN_TIERS } Place; /* AT_MASTER: its store alone is away */

typedef struct {
  MusterScaffold *scaffold;
  MusterFaultyStorage *storage; /* the chief's and the master's, but AT_MASTER the master's */
  MusterFakeClock *clock;       /* (nullable) */
  MusterSaver *saver;
  MusterMaster *master;
  MusterServer *server; /* (nullable) */
  MusterMonitoredSession *session;
  char *fast, *run;
  int n_failed; /* saves */
} Job;

static void
serve (Job *job)
{
  g_autoptr (GError) error = NULL;
  job->server = muster_server_new (job->master, NULL);
  const int port = muster_server_listen (job->server, "127.0.0.1:0", &error);
  g_assert_no_error (error);
  muster_server_start (job->server);
  g_autofree char *target = g_strdup_printf ("grpc://127.0.0.1:%d", port);
  g_clear_object (&job->master);
  job->master = muster_master_new_for_target (target, &error);
  g_assert_no_error (error);
}

static Job
set_up (Place place, const char *name, MusterFakeClock *clock)
{
  g_autoptr (GError) error = NULL;
  Job job = {.scaffold = muster_scaffold_load ("tests/fixtures/linreg.meta", &error),
             .storage = muster_faulty_storage_new (),
             .clock = clock,
             .fast = g_build_filename (muster_test_tmpdir (), name, "fast", NULL),
             .run = g_build_filename (muster_test_tmpdir (), name, "run", NULL)};
  const MusterTier fast = {.directory = job.fast, .save_steps = 2, .max_to_keep = 3};
  const MusterSaverOptions options = {.storage =
                                          place != AT_MASTER ? MUSTER_STORAGE (job.storage) : NULL,
                                      .fast = &fast,
                                      .n_fast = place == IN_TIERS ? 1 : 0,
                                      .clock = clock != NULL ? MUSTER_CLOCK (clock) : NULL};
  g_assert_no_error (error);
  job.saver = muster_saver_new (muster_scaffold_meta_graph (job.scaffold), &options, &error);
  g_assert_no_error (error);
  job.master = muster_local_master_new_with (MUSTER_STORAGE (job.storage), 0);
  if (place == SERVED || place == AT_MASTER)
    serve (&job);
  return job;
}

static void
tear_down (Job *job)
{
  muster_faulty_storage_set (job->storage, NULL, MUSTER_FAULT_NONE);
  g_clear_object (&job->session);
  g_clear_object (&job->master);
  g_clear_pointer (&job->server, muster_server_free);
  g_clear_object (&job->saver);
  g_clear_object (&job->storage);
  g_clear_pointer (&job->scaffold, muster_scaffold_unref);
  g_free (job->fast);
  g_free (job->run);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Job, tear_down)

static void
note_failed (MusterSaverObserver *observer G_GNUC_UNUSED, gint64 step G_GNUC_UNUSED,
             const GError *why G_GNUC_UNUSED, guint n_in_a_row G_GNUC_UNUSED,
             guint n_left_out G_GNUC_UNUSED, gpointer n_failed)
{
  ++*(int *)n_failed;
}

static gboolean
open_job (Job *job, gboolean is_blocking, GError **error)
{
  g_autoptr (MusterSaverObserver) observer = muster_saver_observer_new ();
  g_signal_connect (observer, "save-failed", G_CALLBACK (note_failed), &job->n_failed);
  const MusterMonitoredTrainingOptions options = {
      .scaffold = job->scaffold,
      .master = job->master,
      .saving.checkpoint_dir = job->run,
      .saving.saver = job->saver,
      .saving.save_steps = 2,
      .saving.save_blocking = is_blocking,
      .saving.saver_observer = observer,
      .save_summaries_steps = MUSTER_NEVER,
      .log_step_count_steps = MUSTER_NEVER,
      .manager.clock = job->clock != NULL ? MUSTER_CLOCK (job->clock) : NULL};
  job->session = muster_monitored_training_session_new (&options, NULL, NULL, error);
  return job->session != NULL;
}

/* n steps, each of which must be one more than the one before. */
static void
train (Job *job, int n)
{
  const char *targets[] = {muster_scaffold_train_op (job->scaffold)};
  const gint64 dims[] = {1};
  const float one = 1;
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) x =
      muster_tensor_new_from_data (MUSTER_FLOAT, 1, dims, &one, sizeof one, NULL);
  const MusterFeed feeds[] = {{"x:0", x}, {"y:0", x}};
  const MusterStep step = {.feeds = feeds, .n_feeds = 2, .targets = targets, .n_targets = 1};

  for (int i = 0; i < n && error == NULL; i++) {
    const gint64 before = MAX (muster_monitored_session_global_step (job->session), 0);
    (void)muster_monitored_session_run (job->session, &step, NULL, NULL, &error);
    MUSTER_EXPECT_EQ (muster_monitored_session_global_step (job->session), before + 1);
  }
  MUSTER_EXPECT_NO_ERROR (error);
}

static gint64
latest_step (const char *directory)
{
  g_autofree char *latest = muster_latest_checkpoint (NULL, directory, NULL);
  return latest != NULL ? muster_checkpoint_step (latest) : -1;
}

static gboolean
finish (Job *job, GError **error)
{
  const gint64 hour_us = 60 * 60 * MUSTER_SECOND;
  const gint64 deadline_us = job->clock != NULL
                                 ? muster_clock_now_us (MUSTER_CLOCK (job->clock)) + hour_us
                                 : test_deadline ();
  return muster_monitored_session_finish (job->session, NULL, deadline_us, error);
}

/* MON.38: the store is away for some saves, blocking and in the background, on a local master, a
 * served one, one whose SaveV2 alone fails, and in two tiers. */
MUSTER_TEST (Outage, costs_no_step_and_all_is_saved_once_the_store_is_back)
{
  static const struct {
    const char *name;
    Place place;
    gboolean is_blocking;
  } kinds[] = {{"local", LOCAL, FALSE},      {"local blocking", LOCAL, TRUE},
               {"served", SERVED, FALSE},    {"served blocking", SERVED, TRUE},
               {"master", AT_MASTER, FALSE}, {"master blocking", AT_MASTER, TRUE},
               {"tiers", IN_TIERS, FALSE},   {"tiers blocking", IN_TIERS, TRUE}};

  for (gsize i = 0; i < G_N_ELEMENTS (kinds); i++) {
    MUSTER_TRACE ("%s", kinds[i].name);
    g_auto (Job) job = set_up (kinds[i].place, kinds[i].name, NULL);
    g_autoptr (GError) error = NULL;
    MUSTER_ASSERT_TRUE (open_job (&job, kinds[i].is_blocking, &error));
    train (&job, 5);

    muster_faulty_storage_set (job.storage, job.run, MUSTER_FAULT_AWAY);
    const gint64 until_us = test_deadline ();
    for (train (&job, 5); job.n_failed == 0 && g_get_monotonic_time () < until_us;)
      train (&job, 1);
    MUSTER_EXPECT_GE (job.n_failed, 1);
    muster_faulty_storage_set (job.storage, NULL, MUSTER_FAULT_NONE);
    train (&job, 5);

    const gint64 last = muster_monitored_session_global_step (job.session);
    MUSTER_EXPECT_TRUE (finish (&job, &error));
    MUSTER_EXPECT_NO_ERROR (error);
    MUSTER_EXPECT_EQ (muster_monitored_session_n_recoveries (job.session), 0u);
    MUSTER_EXPECT_EQ (latest_step (job.run), last);
  }
}

static void
come_back (gpointer storage)
{
  muster_faulty_storage_set (storage, NULL, MUSTER_FAULT_NONE);
}

/* What a local master holds is nowhere else: the save at the end is repeated. */
MUSTER_TEST (Outage, is_waited_for_at_the_end_of_a_job)
{
  for (int is_blocking = 0; is_blocking < 2; is_blocking++) {
    g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
    g_auto (Job) job = set_up (LOCAL, is_blocking ? "blocking" : "background", clock);
    g_autoptr (GError) error = NULL;
    MUSTER_ASSERT_TRUE (open_job (&job, is_blocking, &error));
    train (&job, 3);
    const gint64 last = muster_monitored_session_global_step (job.session);

    muster_faulty_storage_set (job.storage, job.run, MUSTER_FAULT_AWAY);
    muster_fake_clock_at (clock, muster_fake_clock_elapsed_us (clock) + 200 * MUSTER_SECOND,
                          come_back, job.storage);
    MUSTER_EXPECT_TRUE (finish (&job, &error));

    MUSTER_EXPECT_NO_ERROR (error);
    MUSTER_EXPECT_EQ (latest_step (job.run), last);
  }
}

/* … but not for ever: then the job says that its last step isn't saved. */
MUSTER_TEST (Outage, that_does_not_end_is_a_failure_of_the_store)
{
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_auto (Job) job = set_up (LOCAL, "run", clock);
  g_autoptr (GError) error = NULL;
  MUSTER_ASSERT_TRUE (open_job (&job, TRUE, &error));
  train (&job, 3);

  muster_faulty_storage_set (job.storage, job.run, MUSTER_FAULT_AWAY);
  const gint64 began_us = muster_fake_clock_elapsed_us (clock);
  MUSTER_EXPECT_FALSE (finish (&job, &error));
  MUSTER_EXPECT_LE (muster_fake_clock_elapsed_us (clock) - began_us, 10 * 60 * MUSTER_SECOND);

  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_HOST_UNREACHABLE);
  MUSTER_EXPECT_EQ (muster_monitored_session_n_recoveries (job.session), 0u);
}

/* MON.38: a master that was reset meanwhile has lost the model: the store is waited for. */
MUSTER_TEST (Outage, at_the_beginning_of_a_session_is_waited_for)
{
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_auto (Job) job = set_up (LOCAL, "run", clock);
  g_autoptr (GError) error = NULL;
  MUSTER_ASSERT_TRUE (open_job (&job, TRUE, &error));
  train (&job, 4);
  MUSTER_ASSERT_EQ (latest_step (job.run), 4);

  muster_faulty_storage_set (job.storage, job.run, MUSTER_FAULT_AWAY);
  muster_fake_clock_at (clock, muster_fake_clock_elapsed_us (clock) + 5 * MUSTER_SECOND, come_back,
                        job.storage);
  MUSTER_ASSERT_TRUE (muster_master_reset (job.master, NULL, MUSTER_WAIT_FOREVER, NULL, &error));

  train (&job, 1);
  MUSTER_EXPECT_GE (muster_monitored_session_n_recoveries (job.session), 1u);
}

/* A job whose saves another master writes, by its own store. */
static MusterHook *
save_by_master (Monitored *job, const char *directory)
{
  g_autoptr (GError) error = NULL;
  const MusterSaverOptions saver_options = {.clock = MUSTER_CLOCK (job->clock), .no_probe = TRUE};
  g_autoptr (MusterSaver) saver =
      muster_saver_new (muster_scaffold_meta_graph (job->scaffold), &saver_options, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MusterHook *hook = muster_checkpoint_saver_hook_new (
      &(MusterCheckpointSaverOptions){
          .checkpoint_dir = directory, .save_steps = 2, .save_blocking = TRUE, .saver = saver},
      &error);
  MUSTER_EXPECT_NO_ERROR (error);
  monitored_script (job);
  muster_small_model_play (job->master);
  muster_fake_master_set_variable (job->master, "v");
  monitored_add (job, hook);
  return hook;
}

static void
fail_one_save (MusterError code)
{
  g_auto (Monitored) job = monitored_set_up ();
  g_autoptr (GError) error = NULL;
  g_autofree char *directory = g_build_filename (muster_test_tmpdir (), "run", NULL);
  MusterHook *hook = save_by_master (&job, directory);
  MUSTER_ASSERT_TRUE (monitored_open (&job, &error));
  muster_fake_master_fail (job.master, "save/control_dependency", 2, 1, code, "the store is away");

  for (int i = 0; i < 4; i++)
    MUSTER_EXPECT_TRUE (monitored_train (&job, NULL, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_checkpoint_saver_hook_n_failures (hook), 1u);
  MUSTER_EXPECT_EQ (muster_monitored_session_n_recoveries (job.session), 0u);
  MUSTER_EXPECT_EQ (latest_step (directory), 4);
}

/* Other masters have UNAVAILABLE for it, as for a session that is lost: the session itself tells. A
 * file in the place of the directory has the code of a directory that another chief holds. */
MUSTER_TEST (Outage, of_a_masters_own_store_costs_no_session)
{
  fail_one_save (MUSTER_ERROR_UNAVAILABLE);
  fail_one_save (MUSTER_ERROR_FAILED_PRECONDITION);
}

/* It may also give its store up by a time limit of its own: the last save is repeated. */
MUSTER_TEST (Outage, of_a_masters_own_store_is_waited_for_at_the_end)
{
  g_auto (Monitored) job = monitored_set_up ();
  g_autoptr (GError) error = NULL;
  g_autofree char *directory = g_build_filename (muster_test_tmpdir (), "run", NULL);
  MusterHook *hook = save_by_master (&job, directory);
  MUSTER_ASSERT_TRUE (monitored_open (&job, &error));
  for (int i = 0; i < 3; i++)
    MUSTER_EXPECT_TRUE (monitored_train (&job, NULL, &error));
  muster_fake_master_fail (job.master, "save/control_dependency", 3, 2,
                           MUSTER_ERROR_DEADLINE_EXCEEDED, "the store is away");

  const gint64 deadline_us =
      muster_clock_now_us (MUSTER_CLOCK (job.clock)) + 60 * 60 * MUSTER_SECOND;
  MUSTER_EXPECT_TRUE (muster_monitored_session_finish (job.session, NULL, deadline_us, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_checkpoint_saver_hook_n_failures (hook), 2u);
  MUSTER_EXPECT_EQ (latest_step (directory), 3);
}

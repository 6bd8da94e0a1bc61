// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/state/checkpoint_record_private.h"
#include "tests/gtest_shim.h"
#include "tests/session/fixture.h"

#include <sys/wait.h>
#include <unistd.h>

/* Chiefs that claim the model they prepare. */

static const MusterPrepareOptions init = {.init_op = "init"};

static gboolean
do_nothing (MusterSession *session G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
            GCancellable *cancellable G_GNUC_UNUSED, gpointer user_data G_GNUC_UNUSED,
            GError **error G_GNUC_UNUSED)
{
  return TRUE;
}

MUSTER_TEST (Chief, claims_the_model_before_anything_runs_and_reports_each_phase)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_small_job_name_model (&job, (MusterSessionManagerOptions){0});

  g_autoptr (MusterSession) session = muster_small_job_prepare (
      &job, (MusterPrepareOptions){.init_op = "init", .init_func = do_nothing});

  MUSTER_EXPECT_NO_ERROR (job.error);
  muster_small_job_diary_is (&job,
                             "create, claim, announce initialising, run init, announce local init, "
                             "run gate, run local_init, run ready, announce prepared");
  MUSTER_EXPECT_EQ ((int)job.report.outcome, (int)MUSTER_OUTCOME_READY);
  MUSTER_EXPECT_EQ (job.report.epoch, 1);
  g_autoptr (MusterAnnouncement) chief = muster_fake_master_chief (job.master);
  MUSTER_ASSERT_TRUE (chief != NULL);
  MUSTER_EXPECT_STREQ (chief->task, "worker:0");
  MUSTER_EXPECT_TRUE (chief->alive && chief->prepared);
}

MUSTER_TEST (Chief, reports_which_checkpoint_it_restores_and_its_step)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autofree char *prefix = muster_small_job_write_checkpoint (muster_test_tmpdir (), 1200);
  muster_small_job_name_model (&job, (MusterSessionManagerOptions){0});

  g_autoptr (MusterSession) session = muster_small_job_prepare (
      &job, (MusterPrepareOptions){
                .init_op = "init", .saver = job.saver, .checkpoint_dir = muster_test_tmpdir ()});

  MUSTER_EXPECT_NO_ERROR (job.error);
  muster_small_job_diary_is (
      &job, "create, claim, announce restoring, run save/restore_all, announce local "
            "init, run gate, run local_init, run ready, announce prepared");
  g_autoptr (MusterAnnouncement) chief = muster_fake_master_chief (job.master);
  MUSTER_EXPECT_EQ (chief->step, 1200);
  MUSTER_EXPECT_EQ (chief->durable_step, 1200);
  MUSTER_EXPECT_STREQ (chief->durable, prefix);
}

/* What the job has lost if it dies again. */
MUSTER_TEST (Chief, reports_how_old_the_checkpoint_is_that_it_restores)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  const char *directory = muster_test_tmpdir ();
  g_autofree char *prefix = muster_small_job_write_checkpoint (directory, 1200);
  g_autoptr (MusterCheckpointRecord) record = muster_checkpoint_record_new ();
  muster_fake_clock_set_wall (job.clock, 7200 * MUSTER_SECOND);
  muster_checkpoint_record_ensure (record, prefix)->time =
      muster_checkpoint_record_now (MUSTER_CLOCK (job.clock)) - 3600;
  MUSTER_EXPECT_TRUE (
      muster_checkpoint_record_write (muster_local_storage (), directory, record, &job.error));
  muster_small_job_name_model (&job, (MusterSessionManagerOptions){0});

  g_autoptr (MusterSession) session = muster_small_job_prepare (
      &job,
      (MusterPrepareOptions){.init_op = "init", .saver = job.saver, .checkpoint_dir = directory});

  MUSTER_EXPECT_NO_ERROR (job.error);
  g_autoptr (MusterAnnouncement) chief = muster_fake_master_chief (job.master);
  MUSTER_EXPECT_GE (chief->durable_age_us, 3600 * MUSTER_SECOND);
}

/* A process that has a job in the test's folder, until its standard input ends. */
static pid_t
start_other_job (int *end)
{
  g_autofree char *path = g_build_filename (muster_test_tmpdir (), ".muster.chief", NULL);
  int begun[2], ends[2];
  char byte;

  if (pipe (begun) != 0 || pipe (ends) != 0)
    return -1;
  const pid_t child = fork ();
  if (child == 0) {
    close (ends[1]);
    const gboolean is_held =
        muster_storage_lock (muster_local_storage (), path, MUSTER_LOCK_PROCESS, NULL) != NULL;
    _exit (write (begun[1], "x", 1) == 1 && read (ends[0], &byte, 1) == 0 && is_held ? 0 : 1);
  }
  MUSTER_EXPECT_EQ (read (begun[0], &byte, 1), 1);
  close (begun[0]);
  close (begun[1]);
  close (ends[0]);
  *end = ends[1];
  return child;
}

/* On a master without claims nothing else keeps two jobs apart: a reset would end the other one. */
MUSTER_TEST (Chief, changes_nothing_on_a_master_while_another_job_saves_in_its_directory)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  MusterPrepareOptions options = {.init_op = "init",
                                  .saver = job.saver,
                                  .taken_by = job.saver,
                                  .checkpoint_dir = muster_test_tmpdir (),
                                  .reset_unclaimed = TRUE};
  int end = -1, status = -1;
  const pid_t other = start_other_job (&end);
  MUSTER_ASSERT_TRUE (other > 0);

  g_autoptr (MusterSession) refused = muster_small_job_prepare (&job, options);

  MUSTER_EXPECT_NULL (refused);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_TRUE (strstr (job.error->message, "is in use") != NULL);
  muster_small_job_diary_is (&job, "create, close");
  close (end);
  MUSTER_EXPECT_EQ (waitpid (other, &status, 0), other);
  MUSTER_EXPECT_EQ (status, 0);

  options.reset_unclaimed = FALSE; /* which this master doesn't know */
  g_autoptr (MusterSession) session = muster_small_job_prepare (&job, options);
  MUSTER_EXPECT_TRUE (session != NULL);
}

/* The directory may be another job's, which goes on saving: that the model is claimed says nothing
 * of the directory. */
MUSTER_TEST (Chief, takes_no_directory_from_another_by_restoring)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autoptr (GError) error = NULL;
  g_autofree char *prefix = muster_small_job_write_checkpoint (muster_test_tmpdir (), 1200);
  g_autoptr (MusterCheckpointRecord) trainers = muster_checkpoint_record_new ();
  trainers->epoch = 3;
  trainers->chief = g_strdup ("the trainer");
  muster_checkpoint_record_write (NULL, muster_test_tmpdir (), trainers, &error);
  muster_small_job_name_model (&job, (MusterSessionManagerOptions){0});

  g_autoptr (MusterSession) session = muster_small_job_prepare (
      &job, (MusterPrepareOptions){.saver = job.saver, .checkpoint_dir = muster_test_tmpdir ()});

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_STREQ (job.report.restored_from, prefix);
  g_autoptr (MusterCheckpointRecord) after =
      muster_checkpoint_record_read (NULL, muster_test_tmpdir (), &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (after->epoch, 3);
  MUSTER_EXPECT_STREQ (after->chief, "the trainer");
}

static gboolean
note_detail (MusterFakeMaster *master, const MusterStep *step G_GNUC_UNUSED,
             MusterTensor **value G_GNUC_UNUSED, gpointer user_data, GError **error G_GNUC_UNUSED)
{
  g_autoptr (MusterAnnouncement) chief = muster_fake_master_chief (master);
  *(char **)user_data = g_strdup (chief->detail);
  return TRUE;
}

MUSTER_TEST (Chief, names_the_checkpoint_while_it_restores)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autofree char *prefix = muster_small_job_write_checkpoint (muster_test_tmpdir (), 1200);
  g_autofree char *detail = NULL;
  muster_small_job_name_model (&job, (MusterSessionManagerOptions){0});
  muster_fake_master_op_calls (job.master, "save/restore_all", note_detail, &detail);

  g_autoptr (MusterSession) session = muster_small_job_prepare (
      &job, (MusterPrepareOptions){.saver = job.saver, .checkpoint_filename = prefix});

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_STREQ (detail, "model.ckpt-1200");
}

static void
take_two_seconds (guint64 done G_GNUC_UNUSED, guint64 total G_GNUC_UNUSED, gpointer user_data)
{
  muster_fake_clock_pass (user_data, 2 * MUSTER_SECOND);
}

MUSTER_TEST (Chief, reports_how_far_a_long_restore_is)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  const MusterRestoreOptions how = {.progress = take_two_seconds, .user_data = job.clock};
  g_autofree char *prefix = muster_small_job_write_checkpoint (muster_test_tmpdir (), 1200);
  g_autofree char *detail = NULL;
  muster_small_job_name_model (&job, (MusterSessionManagerOptions){0});
  muster_fake_master_op_calls (job.master, "save/restore_all", note_detail, &detail);

  g_autoptr (MusterSession) session = muster_small_job_prepare (
      &job,
      (MusterPrepareOptions){.saver = job.saver, .checkpoint_filename = prefix, .restore = &how});

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_STREQ (detail, "model.ckpt-1200, 100 %");
}

/* Nothing to restore is not announced as restoring. */
MUSTER_TEST (Chief, restores_nothing_from_an_empty_directory)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_small_job_name_model (&job, (MusterSessionManagerOptions){0});

  g_autoptr (MusterSession) session = muster_small_job_prepare (
      &job, (MusterPrepareOptions){
                .init_op = "init", .saver = job.saver, .checkpoint_dir = muster_test_tmpdir ()});

  MUSTER_EXPECT_NO_ERROR (job.error);
  muster_small_job_diary_is (&job,
                             "create, claim, announce initialising, run init, announce local init, "
                             "run gate, run local_init, run ready, announce prepared");
}

MUSTER_TEST (Chief, does_without_where_the_master_keeps_no_announcements)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  MusterSessionManagerOptions options = {.local_init_op = "local_init",
                                         .ready_op = "ready",
                                         .clock = MUSTER_CLOCK (job.clock),
                                         .model = "digits"};
  g_clear_object (&job.manager);
  job.manager = muster_session_manager_new (NULL, &options, NULL);

  g_autoptr (MusterSession) session = muster_small_job_prepare (&job, init);

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_ASSERT_TRUE (session != NULL);
  MUSTER_EXPECT_EQ (job.report.epoch, 0);
  MUSTER_EXPECT_NULL (muster_session_manager_lease (session));
}

MUSTER_TEST (Chief, holds_its_lease_as_long_as_its_session)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_small_job_name_model (&job, (MusterSessionManagerOptions){0});

  MusterSession *session = muster_small_job_prepare (&job, init);

  MUSTER_ASSERT_TRUE (session != NULL);
  MusterLease *lease = muster_session_manager_lease (session);
  MUSTER_ASSERT_TRUE (lease != NULL);
  MUSTER_EXPECT_STREQ (muster_lease_model (lease), "digits");
  MUSTER_EXPECT_TRUE (muster_lease_check (lease, NULL));
  g_object_unref (session);
  g_autoptr (MusterAnnouncement) chief = muster_fake_master_chief (job.master);
  MUSTER_EXPECT_FALSE (chief->alive);
  MUSTER_EXPECT_EQ (chief->phase, MUSTER_CHIEF_PREPARED);
}

MUSTER_TEST (Chief, runs_nothing_while_another_holds_the_model)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_small_job_name_model (&job, (MusterSessionManagerOptions){0});
  muster_small_job_set_chief (&job, MUSTER_CHIEF_TRAINING, TRUE, TRUE, 40);

  g_autoptr (MusterSession) session = muster_small_job_prepare (&job, init);

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_EQ ((int)job.report.outcome, (int)MUSTER_OUTCOME_FENCED);
  MUSTER_ASSERT_TRUE (job.error != NULL);
  MUSTER_EXPECT_TRUE (strstr (job.error->message, "worker:7"));
  muster_small_job_diary_is (&job, "create, claim, close");
}

MUSTER_TEST (Chief, comes_with_its_own_epoch)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_small_job_name_model (&job, (MusterSessionManagerOptions){0});
  muster_small_job_set_chief (&job, MUSTER_CHIEF_STARTING, FALSE, TRUE, -1);

  g_autoptr (MusterSession) session =
      muster_small_job_prepare (&job, (MusterPrepareOptions){.init_op = "init", .epoch = 9});

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_EQ (job.report.epoch, 9);
}

MUSTER_TEST (Chief, refuses_an_epoch_below_0)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autoptr (MusterSession) session =
      muster_small_job_prepare (&job, (MusterPrepareOptions){.init_op = "init", .epoch = -1});

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  muster_small_job_diary_is (&job, "");
}

/* A refusal tells no step: the master is asked for it. */
MUSTER_TEST (Chief, starts_no_job_that_is_over)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_small_job_name_model (&job, (MusterSessionManagerOptions){0});
  muster_fake_master_set_watchable (job.master);
  muster_small_job_set_chief (&job, MUSTER_CHIEF_OVER, TRUE, FALSE, 20000);

  g_autoptr (MusterSession) session = muster_small_job_prepare (&job, init);

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_OUT_OF_RANGE);
  MUSTER_EXPECT_EQ ((int)job.report.outcome, (int)MUSTER_OUTCOME_OVER);
  MUSTER_EXPECT_EQ (job.report.final_step, 20000);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (job.master, "init"), 0u);
}

MUSTER_TEST (Chief, begins_a_job_that_is_over_again_when_asked)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_small_job_name_model (&job, (MusterSessionManagerOptions){0});
  muster_small_job_set_chief (&job, MUSTER_CHIEF_OVER, TRUE, FALSE, 20000);

  g_autoptr (MusterSession) session =
      muster_small_job_prepare (&job, (MusterPrepareOptions){.init_op = "init", .overwrite = TRUE});

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_TRUE (session != NULL);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (job.master, "init"), 1u);
}

/* DIFF.8: a chief that was started anew doesn't run over the progress of others. The model stays
 * what it was: prepared, for those who wait. */
MUSTER_TEST (Chief, never_initialises_over_what_another_has_prepared)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_small_job_name_model (&job, (MusterSessionManagerOptions){0});
  muster_small_job_set_chief (&job, MUSTER_CHIEF_TRAINING, TRUE, FALSE, 640);

  g_autoptr (MusterSession) session = muster_small_job_prepare (&job, init);

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_EQ ((int)job.report.outcome, (int)MUSTER_OUTCOME_FENCED);
  MUSTER_ASSERT_TRUE (job.error != NULL);
  MUSTER_EXPECT_TRUE (strstr (job.error->message, "worker:7 (elsewhere:1), lost "));
  MUSTER_EXPECT_TRUE (strstr (job.error->message, "to join it, use `muster wait`"));
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (job.master, "init"), 0u);
  g_autoptr (MusterAnnouncement) chief = muster_fake_master_chief (job.master);
  MUSTER_EXPECT_EQ (chief->phase, MUSTER_CHIEF_TRAINING);
  MUSTER_EXPECT_TRUE (chief->prepared);
  MUSTER_EXPECT_EQ (chief->step, 640);
}

MUSTER_TEST (Chief, initialises_anew_what_another_has_prepared_when_asked)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_small_job_name_model (&job, (MusterSessionManagerOptions){0});
  muster_small_job_set_chief (&job, MUSTER_CHIEF_PREPARED, TRUE, FALSE, -1);

  g_autoptr (MusterSession) session =
      muster_small_job_prepare (&job, (MusterPrepareOptions){.init_op = "init", .overwrite = TRUE});

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (job.master, "init"), 1u);
}

/* It would end without a save. */
MUSTER_TEST (Chief, overwrites_no_model_that_a_living_chief_has)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_small_job_name_model (&job, (MusterSessionManagerOptions){0});
  muster_small_job_set_chief (&job, MUSTER_CHIEF_TRAINING, TRUE, TRUE, 640);

  g_autoptr (MusterSession) session =
      muster_small_job_prepare (&job, (MusterPrepareOptions){.init_op = "init", .overwrite = TRUE});

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_EQ ((int)job.report.outcome, (int)MUSTER_OUTCOME_FENCED);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (job.master, "init"), 0u);
}

MUSTER_TEST (Chief, restores_over_what_another_has_prepared)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autofree char *prefix = muster_small_job_write_checkpoint (muster_test_tmpdir (), 7);
  muster_small_job_name_model (&job, (MusterSessionManagerOptions){0});
  muster_small_job_set_chief (&job, MUSTER_CHIEF_TRAINING, TRUE, FALSE, 640);

  g_autoptr (MusterSession) session = muster_small_job_prepare (
      &job, (MusterPrepareOptions){
                .init_op = "init", .saver = job.saver, .checkpoint_dir = muster_test_tmpdir ()});

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_STREQ (job.report.restored_from, prefix);
}

/* One that died in the middle of its work has prepared nothing; nor has one whose variables were
 * reset since. And who comes under its own old epoch finds its own work. */
MUSTER_TEST (Chief, initialises_what_nobody_has_prepared)
{
  const struct {
    MusterChiefPhase phase;
    gboolean prepared;
    gint64 epoch;
  } cases[] = {{MUSTER_CHIEF_INITIALISING, FALSE, 0},
               {MUSTER_CHIEF_INITIALISING, TRUE, 0},
               {MUSTER_CHIEF_PREPARED, FALSE, 0},
               {MUSTER_CHIEF_PREPARED, TRUE, 3}};

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_auto (MusterSmallJob) job = muster_small_job_new ();
    MUSTER_TRACE ("case %u", (guint)i);
    muster_small_job_name_model (&job, (MusterSessionManagerOptions){0});
    muster_small_job_set_chief (&job, cases[i].phase, cases[i].prepared, FALSE, -1);
    g_autoptr (MusterSession) session = muster_small_job_prepare (
        &job, (MusterPrepareOptions){.init_op = "init", .epoch = cases[i].epoch});
    MUSTER_EXPECT_NO_ERROR (job.error);
    MUSTER_EXPECT_TRUE (session != NULL);
  }
}

static void
usurp (gpointer user_data)
{
  MusterSmallJob *job = user_data;
  muster_fake_master_usurp (job->master);
}

/* The loser's session is gone on the server: what it hears of that is not the reason. */
MUSTER_TEST (Chief, says_that_another_took_the_model_in_mid_operation)
{
  const char *const steps[] = {"init", "gate", "local_init", "ready", "save/restore_all"};
  for (gsize i = 0; i < G_N_ELEMENTS (steps); i++) {
    g_auto (MusterSmallJob) job = muster_small_job_new ();
    MUSTER_TRACE ("in %s", steps[i]);
    gboolean restores = i == 4;
    g_autofree char *prefix =
        restores ? muster_small_job_write_checkpoint (muster_test_tmpdir (), 7) : NULL;
    muster_small_job_name_model (&job, (MusterSessionManagerOptions){0});
    muster_fake_master_set_cost (job.master, steps[i], 60 * MUSTER_SECOND);
    muster_fake_clock_at (job.clock, 30 * MUSTER_SECOND, usurp, &job);
    g_autoptr (MusterSession) session =
        muster_small_job_prepare (&job, (MusterPrepareOptions){.init_op = "init",
                                                               .saver = restores ? job.saver : NULL,
                                                               .checkpoint_filename = prefix,
                                                               .timeout_us = 600 * MUSTER_SECOND});
    MUSTER_EXPECT_NULL (session);
    MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
    MUSTER_EXPECT_EQ ((int)job.report.outcome, (int)MUSTER_OUTCOME_FENCED);
    MUSTER_EXPECT_EQ (muster_fake_master_n_calls (job.master, "create"), 1u);
    g_autofree char *diary = muster_fake_master_diary (job.master);
    MUSTER_EXPECT_FALSE (strstr (diary, "announce prepared"));
    g_autoptr (MusterAnnouncement) chief = muster_fake_master_chief (job.master);
    MUSTER_EXPECT_STREQ (chief->task, "worker:9");
    MUSTER_EXPECT_TRUE (chief->alive);
  }
}

static gboolean
usurp_in_init (MusterSession *session G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
               GCancellable *cancellable G_GNUC_UNUSED, gpointer user_data,
               GError **error G_GNUC_UNUSED)
{
  usurp (user_data);
  return TRUE;
}

MUSTER_TEST (Chief, notices_a_lost_lease_after_its_init_function)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_small_job_name_model (&job, (MusterSessionManagerOptions){0});

  g_autoptr (MusterSession) session = muster_small_job_prepare (
      &job, (MusterPrepareOptions){
                .init_op = "init", .init_func = usurp_in_init, .init_func_data = &job});

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_EQ ((int)job.report.outcome, (int)MUSTER_OUTCOME_FENCED);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (job.master, "gate"), 0u);
}

/* A wait of hours for a checkpoint isn't another chief's to suffer. */
MUSTER_TEST (Chief, stops_waiting_for_a_checkpoint_when_another_took_the_model)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_small_job_name_model (&job, (MusterSessionManagerOptions){0});
  muster_fake_clock_at (job.clock, 95 * MUSTER_SECOND, usurp, &job);

  g_autoptr (MusterSession) session = muster_small_job_prepare (
      &job, (MusterPrepareOptions){.init_op = "init",
                                   .saver = job.saver,
                                   .checkpoint_dir = muster_test_tmpdir (),
                                   .wait_for_checkpoint = TRUE});

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_EQ ((int)job.report.outcome, (int)MUSTER_OUTCOME_FENCED);
  MUSTER_EXPECT_LE (muster_fake_clock_elapsed_us (job.clock), 125 * MUSTER_SECOND);
}

/* The user's own cancellation stays that. */
MUSTER_TEST (Chief, is_cancelled_though_it_lost_its_lease)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  muster_small_job_name_model (&job, (MusterSessionManagerOptions){0});
  muster_fake_master_set_cost (job.master, "init", 60 * MUSTER_SECOND);
  muster_fake_clock_at (job.clock, 30 * MUSTER_SECOND, usurp, &job);
  muster_fake_clock_cancel_at (job.clock, 31 * MUSTER_SECOND, cancellable);

  g_autoptr (MusterSession) session = muster_session_manager_prepare_session (
      job.manager, MUSTER_MASTER (job.master), &init, &job.report, cancellable, &job.error);

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

/* Waiters aren't told that a model is ready whose chief has failed, but why it isn't. */
MUSTER_TEST (Chief, lets_go_in_the_phase_it_failed_in)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_small_job_name_model (&job, (MusterSessionManagerOptions){0});
  muster_fake_master_fail (job.master, "init", 1, 1, MUSTER_ERROR_INTERNAL, "broken kernel");

  g_autoptr (MusterSession) session = muster_small_job_prepare (&job, init);

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL);
  g_autoptr (MusterAnnouncement) chief = muster_fake_master_chief (job.master);
  MUSTER_EXPECT_EQ (chief->phase, MUSTER_CHIEF_INITIALISING);
  MUSTER_EXPECT_FALSE (chief->alive);
  MUSTER_EXPECT_FALSE (chief->prepared);
  MUSTER_EXPECT_TRUE (chief->failed);
  MUSTER_EXPECT_STREQ (chief->ended, job.error->message);
}

static void
restart (gpointer user_data)
{
  MusterSmallJob *job = user_data;
  muster_fake_master_restart (job->master);
}

/* Another attempt claims the model again, from itself. */
MUSTER_TEST (Chief, claims_again_under_its_epoch_when_the_master_lost_its_session)
{
  const gint64 epochs[] = {0, 9};
  for (gsize i = 0; i < G_N_ELEMENTS (epochs); i++) {
    g_auto (MusterSmallJob) job = muster_small_job_new ();
    MUSTER_TRACE ("epoch %d", (int)epochs[i]);
    muster_small_job_name_model (&job, (MusterSessionManagerOptions){0});
    muster_fake_master_set_cost (job.master, "init", 60 * MUSTER_SECOND);
    muster_fake_clock_at (job.clock, 30 * MUSTER_SECOND, restart, &job);
    g_autoptr (MusterSession) session = muster_small_job_prepare (
        &job, (MusterPrepareOptions){.init_op = "init", .epoch = epochs[i]});
    MUSTER_EXPECT_NO_ERROR (job.error);
    MUSTER_ASSERT_TRUE (session != NULL);
    MUSTER_EXPECT_EQ (job.report.epoch, epochs[i] == 0 ? 1 : 9);
    MUSTER_EXPECT_EQ (job.report.retries[MUSTER_FAILURE_LOST_SESSION], 1u);
    MUSTER_EXPECT_TRUE (muster_lease_check (muster_session_manager_lease (session), NULL));
  }
}

MUSTER_TEST (Chief, says_what_a_claim_failed_with)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_small_job_name_model (&job, (MusterSessionManagerOptions){0});
  muster_fake_master_fail (job.master, "claim", 1, 1, MUSTER_ERROR_INTERNAL, "boom");

  g_autoptr (MusterSession) session = muster_small_job_prepare (&job, init);

  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL);
  MUSTER_ASSERT_TRUE (job.error != NULL);
  MUSTER_EXPECT_STREQ (job.error->message, "Claiming 'digits': boom");
  MUSTER_EXPECT_EQ ((int)job.report.outcome, (int)MUSTER_OUTCOME_FAILED);
  MUSTER_EXPECT_NULL (session);
}

/* recover */

MUSTER_TEST (Chief, has_prepared_what_it_recovered)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autofree char *prefix = muster_small_job_write_checkpoint (muster_test_tmpdir (), 7);
  gboolean recovered = FALSE;
  muster_small_job_name_model (&job, (MusterSessionManagerOptions){0});

  g_autoptr (MusterSession) session = muster_small_job_recover (
      &job, (MusterPrepareOptions){.saver = job.saver, .checkpoint_dir = muster_test_tmpdir ()},
      &recovered);

  MUSTER_EXPECT_TRUE (session && recovered);
  g_autoptr (MusterAnnouncement) chief = muster_fake_master_chief (job.master);
  MUSTER_EXPECT_EQ (chief->phase, MUSTER_CHIEF_PREPARED);
}

/* The caller initialises and announces. */
MUSTER_TEST (Chief, is_still_at_work_when_it_recovered_nothing)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  gboolean recovered = TRUE;
  muster_small_job_name_model (&job, (MusterSessionManagerOptions){0});

  g_autoptr (MusterSession) session =
      muster_small_job_recover (&job, (MusterPrepareOptions){0}, &recovered);

  MUSTER_ASSERT_TRUE (session != NULL);
  MUSTER_EXPECT_FALSE (recovered);
  MUSTER_EXPECT_EQ ((int)job.report.outcome, (int)MUSTER_OUTCOME_NOT_READY);
  g_autoptr (MusterAnnouncement) chief = muster_fake_master_chief (job.master);
  MUSTER_EXPECT_TRUE (chief->alive && muster_chief_phase_is_preparing (chief->phase));
  MUSTER_EXPECT_TRUE (muster_lease_announce_phase (muster_session_manager_lease (session),
                                                   MUSTER_CHIEF_PREPARED, MUSTER_WAIT_FOREVER, NULL,
                                                   NULL));
}

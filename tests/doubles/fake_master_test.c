// SPDX-License-Identifier: Apache-2.0
#include "master/lease.h"
#include "tests/doubles/fake_master.h"
#include "tests/gtest_shim.h"

typedef struct {
  MusterFakeClock *clock;
  MusterFakeMaster *master;
} Fixture;

static Fixture
set_up (void)
{
  Fixture f = {.clock = muster_fake_clock_new ()};
  f.master = muster_fake_master_new (f.clock);
  return f;
}

static void
tear_down (Fixture *f)
{
  g_clear_object (&f->master);
  g_clear_object (&f->clock);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, tear_down)

static MusterSession *
open_session (Fixture *f, GError **error)
{
  return muster_master_create_session (MUSTER_MASTER (f->master), NULL, NULL, MUSTER_WAIT_FOREVER,
                                       NULL, error);
}

static gint64
deadline_in (Fixture *f, gint64 duration_us)
{
  return muster_clock_now_us (MUSTER_CLOCK (f->clock)) + duration_us;
}

MUSTER_TEST (FakeMaster, shares_variables_between_sessions)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (MusterSession) chief = open_session (&f, NULL);
  g_autoptr (MusterSession) worker = open_session (&f, NULL);
  muster_fake_master_op_sets (f.master, "init", "v", NULL);
  muster_fake_master_op_reports (f.master, "ready", "v", "w", NULL);
  MUSTER_EXPECT_TRUE (muster_session_run_op (chief, "init", MUSTER_WAIT_FOREVER, NULL, NULL));
  g_autoptr (MusterTensor) missing =
      muster_session_fetch (worker, "ready:0", MUSTER_WAIT_FOREVER, NULL, NULL);

  MUSTER_ASSERT_NOT_NULL (missing);
  MUSTER_ASSERT_EQ (muster_tensor_n_elements (missing), 1);
  MusterString name = muster_tensor_string (missing, 0);
  MUSTER_EXPECT_MEMEQ (name.data, name.size, "w", 1);
}

MUSTER_TEST (FakeMaster, keeps_a_diary_and_counts_sessions)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (MusterSession) session = open_session (&f, NULL);
  muster_fake_master_op_sets (f.master, "init", "v", NULL);
  muster_session_run_op (session, "init", MUSTER_WAIT_FOREVER, NULL, NULL);
  MUSTER_EXPECT_EQ (muster_fake_master_n_open (f.master), 1u);
  muster_session_close (session, MUSTER_WAIT_FOREVER, NULL, NULL);

  g_autofree char *diary = muster_fake_master_diary (f.master);
  MUSTER_EXPECT_STREQ (diary, "create, run init, close");
  MUSTER_EXPECT_EQ (muster_fake_master_n_open (f.master), 0u);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (f.master, "init"), 1u);
}

MUSTER_TEST (FakeMaster, fails_the_calls_that_were_scripted_to_fail)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) first = NULL;
  g_autoptr (GError) second = NULL;
  muster_fake_master_fail (f.master, "create", 2, 1, MUSTER_ERROR_UNAVAILABLE, "gone fishing");
  g_autoptr (MusterSession) a = open_session (&f, &first);
  g_autoptr (MusterSession) b = open_session (&f, &second);
  g_autoptr (MusterSession) c = open_session (&f, NULL);

  MUSTER_EXPECT_NO_ERROR (first);
  MUSTER_EXPECT_ERROR (second, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);
  MUSTER_EXPECT_NULL (b);
  MUSTER_EXPECT_TRUE (c != NULL);
}

MUSTER_TEST (FakeMaster, takes_its_time_and_stops_at_the_deadline)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (MusterSession) session = open_session (&f, NULL);
  g_autoptr (GError) error = NULL;
  muster_fake_master_op_sets (f.master, "init", "v", NULL);
  muster_fake_master_set_cost (f.master, "init", 3 * MUSTER_SECOND);
  muster_session_run_op (session, "init", MUSTER_WAIT_FOREVER, NULL, NULL);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (f.clock), 3 * MUSTER_SECOND);
  gboolean run =
      muster_session_run_op (session, "init", deadline_in (&f, MUSTER_SECOND), NULL, &error);

  MUSTER_EXPECT_FALSE (run);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (f.clock), 4 * MUSTER_SECOND);
}

MUSTER_TEST (FakeMaster, forgets_sessions_and_values_when_it_restarts)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (MusterSession) session = open_session (&f, NULL);
  g_autoptr (GError) error = NULL;
  muster_fake_master_op_sets (f.master, "init", "v", NULL);
  muster_session_run_op (session, "init", MUSTER_WAIT_FOREVER, NULL, NULL);
  muster_fake_master_restart (f.master);
  muster_session_run_op (session, "init", MUSTER_WAIT_FOREVER, NULL, &error);

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED);
  MUSTER_EXPECT_FALSE (muster_fake_master_has_variable (f.master, "v"));
}

static void
set_v (gpointer user_data)
{
  muster_fake_master_set_variable (user_data, "v");
}

MUSTER_TEST (FakeMaster, pushes_readiness_when_a_variable_gets_its_value)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (MusterSession) session = open_session (&f, NULL);
  g_auto (MusterReadiness) before = {0};
  g_auto (MusterReadiness) after = {0};
  muster_fake_master_op_reports (f.master, "ready", "v", NULL);
  muster_fake_master_set_watchable (f.master);
  muster_fake_clock_at (f.clock, 3601 * MUSTER_SECOND, set_v, f.master);
  g_autoptr (MusterWatch) watch = muster_session_watch (
      session, &(MusterWatchFor){.ready_for_local_init_op = NULL, .ready_op = "ready"},
      MUSTER_WAIT_FOREVER, NULL);
  MUSTER_ASSERT_TRUE (muster_watch_next (watch, &before, NULL, NULL));
  MUSTER_ASSERT_TRUE (muster_watch_next (watch, &after, NULL, NULL));

  MUSTER_EXPECT_TRUE (before.gate_open && !before.is_ready);
  MUSTER_EXPECT_STREQ (before.why_not_ready, "Variables not initialized: v");
  MUSTER_EXPECT_TRUE (after.is_ready);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (f.clock), 3601 * MUSTER_SECOND);
}

static MusterLease *
claim (MusterSession *session, gint64 epoch, MusterAnnouncement **before, GError **error)
{
  MusterClaim claim = {.model = "digits", .task = "worker:0", .epoch = epoch};
  return muster_session_claim (session, &claim, before, MUSTER_WAIT_FOREVER, NULL, error);
}

MUSTER_TEST (FakeMaster, keeps_no_announcements_unless_asked)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (MusterSession) session = open_session (&f, NULL);
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_NULL (claim (session, 0, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNIMPLEMENTED);
}

MUSTER_TEST (FakeMaster, grants_a_model_to_one_chief_until_a_higher_epoch_comes)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (MusterSession) first = open_session (&f, NULL);
  g_autoptr (MusterSession) second = open_session (&f, NULL);
  g_autoptr (GError) refused = NULL;
  g_autoptr (GError) lost = NULL;
  g_autoptr (GError) gone = NULL;
  g_autoptr (MusterAnnouncement) before = NULL;
  muster_fake_master_set_announcing (f.master);

  g_autoptr (MusterLease) lease = claim (first, 0, NULL, NULL);
  MUSTER_ASSERT_TRUE (lease != NULL);
  MUSTER_EXPECT_TRUE (muster_lease_check (lease, NULL));
  MUSTER_EXPECT_NULL (claim (second, 1, NULL, &refused));
  g_autoptr (MusterLease) higher = claim (second, 5, &before, NULL);

  MUSTER_ASSERT_TRUE (higher != NULL);
  MUSTER_EXPECT_EQ (muster_lease_epoch (lease), 1);
  MUSTER_EXPECT_EQ (muster_lease_epoch (higher), 5);
  MUSTER_EXPECT_ERROR (refused, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_ASSERT_NOT_NULL (before);
  MUSTER_EXPECT_STREQ (before->task, "worker:0");
  MUSTER_EXPECT_FALSE (muster_lease_check (lease, &lost));
  MUSTER_EXPECT_ERROR (lost, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_FALSE (muster_session_run_op (first, "init", MUSTER_WAIT_FOREVER, NULL, &gone));
  MUSTER_EXPECT_ERROR (gone, MUSTER_ERROR, MUSTER_ERROR_ABORTED);
}

MUSTER_TEST (FakeMaster, takes_back_a_lease_that_is_dropped)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (MusterSession) session = open_session (&f, NULL);
  muster_fake_master_set_announcing (f.master);

  g_object_unref (claim (session, 0, NULL, NULL));
  muster_fake_clock_pass (f.clock, 3 * MUSTER_SECOND);
  g_autoptr (MusterAnnouncement) chief = muster_fake_master_chief (f.master);
  g_autoptr (MusterLease) next = claim (session, 0, NULL, NULL);

  MUSTER_ASSERT_NOT_NULL (chief);
  MUSTER_EXPECT_FALSE (chief->alive);
  MUSTER_EXPECT_EQ (chief->lost_age_us, 3 * MUSTER_SECOND);
  MUSTER_ASSERT_TRUE (next != NULL);
  MUSTER_EXPECT_EQ (muster_lease_epoch (next), 2);
}

MUSTER_TEST (FakeMaster, lets_a_lease_outlive_its_restart)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (MusterSession) session = open_session (&f, NULL);
  muster_fake_master_set_announcing (f.master);
  g_autoptr (MusterLease) lease = claim (session, 7, NULL, NULL);

  muster_fake_master_restart (f.master);
  MUSTER_EXPECT_TRUE (
      muster_lease_announce_phase (lease, MUSTER_CHIEF_RESTORING, MUSTER_WAIT_FOREVER, NULL, NULL));
  muster_fake_master_usurp (f.master);

  g_autoptr (MusterAnnouncement) chief = muster_fake_master_chief (f.master);
  MUSTER_EXPECT_FALSE (muster_lease_check (lease, NULL));
  MUSTER_EXPECT_EQ (chief->epoch, 8);
  MUSTER_EXPECT_STREQ (chief->model, "digits");
}

MUSTER_TEST (FakeMaster, refuses_a_job_that_is_over)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (MusterSession) session = open_session (&f, NULL);
  g_autoptr (GError) error = NULL;
  MusterAnnouncement over = MUSTER_ANNOUNCEMENT_INIT;
  MusterClaim again = {.model = "digits", .take_over = TRUE};
  over.phase = MUSTER_CHIEF_OVER;
  over.step = 20000;
  over.epoch = 3;
  muster_fake_master_set_chief (f.master, &over);

  MUSTER_EXPECT_NULL (claim (session, 0, NULL, &error));
  g_autoptr (MusterLease) lease =
      muster_session_claim (session, &again, NULL, MUSTER_WAIT_FOREVER, NULL, NULL);

  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_OUT_OF_RANGE, "20000");
  MUSTER_ASSERT_TRUE (lease != NULL);
  MUSTER_EXPECT_EQ (muster_lease_epoch (lease), 4);
}

static void
prepare_phase (gpointer user_data)
{
  MusterAnnouncement chief = MUSTER_ANNOUNCEMENT_INIT;
  chief.task = (char *)"worker:0";
  chief.phase = MUSTER_CHIEF_PREPARED;
  chief.alive = TRUE;
  muster_fake_master_set_chief (user_data, &chief);
}

MUSTER_TEST (FakeMaster, reports_what_the_chief_does_as_readiness)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (MusterSession) session = open_session (&f, NULL);
  MusterAnnouncement at_work = MUSTER_ANNOUNCEMENT_INIT;
  g_auto (MusterReadiness) first = {0};
  g_auto (MusterReadiness) second = {0};
  at_work.task = (char *)"worker:0";
  at_work.phase = MUSTER_CHIEF_INITIALISING;
  at_work.alive = TRUE;
  muster_fake_master_set_chief (f.master, &at_work);
  muster_fake_master_set_graph_difference (f.master, "node 'a' is missing");
  muster_fake_master_set_watchable (f.master);
  muster_fake_clock_at (f.clock, 12 * MUSTER_SECOND, prepare_phase, f.master);

  g_autoptr (MusterWatch) watch = muster_session_watch (
      session, &(MusterWatchFor){.model = "digits"}, MUSTER_WAIT_FOREVER, NULL);
  MUSTER_ASSERT_TRUE (muster_watch_next (watch, &first, NULL, NULL));
  MUSTER_ASSERT_TRUE (muster_watch_next (watch, &second, NULL, NULL));

  MUSTER_EXPECT_TRUE (first.keeps_announcements && !first.gate_open && !first.is_ready);
  MUSTER_EXPECT_STREQ (first.why_gate, "worker:0 is at work: initialising");
  MUSTER_EXPECT_STREQ (first.graph_difference, "node 'a' is missing");
  MUSTER_EXPECT_EQ (first.chief->phase, MUSTER_CHIEF_INITIALISING);
  MUSTER_EXPECT_TRUE (second.gate_open && second.is_ready);
  MUSTER_EXPECT_EQ (second.chief->phase, MUSTER_CHIEF_PREPARED);
}

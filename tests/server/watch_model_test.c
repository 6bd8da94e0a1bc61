// SPDX-License-Identifier: Apache-2.0
#include "master/lease.h"
#include "tests/doubles/fake_clock.h"
#include "tests/server/served.h"

/* Who watches a model that chiefs announce. */

static MusterWatch *
watch_model (MusterSession *session, const char *ready_op)
{
  g_autoptr (GError) error = NULL;
  MusterWatch *watch = muster_session_watch (
      session, &(MusterWatchFor){.ready_op = ready_op, .model = "digits", .task = "worker:3"},
      test_deadline (), &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return watch;
}

static void
announce (MusterLease *lease, MusterChiefPhase phase, gint64 step)
{
  g_autoptr (GError) error = NULL;
  MusterAnnouncement announced = MUSTER_ANNOUNCEMENT_INIT;
  announced.phase = phase;
  announced.step = step;
  muster_lease_announce (lease, &announced, test_deadline (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

/* The next turn: "initialising, gate: WHY", or "training, ready". */
static char *
next_of_model (MusterWatch *watch, GError **error)
{
  g_auto (MusterReadiness) readiness = {0};
  if (!muster_watch_next (watch, &readiness, NULL, error))
    return g_strdup ("error");
  const char *phase =
      readiness.chief != NULL ? muster_chief_phase_name (readiness.chief->phase) : "nobody";
  const char *alive = readiness.chief == NULL || readiness.chief->alive ? "" : " once";
  MUSTER_EXPECT_TRUE (readiness.keeps_announcements);
  if (readiness.is_ready)
    return g_strdup_printf ("%s%s, ready", phase, alive);
  return g_strdup_printf ("%s%s, %s", phase, alive,
                          readiness.gate_open ? readiness.why_not_ready : readiness.why_gate);
}

/* Hears turns until one begins and ends as it should. */
static void
expect_of_model (MusterWatch *watch, const char *start, const char *part)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *heard = next_of_model (watch, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  if (!g_str_has_prefix (heard, start) || strstr (heard, part) == NULL)
    MUSTER_EXPECT_STREQ (heard, start); /* shows both */
}

MUSTER_TEST (WatchOfAModel, is_notified_of_its_chief_from_the_claim_to_the_end)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) chief = served_session (&f, &ready_op);
  g_autoptr (MusterSession) worker = served_session (&f, NULL);
  g_autoptr (MusterWatch) watch = watch_model (worker, ready_op);
  expect_of_model (watch, "nobody, ", "Variables not initialized: v, w");

  g_autoptr (MusterLease) lease = served_claim (chief, NULL);
  MUSTER_ASSERT_NOT_NULL (lease);
  expect_of_model (watch, "starting, ", "the chief worker:0");
  announce (lease, MUSTER_CHIEF_INITIALISING, -1);
  expect_of_model (watch, "initialising, ", "is initialising it");
  MUSTER_ASSERT_TRUE (served_run (chief, "init", &error));
  /* The variables have their values, but the chief isn't done. */
  announce (lease, MUSTER_CHIEF_PREPARED, -1);
  expect_of_model (watch, "prepared, ", "ready");
  announce (lease, MUSTER_CHIEF_TRAINING, 1);
  expect_of_model (watch, "training, ", "ready");
  announce (lease, MUSTER_CHIEF_TRAINING, 2); /* no news */
  announce (lease, MUSTER_CHIEF_OVER, 1000);
  expect_of_model (watch, "over, ", "at step 1000");
}

/* The next readiness of a job that has none or too few tasks. */
static void
expect_tasks (MusterWatch *watch, guint n_tasks, guint min_tasks)
{
  g_autoptr (GError) error = NULL;
  g_auto (MusterReadiness) readiness = {0};
  MUSTER_EXPECT_TRUE (muster_watch_next (watch, &readiness, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (readiness.n_tasks, n_tasks);
  MUSTER_EXPECT_EQ (readiness.min_tasks, min_tasks);
}

MUSTER_TEST (WatchOfAModel, is_notified_while_its_job_waits_for_tasks)
{
  g_auto (Served) f = served_start ();
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) worker = served_session (&f, &ready_op);
  g_autoptr (MusterWatch) watch = watch_model (worker, ready_op);
  const MusterJoin wanted = {.model = "digits", .slot = -1, .n_slots = 4, .min_tasks = 2};
  expect_tasks (watch, 0, 0);

  g_autoptr (MusterMembership) one =
      muster_master_join (f.remote, &wanted, test_deadline (), NULL, NULL);
  expect_tasks (watch, 1, 2);
  g_autoptr (MusterMembership) other =
      muster_master_join (f.remote, &wanted, test_deadline (), NULL, NULL);
  expect_tasks (watch, 0, 0);
  g_clear_object (&one);

  expect_tasks (watch, 1, 2);
}

MUSTER_TEST (WatchOfAModel, that_is_whole_is_not_ready_while_its_job_waits_for_tasks)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) worker = served_session (&f, &ready_op);
  const MusterJoin wanted = {.model = "digits", .slot = -1, .n_slots = 4, .min_tasks = 2};
  MUSTER_ASSERT_TRUE (served_run (worker, "init", &error));
  g_autoptr (MusterWatch) watch = watch_model (worker, ready_op);
  expect_of_model (watch, "nobody, ", "ready");

  g_autoptr (MusterMembership) one =
      muster_master_join (f.remote, &wanted, test_deadline (), NULL, NULL);
  expect_of_model (watch, "nobody, ", "waiting for tasks: 1 of at least 2");
  g_autoptr (MusterMembership) other =
      muster_master_join (f.remote, &wanted, test_deadline (), NULL, NULL);
  expect_of_model (watch, "nobody, ", "ready");
}

MUSTER_TEST (WatchOfAModel, is_notified_when_its_chief_dies_over_it)
{
  g_autoptr (GError) error = NULL;
  MusterServerOptions options = {.chief_lease_us = 3600 * MUSTER_SECOND};
  g_auto (Served) f = served_start_with (NULL, &options);
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) chief = served_session (&f, &ready_op);
  g_autoptr (MusterSession) worker = served_session (&f, NULL);
  MUSTER_ASSERT_TRUE (served_run (chief, "init", &error)); /* as some model before */
  g_autoptr (MusterWatch) watch = watch_model (worker, ready_op);
  expect_of_model (watch, "nobody, ", "ready");
  MusterLease *lease = served_claim (chief, NULL);
  MUSTER_ASSERT_NOT_NULL (lease);
  expect_of_model (watch, "starting, ", "starting");

  g_object_unref (lease);

  expect_of_model (watch, "starting once, ", "was lost while starting to prepare it");
}

MUSTER_TEST (WatchOfAModel, is_notified_when_a_silent_chiefs_lease_runs_out)
{
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  muster_fake_clock_hold (clock);
  MusterServerOptions options = {.clock = MUSTER_CLOCK (clock),
                                 .chief_lease_us = 50 * MUSTER_SECOND};
  g_auto (Served) f = served_start_with (NULL, &options);
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) chief = served_session (&f, &ready_op);
  muster_fake_clock_set_random (clock, 0.25); /* chance is in the session's handle */
  g_autoptr (MusterSession) worker = served_session (&f, NULL);
  g_autoptr (MusterWatch) watch = watch_model (worker, ready_op);
  expect_of_model (watch, "nobody, ", "Variables");
  g_autoptr (MusterLease) lease = served_claim (chief, NULL);
  MUSTER_ASSERT_NOT_NULL (lease);
  expect_of_model (watch, "starting, ", "starting");

  /* Who looks after chiefs' leases, and who looks after sessions', which last longer. The chief
   * renews its lease by the system's clock: this is over before that. */
  for (int i = 0; i < 2; i++) { /* at 45 s and at 50 s */
    muster_fake_clock_wait_for_waiters (clock, 2);
    muster_fake_clock_crank (clock);
  }

  expect_of_model (watch, "starting once, ", "was lost while");
}

MUSTER_TEST (WatchOfAModel, receives_no_phase_after_a_reset)
{
  g_auto (Served) f = served_start ();
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) chief = served_session (&f, NULL);
  g_autoptr (MusterLease) lease = served_claim (chief, NULL);
  MUSTER_ASSERT_NOT_NULL (lease);
  announce (lease, MUSTER_CHIEF_TRAINING, 7);

  MUSTER_ASSERT_TRUE (muster_master_reset (f.remote, NULL, test_deadline (), NULL, NULL));

  g_autoptr (MusterSession) worker = served_session (&f, &ready_op);
  g_autoptr (MusterWatch) watch = watch_model (worker, ready_op);
  expect_of_model (watch, "unknown, ", "Variables not initialized: v, w");
}

MUSTER_TEST (WatchOfAModel, that_is_not_named_receives_the_ops_alone)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autofree char *ready_op = NULL;
  g_auto (MusterReadiness) readiness = {0};
  g_autoptr (MusterSession) chief = served_session (&f, &ready_op);
  g_autoptr (MusterSession) worker = served_session (&f, NULL);
  g_autoptr (MusterLease) lease = served_claim (chief, NULL);
  MUSTER_ASSERT_NOT_NULL (lease);
  MUSTER_ASSERT_TRUE (served_run (chief, "init", &error));

  g_autoptr (MusterWatch) watch = muster_session_watch (
      worker, &(MusterWatchFor){.ready_op = ready_op}, test_deadline (), &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_ASSERT_TRUE (muster_watch_next (watch, &readiness, NULL, &error));
  MUSTER_EXPECT_TRUE (readiness.is_ready); /* though the chief has only begun */
}

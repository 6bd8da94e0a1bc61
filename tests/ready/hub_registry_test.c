// SPDX-License-Identifier: Apache-2.0
#include "tests/ready/hub_fixture.h"

MUSTER_TEST (HubOverRegistry, reports_the_chief_without_another_run)
{
  g_auto (Fixture) f = fixture (TRUE);
  set_missing (&f, "");
  ask_for_digits (&f, f.ear);
  EXPECT_RECEIVED (f.ear, 1, "nobody, ready");

  gint64 epoch = claim (&f);
  EXPECT_RECEIVED (f.ear, 2, "nobody, ready; starting, gate shut");
  announce (&f, epoch, MUSTER_CHIEF_PREPARED, -1);

  EXPECT_RECEIVED (f.ear, 3, "nobody, ready; starting, gate shut; prepared, ready");
  MUSTER_EXPECT_EQ (n_runs (&f), 1u);
}

MUSTER_TEST (HubOverRegistry, keeps_the_gate_shut_whatever_the_variables_say)
{
  g_auto (Fixture) f = fixture (TRUE);
  gint64 epoch = claim (&f);
  ask_for_digits (&f, f.ear);
  EXPECT_RECEIVED (f.ear, 1, "starting, gate shut");

  set_missing (&f, ""); /* all have a value now: the chief isn't done, so it is no news */
  signal_change (&f);
  wait_for_run (&f, 2);
  muster_chief_registry_release (f.registry, "digits", epoch);

  EXPECT_RECEIVED (f.ear, 2, "starting, gate shut; starting, gate shut");
}

MUSTER_TEST (HubOverRegistry, opens_after_a_reset_as_the_ops_say)
{
  g_auto (Fixture) f = fixture (TRUE);
  muster_chief_registry_release (f.registry, "digits", claim (&f));
  ask_for_digits (&f, f.ear);
  EXPECT_RECEIVED (f.ear, 1, "starting, gate shut");

  muster_chief_registry_reset (f.registry, muster_chief_registry_n_claims (f.registry), NULL);

  EXPECT_RECEIVED (f.ear, 2, "starting, gate shut; unknown, missing a,b");
}

MUSTER_TEST (HubOverRegistry, reports_at_once_that_the_job_is_over)
{
  g_auto (Fixture) f = fixture (TRUE);
  set_missing (&f, "");
  announce (&f, claim (&f), MUSTER_CHIEF_OVER, 1000);

  ask_for_digits (&f, f.ear);

  EXPECT_RECEIVED (f.ear, 1, "over, gate shut");
}

MUSTER_TEST (HubOverRegistry, notifies_only_those_who_ask_for_that_model)
{
  g_autoptr (Ear) elsewhere = ear_new ();
  g_autoptr (Ear) nowhere = ear_new ();
  g_auto (Fixture) f = fixture (TRUE);
  ask_for_digits (&f, f.ear);
  ask_for (&f, elsewhere, f.session, &(MusterWatchFor){.ready_op = "ready", .model = "other"});
  ask (&f, nowhere, f.session, NULL, "ready");
  EXPECT_RECEIVED (f.ear, 1, "nobody, missing a,b");
  EXPECT_RECEIVED (elsewhere, 1, "nobody, missing a,b");
  EXPECT_RECEIVED (nowhere, 1, "missing a,b");

  claim (&f);
  EXPECT_RECEIVED (f.ear, 2, "nobody, missing a,b; starting, gate shut");
  set_missing (&f, "");
  signal_change (&f);

  EXPECT_RECEIVED (elsewhere, 2, "nobody, missing a,b; nobody, ready");
  EXPECT_RECEIVED (nowhere, 2, "missing a,b; ready");
}

MUSTER_TEST (HubOverRegistry, reports_no_news_of_every_step_of_the_training)
{
  g_auto (Fixture) f = fixture (TRUE);
  gint64 epoch = claim (&f);
  announce (&f, epoch, MUSTER_CHIEF_TRAINING, 1);
  ask_for_digits (&f, f.ear);
  EXPECT_RECEIVED (f.ear, 1, "training, missing a,b");

  for (gint64 step = 2; step < 10; step++)
    announce (&f, epoch, MUSTER_CHIEF_TRAINING, step);
  muster_chief_registry_set_ready (f.registry, "digits", epoch, TRUE);
  announce (&f, epoch, MUSTER_CHIEF_OVER, 10);

  EXPECT_RECEIVED (f.ear, 2, "training, missing a,b; over, gate shut");
}

MUSTER_TEST (HubOverRegistry, reports_how_the_graph_differs_from_the_chiefs)
{
  g_auto (Fixture) f = fixture (TRUE);
  g_autoptr (GBytes) with_a_node = g_bytes_new_static ("\x0a\x03\x0a\x01n", 5);
  g_autoptr (MusterGraph) other = muster_graph_new (with_a_node);
  set_missing (&f, "");
  ask_for_digits (&f, f.ear);
  EXPECT_RECEIVED (f.ear, 1, "nobody, ready");

  gint64 epoch = claim_over (&f, other);
  EXPECT_RECEIVED (f.ear, 2, "nobody, ready; starting, gate shut differs");
  muster_chief_registry_release (f.registry, "digits", epoch);
  EXPECT_RECEIVED (f.ear, 3,
                   "nobody, ready; starting, gate shut differs; starting, gate shut differs");
  claim_over (&f, muster_session_graph (f.session));

  EXPECT_RECEIVED (f.ear, 4,
                   "nobody, ready; starting, gate shut differs; starting, gate shut differs; "
                   "starting, gate shut");
}

MUSTER_TEST (HubOverRegistry, counts_the_chiefs_age_to_the_moment_of_telling)
{
  g_autoptr (Ear) late = ear_new ();
  g_auto (Fixture) f = fixture (TRUE);
  claim (&f);
  ask_for_digits (&f, f.ear);
  EXPECT_RECEIVED (f.ear, 1, "starting, gate shut");

  muster_fake_clock_pass (f.clock, 3 * MUSTER_SECOND);
  ask_for_digits (&f, late);

  EXPECT_RECEIVED (late, 1, "starting, gate shut");
  MUSTER_EXPECT_EQ (f.ear->phase_age_us, (gint64)0);
  MUSTER_EXPECT_EQ (late->phase_age_us, 3 * MUSTER_SECOND);
  MUSTER_EXPECT_EQ (n_runs (&f), 1u);
}

MUSTER_TEST (HubOverRegistry, notifies_all_of_one_go_in_the_same_round)
{
  g_autoptr (Ear) two = ear_new ();
  g_auto (Fixture) f = fixture (TRUE);
  ask_for_digits (&f, f.ear);
  EXPECT_RECEIVED (f.ear, 1, "nobody, missing a,b");
  ask_for_digits (&f, two);
  EXPECT_RECEIVED (two, 1, "nobody, missing a,b");
  guint64 first = f.ear->round;
  MUSTER_EXPECT_NE (first, two->round);

  claim (&f);

  EXPECT_RECEIVED (f.ear, 2, "nobody, missing a,b; starting, gate shut");
  EXPECT_RECEIVED (two, 2, "nobody, missing a,b; starting, gate shut");
  MUSTER_EXPECT_EQ (f.ear->round, two->round);
  MUSTER_EXPECT_GT (f.ear->round, first);
}

/* One who asks must never hear that a model is ready while its chief prepares it. */
static gpointer
prepare_again_and_again (gpointer data)
{
  Fixture *f = data;
  for (int i = 0; i < 300; i++) {
    gint64 epoch = claim (f);
    announce (f, epoch, MUSTER_CHIEF_INITIALISING, -1);
    announce (f, epoch, MUSTER_CHIEF_PREPARED, i);
    g_thread_yield ();
  }
  return NULL;
}

static void
check_readiness (const MusterReadiness *readiness, guint64 round G_GNUC_UNUSED, const GError *error,
                 gpointer data)
{
  guint *n_reported = data;
  if (error == NULL && readiness->chief != NULL)
    MUSTER_EXPECT_EQ (readiness->is_ready, readiness->chief->phase == MUSTER_CHIEF_PREPARED);
  (*n_reported)++;
}

MUSTER_TEST (HubOverRegistry, holds_while_chiefs_come_and_go)
{
  guint n_reported = 0;
  g_auto (Fixture) f = fixture (TRUE);
  set_missing (&f, "");
  MusterSubscriber *subscriber = muster_readiness_hub_subscribe (
      f.hub, f.session, &(MusterWatchFor){.ready_op = "ready", .model = "digits"}, check_readiness,
      &n_reported);
  GThread *chief = g_thread_new ("chief", prepare_again_and_again, &f);
  g_thread_join (chief);

  ask_for_digits (&f, f.ear);
  EXPECT_RECEIVED (f.ear, 1, "prepared, ready");
  muster_readiness_hub_unsubscribe (f.hub, subscriber);
  MUSTER_EXPECT_GT (n_reported, 0u);
}

static void
note_model (const char *model, gpointer data)
{
  g_string_append_printf (data, "%s|", model);
}

MUSTER_TEST (HubOverRegistry, reports_models_on_the_spot_but_no_progress)
{
  g_autoptr (GString) told = g_string_new (NULL);
  g_auto (Fixture) f = fixture (TRUE);
  muster_readiness_hub_watch_models (f.hub, note_model, told);
  gint64 epoch = claim (&f);
  announce (&f, epoch, MUSTER_CHIEF_TRAINING, 1);
  MUSTER_EXPECT_STREQ (told->str, "digits|digits|");

  announce (&f, epoch, MUSTER_CHIEF_TRAINING, 2);
  MUSTER_EXPECT_STREQ (told->str, "digits|digits|");
  muster_chief_registry_set_ready (f.registry, "digits", epoch, TRUE);

  MUSTER_EXPECT_STREQ (told->str, "digits|digits|digits|");
}

/* What wakes nobody is there for who comes. */
MUSTER_TEST (HubOverRegistry, notifies_who_comes_in_how_far_the_chief_has_trained)
{
  g_autoptr (Ear) late = ear_new ();
  g_auto (Fixture) f = fixture (TRUE);
  gint64 epoch = claim (&f);
  announce (&f, epoch, MUSTER_CHIEF_TRAINING, 1);
  ask_for_digits (&f, f.ear);
  EXPECT_RECEIVED (f.ear, 1, "training, missing a,b");
  announce (&f, epoch, MUSTER_CHIEF_TRAINING, 7);

  ask_for_digits (&f, late);

  EXPECT_RECEIVED (late, 1, "training, missing a,b");
  MUSTER_EXPECT_EQ (f.ear->step, (gint64)1);
  MUSTER_EXPECT_EQ (late->step, (gint64)7);
}

MUSTER_TEST (HubOverRegistry, counts_a_version_for_each_change)
{
  g_autoptr (Ear) late = ear_new ();
  g_auto (Fixture) f = fixture (TRUE);
  ask_for_digits (&f, f.ear);
  EXPECT_RECEIVED (f.ear, 1, "nobody, missing a,b");
  MUSTER_EXPECT_EQ (f.ear->version, (guint64)1);

  gint64 epoch = claim (&f);
  EXPECT_RECEIVED (f.ear, 2, "nobody, missing a,b; starting, gate shut");
  announce (&f, epoch, MUSTER_CHIEF_STARTING, 7); /* no change */
  signal_change (&f);                             /* nor is this, while the chief decides */
  wait_for_run (&f, 2);
  ask_for_digits (&f, late);

  EXPECT_RECEIVED (late, 1, "starting, gate shut");
  MUSTER_EXPECT_EQ (f.ear->version, (guint64)2);
  MUSTER_EXPECT_EQ (late->version, (guint64)2);
}

MUSTER_TEST (HubOverRegistry, reports_at_once_that_the_job_waits_for_tasks_and_that_it_has_enough)
{
  g_auto (Fixture) f = fixture (TRUE);
  join (&f, 3);
  ask_for_digits (&f, f.ear);
  EXPECT_RECEIVED (f.ear, 1, "nobody, missing a,b, 1 of 3 tasks");

  join (&f, 0);
  EXPECT_RECEIVED (f.ear, 2,
                   "nobody, missing a,b, 1 of 3 tasks; nobody, missing a,b, 2 of 3 tasks");
  const guint64 third = join (&f, 3);
  EXPECT_RECEIVED (f.ear, 3,
                   "nobody, missing a,b, 1 of 3 tasks; nobody, missing a,b, 2 of 3 tasks; "
                   "nobody, missing a,b");

  MUSTER_EXPECT_EQ (n_runs (&f), 1u);
  muster_member_registry_remove (f.members, third, MUSTER_MEMBER_ENDED);
  g_autofree char *all = heard (f.ear, 4);
  MUSTER_EXPECT_TRUE (g_str_has_suffix (all, "; nobody, missing a,b, 2 of 3 tasks"));
}

MUSTER_TEST (HubOverRegistry, reports_no_tasks_of_a_job_with_enough_of_them_or_that_is_over)
{
  g_autoptr (Ear) late = ear_new ();
  g_auto (Fixture) f = fixture (TRUE);
  join (&f, 1);
  ask_for_digits (&f, f.ear);
  EXPECT_RECEIVED (f.ear, 1, "nobody, missing a,b");

  join (&f, 0); /* no news */
  announce (&f, claim (&f), MUSTER_CHIEF_OVER, 1000);
  g_autofree char *all = heard (f.ear, 2);
  join (&f, 4);
  ask_for_digits (&f, late);

  EXPECT_RECEIVED (late, 1, "over, gate shut");
  MUSTER_EXPECT_TRUE (strstr (all, "tasks") == NULL);
}

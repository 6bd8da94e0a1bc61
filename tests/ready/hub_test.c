// SPDX-License-Identifier: Apache-2.0
#include "tests/ready/hub_fixture.h"

MUSTER_TEST (ReadinessHub, notifies_a_subscriber_of_the_present_readiness_at_once)
{
  g_auto (Fixture) f = fixture (TRUE);
  ask (&f, f.ear, f.session, NULL, "ready");

  EXPECT_RECEIVED (f.ear, 1, "missing a,b");
  MUSTER_EXPECT_EQ (muster_readiness_hub_n_subscribers (f.hub), 1u);
}

MUSTER_TEST (ReadinessHub, reports_each_change_once_and_in_order)
{
  g_auto (Fixture) f = fixture_that_asked (TRUE, "a,b");
  set_missing (&f, "b");
  signal_change (&f);
  EXPECT_RECEIVED (f.ear, 2, "missing a,b; missing b");
  signal_change (&f); /* something changed, but not the answer */
  wait_for_run (&f, 3);
  set_missing (&f, "");
  signal_change (&f);

  EXPECT_RECEIVED (f.ear, 3, "missing a,b; missing b; ready");
}

MUSTER_TEST (ReadinessHub, reports_when_a_model_is_no_longer_ready)
{
  g_auto (Fixture) f = fixture_that_asked (TRUE, "");
  set_missing (&f, "a");
  signal_change (&f);

  EXPECT_RECEIVED (f.ear, 2, "ready; missing a");
}

MUSTER_TEST (ReadinessHub, asks_the_ready_op_only_behind_an_open_gate)
{
  g_auto (Fixture) f = fixture (TRUE);
  f.master->gate_open = FALSE;
  ask (&f, f.ear, f.session, "gate", "ready");
  EXPECT_RECEIVED (f.ear, 1, "gate shut");
  MUSTER_EXPECT_EQ (n_runs (&f), 1u);

  g_mutex_lock (&f.master->lock);
  f.master->gate_open = TRUE;
  g_mutex_unlock (&f.master->lock);
  signal_change (&f);

  EXPECT_RECEIVED (f.ear, 2, "gate shut; missing a,b");
}

MUSTER_TEST (ReadinessHub, runs_the_ops_once_for_all_subscribers_of_a_key)
{
  Ear *ears[64];
  {
    g_auto (Fixture) f = fixture (TRUE);
    hold_runs (&f, TRUE);
    for (guint i = 0; i < G_N_ELEMENTS (ears); i++) {
      g_autoptr (MusterSession) session = new_session (&f, 1);
      ears[i] = ear_new ();
      ask (&f, ears[i], session, NULL, "ready");
    }
    hold_runs (&f, FALSE);
    for (guint i = 0; i < G_N_ELEMENTS (ears); i++)
      EXPECT_RECEIVED (ears[i], 1, "missing a,b");
    MUSTER_EXPECT_EQ (n_runs (&f), 1u);

    set_missing (&f, "");
    signal_change (&f);

    for (guint i = 0; i < G_N_ELEMENTS (ears); i++)
      EXPECT_RECEIVED (ears[i], 2, "missing a,b; ready");
    MUSTER_EXPECT_EQ (n_runs (&f), 2u);
    MUSTER_EXPECT_EQ (muster_readiness_hub_n_subscribers (f.hub), 64u);
  }
  for (guint i = 0; i < G_N_ELEMENTS (ears); i++)
    ear_free (ears[i]);
}

MUSTER_TEST (ReadinessHub, answers_a_later_subscriber_without_another_run)
{
  g_autoptr (Ear) second = ear_new ();
  g_auto (Fixture) f = fixture_that_asked (TRUE, "a,b");
  g_autoptr (MusterSession) b = new_session (&f, 1);
  ask (&f, second, b, NULL, "ready");

  EXPECT_RECEIVED (second, 1, "missing a,b");
  MUSTER_EXPECT_EQ (n_runs (&f), 1u);
}

MUSTER_TEST (ReadinessHub, keeps_watch_keys_of_other_graphs_and_ops_apart)
{
  g_autoptr (Ear) two = ear_new ();
  g_autoptr (Ear) three = ear_new ();
  g_auto (Fixture) f = fixture (TRUE);
  g_autoptr (MusterSession) b = new_session (&f, 2);
  ask (&f, f.ear, f.session, NULL, "ready");
  ask (&f, two, b, NULL, "ready");
  ask (&f, three, f.session, NULL, "ready_too");
  EXPECT_RECEIVED (f.ear, 1, "missing a,b");
  EXPECT_RECEIVED (two, 1, "missing a,b");
  EXPECT_RECEIVED (three, 1, "missing a,b");

  MUSTER_EXPECT_EQ (n_runs (&f), 3u);
}

MUSTER_TEST (ReadinessHub, asks_again_when_something_changes_during_a_run)
{
  g_auto (Fixture) f = fixture (TRUE);
  hold_runs (&f, TRUE);
  ask (&f, f.ear, f.session, NULL, "ready");
  wait_for_run (&f, 1);

  set_missing (&f, "");
  signal_change (&f);
  hold_runs (&f, FALSE);

  EXPECT_RECEIVED (f.ear, 2, "missing a,b; ready");
}

MUSTER_TEST (ReadinessHub, goes_on_in_the_next_subscribers_session_when_the_first_is_gone)
{
  g_autoptr (Ear) second = ear_new ();
  g_auto (Fixture) f = fixture_that_asked (TRUE, "a,b");
  g_autoptr (MusterSession) b = new_session (&f, 1);
  ask (&f, second, b, NULL, "ready");
  EXPECT_RECEIVED (second, 1, "missing a,b");

  lose_session (&f);
  set_missing (&f, "");
  signal_change (&f);

  EXPECT_RECEIVED (second, 2, "missing a,b; ready");
  EXPECT_RECEIVED (f.ear, 2, "missing a,b; error 10");
  MUSTER_EXPECT_EQ (muster_readiness_hub_n_subscribers (f.hub), 1u);
}

MUSTER_TEST (ReadinessHub, says_nothing_to_one_who_has_left)
{
  g_autoptr (Ear) here = ear_new ();
  g_auto (Fixture) f = fixture (TRUE);
  ask (&f, f.ear, f.session, NULL, "ready");
  ask (&f, here, f.session, NULL, "ready");
  EXPECT_RECEIVED (f.ear, 1, "missing a,b");
  EXPECT_RECEIVED (here, 1, "missing a,b");

  muster_readiness_hub_unsubscribe (f.hub, f.ear->subscriber);
  set_missing (&f, "");
  signal_change (&f);

  EXPECT_RECEIVED (here, 2, "missing a,b; ready");
  EXPECT_RECEIVED (f.ear, 0, "missing a,b");
}

MUSTER_TEST (ReadinessHub, lets_a_subscriber_leave_while_its_ops_run)
{
  g_auto (Fixture) f = fixture (TRUE);
  hold_runs (&f, TRUE);
  ask (&f, f.ear, f.session, NULL, "ready");
  wait_for_run (&f, 1);

  muster_readiness_hub_unsubscribe (f.hub, f.ear->subscriber);
  hold_runs (&f, FALSE);

  g_autoptr (Ear) next = ear_new ();
  ask (&f, next, f.session, NULL, "ready");
  EXPECT_RECEIVED (next, 1, "missing a,b");
  EXPECT_RECEIVED (f.ear, 0, "");
  muster_readiness_hub_unsubscribe (f.hub, next->subscriber);
}

MUSTER_TEST (ReadinessHub, lets_a_subscriber_leave_from_its_own_function)
{
  g_autoptr (Ear) other = ear_new ();
  g_auto (Fixture) f = fixture (TRUE);
  f.ear->leaves = TRUE;
  ask (&f, f.ear, f.session, NULL, "ready");
  EXPECT_RECEIVED (f.ear, 1, "missing a,b");

  ask (&f, other, f.session, NULL, "ready");
  EXPECT_RECEIVED (other, 1, "missing a,b");
  set_missing (&f, "");
  signal_change (&f);

  EXPECT_RECEIVED (other, 2, "missing a,b; ready");
  EXPECT_RECEIVED (f.ear, 0, "missing a,b");
}

MUSTER_TEST (ReadinessHub, polls_a_master_that_cannot_push)
{
  g_auto (Fixture) f = fixture_that_asked (FALSE, "a,b");
  set_missing (&f, "");
  muster_fake_clock_wait_for_waiters (f.clock, 1);
  muster_fake_clock_crank (f.clock);

  EXPECT_RECEIVED (f.ear, 2, "missing a,b; ready");
  gint64 elapsed_us = muster_fake_clock_elapsed_us (f.clock);
  MUSTER_EXPECT_GT (elapsed_us, 0);
  MUSTER_EXPECT_LE (elapsed_us, MUSTER_SECOND);
}

MUSTER_TEST (ReadinessHub, takes_a_new_watch_key_between_two_polls)
{
  g_autoptr (Ear) second = ear_new ();
  g_auto (Fixture) f = fixture_that_asked (FALSE, "a,b");
  g_autoptr (MusterSession) b = new_session (&f, 2);
  muster_fake_clock_wait_for_waiters (f.clock, 1);

  ask (&f, second, b, NULL, "ready");

  EXPECT_RECEIVED (second, 1, "missing a,b");
}

MUSTER_TEST (ReadinessHub, ends_its_subscribers_when_it_is_freed)
{
  g_autoptr (Ear) ear = ear_new ();
  {
    g_auto (Fixture) f = fixture (TRUE);
    g_autoptr (MusterSession) session = new_session (&f, 1);
    ask (&f, ear, session, NULL, "ready");
    EXPECT_RECEIVED (ear, 1, "missing a,b");
  }
  EXPECT_RECEIVED (ear, 2, "missing a,b; error 1");
}

/* Asks and leaves, sometimes unheard; whoever has left is gone, and must not be told anything. */
typedef struct {
  Fixture *f;
  MusterSession *session;
} Visitor;

/* Gives the one who has heard time to leave before it returns. */
static void
listen_and_linger (const MusterReadiness *readiness, guint64 round, const GError *error,
                   gpointer data)
{
  Ear *ear = data;
  listen (readiness, round, error, ear);
  g_thread_yield ();
  g_atomic_int_inc (&ear->n_lingered);
}

static gpointer
come_and_go (gpointer data)
{
  const Visitor *self = data;
  for (int i = 0; i < 200; i++) {
    g_autoptr (Ear) ear = ear_new ();
    MusterSubscriber *subscriber = muster_readiness_hub_subscribe (
        self->f->hub, self->session, &(MusterWatchFor){.ready_op = "ready"}, listen_and_linger,
        ear);
    if (i % 2 == 0) {
      g_autofree char *words = heard (ear, 1);
      MUSTER_EXPECT_TRUE (*words != '\0');
    }
    muster_readiness_hub_unsubscribe (self->f->hub, subscriber);
    MUSTER_EXPECT_EQ ((guint)g_atomic_int_get (&ear->n_lingered), ear->heard->len);
  }
  return NULL;
}

MUSTER_TEST (ReadinessHub, lets_subscribers_come_and_go_while_things_change)
{
  g_auto (Fixture) f = fixture (TRUE);
  g_autoptr (MusterSession) other = new_session (&f, 2);
  Visitor visitors[] = {{&f, f.session}, {&f, f.session}, {&f, f.session}, {&f, other}};
  GThread *threads[G_N_ELEMENTS (visitors)];
  for (gsize i = 0; i < G_N_ELEMENTS (visitors); i++)
    threads[i] = g_thread_new ("visitor", come_and_go, &visitors[i]);

  for (int i = 0; i < 200; i++) {
    set_missing (&f, i % 2 == 0 ? "b" : "");
    signal_change (&f);
    g_thread_yield ();
  }

  for (gsize i = 0; i < G_N_ELEMENTS (visitors); i++)
    g_thread_join (threads[i]);
  MUSTER_EXPECT_EQ (muster_readiness_hub_n_subscribers (f.hub), 0u);
}

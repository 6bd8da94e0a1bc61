// SPDX-License-Identifier: Apache-2.0
#include "tests/ready/hub_fixture.h"

MUSTER_TEST (ReadinessHub, tells_an_asker_the_present_turn_at_once)
{
  g_auto (Fixture) f = fixture (TRUE);

  ask (&f, f.ear, f.session, NULL, "ready");

  EXPECT_HEARD (f.ear, 1, "missing a,b");
  MUSTER_EXPECT_EQ (muster_readiness_hub_n_askers (f.hub), 1u);
}

MUSTER_TEST (ReadinessHub, tells_each_change_once_and_in_order)
{
  g_auto (Fixture) f = fixture_that_asked (TRUE, "a,b");

  set_missing (&f, "b");
  tell_change (&f);
  EXPECT_HEARD (f.ear, 2, "missing a,b; missing b");
  tell_change (&f); /* something changed, but not the answer */
  wait_for_run (&f, 3);
  set_missing (&f, "");
  tell_change (&f);

  EXPECT_HEARD (f.ear, 3, "missing a,b; missing b; ready");
}

MUSTER_TEST (ReadinessHub, tells_when_a_model_is_no_longer_ready)
{
  g_auto (Fixture) f = fixture_that_asked (TRUE, "");

  set_missing (&f, "a");
  tell_change (&f);

  EXPECT_HEARD (f.ear, 2, "ready; missing a");
}

MUSTER_TEST (ReadinessHub, asks_the_ready_op_only_behind_an_open_gate)
{
  g_auto (Fixture) f = fixture (TRUE);
  f.master->gate_open = FALSE;
  ask (&f, f.ear, f.session, "gate", "ready");
  EXPECT_HEARD (f.ear, 1, "gate shut");
  MUSTER_EXPECT_EQ (n_runs (&f), 1u);

  g_mutex_lock (&f.master->lock);
  f.master->gate_open = TRUE;
  g_mutex_unlock (&f.master->lock);
  tell_change (&f);

  EXPECT_HEARD (f.ear, 2, "gate shut; missing a,b");
}

MUSTER_TEST (ReadinessHub, runs_a_question_once_for_all_who_ask_it)
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
      EXPECT_HEARD (ears[i], 1, "missing a,b");
    MUSTER_EXPECT_EQ (n_runs (&f), 1u);

    set_missing (&f, "");
    tell_change (&f);

    for (guint i = 0; i < G_N_ELEMENTS (ears); i++)
      EXPECT_HEARD (ears[i], 2, "missing a,b; ready");
    MUSTER_EXPECT_EQ (n_runs (&f), 2u);
    MUSTER_EXPECT_EQ (muster_readiness_hub_n_askers (f.hub), 64u);
  }
  for (guint i = 0; i < G_N_ELEMENTS (ears); i++)
    ear_free (ears[i]);
}

MUSTER_TEST (ReadinessHub, answers_a_later_asker_without_another_run)
{
  g_autoptr (Ear) second = ear_new ();
  g_auto (Fixture) f = fixture_that_asked (TRUE, "a,b");
  g_autoptr (MusterSession) b = new_session (&f, 1);

  ask (&f, second, b, NULL, "ready");

  EXPECT_HEARD (second, 1, "missing a,b");
  MUSTER_EXPECT_EQ (n_runs (&f), 1u);
}

MUSTER_TEST (ReadinessHub, keeps_questions_over_other_graphs_and_ops_apart)
{
  g_autoptr (Ear) two = ear_new ();
  g_autoptr (Ear) three = ear_new ();
  g_auto (Fixture) f = fixture (TRUE);
  g_autoptr (MusterSession) b = new_session (&f, 2);

  ask (&f, f.ear, f.session, NULL, "ready");
  ask (&f, two, b, NULL, "ready");
  ask (&f, three, f.session, NULL, "ready_too");
  EXPECT_HEARD (f.ear, 1, "missing a,b");
  EXPECT_HEARD (two, 1, "missing a,b");
  EXPECT_HEARD (three, 1, "missing a,b");

  MUSTER_EXPECT_EQ (n_runs (&f), 3u);
}

MUSTER_TEST (ReadinessHub, asks_again_when_something_changes_during_a_run)
{
  g_auto (Fixture) f = fixture (TRUE);
  hold_runs (&f, TRUE);
  ask (&f, f.ear, f.session, NULL, "ready");
  wait_for_run (&f, 1);

  set_missing (&f, "");
  tell_change (&f);
  hold_runs (&f, FALSE);

  EXPECT_HEARD (f.ear, 2, "missing a,b; ready");
}

MUSTER_TEST (ReadinessHub, goes_on_in_the_next_askers_session_when_the_first_is_gone)
{
  g_autoptr (Ear) second = ear_new ();
  g_auto (Fixture) f = fixture_that_asked (TRUE, "a,b");
  g_autoptr (MusterSession) b = new_session (&f, 1);
  ask (&f, second, b, NULL, "ready");
  EXPECT_HEARD (second, 1, "missing a,b");

  lose_session (&f);
  set_missing (&f, "");
  tell_change (&f);

  EXPECT_HEARD (second, 2, "missing a,b; ready");
  EXPECT_HEARD (f.ear, 2, "missing a,b; error 10");
  MUSTER_EXPECT_EQ (muster_readiness_hub_n_askers (f.hub), 1u);
}

MUSTER_TEST (ReadinessHub, says_nothing_to_one_who_has_left)
{
  g_autoptr (Ear) here = ear_new ();
  g_auto (Fixture) f = fixture (TRUE);
  ask (&f, f.ear, f.session, NULL, "ready");
  ask (&f, here, f.session, NULL, "ready");
  EXPECT_HEARD (f.ear, 1, "missing a,b");
  EXPECT_HEARD (here, 1, "missing a,b");

  muster_readiness_hub_leave (f.hub, f.ear->asker);
  set_missing (&f, "");
  tell_change (&f);

  EXPECT_HEARD (here, 2, "missing a,b; ready");
  EXPECT_HEARD (f.ear, 0, "missing a,b");
}

MUSTER_TEST (ReadinessHub, lets_an_asker_leave_while_its_question_runs)
{
  g_auto (Fixture) f = fixture (TRUE);
  hold_runs (&f, TRUE);
  ask (&f, f.ear, f.session, NULL, "ready");
  wait_for_run (&f, 1);

  muster_readiness_hub_leave (f.hub, f.ear->asker);
  hold_runs (&f, FALSE);

  g_autoptr (Ear) next = ear_new ();
  ask (&f, next, f.session, NULL, "ready");
  EXPECT_HEARD (next, 1, "missing a,b");
  EXPECT_HEARD (f.ear, 0, "");
  muster_readiness_hub_leave (f.hub, next->asker);
}

MUSTER_TEST (ReadinessHub, lets_an_asker_leave_from_its_own_function)
{
  g_autoptr (Ear) other = ear_new ();
  g_auto (Fixture) f = fixture (TRUE);
  f.ear->leaves = TRUE;
  ask (&f, f.ear, f.session, NULL, "ready");
  EXPECT_HEARD (f.ear, 1, "missing a,b");

  ask (&f, other, f.session, NULL, "ready");
  EXPECT_HEARD (other, 1, "missing a,b");
  set_missing (&f, "");
  tell_change (&f);

  EXPECT_HEARD (other, 2, "missing a,b; ready");
  EXPECT_HEARD (f.ear, 0, "missing a,b");
}

MUSTER_TEST (ReadinessHub, polls_a_master_that_cannot_tell)
{
  g_auto (Fixture) f = fixture_that_asked (FALSE, "a,b");

  set_missing (&f, "");
  muster_fake_clock_wait_for_waiters (f.clock, 1);
  muster_fake_clock_crank (f.clock);

  EXPECT_HEARD (f.ear, 2, "missing a,b; ready");
  gint64 elapsed_us = muster_fake_clock_elapsed_us (f.clock);
  MUSTER_EXPECT_GT (elapsed_us, 0);
  MUSTER_EXPECT_LE (elapsed_us, MUSTER_SECOND);
}

MUSTER_TEST (ReadinessHub, hears_a_new_question_while_it_rests_between_two_looks)
{
  g_autoptr (Ear) second = ear_new ();
  g_auto (Fixture) f = fixture_that_asked (FALSE, "a,b");
  g_autoptr (MusterSession) b = new_session (&f, 2);
  muster_fake_clock_wait_for_waiters (f.clock, 1);

  ask (&f, second, b, NULL, "ready");

  EXPECT_HEARD (second, 1, "missing a,b");
}

MUSTER_TEST (ReadinessHub, ends_its_askers_when_it_is_freed)
{
  g_autoptr (Ear) ear = ear_new ();
  {
    g_auto (Fixture) f = fixture (TRUE);
    g_autoptr (MusterSession) session = new_session (&f, 1);
    ask (&f, ear, session, NULL, "ready");
    EXPECT_HEARD (ear, 1, "missing a,b");
  }
  EXPECT_HEARD (ear, 2, "missing a,b; error 1");
}

/* Asks and leaves, sometimes unheard; whoever has left is gone, and must not be told anything. */
typedef struct {
  Fixture *f;
  MusterSession *session;
} Visitor;

/* Gives the one who has heard time to leave before it returns. */
static void
listen_and_linger (const MusterTurn *turn, guint64 round, const GError *error, gpointer data)
{
  Ear *ear = data;
  listen (turn, round, error, ear);
  g_thread_yield ();
  g_atomic_int_inc (&ear->n_lingered);
}

static gpointer
come_and_go (gpointer data)
{
  const Visitor *self = data;
  for (int i = 0; i < 200; i++) {
    g_autoptr (Ear) ear = ear_new ();
    MusterAsker *asker =
        muster_readiness_hub_ask (self->f->hub, self->session,
                                  &(MusterWatchFor){.ready_op = "ready"}, listen_and_linger, ear);
    if (i % 2 == 0) {
      g_autofree char *words = heard (ear, 1);
      MUSTER_EXPECT_TRUE (*words != '\0');
    }
    muster_readiness_hub_leave (self->f->hub, asker);
    MUSTER_EXPECT_EQ ((guint)g_atomic_int_get (&ear->n_lingered), ear->heard->len);
  }
  return NULL;
}

MUSTER_TEST (ReadinessHub, lets_askers_come_and_go_while_things_change)
{
  g_auto (Fixture) f = fixture (TRUE);
  g_autoptr (MusterSession) other = new_session (&f, 2);
  Visitor visitors[] = {{&f, f.session}, {&f, f.session}, {&f, f.session}, {&f, other}};
  GThread *threads[G_N_ELEMENTS (visitors)];
  for (gsize i = 0; i < G_N_ELEMENTS (visitors); i++)
    threads[i] = g_thread_new ("visitor", come_and_go, &visitors[i]);

  for (int i = 0; i < 200; i++) {
    set_missing (&f, i % 2 == 0 ? "b" : "");
    tell_change (&f);
    g_thread_yield ();
  }

  for (gsize i = 0; i < G_N_ELEMENTS (visitors); i++)
    g_thread_join (threads[i]);
  MUSTER_EXPECT_EQ (muster_readiness_hub_n_askers (f.hub), 0u);
}

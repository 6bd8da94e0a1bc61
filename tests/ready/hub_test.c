// SPDX-License-Identifier: Apache-2.0
#include "ready/hub.h"
#include "tests/doubles/fake_clock.h"
#include "tests/gtest_shim.h"

#define PATIENCE (30 * G_TIME_SPAN_SECOND)

/* --- a master that counts: its sessions answer what the test says --- */

typedef struct {
  GObject parent;
  gboolean can_tell;
  GMutex lock;
  GCond changed;
  char *missing; /* (owned) "" when ready; guarded by lock, as all below */
  gboolean gate_open;
  guint n_runs;
  guint n_entered;
  gboolean is_held; /* runs wait until it is FALSE */
  MusterReadinessChanged callback;
  gpointer callback_data;
} CountingMaster;

typedef struct {
  GObjectClass parent;
} CountingMasterClass;

typedef struct {
  MusterSession parent;
  CountingMaster *master; /* (not owned) */
  gboolean is_gone;       /* guarded by the master's lock */
} CountingSession;

typedef struct {
  MusterSessionClass parent;
} CountingSessionClass;

static void counting_master_iface (MusterMasterInterface *iface);

G_DEFINE_TYPE_WITH_CODE (CountingMaster, counting_master, G_TYPE_OBJECT,
                         G_IMPLEMENT_INTERFACE (MUSTER_TYPE_MASTER, counting_master_iface))
G_DEFINE_TYPE (CountingSession, counting_session, MUSTER_TYPE_SESSION)

static gulong
counting_on_changed (MusterMaster *base, MusterReadinessChanged callback, gpointer user_data)
{
  CountingMaster *self = (CountingMaster *)base;
  self->callback = callback;
  self->callback_data = user_data;
  return self->can_tell ? 1 : 0;
}

static void
counting_off_changed (MusterMaster *base, gulong id)
{
  CountingMaster *self = (CountingMaster *)base;
  MUSTER_EXPECT_EQ (id, 1ul);
  self->callback = NULL;
}

static void
counting_master_iface (MusterMasterInterface *iface)
{
  iface->on_readiness_changed = counting_on_changed;
  iface->off_readiness_changed = counting_off_changed;
}

static void
counting_master_finalize (GObject *object)
{
  CountingMaster *self = (CountingMaster *)object;
  g_free (self->missing);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  G_OBJECT_CLASS (counting_master_parent_class)->finalize (object);
}

static void
counting_master_class_init (CountingMasterClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = counting_master_finalize;
}

static void
counting_master_init (CountingMaster *self)
{
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  self->missing = g_strdup ("a,b");
  self->gate_open = TRUE;
}

/* The lock is held. */
static MusterTensor *
answer (CountingMaster *self, const char *fetch)
{
  gboolean is_gate = g_str_has_prefix (fetch, "gate");
  const char *missing = is_gate ? (self->gate_open ? "" : "shut") : self->missing;
  g_auto (GStrv) names = *missing != '\0' ? g_strsplit (missing, ",", -1) : g_new0 (char *, 1);
  return muster_tensor_new_strv ((const char *const *)names);
}

static gboolean
counting_run (MusterSession *base, const MusterStep *step, MusterTensor **fetched,
              GBytes **metadata G_GNUC_UNUSED, GCancellable *cancellable G_GNUC_UNUSED,
              GError **error)
{
  CountingSession *self = (CountingSession *)base;
  CountingMaster *master = self->master;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&master->lock);
  master->n_runs++;
  /* What it computes is what holds when it begins. */
  g_autoptr (MusterTensor) value = answer (master, step->fetches[0]);
  master->n_entered++;
  g_cond_broadcast (&master->changed);
  while (master->is_held)
    g_cond_wait (&master->changed, &master->lock);
  if (self->is_gone) {
    g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED, "Session H is not found.");
    return FALSE;
  }
  fetched[0] = g_steal_pointer (&value);
  return TRUE;
}

static void
counting_session_class_init (CountingSessionClass *klass)
{
  ((MusterSessionClass *)klass)->run = counting_run;
}

static void
counting_session_init (CountingSession *self G_GNUC_UNUSED)
{
}

/* --- an asker that listens --- */

typedef struct {
  GMutex lock;
  GCond heard_more;
  GPtrArray *heard; /* (element-type utf8) guarded by lock */
  MusterReadinessHub *hub;
  MusterAsker *asker; /* guarded by lock */
  gboolean leaves;    /* at the first word, from the hub's own thread */
  gint n_lingered;    /* atomic: how often it was still there after it had been told */
} Ear;

static Ear *
ear_new (void)
{
  Ear *ear = g_new0 (Ear, 1);
  g_mutex_init (&ear->lock);
  g_cond_init (&ear->heard_more);
  ear->heard = g_ptr_array_new_with_free_func (g_free);
  return ear;
}

static void
ear_free (Ear *ear)
{
  g_ptr_array_unref (ear->heard);
  g_mutex_clear (&ear->lock);
  g_cond_clear (&ear->heard_more);
  g_free (ear);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Ear, ear_free)

static char *
in_words (const MusterTurn *turn, const GError *error)
{
  if (error != NULL)
    return g_strdup_printf ("error %d", error->code);
  if (!turn->gate_open)
    return g_strdup ("gate shut");
  if (turn->is_ready)
    return g_strdup ("ready");
  g_autofree char *names = g_strjoinv (",", turn->missing);
  return g_strdup_printf ("missing %s", names);
}

static void
listen (const MusterTurn *turn, guint64 round G_GNUC_UNUSED, const GError *error, gpointer data)
{
  Ear *ear = data;
  g_mutex_lock (&ear->lock);
  g_ptr_array_add (ear->heard, in_words (turn, error));
  g_cond_broadcast (&ear->heard_more);
  MusterAsker *asker = ear->leaves ? g_steal_pointer (&ear->asker) : NULL;
  g_mutex_unlock (&ear->lock);
  if (asker != NULL)
    muster_readiness_hub_leave (ear->hub, asker);
}

/* Waits until n words were heard, and gives all of them. */
static char *
heard (Ear *ear, guint n)
{
  gint64 until = g_get_monotonic_time () + PATIENCE;
  GString *all = g_string_new (NULL);
  g_mutex_lock (&ear->lock);
  while (ear->heard->len < n && g_cond_wait_until (&ear->heard_more, &ear->lock, until))
    ;
  for (guint i = 0; i < ear->heard->len; i++)
    g_string_append_printf (all, "%s%s", i > 0 ? "; " : "", (char *)ear->heard->pdata[i]);
  g_mutex_unlock (&ear->lock);
  return g_string_free (all, FALSE);
}

#define EXPECT_HEARD(ear, n, words)                                                                \
  do {                                                                                             \
    g_autofree char *all_ = heard (ear, n);                                                        \
    MUSTER_EXPECT_STREQ (all_, words);                                                             \
  } while (0)

/* --- the fixture --- */

typedef struct {
  CountingMaster *master;
  MusterFakeClock *clock;
  MusterReadinessHub *hub;
} Fixture;

static void
fixture_clear (Fixture *f)
{
  muster_readiness_hub_free (f->hub);
  g_object_unref (f->clock);
  g_object_unref (f->master);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, fixture_clear)

static Fixture
fixture (gboolean can_tell)
{
  Fixture f = {0};
  f.master = g_object_new (counting_master_get_type (), NULL);
  f.master->can_tell = can_tell;
  f.clock = muster_fake_clock_new ();
  muster_fake_clock_hold (f.clock);
  f.hub = muster_readiness_hub_new (MUSTER_MASTER (f.master), NULL, MUSTER_CLOCK (f.clock));
  return f;
}

/* Graphs differ by their version. */
static MusterSession *
new_session (Fixture *f, char version)
{
  const char def[] = {0x18, version};
  g_autoptr (GBytes) bytes = g_bytes_new (def, sizeof def);
  g_autoptr (MusterGraph) graph = muster_graph_new (bytes);
  CountingSession *session = g_object_new (counting_session_get_type (), NULL);
  session->master = f->master;
  muster_session_set_identity (MUSTER_SESSION (session), "H", graph);
  return MUSTER_SESSION (session);
}

static void
ask (Fixture *f, Ear *ear, MusterSession *session, const char *gate, const char *ready)
{
  g_mutex_lock (&ear->lock);
  ear->hub = f->hub;
  ear->asker = muster_readiness_hub_ask (
      f->hub, session, &(MusterWatchFor){.ready_for_local_init_op = gate, .ready_op = ready},
      listen, ear);
  g_mutex_unlock (&ear->lock);
}

static void
set_missing (Fixture *f, const char *missing)
{
  g_mutex_lock (&f->master->lock);
  g_free (f->master->missing);
  f->master->missing = g_strdup (missing);
  g_mutex_unlock (&f->master->lock);
}

static void
tell_change (Fixture *f)
{
  f->master->callback (f->master->callback_data);
}

static guint
n_runs (Fixture *f)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&f->master->lock);
  return f->master->n_runs;
}

/* Lets runs pass, or holds each where it has computed its answer. */
static void
hold_runs (Fixture *f, gboolean is_held)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&f->master->lock);
  f->master->is_held = is_held;
  g_cond_broadcast (&f->master->changed);
}

static void
wait_for_run (Fixture *f, guint n)
{
  gint64 until = g_get_monotonic_time () + PATIENCE;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&f->master->lock);
  while (f->master->n_entered < n &&
         g_cond_wait_until (&f->master->changed, &f->master->lock, until))
    ;
  MUSTER_EXPECT_GE (f->master->n_entered, n);
}

MUSTER_TEST (ReadinessHub, tells_an_asker_the_present_turn_at_once)
{
  g_autoptr (Ear) ear = ear_new ();
  g_auto (Fixture) f = fixture (TRUE);
  g_autoptr (MusterSession) session = new_session (&f, 1);

  ask (&f, ear, session, NULL, "ready");

  EXPECT_HEARD (ear, 1, "missing a,b");
  MUSTER_EXPECT_EQ (muster_readiness_hub_n_askers (f.hub), 1u);
}

MUSTER_TEST (ReadinessHub, tells_each_change_once_and_in_order)
{
  g_autoptr (Ear) ear = ear_new ();
  g_auto (Fixture) f = fixture (TRUE);
  g_autoptr (MusterSession) session = new_session (&f, 1);
  ask (&f, ear, session, NULL, "ready");
  EXPECT_HEARD (ear, 1, "missing a,b");

  set_missing (&f, "b");
  tell_change (&f);
  EXPECT_HEARD (ear, 2, "missing a,b; missing b");
  tell_change (&f); /* something changed, but not the answer */
  wait_for_run (&f, 3);
  set_missing (&f, "");
  tell_change (&f);

  EXPECT_HEARD (ear, 3, "missing a,b; missing b; ready");
}

MUSTER_TEST (ReadinessHub, tells_when_a_model_is_no_longer_ready)
{
  g_autoptr (Ear) ear = ear_new ();
  g_auto (Fixture) f = fixture (TRUE);
  g_autoptr (MusterSession) session = new_session (&f, 1);
  set_missing (&f, "");
  ask (&f, ear, session, NULL, "ready");
  EXPECT_HEARD (ear, 1, "ready");

  set_missing (&f, "a");
  tell_change (&f);

  EXPECT_HEARD (ear, 2, "ready; missing a");
}

MUSTER_TEST (ReadinessHub, asks_the_ready_op_only_behind_an_open_gate)
{
  g_autoptr (Ear) ear = ear_new ();
  g_auto (Fixture) f = fixture (TRUE);
  g_autoptr (MusterSession) session = new_session (&f, 1);
  f.master->gate_open = FALSE;
  ask (&f, ear, session, "gate", "ready");
  EXPECT_HEARD (ear, 1, "gate shut");
  MUSTER_EXPECT_EQ (n_runs (&f), 1u);

  g_mutex_lock (&f.master->lock);
  f.master->gate_open = TRUE;
  g_mutex_unlock (&f.master->lock);
  tell_change (&f);

  EXPECT_HEARD (ear, 2, "gate shut; missing a,b");
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
  g_autoptr (Ear) first = ear_new ();
  g_autoptr (Ear) second = ear_new ();
  g_auto (Fixture) f = fixture (TRUE);
  g_autoptr (MusterSession) a = new_session (&f, 1);
  g_autoptr (MusterSession) b = new_session (&f, 1);
  ask (&f, first, a, NULL, "ready");
  EXPECT_HEARD (first, 1, "missing a,b");

  ask (&f, second, b, NULL, "ready");

  EXPECT_HEARD (second, 1, "missing a,b");
  MUSTER_EXPECT_EQ (n_runs (&f), 1u);
}

MUSTER_TEST (ReadinessHub, keeps_questions_over_other_graphs_and_ops_apart)
{
  g_autoptr (Ear) one = ear_new ();
  g_autoptr (Ear) two = ear_new ();
  g_autoptr (Ear) three = ear_new ();
  g_auto (Fixture) f = fixture (TRUE);
  g_autoptr (MusterSession) a = new_session (&f, 1);
  g_autoptr (MusterSession) b = new_session (&f, 2);

  ask (&f, one, a, NULL, "ready");
  ask (&f, two, b, NULL, "ready");
  ask (&f, three, a, NULL, "ready_too");
  EXPECT_HEARD (one, 1, "missing a,b");
  EXPECT_HEARD (two, 1, "missing a,b");
  EXPECT_HEARD (three, 1, "missing a,b");

  MUSTER_EXPECT_EQ (n_runs (&f), 3u);
}

MUSTER_TEST (ReadinessHub, asks_again_when_something_changes_during_a_run)
{
  g_autoptr (Ear) ear = ear_new ();
  g_auto (Fixture) f = fixture (TRUE);
  g_autoptr (MusterSession) session = new_session (&f, 1);
  hold_runs (&f, TRUE);
  ask (&f, ear, session, NULL, "ready");
  wait_for_run (&f, 1);

  set_missing (&f, "");
  tell_change (&f);
  hold_runs (&f, FALSE);

  EXPECT_HEARD (ear, 2, "missing a,b; ready");
}

MUSTER_TEST (ReadinessHub, goes_on_in_the_next_askers_session_when_the_first_is_gone)
{
  g_autoptr (Ear) first = ear_new ();
  g_autoptr (Ear) second = ear_new ();
  g_auto (Fixture) f = fixture (TRUE);
  g_autoptr (MusterSession) a = new_session (&f, 1);
  g_autoptr (MusterSession) b = new_session (&f, 1);
  ask (&f, first, a, NULL, "ready");
  EXPECT_HEARD (first, 1, "missing a,b");
  ask (&f, second, b, NULL, "ready");
  EXPECT_HEARD (second, 1, "missing a,b");

  g_mutex_lock (&f.master->lock);
  ((CountingSession *)a)->is_gone = TRUE;
  g_mutex_unlock (&f.master->lock);
  set_missing (&f, "");
  tell_change (&f);

  EXPECT_HEARD (second, 2, "missing a,b; ready");
  EXPECT_HEARD (first, 2, "missing a,b; error 10");
  MUSTER_EXPECT_EQ (muster_readiness_hub_n_askers (f.hub), 1u);
}

MUSTER_TEST (ReadinessHub, says_nothing_to_one_who_has_left)
{
  g_autoptr (Ear) gone = ear_new ();
  g_autoptr (Ear) here = ear_new ();
  g_auto (Fixture) f = fixture (TRUE);
  g_autoptr (MusterSession) session = new_session (&f, 1);
  ask (&f, gone, session, NULL, "ready");
  ask (&f, here, session, NULL, "ready");
  EXPECT_HEARD (gone, 1, "missing a,b");
  EXPECT_HEARD (here, 1, "missing a,b");

  muster_readiness_hub_leave (f.hub, gone->asker);
  set_missing (&f, "");
  tell_change (&f);

  EXPECT_HEARD (here, 2, "missing a,b; ready");
  EXPECT_HEARD (gone, 0, "missing a,b");
}

MUSTER_TEST (ReadinessHub, lets_an_asker_leave_while_its_question_runs)
{
  g_autoptr (Ear) ear = ear_new ();
  g_auto (Fixture) f = fixture (TRUE);
  g_autoptr (MusterSession) session = new_session (&f, 1);
  hold_runs (&f, TRUE);
  ask (&f, ear, session, NULL, "ready");
  wait_for_run (&f, 1);

  muster_readiness_hub_leave (f.hub, ear->asker);
  hold_runs (&f, FALSE);

  g_autoptr (Ear) next = ear_new ();
  ask (&f, next, session, NULL, "ready");
  EXPECT_HEARD (next, 1, "missing a,b");
  EXPECT_HEARD (ear, 0, "");
  muster_readiness_hub_leave (f.hub, next->asker);
}

MUSTER_TEST (ReadinessHub, lets_an_asker_leave_from_its_own_function)
{
  g_autoptr (Ear) ear = ear_new ();
  g_autoptr (Ear) other = ear_new ();
  g_auto (Fixture) f = fixture (TRUE);
  g_autoptr (MusterSession) session = new_session (&f, 1);
  ear->leaves = TRUE;
  ask (&f, ear, session, NULL, "ready");
  EXPECT_HEARD (ear, 1, "missing a,b");

  ask (&f, other, session, NULL, "ready");
  EXPECT_HEARD (other, 1, "missing a,b");
  set_missing (&f, "");
  tell_change (&f);

  EXPECT_HEARD (other, 2, "missing a,b; ready");
  EXPECT_HEARD (ear, 0, "missing a,b");
}

MUSTER_TEST (ReadinessHub, polls_a_master_that_cannot_tell)
{
  g_autoptr (Ear) ear = ear_new ();
  g_auto (Fixture) f = fixture (FALSE);
  g_autoptr (MusterSession) session = new_session (&f, 1);
  ask (&f, ear, session, NULL, "ready");
  EXPECT_HEARD (ear, 1, "missing a,b");

  set_missing (&f, "");
  muster_fake_clock_wait_for_waiters (f.clock, 1);
  muster_fake_clock_crank (f.clock);

  EXPECT_HEARD (ear, 2, "missing a,b; ready");
  gint64 elapsed_us = muster_fake_clock_elapsed_us (f.clock);
  MUSTER_EXPECT_GT (elapsed_us, 0);
  MUSTER_EXPECT_LE (elapsed_us, MUSTER_SECOND);
}

MUSTER_TEST (ReadinessHub, hears_a_new_question_while_it_rests_between_two_looks)
{
  g_autoptr (Ear) first = ear_new ();
  g_autoptr (Ear) second = ear_new ();
  g_auto (Fixture) f = fixture (FALSE);
  g_autoptr (MusterSession) a = new_session (&f, 1);
  g_autoptr (MusterSession) b = new_session (&f, 2);
  ask (&f, first, a, NULL, "ready");
  EXPECT_HEARD (first, 1, "missing a,b");
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
  g_autoptr (MusterSession) one = new_session (&f, 1);
  g_autoptr (MusterSession) other = new_session (&f, 2);
  Visitor visitors[] = {{&f, one}, {&f, one}, {&f, one}, {&f, other}};
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

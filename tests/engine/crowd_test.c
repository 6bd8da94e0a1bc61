// SPDX-License-Identifier: Apache-2.0
/* Many threads in few sessions that come and go: for the sanitizers as much as for itself. */
#include "tests/engine/queue_fixture.h"

enum { N_THREADS = 8, N_PLACES = 3, N_CHANGES = 150 };

/* Sessions that whoever comes may run in, replace or extend. */
typedef struct {
  MusterMaster *master;
  GMutex lock;
  MusterSession *places[N_PLACES]; /* (owned) guarded by lock */
  gint n_done, n_bad;              /* atomic */
} Crowd;

static const Wanted shared = {.op = "FIFOQueue", .capacity = 3, .shared_name = "crowd"};

static MusterSession *
open_all (MusterMaster *master)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  add_constant (b, "x", 1);
  add_variable (b, "v", 0);
  add_binary (b, "AssignAdd", "up", "v", "x");
  add_queue (b, &shared);
  add_put (b, &shared, "QueueEnqueue", "put");
  add_take (b, &shared, "QueueDequeue", "take", NULL);
  add_op (b, &shared, "QueueSize", "size");
  add_random (b, "random", 0, 0);
  muster_graph_builder_placeholder (b, "fed", MUSTER_FLOAT, 0, NULL);
  add_binary (b, "AddV2", "sum", "fed", "x");
  return open_session (master, b);
}

/* What may come of a step in a session that others close and a master that others reset. */
static gboolean
is_fair (const GError *error)
{
  static const int codes[] = {MUSTER_ERROR_ABORTED, MUSTER_ERROR_CANCELLED,
                              MUSTER_ERROR_DEADLINE_EXCEEDED, MUSTER_ERROR_FAILED_PRECONDITION};
  for (gsize i = 0; i < G_N_ELEMENTS (codes); i++)
    if (g_error_matches (error, MUSTER_ERROR, codes[i]))
      return TRUE;
  return error == NULL;
}

static void
judge (Crowd *crowd, const char *what, const GError *error)
{
  if (!is_fair (error)) {
    MUSTER_FAIL ("%s: %s", what, error->message);
    g_atomic_int_inc (&crowd->n_bad);
  } else if (error == NULL) {
    g_atomic_int_inc (&crowd->n_done);
  }
}

static void
run_in (Crowd *crowd, MusterSession *session, guint round)
{
  static const char *const ops[] = {"v/Assign", "up", "put", "take", "random", "size"};
  const char *op = ops[round % G_N_ELEMENTS (ops)];
  g_autoptr (GError) error = NULL;
  const MusterStep step = {.targets = &op, .n_targets = 1, .deadline_us = soon ()};
  (void)muster_session_run (session, &step, NULL, NULL, NULL, &error);
  judge (crowd, op, error);
}

/* The sum of what is fed and one. */
static void
check_sum (Crowd *crowd, float fed, MusterTensor *sum)
{
  if (float_of (sum) == fed + 1)
    return;
  MUSTER_FAIL ("%g and 1 are %g", fed, float_of (sum));
  g_atomic_int_inc (&crowd->n_bad);
}

static void
run_parts (Crowd *crowd, MusterSession *session, guint round)
{
  const char *const names[] = {"sum", "up"};
  g_autoptr (MusterTensor) fed = muster_tensor_new_float ((float)round);
  g_autoptr (MusterTensor) sum = NULL;
  g_autoptr (GError) error = NULL;
  MusterFeed feed = {"fed", NULL};
  MusterStep step = {.feeds = &feed,
                     .n_feeds = 1,
                     .fetches = names,
                     .n_fetches = 2,
                     .deadline_us = test_deadline ()};
  g_autofree char *handle =
      muster_session_set_up_partial_run (session, &step, test_deadline (), NULL, &error);

  feed.tensor = fed;
  step.n_fetches = 1; /* what is left of it ends with the session */
  if (handle != NULL && muster_session_run_part (session, handle, &step, &sum, NULL, NULL, &error))
    check_sum (crowd, (float)round, sum);
  judge (crowd, "a part", error);
}

static void
call (Crowd *crowd, MusterSession *session, guint round)
{
  const char *const name = "sum";
  g_autoptr (MusterTensor) fed = muster_tensor_new_float ((float)round);
  g_autoptr (MusterTensor) sum = NULL;
  g_autoptr (GError) error = NULL;
  const MusterFeed feed = {"fed", NULL};
  const MusterStep step = {.feeds = &feed, .n_feeds = 1, .fetches = &name, .n_fetches = 1};
  const gint64 callable =
      muster_session_make_callable (session, &step, test_deadline (), NULL, &error);

  if (callable != 0 && muster_session_run_callable (session, callable, &fed, 1, test_deadline (),
                                                    &sum, NULL, NULL, &error)) {
    check_sum (crowd, (float)round, sum);
    (void)muster_session_release_callable (session, callable, test_deadline (), NULL, &error);
  }
  judge (crowd, "a callable", error);
}

static void
extend (Crowd *crowd, MusterSession *session, guint round)
{
  g_autofree char *name = g_strdup_printf ("minus_%u", round);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new_extension ();

  add_unary (b, "Neg", name, "x");
  g_autoptr (MusterGraph) more = muster_graph_builder_end (b, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  (void)muster_session_extend (session, more, test_deadline (), NULL, &error);
  judge (crowd, "extending", error);
}

/* Puts another one there and closes what was there, whoever is at it. */
static void
replace (Crowd *crowd, guint place)
{
  g_autoptr (MusterSession) fresh = open_all (crowd->master);
  g_autoptr (GError) error = NULL;
  g_mutex_lock (&crowd->lock);
  g_autoptr (MusterSession) old = g_steal_pointer (&crowd->places[place]);
  crowd->places[place] = g_steal_pointer (&fresh);
  g_mutex_unlock (&crowd->lock);
  (void)muster_session_close (old, test_deadline (), NULL, &error);
  judge (crowd, "closing", error);
}

typedef struct {
  Crowd *crowd;
  guint number;
} Member;

static gpointer
come_and_go (gpointer data)
{
  const Member *self = data;
  Crowd *crowd = self->crowd;
  for (guint i = 0; i < N_CHANGES; i++) {
    const guint round = i * N_THREADS + self->number, place = i % N_PLACES;
    g_mutex_lock (&crowd->lock);
    g_autoptr (MusterSession) session = g_object_ref (crowd->places[place]);
    g_mutex_unlock (&crowd->lock);
    if (round % 13 == 0)
      replace (crowd, place);
    else if (round % 11 == 0)
      extend (crowd, session, round);
    else if (round % 7 == 0)
      run_parts (crowd, session, round);
    else if (round % 5 == 0)
      call (crowd, session, round);
    else if (round % 97 == 0)
      MUSTER_EXPECT_TRUE (muster_master_reset (crowd->master, NULL, test_deadline (), NULL, NULL));
    else
      run_in (crowd, session, i / 2);
  }
  return NULL;
}

MUSTER_TEST (Crowd, of_threads_finds_each_session_whole_or_gone)
{
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  Crowd crowd = {.master = master};
  Member members[N_THREADS];
  GThread *threads[N_THREADS];
  g_mutex_init (&crowd.lock);
  for (int i = 0; i < N_PLACES; i++)
    crowd.places[i] = open_all (master);

  for (guint i = 0; i < N_THREADS; i++) {
    members[i] = (Member){&crowd, i};
    threads[i] = g_thread_new ("member", come_and_go, &members[i]);
  }
  for (int i = 0; i < N_THREADS; i++)
    g_thread_join (threads[i]);

  MUSTER_EXPECT_EQ (crowd.n_bad, 0);
  MUSTER_EXPECT_TRUE (crowd.n_done > 0);
  MUSTER_EXPECT_TRUE (muster_master_reset (master, NULL, test_deadline (), NULL, NULL));
  g_autoptr (MusterSession) fresh = open_all (master);
  g_autoptr (MusterTensor) size = run_one (fresh, NULL, NULL, "size", NULL);
  MUSTER_ASSERT_TRUE (size != NULL);
  MUSTER_EXPECT_EQ (*(const gint32 *)muster_tensor_data (size), 0);
  MUSTER_EXPECT_TRUE (muster_session_run_op (fresh, "v/Assign", MUSTER_WAIT_FOREVER, NULL, NULL));
  MUSTER_EXPECT_EQ (fetch_float (fresh, "up"), 1.0f);
  for (int i = 0; i < N_PLACES; i++)
    g_clear_object (&crowd.places[i]);
  g_mutex_clear (&crowd.lock);
}

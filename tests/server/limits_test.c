// SPDX-License-Identifier: Apache-2.0
#include "tests/server/served.h"
#include "tests/server/stuck_master.h"

#include "base/memory_account_private.h"
#include "engine/run/registry.h"
#include "engine/session/local_master.h"
#include "graph/buffer_pool_private.h"
#include "graph/graph_builder.h"
#include "rpc/messages/run_step_private.h"
#include "tests/doubles/heard.h"

static Served
start_limited (MusterServerLimits limits)
{
  return served_start_with (NULL, &(MusterServerOptions){.limits = limits});
}

static void
expect_refused (GError *error, const char *words)
{
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED, words);
}

static MusterSession *
try_session (Served *f, GError **error)
{
  g_autoptr (MusterGraph) graph = served_graph (NULL);
  return muster_master_create_session (f->remote, graph, NULL, test_deadline (), NULL, error);
}

/* What Status says of a limit: "used/max, refused". */
static char *
limit_words (Served *f, const char *name)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  Muster__Limit *limit = served_limit (served_status (f, arena), name);
  if (limit == NULL)
    return NULL;
  return g_strdup_printf ("%d/%d, %d", (int)limit->used, (int)limit->limit, (int)limit->refused);
}

#define EXPECT_LIMIT(f, name, words)                                                               \
  do {                                                                                             \
    g_autofree char *said_ = limit_words (f, name);                                                \
    MUSTER_EXPECT_STREQ (said_, words);                                                            \
  } while (0)

MUSTER_TEST (Limits, refuse_a_session_too_many_and_keep_serving)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = start_limited ((MusterServerLimits){.sessions = 2});
  g_autoptr (MusterSession) one = served_session (&f, NULL);
  g_autoptr (MusterSession) two = served_session (&f, NULL);
  MUSTER_ASSERT_TRUE (one != NULL && two != NULL);

  g_autoptr (MusterSession) three = try_session (&f, &error);

  MUSTER_EXPECT_NULL (three);
  expect_refused (error, "over the limit of sessions (2); raise it with --max-sessions");
  EXPECT_LIMIT (&f, "sessions", "2/2, 1");
  g_clear_error (&error);
  MUSTER_EXPECT_TRUE (served_run (one, "init", &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (Limits, give_a_closed_sessions_place_to_another)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = start_limited ((MusterServerLimits){.sessions = 1});
  g_autoptr (MusterSession) first = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (first);
  MUSTER_EXPECT_TRUE (muster_session_close (first, test_deadline (), NULL, &error));
  g_autoptr (MusterSession) second = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (second);
  MUSTER_EXPECT_TRUE (muster_master_reset (f.remote, NULL, test_deadline (), NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);

  g_autoptr (MusterSession) third = served_session (&f, NULL);

  MUSTER_EXPECT_TRUE (third != NULL);
  EXPECT_LIMIT (&f, "sessions", "1/1, 0");
}

/* A graph that isn't one makes no session, and keeps no place. */
MUSTER_TEST (Limits, count_no_session_that_failed)
{
  g_auto (Served) f = start_limited ((MusterServerLimits){.sessions = 1});
  g_autoptr (GBytes) nonsense = g_bytes_new_static ("\x0a\x04\x0a\x02\xff\xff", 6);
  g_autoptr (MusterGraph) graph = muster_graph_new (nonsense);
  for (int i = 0; i < 3; i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterSession) none =
        muster_master_create_session (f.remote, graph, NULL, test_deadline (), NULL, &error);
    MUSTER_EXPECT_NULL (none);
    MUSTER_EXPECT_FALSE (muster_error_is (error, MUSTER_ERROR_RESOURCE_EXHAUSTED));
  }

  g_autoptr (MusterSession) session = served_session (&f, NULL);

  MUSTER_EXPECT_TRUE (session != NULL);
}

MUSTER_TEST (Limits, refuse_a_graph_too_large)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraph) graph = served_graph (NULL);
  gsize size = g_bytes_get_size (muster_graph_bytes (graph));
  g_auto (Served) f = start_limited ((MusterServerLimits){.graph_bytes = size - 1});
  g_autoptr (MusterSession) session = try_session (&f, &error);
  MUSTER_EXPECT_NULL (session);
  expect_refused (error, "over the limit of bytes of a graph (");
  EXPECT_SAYS (error, "--max-graph-bytes");
}

MUSTER_TEST (Limits, count_what_a_graph_is_extended_by)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraph) graph = served_graph (NULL);
  gsize size = g_bytes_get_size (muster_graph_bytes (graph));
  g_auto (Served) f = start_limited ((MusterServerLimits){.graph_bytes = 2 * size - 1});
  g_autoptr (MusterSession) session = try_session (&f, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_FALSE (muster_session_extend (session, graph, test_deadline (), NULL, &error));

  expect_refused (error, "over the limit of bytes of a graph (");
}

MUSTER_TEST (Limits, refuse_a_step_too_many_until_another_ends)
{
  g_autoptr (MusterStuckMaster) master = stuck_master_new ();
  const MusterServerOptions options = {.limits.steps = 1};
  g_auto (Served) f = served_start_with (MUSTER_MASTER (master), &options);
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (session);
  ServedStuck stuck;
  served_stuck_start (&stuck, session, NULL);
  MUSTER_EXPECT_TRUE (stuck_master_wait_for (master, 1));

  g_autoptr (GError) refused = NULL;
  g_autoptr (MusterTensor) none = served_fetch (session, "quick:0", 0, NULL, &refused);
  MUSTER_EXPECT_NULL (none);
  expect_refused (refused, "over the limit of concurrent steps (1); raise it with --max-steps");
  stuck_master_let_go (master);
  g_autoptr (GError) failure = served_stuck_join (&stuck);
  MUSTER_EXPECT_NO_ERROR (failure);

  /* A step's place is free before its answer is out. */
  for (int i = 0; i < 50; i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterTensor) got = served_fetch (session, "quick:0", 0, NULL, &error);
    MUSTER_EXPECT_NO_ERROR (error);
  }
  EXPECT_LIMIT (&f, "steps", "0/1, 1");
}

/* Steps that never began hold no place either. */
MUSTER_TEST (Limits, count_no_step_of_a_session_that_is_gone)
{
  g_auto (Served) f = start_limited ((MusterServerLimits){.steps = 1});
  for (int i = 0; i < 3; i++) {
    g_autoptr (GError) error = NULL;
    MUSTER_EXPECT_FALSE (served_bare_step (&f, "nobody", "init", &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED);
  }
  EXPECT_LIMIT (&f, "steps", "0/1, 0");
}

static MusterWatch *
watch (MusterSession *session, const char *ready_op)
{
  g_autoptr (GError) error = NULL;
  MusterWatch *watch = muster_session_watch (session, &(MusterWatchFor){.ready_op = ready_op},
                                             test_deadline (), &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return watch;
}

MUSTER_TEST (Limits, refuse_a_watcher_too_many_until_another_leaves)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = start_limited ((MusterServerLimits){.watchers = 1});
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) session = served_session (&f, &ready_op);
  MUSTER_ASSERT_NOT_NULL (session);
  g_autoptr (MusterWatch) first = watch (session, ready_op);
  g_auto (MusterReadiness) readiness = {0};
  MUSTER_ASSERT_TRUE (first != NULL && muster_watch_next (first, &readiness, NULL, &error));

  g_autoptr (MusterWatch) second = watch (session, ready_op);
  g_auto (MusterReadiness) none = {0};
  MUSTER_EXPECT_FALSE (muster_watch_next (second, &none, NULL, &error));

  expect_refused (error, "over the limit of watchers (1); raise it with --max-watchers");
  EXPECT_LIMIT (&f, "watchers", "1/1, 1");
  g_clear_object (&first);
  gint64 until_us = test_deadline ();
  gboolean is_told = FALSE;
  while (!is_told && muster_clock_now_us (muster_system_clock ()) < until_us) {
    g_autoptr (MusterWatch) third = watch (session, ready_op);
    g_auto (MusterReadiness) told = {0};
    is_told = muster_watch_next (third, &told, NULL, NULL);
  }
  MUSTER_EXPECT_TRUE (is_told);
}

MUSTER_TEST (Limits, refuse_a_request_too_large_and_keep_serving)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = start_limited ((MusterServerLimits){.request_bytes = 10000});
  g_autofree char *handle = g_strnfill (20000, 'x');

  MUSTER_EXPECT_FALSE (served_bare_step (&f, handle, "init", &error));

  expect_refused (error, "over the limit of bytes of a request (10000; requested: 20");
  EXPECT_SAYS (error, "raise it with --max-request-bytes");
  g_autoptr (MusterArena) arena = muster_arena_new ();
  Muster__Limit *requests = served_limit (served_status (&f, arena), "request_bytes");
  MUSTER_ASSERT_TRUE (requests != NULL);
  MUSTER_EXPECT_EQ (requests->refused, 1);
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  MUSTER_EXPECT_TRUE (session != NULL);
}

/* More than there can be are to be kept free: as if all were used up. */
MUSTER_TEST (Limits, refuse_a_session_when_files_run_short)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = start_limited ((MusterServerLimits){.spare_files = G_MAXUINT / 2});
  g_autoptr (MusterSession) session = try_session (&f, &error);
  MUSTER_EXPECT_NULL (session);
  expect_refused (error, "over the limit of open files (");
  EXPECT_SAYS (error, "ulimit -n");
  g_autoptr (MusterArena) arena = muster_arena_new ();
  Muster__Limit *files = served_limit (served_status (&f, arena), "open_files");
  MUSTER_ASSERT_TRUE (files != NULL);
  MUSTER_EXPECT_EQ (files->refused, 1);
  MUSTER_EXPECT_TRUE (files->used > 0 && files->used < files->limit);
}

MUSTER_TEST (Limits, refuse_a_session_when_memory_runs_short_and_say_so_in_status)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) first = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (first);
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  for (guint i = 0; i < 20000; i++) {
    g_autofree char *name = g_strdup_printf ("node/%u", i);
    muster_graph_builder_node (b, "NoOp", name);
  }
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (b, NULL);
  const guint64 refused = muster_memory_n_refused ();
  muster_buffer_pool_empty (); /* else it makes room for more */
  muster_memory_set_limit (muster_memory_used_in_all () + (1 << 20));

  g_autoptr (MusterSession) session =
      muster_master_create_session (f.remote, graph, NULL, test_deadline (), NULL, &error);

  MUSTER_EXPECT_NULL (session);
  expect_refused (error, "over the limit of memory (");
  EXPECT_SAYS (error, "--max-memory");
  g_autoptr (MusterArena) arena = muster_arena_new ();
  Muster__Limit *memory = served_limit (served_status (&f, arena), "memory");
  MUSTER_ASSERT_TRUE (memory != NULL);
  MUSTER_EXPECT_GT (memory->refused, (gint64)refused);
  MUSTER_EXPECT_TRUE (memory->used > 0 && memory->used < memory->limit);
  g_clear_error (&error);
  MUSTER_EXPECT_TRUE (served_run (first, "init", &error));
  MUSTER_EXPECT_NO_ERROR (error);
  muster_memory_set_limit (0);
}

/* A step whose request was made while there was memory. */
typedef struct {
  MusterSession *session; /* (not owned) */
  MusterTensor *fed;      /* (owned) */
  GError *error;          /* (owned) (nullable) */
} Fetching;

static void
fetching_clear (Fetching *self)
{
  muster_tensor_unref (self->fed);
  g_clear_error (&self->error);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fetching, fetching_clear)

static gpointer
fetch_sum (gpointer data)
{
  Fetching *self = data;
  const MusterFeed feed = {"x:0", self->fed};
  const MusterStep step = {.feeds = &feed,
                           .n_feeds = 1,
                           .fetches = (const char *const[]){"sum:0"},
                           .n_fetches = 1,
                           .deadline_us = test_deadline ()};
  g_autoptr (MusterTensor) sum = NULL;
  (void)muster_session_run (self->session, &step, &sum, NULL, NULL, &self->error);
  return NULL;
}

/* With everything made that a first step makes. */
static Fetching
fetching_begin (MusterSession *session)
{
  Fetching self = {.session = session, .fed = muster_tensor_new_float (5)};
  (void)fetch_sum (&self);
  MUSTER_EXPECT_NO_ERROR (self.error);
  return self;
}

#define OF_OTHERS ((gsize)64 << 20)

/* As if others held so much that nothing is left. */
static void
use_up_memory (void)
{
  muster_buffer_pool_empty ();
  muster_memory_set_limit (muster_memory_used_in_all () + OF_OTHERS / 2);
  muster_memory_add (MUSTER_MEMORY_TENSORS, OF_OTHERS);
}

static void
release_memory (void)
{
  muster_memory_release (MUSTER_MEMORY_TENSORS, OF_OTHERS);
}

/* FALSE after half a minute. */
static gboolean
await_refusals (guint64 n)
{
  const gint64 deadline_us = test_deadline ();
  while (muster_memory_n_refused () < n &&
         muster_clock_now_us (muster_system_clock ()) < deadline_us)
    g_thread_yield ();
  return muster_memory_n_refused () >= n;
}

MUSTER_TEST (Limits, of_memory_that_others_use_up_make_a_step_wait)
{
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) first = served_session (&f, NULL);
  g_autoptr (MusterSession) other = served_session (&f, NULL);
  MUSTER_ASSERT_TRUE (first != NULL && other != NULL);
  g_auto (Fetching) fetching = fetching_begin (first);
  const guint64 refused = muster_memory_n_refused ();
  heard_begin (G_LOG_LEVEL_WARNING);
  use_up_memory ();
  GThread *thread = g_thread_new ("fetching", fetch_sum, &fetching);

  /* the server refuses again by itself before the client hears of it */
  const gboolean was_repeated =
      await_refusals (refused + 2) &&
      heard_wait ("no-memory", "*has no memory for RunStep, others use it; retrying*");
  release_memory ();
  g_thread_join (thread);

  MUSTER_EXPECT_TRUE (was_repeated);
  MUSTER_EXPECT_NO_ERROR (fetching.error);
  MUSTER_EXPECT_EQ (
      heard_count ("no-memory", "*has no memory for RunStep, others use it; retrying*"), 1);
  heard_end ();
  muster_memory_set_limit (0);
}

static gpointer
set_up_partial_run (gpointer data)
{
  Fetching *self = data;
  const MusterStep step = {.fetches = (const char *const[]){"v/read:0", "w/read:0"},
                           .n_fetches = 2};
  g_autofree char *handle = muster_session_set_up_partial_run (
      self->session, &step, test_deadline (), NULL, &self->error);
  return NULL;
}

/* A request of the same number as the one that was refused. */
MUSTER_TEST (Limits, of_memory_that_others_use_up_refuse_no_second_try)
{
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) first = served_session (&f, NULL);
  g_autoptr (MusterSession) other = served_session (&f, NULL);
  MUSTER_ASSERT_TRUE (first != NULL && other != NULL);
  g_auto (Fetching) setting_up = {.session = first};
  const guint64 refused = muster_memory_n_refused ();
  use_up_memory ();
  GThread *thread = g_thread_new ("setting-up", set_up_partial_run, &setting_up);

  const gboolean was_repeated = await_refusals (refused + 2);
  release_memory ();
  g_thread_join (thread);

  MUSTER_EXPECT_TRUE (was_repeated);
  MUSTER_EXPECT_NO_ERROR (setting_up.error);
  muster_memory_set_limit (0);
}

/* One request of that number, for a step or a part of one. */
static GError *
ask_step (Served *f, MusterStepRequest step)
{
  GError *error = NULL;
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  MUSTER_EXPECT_TRUE (muster_step_request_encode_run (&step, &rope, &error));
  g_autoptr (GBytes) request = muster_rope_flatten (&rope);
  g_autoptr (GBytes) response = served_call (f, "RunStep", request, &error);
  return error;
}

#define EXPECT_KNOWN(error)                                                                        \
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED, "request was received twice")

/* Is refused bytes. */
static gboolean
compute_with_all (MusterKernel *k G_GNUC_UNUSED, GError **error)
{
  return muster_memory_take (MUSTER_MEMORY_TENSORS, muster_memory_limit (), error);
}

/* The same, and does well without them. */
static gboolean
compute_with_less (MusterKernel *k, GError **error G_GNUC_UNUSED)
{
  g_autoptr (GError) refused = NULL;
  MUSTER_EXPECT_FALSE (compute_with_all (k, &refused));
  muster_kernel_set_output (k, 0, muster_tensor_new_float (7));
  return TRUE;
}

static const MusterOp refused_ops[] = {
    {"WithAll", " -> out:float", "", compute_with_all, 0},
    {"WithLess", " -> out:float", "", compute_with_less, MUSTER_OP_STATEFUL},
    {NULL, NULL, NULL, NULL, 0},
};

/* "all" and "less". */
static MusterSession *
refused_session (Served *f)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  muster_op_register (refused_ops);
  muster_graph_builder_node (b, "WithAll", "all");
  muster_graph_builder_node (b, "WithLess", "less");
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (b, &error);
  MusterSession *session =
      muster_master_create_session (f->remote, graph, NULL, test_deadline (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return session;
}

/* A part that was refused memory ends its step, and can't come again. */
MUSTER_TEST (Limits, of_memory_keep_the_number_of_a_part)
{
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) session = refused_session (&f);
  MUSTER_ASSERT_NOT_NULL (session);
  const char *fetch = "all:0";
  const MusterStep step = {.fetches = &fetch, .n_fetches = 1};
  g_autoptr (GError) error = NULL;
  g_autofree char *handle =
      muster_session_set_up_partial_run (session, &step, test_deadline (), NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  const MusterStepRequest part = {.session_handle = muster_session_handle (session),
                                  .step = step,
                                  .partial_run = handle,
                                  .request_id = 4711};
  muster_memory_set_limit ((guint64)1 << 30);

  g_autoptr (GError) refused = ask_step (&f, part);
  g_autoptr (GError) again = ask_step (&f, part);

  muster_memory_set_limit (0);
  expect_refused (refused, "over the limit of memory (");
  EXPECT_KNOWN (again);
}

MUSTER_TEST (Limits, of_memory_keep_the_number_of_a_step_that_has_run_with_less)
{
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) session = refused_session (&f);
  MUSTER_ASSERT_NOT_NULL (session);
  const char *fetch = "less:0";
  const MusterStepRequest request = {.session_handle = muster_session_handle (session),
                                     .step = {.fetches = &fetch, .n_fetches = 1},
                                     .request_id = 4712};
  muster_memory_set_limit ((guint64)1 << 30);

  g_autoptr (GError) first = ask_step (&f, request);
  g_autoptr (GError) again = ask_step (&f, request);

  muster_memory_set_limit (0);
  MUSTER_EXPECT_NO_ERROR (first);
  EXPECT_KNOWN (again);
}

MUSTER_TEST (Limits, of_memory_refuse_at_once_where_nobody_else_uses_it)
{
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (session);
  g_auto (Fetching) fetching = fetching_begin (session);
  use_up_memory ();
  const guint64 refused = muster_memory_n_refused ();

  (void)fetch_sum (&fetching);

  expect_refused (fetching.error, "over the limit of memory (");
  MUSTER_EXPECT_EQ (muster_memory_n_refused (), refused + 1);
  release_memory ();
  muster_memory_set_limit (0);
}

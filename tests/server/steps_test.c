// SPDX-License-Identifier: Apache-2.0
#include "tests/server/served.h"
#include "tests/server/stuck_master.h"

#include "base/protowire_private.h"
#include "base/unpack_private.h"
#include "graph/graph_builder.h"
#include "rpc/proto/master.pb-c.h"

#define N_THREADS 16
#define N_STEPS   50

typedef struct {
  MusterSession *session; /* (not owned) */
  const char *fetch;
  gint64 deadline_us;
  GCancellable *cancellable; /* (not owned) (nullable) */
  float value;
  GError *error; /* (owned) (nullable) */
} Worker;

static gpointer
one_step (gpointer data)
{
  Worker *self = data;
  g_autoptr (MusterTensor) got = NULL;
  MusterStep step = {.fetches = &self->fetch,
                     .n_fetches = 1,
                     .deadline_us = self->deadline_us != 0 ? self->deadline_us : test_deadline ()};
  self->value = -1;
  if (muster_session_run (self->session, &step, &got, NULL, self->cancellable, &self->error))
    self->value = *(const float *)muster_tensor_data (got);
  return NULL;
}

static gpointer
many_additions (gpointer data)
{
  Worker *self = data;
  for (int i = 0; i < N_STEPS && self->error == NULL; i++) {
    g_autoptr (MusterTensor) sum =
        served_fetch (self->session, "sum:0", (float)i, NULL, &self->error);
    if (sum != NULL && *(const float *)muster_tensor_data (sum) != (float)(i + 2))
      g_set_error (&self->error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL, "%d + 2 is something else",
                   i);
  }
  return NULL;
}

MUSTER_TEST (Steps, that_come_twice_are_run_once)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (session);
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  muster_proto_put_string (bytes, 1, muster_session_handle (session));
  muster_proto_put_string (bytes, 4, "init");
  muster_proto_put_uint (bytes, 8, 4711);
  g_autoptr (GBytes) request = g_bytes_new (bytes->data, bytes->len);

  g_autoptr (GBytes) first = served_call (&f, "RunStep", request, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (GBytes) second = served_call (&f, "RunStep", request, &error);

  MUSTER_EXPECT_TRUE (first != NULL);
  MUSTER_EXPECT_NULL (second);
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED,
                      "The same RunStep (Master) request was received twice.");
}

MUSTER_TEST (Steps, of_many_threads_run_side_by_side)
{
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) shared = served_session (&f, NULL);
  g_autoptr (MusterSession) own = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (shared);
  MUSTER_ASSERT_NOT_NULL (own);
  Worker workers[N_THREADS] = {0};
  GThread *threads[N_THREADS];

  for (int i = 0; i < N_THREADS; i++) {
    workers[i].session = i % 2 == 0 ? shared : own;
    threads[i] = g_thread_new ("worker", many_additions, &workers[i]);
  }
  for (int i = 0; i < N_THREADS; i++) {
    g_thread_join (threads[i]);
    MUSTER_EXPECT_NO_ERROR (workers[i].error);
    g_clear_error (&workers[i].error);
  }
}

/* --- over a master whose steps get stuck --- */

typedef struct {
  MusterStuckMaster *master;
  Served served;
  MusterSession *session; /* (nullable) */
} Fixture;

static MusterSession *
session_with_timeout (Served *served, gint64 timeout_ms)
{
  g_autoptr (GError) error = NULL;
  Tensorflow__ConfigProto message = TENSORFLOW__CONFIG_PROTO__INIT;
  message.operation_timeout_in_ms = timeout_ms;
  g_autoptr (GBytes) config = muster_pack (&message.base);
  g_autoptr (GBytes) nothing = g_bytes_new_static ("", 0);
  g_autoptr (MusterGraph) graph = muster_graph_new (nothing);
  MusterSession *session =
      muster_master_create_session (served->remote, graph, config, test_deadline (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return session;
}

static Fixture
fixture (gint64 timeout_ms)
{
  Fixture f = {.master = stuck_master_new ()};
  f.served = served_start_over (MUSTER_MASTER (f.master));
  f.session = session_with_timeout (&f.served, timeout_ms);
  return f;
}

static void
fixture_clear (Fixture *f)
{
  stuck_master_let_go (f->master);
  g_clear_object (&f->session);
  served_clear (&f->served);
  g_clear_object (&f->master);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, fixture_clear)

/* More of them than a server has threads for its calls. */
MUSTER_TEST (Steps, that_are_stuck_keep_nobody_else_waiting)
{
  enum { N = 80 };
  g_auto (Fixture) f = fixture (0);
  MUSTER_ASSERT_NOT_NULL (f.session);
  Worker stuck[N], quick = {.session = f.session, .fetch = "quick:0"};
  GThread *threads[N];
  for (int i = 0; i < N; i++) {
    stuck[i] = (Worker){.session = f.session, .fetch = "stuck:0"};
    threads[i] = g_thread_new ("stuck", one_step, &stuck[i]);
  }

  MUSTER_EXPECT_TRUE (stuck_master_wait_for (f.master, N));
  one_step (&quick);
  MUSTER_EXPECT_NO_ERROR (quick.error);
  MUSTER_EXPECT_EQ (quick.value, 42.0f);
  stuck_master_let_go (f.master);

  for (int i = 0; i < N; i++) {
    g_thread_join (threads[i]);
    MUSTER_EXPECT_NO_ERROR (stuck[i].error);
    MUSTER_EXPECT_EQ (stuck[i].value, 42.0f);
    g_clear_error (&stuck[i].error);
  }
}

MUSTER_TEST (Steps, are_cancelled_when_their_caller_gives_up)
{
  g_auto (Fixture) f = fixture (0);
  MUSTER_ASSERT_NOT_NULL (f.session);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  Worker stuck = {.session = f.session, .fetch = "stuck:0", .cancellable = cancellable};
  GThread *thread = g_thread_new ("stuck", one_step, &stuck);
  MUSTER_EXPECT_TRUE (stuck_master_wait_for (f.master, 1));

  g_cancellable_cancel (cancellable);

  g_thread_join (thread);
  MUSTER_EXPECT_ERROR (stuck.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  MUSTER_EXPECT_TRUE (stuck_master_wait_for (f.master, 0));
  g_clear_error (&stuck.error);
}

MUSTER_TEST (Steps, end_on_the_master_at_their_callers_deadline)
{
  g_auto (Fixture) f = fixture (0);
  MUSTER_ASSERT_NOT_NULL (f.session);
  Worker stuck = {.session = f.session,
                  .fetch = "stuck:0",
                  .deadline_us =
                      muster_clock_now_us (muster_system_clock ()) + 50 * MUSTER_MILLISECOND};

  one_step (&stuck);

  MUSTER_EXPECT_ERROR (stuck.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_EXPECT_TRUE (stuck_master_wait_for (f.master, 0));
  g_clear_error (&stuck.error);
}

MUSTER_TEST (Steps, are_bounded_by_their_sessions_operation_timeout)
{
  g_auto (Fixture) f = fixture (30);
  MUSTER_ASSERT_NOT_NULL (f.session);
  Worker stuck = {.session = f.session, .fetch = "stuck:0", .deadline_us = MUSTER_WAIT_FOREVER};

  one_step (&stuck);

  MUSTER_EXPECT_ERROR (stuck.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  g_clear_error (&stuck.error);
}

MUSTER_TEST (Steps, that_bring_a_timeout_are_not_bounded_by_their_sessions)
{
  g_autoptr (GError) error = NULL;
  g_auto (Fixture) f = fixture (3600000);
  MUSTER_ASSERT_NOT_NULL (f.session);
  Tensorflow__RunOptions message = TENSORFLOW__RUN_OPTIONS__INIT;
  message.timeout_in_ms = 30;
  g_autoptr (GBytes) options = muster_pack (&message.base);
  const char *fetch = "stuck:0";
  MusterTensor *none = NULL;
  MusterStep step = {
      .fetches = &fetch, .n_fetches = 1, .options = options, .deadline_us = MUSTER_WAIT_FOREVER};

  MUSTER_EXPECT_FALSE (muster_session_run (f.session, &step, &none, NULL, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
}

MUSTER_TEST (Steps, get_tensorflows_words_when_their_session_is_closed)
{
  g_autoptr (GError) error = NULL;
  g_auto (Fixture) f = fixture (0);
  MUSTER_ASSERT_NOT_NULL (f.session);
  Worker stuck = {.session = f.session, .fetch = "stuck:0"};
  GThread *thread = g_thread_new ("stuck", one_step, &stuck);
  MUSTER_EXPECT_TRUE (stuck_master_wait_for (f.master, 1));

  MUSTER_EXPECT_TRUE (muster_session_close (f.session, test_deadline (), NULL, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  g_thread_join (thread);
  MUSTER_EXPECT_ERROR (stuck.error, MUSTER_ERROR, MUSTER_ERROR_CANCELLED);
  MUSTER_EXPECT_STREQ (stuck.error != NULL ? stuck.error->message : NULL,
                       "Step was cancelled by an explicit call to `Session::Close()`.");
  g_clear_error (&stuck.error);
}

MUSTER_TEST (Steps, under_way_are_ended_when_the_server_stops)
{
  enum { N = 8 };
  g_auto (Fixture) f = fixture (0);
  MUSTER_ASSERT_NOT_NULL (f.session);
  Worker stuck[N];
  GThread *threads[N];
  for (int i = 0; i < N; i++) {
    stuck[i] = (Worker){.session = f.session, .fetch = "stuck:0"};
    threads[i] = g_thread_new ("stuck", one_step, &stuck[i]);
  }
  MUSTER_EXPECT_TRUE (stuck_master_wait_for (f.master, N));

  muster_server_stop (f.served.server, 0);

  MUSTER_EXPECT_TRUE (stuck_master_wait_for (f.master, 0));
  for (int i = 0; i < N; i++) {
    g_thread_join (threads[i]);
    MUSTER_EXPECT_TRUE (stuck[i].error != NULL);
    g_clear_error (&stuck[i].error);
  }
}

/* A megabyte that stands there five thousand times takes little memory, but no message holds it. */
MUSTER_TEST (Steps, are_refused_an_answer_that_no_message_holds)
{
  g_auto (Served) f = served_start ();
  g_autoptr (GError) error = NULL;
  g_autofree char *text = g_strnfill (1000 * 1000, 'a');
  g_autoptr (MusterTensor) long_string = muster_tensor_new_string (text);
  g_autoptr (MusterTensor) times = muster_tensor_new (MUSTER_INT32, 1, (const gint64[]){1});
  *(gint32 *)muster_tensor_data_mutable (times) = 5000;
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  muster_graph_builder_constant (b, "long", long_string);
  muster_graph_builder_constant (b, "times", times);
  muster_graph_builder_node (b, "Fill", "filled");
  muster_graph_builder_input (b, "times");
  muster_graph_builder_input (b, "long");
  muster_graph_builder_attr_type (b, "T", MUSTER_STRING);
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (b, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterSession) session =
      muster_master_create_session (f.remote, graph, NULL, test_deadline (), NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  g_autoptr (MusterTensor) filled =
      muster_session_fetch (session, "filled:0", test_deadline (), NULL, &error);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED);
  g_clear_error (&error);
  g_autoptr (MusterTensor) small =
      muster_session_fetch (session, "times:0", test_deadline (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

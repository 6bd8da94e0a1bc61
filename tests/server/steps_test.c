// SPDX-License-Identifier: Apache-2.0
#include "tests/server/served.h"

#include "base/protowire.h"
#include "base/unpack.h"
#include "wire/proto/master.pb-c.h"

#define N_THREADS 16
#define N_STEPS   50

typedef struct {
  MusterSession *session; /* (not owned) */
  const char *fetch;
  float x;
  GCancellable *cancellable; /* (not owned) (nullable) */
  float value;
  GError *error; /* (owned) (nullable) */
} Worker;

static gpointer
one_step (gpointer data)
{
  Worker *self = data;
  g_autoptr (MusterTensor) got =
      served_fetch (self->session, self->fetch, self->x, self->cancellable, &self->error);
  self->value = got != NULL ? *(const float *)muster_tensor_data (got) : -1;
  return NULL;
}

static gpointer
many_steps (gpointer data)
{
  Worker *self = data;
  for (int i = 0; i < N_STEPS && self->error == NULL; i++) {
    self->x = (float)i;
    one_step (self);
    if (self->error == NULL && self->value != (float)(i + 2))
      g_set_error (&self->error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL, "%d + 2 is not %g", i,
                   (double)self->value);
  }
  return NULL;
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
    workers[i] = (Worker){.session = i % 2 == 0 ? shared : own, .fetch = "sum:0"};
    threads[i] = g_thread_new ("worker", many_steps, &workers[i]);
  }
  for (int i = 0; i < N_THREADS; i++) {
    g_thread_join (threads[i]);
    MUSTER_EXPECT_NO_ERROR (workers[i].error);
    g_clear_error (&workers[i].error);
  }
}

/* More of them than any server has threads for its calls. */
MUSTER_TEST (Steps, that_wait_at_a_queue_keep_nobody_else_waiting)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (session);
  enum { N = 40 };
  Worker waiting[N];
  GThread *threads[N];
  for (int i = 0; i < N; i++) {
    waiting[i] = (Worker){.session = session, .fetch = "dequeue:0"};
    threads[i] = g_thread_new ("waiting", one_step, &waiting[i]);
  }

  float total = 0;
  g_autoptr (MusterTensor) sum = served_fetch (session, "sum:0", 1, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  for (int i = 0; i < N && error == NULL; i++) {
    g_autoptr (MusterTensor) x = muster_tensor_new_float (1);
    const MusterFeed feed = {"x:0", x};
    const char *target = "enqueue";
    MusterStep step = {.feeds = &feed,
                       .n_feeds = 1,
                       .targets = &target,
                       .n_targets = 1,
                       .deadline_us = patience ()};
    MUSTER_EXPECT_TRUE (muster_session_run (session, &step, NULL, NULL, NULL, &error));
    MUSTER_EXPECT_NO_ERROR (error);
  }
  for (int i = 0; i < N; i++) {
    g_thread_join (threads[i]);
    MUSTER_EXPECT_NO_ERROR (waiting[i].error);
    g_clear_error (&waiting[i].error);
    total += waiting[i].value;
  }
  MUSTER_EXPECT_EQ (total, (float)N);
}

MUSTER_TEST (Steps, are_cancelled_when_their_caller_gives_up)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (session);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  Worker waiting = {.session = session, .fetch = "dequeue:0", .cancellable = cancellable};
  GThread *thread = g_thread_new ("waiting", one_step, &waiting);

  g_cancellable_cancel (cancellable);
  g_thread_join (thread);

  MUSTER_EXPECT_ERROR (waiting.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&waiting.error);
}

/* What the server keeps waiting would eat the queue's next element. */
MUSTER_TEST (Steps, that_ran_out_of_time_leave_the_queues_next_element_alone)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (session);
  gint64 soon = muster_clock_now_us (muster_system_clock ()) + 50 * MUSTER_MILLISECOND;

  g_autoptr (MusterTensor) none = muster_session_fetch (session, "dequeue:0", soon, NULL, &error);
  MUSTER_EXPECT_NULL (none);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  g_clear_error (&error);

  g_autoptr (MusterTensor) x = muster_tensor_new_float (9);
  const MusterFeed feed = {"x:0", x};
  const char *target = "enqueue";
  MusterStep put = {
      .feeds = &feed, .n_feeds = 1, .targets = &target, .n_targets = 1, .deadline_us = patience ()};
  MUSTER_ASSERT_TRUE (muster_session_run (session, &put, NULL, NULL, NULL, &error));
  g_autoptr (MusterTensor) got =
      muster_session_fetch (session, "dequeue:0", patience (), NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (*(const float *)muster_tensor_data (got), 9.0f);
}

static MusterSession *
session_with_timeout (Served *f, gint64 timeout_ms, GError **error)
{
  Tensorflow__ConfigProto message = TENSORFLOW__CONFIG_PROTO__INIT;
  message.operation_timeout_in_ms = timeout_ms;
  g_autoptr (GBytes) config = muster_pack (&message.base);
  g_autoptr (MusterGraph) graph = served_graph (NULL);
  return muster_master_create_session (f->remote, graph, config, patience (), NULL, error);
}

MUSTER_TEST (Steps, are_bounded_by_their_sessions_operation_timeout)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) session = session_with_timeout (&f, 30, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  g_autoptr (MusterTensor) none =
      muster_session_fetch (session, "dequeue:0", MUSTER_WAIT_FOREVER, NULL, &error);

  MUSTER_EXPECT_NULL (none);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
}

MUSTER_TEST (Steps, that_bring_a_timeout_are_not_bounded_by_their_sessions)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) session = session_with_timeout (&f, 3600000, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  Tensorflow__RunOptions message = TENSORFLOW__RUN_OPTIONS__INIT;
  message.timeout_in_ms = 30;
  g_autoptr (GBytes) options = muster_pack (&message.base);
  const char *fetch = "dequeue:0";
  MusterTensor *none = NULL;
  MusterStep step = {
      .fetches = &fetch, .n_fetches = 1, .options = options, .deadline_us = MUSTER_WAIT_FOREVER};

  MUSTER_EXPECT_FALSE (muster_session_run (session, &step, &none, NULL, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
}

/* A step that is under way when its session is closed. */
MUSTER_TEST (Steps, get_tensorflows_words_when_their_session_is_closed)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (session);
  Worker waiting = {.session = session, .fetch = "dequeue:0"};
  GThread *thread = g_thread_new ("waiting", one_step, &waiting);
  /* It waits, or it doesn't yet: then it finds its session closed. */
  g_autoptr (MusterTensor) sum = served_fetch (session, "sum:0", 1, NULL, &error);

  MUSTER_EXPECT_TRUE (muster_session_close (session, patience (), NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  g_thread_join (thread);

  MUSTER_ASSERT_TRUE (waiting.error != NULL);
  if (!muster_error_is (waiting.error, MUSTER_ERROR_ABORTED)) {
    MUSTER_EXPECT_ERROR (waiting.error, MUSTER_ERROR, MUSTER_ERROR_CANCELLED);
    MUSTER_EXPECT_TRUE (strstr (waiting.error->message, "Step was cancelled by an explicit call to "
                                                        "`Session::Close()`.") != NULL);
  }
  g_clear_error (&waiting.error);
}

MUSTER_TEST (Steps, under_way_are_ended_when_the_server_stops)
{
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (session);
  Worker waiting[8];
  GThread *threads[8];
  for (int i = 0; i < 8; i++) {
    waiting[i] = (Worker){.session = session, .fetch = "dequeue:0"};
    threads[i] = g_thread_new ("waiting", one_step, &waiting[i]);
  }

  muster_server_stop (f.server, 0);

  for (int i = 0; i < 8; i++) {
    g_thread_join (threads[i]);
    MUSTER_EXPECT_TRUE (waiting[i].error != NULL);
    g_clear_error (&waiting[i].error);
  }
}

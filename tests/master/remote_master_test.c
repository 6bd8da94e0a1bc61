// SPDX-License-Identifier: Apache-2.0
#include "master/remote/remote_master_private.h"
#include "master/remote/target.h"
#include "tests/deadline.h"
#include "tests/gtest_shim.h"
#include "tests/master/tiny_master.h"

#include <string.h>

static MusterSession *
create_session (TinyMaster *f)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = g_bytes_new_static ("\x0a\x03\x0a\x01"
                                                 "a",
                                                 5);
  g_autoptr (GBytes) config = g_bytes_new_static ("\x48\x01", 2);
  g_autoptr (MusterGraph) graph = muster_graph_new (bytes);
  MusterSession *session =
      muster_master_create_session (f->master, graph, config, test_deadline (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return session;
}

/* What the server's threads have noted is read under its lock, while one of these is in scope. */
static GMutexLocker *
lock (TinyMaster *f)
{
  return g_mutex_locker_new (&f->lock);
}

static gint64
last_request_id (TinyMaster *f)
{
  g_autoptr (GMutexLocker) locked = lock (f);
  return f->request_id;
}

static guint
n_containers (TinyMaster *f)
{
  g_autoptr (GMutexLocker) locked = lock (f);
  return g_strv_length (f->containers);
}

static char *
pop_closed (TinyMaster *f)
{
  return g_async_queue_timeout_pop (f->closed, 30 * MUSTER_SECOND);
}

MUSTER_TEST (RemoteMaster, creates_a_session_of_the_graphs_very_bytes)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);

  g_autoptr (MusterSession) session = create_session (&f);

  g_autoptr (GMutexLocker) locked = lock (&f);
  MUSTER_EXPECT_STREQ (muster_session_handle (session), "tiny");
  MUSTER_EXPECT_TRUE (g_bytes_equal (f.graph, muster_graph_bytes (muster_session_graph (session))));
  MUSTER_EXPECT_MEMEQ (g_bytes_get_data (f.config, NULL), g_bytes_get_size (f.config), "\x48\x01",
                       2);
}

/* Creates sessions of one graph that large, and expects so many questions and graphs. */
static void
expect_sessions (TinyMaster *f, gsize size, guint n, gint n_asked, gint n_sent)
{
  g_autoptr (GBytes) bytes = g_bytes_new_take (g_malloc0 (size), size);
  g_autoptr (MusterGraph) graph = muster_graph_new (bytes);
  const gint asked = g_atomic_int_get (&f->n_asked), sent = g_atomic_int_get (&f->n_sent);
  for (guint i = 0; i < n; i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterSession) session =
        muster_master_create_session (f->master, graph, NULL, test_deadline (), NULL, &error);
    MUSTER_EXPECT_NO_ERROR (error);
    MUSTER_EXPECT_TRUE (session != NULL && muster_session_graph (session) == graph);
  }
  MUSTER_EXPECT_EQ (g_atomic_int_get (&f->n_asked) - asked, n_asked);
  MUSTER_EXPECT_EQ (g_atomic_int_get (&f->n_sent) - sent, n_sent);
}

MUSTER_TEST (RemoteMaster, sends_a_large_graph_only_where_the_master_doesnt_have_it)
{
  g_auto (TinyMaster) f = {.known_answer = MUSTER_ERROR_NOT_FOUND};
  tiny_master_start (&f);

  expect_sessions (&f, 100 << 10, 1, 1, 1);
  g_atomic_int_set (&f.known_answer, 0);
  expect_sessions (&f, 100 << 10, 3, 3, 0);
  expect_sessions (&f, 1 << 10, 2, 0, 2); /* a small one is sent */
}

MUSTER_TEST (RemoteMaster, asks_a_master_that_keeps_no_graphs_once)
{
  /* or one behind a proxy that lets TensorFlow's services through alone */
  static const gint answers[] = {MUSTER_ERROR_UNIMPLEMENTED, MUSTER_ERROR_PERMISSION_DENIED};

  for (gsize i = 0; i < G_N_ELEMENTS (answers); i++) {
    g_auto (TinyMaster) f = {.known_answer = answers[i]};
    tiny_master_start (&f);
    expect_sessions (&f, 100 << 10, 3, 1, 3);
  }
}

MUSTER_TEST (RemoteMaster, passes_on_why_there_is_no_session_of_a_known_graph)
{
  g_auto (TinyMaster) f = {.known_answer = MUSTER_ERROR_RESOURCE_EXHAUSTED};
  g_autoptr (GError) error = NULL;
  tiny_master_start (&f);
  g_autoptr (GBytes) bytes = g_bytes_new_take (g_malloc0 (100 << 10), 100 << 10);
  g_autoptr (MusterGraph) graph = muster_graph_new (bytes);

  MUSTER_EXPECT_TRUE (
      muster_master_create_session (f.master, graph, NULL, test_deadline (), NULL, &error) == NULL);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED);
  MUSTER_EXPECT_EQ (g_atomic_int_get (&f.n_sent), 0);
}

MUSTER_TEST (RemoteMaster, lists_local_and_remote_devices)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (GError) error = NULL;

  g_autoptr (GPtrArray) devices =
      muster_master_list_devices (f.master, test_deadline (), NULL, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_ASSERT_EQ (devices->len, 2u);
  const MusterDevice *first = devices->pdata[0];
  const MusterDevice *second = devices->pdata[1];
  MUSTER_EXPECT_STREQ (first->name, "/job:worker/replica:0/task:0/device:CPU:0");
  MUSTER_EXPECT_STREQ (first->type, "CPU");
  MUSTER_EXPECT_EQ (first->memory_limit, 1 << 28);
  MUSTER_EXPECT_EQ (first->incarnation, G_MAXUINT64 - 1);
  MUSTER_EXPECT_STREQ (second->name, "/job:ps/replica:0/task:0/device:CPU:0");
}

MUSTER_TEST (RemoteMaster, resets_the_containers_it_is_given_or_all)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (GError) error = NULL;
  static const char *const containers[] = {"a", "b", NULL};

  MUSTER_EXPECT_TRUE (muster_master_reset (f.master, containers, test_deadline (), NULL, &error));
  MUSTER_EXPECT_EQ (n_containers (&f), 2u);
  MUSTER_EXPECT_TRUE (muster_master_reset (f.master, NULL, test_deadline (), NULL, &error));
  MUSTER_EXPECT_EQ (n_containers (&f), 0u);
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (RemoteMaster, without_a_server_says_so_at_once)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) master = muster_remote_master_new ("127.0.0.1:1", &error);
  gint64 deadline_us = test_deadline ();
  MUSTER_EXPECT_NULL (muster_master_list_devices (master, deadline_us, NULL, &error));

  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE,
                      "no answer from '127.0.0.1:1'");
}

MUSTER_TEST (RemoteSession, runs_a_step)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (MusterSession) session = create_session (&f);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) fed = muster_tensor_new_float (3);
  MusterFeed feed = {"x:0", fed};
  MusterTensor *fetched[2] = {0};
  MusterStep step = {
      .feeds = &feed,
      .n_feeds = 1,
      .fetches = (const char *const[]){"y:0", "z:0"},
      .n_fetches = 2,
  };

  MUSTER_EXPECT_TRUE (muster_session_run (session, &step, fetched, NULL, NULL, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  for (int i = 0; i < 2; i++) {
    MUSTER_EXPECT_TRUE (muster_tensor_equal (fetched[i], fed));
    muster_tensor_unref (fetched[i]);
  }
  g_mutex_lock (&f.lock);
  MUSTER_EXPECT_TRUE (f.options == NULL); /* no deadline, no timeout */
  g_mutex_unlock (&f.lock);
  gint64 first_id = last_request_id (&f);
  MUSTER_EXPECT_TRUE (muster_session_run_op (session, "noop", MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_NE (first_id, 0);
  MUSTER_EXPECT_NE (last_request_id (&f), 0);
  MUSTER_EXPECT_NE (last_request_id (&f), first_id);
}

MUSTER_TEST (RemoteSession, gives_the_master_a_steps_time_limit)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (MusterSession) session = create_session (&f);
  g_autoptr (GError) error = NULL;

  MUSTER_EXPECT_TRUE (muster_session_run_op (session, "noop", test_deadline (), NULL, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (GMutexLocker) locked = lock (&f);
  MUSTER_ASSERT_NOT_NULL (f.options);
  const guint8 *options = g_bytes_get_data (f.options, NULL);
  MUSTER_EXPECT_EQ (options[0], 2 << 3);
}

MUSTER_TEST (RemoteSession, bounds_a_step_by_the_timeout_in_its_options)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (MusterSession) session = create_session (&f);
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) options = g_bytes_new_static ("\x08\x03\x10\xe8\x07", 5); /* trace, 1 s */
  static const char *const target = "hang";
  MusterStep step = {.targets = &target, .n_targets = 1, .options = options};

  MUSTER_EXPECT_FALSE (muster_session_run (session, &step, NULL, NULL, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  g_autoptr (GMutexLocker) locked = lock (&f);
  MUSTER_EXPECT_TRUE (g_bytes_equal (f.options, options)); /* as they were given */
}

MUSTER_TEST (RemoteSession, gives_the_steps_own_error)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (MusterSession) session = create_session (&f);
  g_autoptr (GError) error = NULL;

  MUSTER_EXPECT_FALSE (muster_session_run_op (session, "fail", test_deadline (), NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_STREQ (error->message, "Attempting to use uninitialized value a");
}

MUSTER_TEST (RemoteSession, cancels_a_step)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (MusterSession) session = create_session (&f);
  g_autoptr (GError) error = NULL;
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  GThread *canceller =
      g_thread_new ("canceller", (GThreadFunc)(void (*) (void))g_cancellable_cancel, cancellable);

  MUSTER_EXPECT_FALSE (
      muster_session_run_op (session, "hang", test_deadline (), cancellable, &error));

  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_thread_join (canceller);
}

MUSTER_TEST (RemoteSession, extends_with_the_version_that_the_master_gave)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (MusterSession) session = create_session (&f);
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = g_bytes_new_static ("\x0a\x03\x0a\x01"
                                                 "b",
                                                 5);
  g_autoptr (MusterGraph) extra = muster_graph_new (bytes);

  for (int i = 0; i < 3; i++) {
    MUSTER_EXPECT_TRUE (muster_session_extend (session, extra, test_deadline (), NULL, &error));
    MUSTER_ASSERT_NO_ERROR (error);
  }
}

MUSTER_TEST (RemoteSession, closes_once)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (MusterSession) session = create_session (&f);
  g_autoptr (GError) error = NULL;

  MUSTER_EXPECT_TRUE (muster_session_close (session, test_deadline (), NULL, &error));
  MUSTER_EXPECT_TRUE (muster_session_close (session, test_deadline (), NULL, &error));
  muster_session_close_quietly (session);

  MUSTER_EXPECT_NO_ERROR (error);
  g_autofree char *closed = pop_closed (&f);
  MUSTER_EXPECT_STREQ (closed, "tiny");
  MUSTER_EXPECT_EQ (g_async_queue_length (f.closed), 0);
}

MUSTER_TEST (RemoteSession, that_the_master_lost_counts_as_closed)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (MusterSession) session = create_session (&f);
  g_autoptr (GError) error = NULL;
  g_atomic_int_set (&f.is_lost, TRUE);

  MUSTER_EXPECT_FALSE (muster_session_run_op (session, "a", test_deadline (), NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED);
  g_clear_error (&error);
  MUSTER_EXPECT_TRUE (muster_session_close (session, test_deadline (), NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

/* TensorFlow's master, while a reset closes the session: its tasks are to come back. */
MUSTER_TEST (RemoteSession, that_is_closed_under_its_steps_is_lost)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (MusterSession) session = create_session (&f);
  g_autoptr (GError) error = NULL;

  MUSTER_EXPECT_FALSE (muster_session_run_op (session, "closed", test_deadline (), NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED);
  g_clear_error (&error);
  MUSTER_EXPECT_FALSE (muster_session_run_op (session, "fail", test_deadline (), NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
}

#define CANCELLED_AT_CHIEF                                                                         \
  "\n=====================\nCANCELLED: From /job:chief/replica:0/task:0:\n"                        \
  "RecvFromRemoteAsync is cancelled.\n\t [[{{node MatMul/ReadVariableOp_S17}}]]\n"

/* TensorFlow's list of what its tasks said has the code of the first. */
MUSTER_TEST (RemoteSession, that_one_task_lost_is_lost_though_another_only_cancelled_its_part)
{
  static const struct {
    const char *list;
    MusterError code;
  } cases[] = {
      {CANCELLED_AT_CHIEF "ABORTED: From /job:ps/replica:0/task:0:\nThe same RunGraph (Worker) "
                          "request was received twice.\n=====================\n",
       MUSTER_ERROR_ABORTED},
      {CANCELLED_AT_CHIEF "UNAVAILABLE: From /job:ps/replica:0/task:0:\nSocket closed\n",
       MUSTER_ERROR_ABORTED},
      {CANCELLED_AT_CHIEF "Recent warning and error logs:\n  ABORTED: From /job:ps/replica:0\n",
       MUSTER_ERROR_CANCELLED},
  };
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (MusterSession) session = create_session (&f);

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    MUSTER_EXPECT_FALSE (
        muster_session_run_op (session, cases[i].list, test_deadline (), NULL, &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, cases[i].code);
  }
}

MUSTER_TEST (RemoteSession, that_is_closed_under_a_call_is_lost_whatever_the_call)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (MusterSession) session = create_session (&f);
  g_autoptr (MusterGraph) extra = muster_graph_ref (muster_session_graph (session));
  const MusterFeed feed = {"x:0", NULL};
  static const char *const fetch = "y:0";
  const MusterStep step = {.feeds = &feed, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1};
  const gint64 deadline_us = test_deadline ();
  const gint64 callable = muster_session_make_callable (session, &step, deadline_us, NULL, NULL);
  GError *errors[6] = {NULL};
  MusterTensor *none = NULL;
  MUSTER_ASSERT_TRUE (callable != 0);
  g_atomic_int_set (&f.is_closing, TRUE);

  (void)muster_session_run_op (session, "a", deadline_us, NULL, &errors[0]);
  (void)muster_session_extend (session, extra, deadline_us, NULL, &errors[1]);
  (void)muster_session_set_up_partial_run (session, &step, deadline_us, NULL, &errors[2]);
  (void)muster_session_make_callable (session, &step, deadline_us, NULL, &errors[3]);
  (void)muster_session_run_callable (session, callable, NULL, 0, deadline_us, &none, NULL, NULL,
                                     &errors[4]);
  (void)muster_session_release_callable (session, callable, deadline_us, NULL, &errors[5]);

  for (gsize i = 0; i < G_N_ELEMENTS (errors); i++) {
    MUSTER_EXPECT_ERROR (errors[i], MUSTER_ERROR, MUSTER_ERROR_ABORTED);
    g_clear_error (&errors[i]);
  }
}

MUSTER_TEST (RemoteSession, takes_a_deadline_of_0_for_one_that_has_passed)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (MusterSession) session = create_session (&f);
  g_autoptr (MusterGraph) extra = muster_graph_ref (muster_session_graph (session));
  static const char *const fetch = "y:0";
  const MusterStep step = {.fetches = &fetch, .n_fetches = 1};
  GError *errors[6] = {NULL};

  MUSTER_EXPECT_FALSE (muster_session_run_op (session, "a", 0, NULL, &errors[0]));
  MUSTER_EXPECT_NULL (muster_session_fetch (session, "y:0", 0, NULL, &errors[1]));
  MUSTER_EXPECT_FALSE (muster_session_extend (session, extra, 0, NULL, &errors[2]));
  MUSTER_EXPECT_NULL (muster_session_set_up_partial_run (session, &step, 0, NULL, &errors[3]));
  MUSTER_EXPECT_EQ (muster_session_make_callable (session, &step, 0, NULL, &errors[4]), 0);
  MUSTER_EXPECT_FALSE (muster_session_close (session, 0, NULL, &errors[5]));

  for (gsize i = 0; i < G_N_ELEMENTS (errors); i++) {
    MUSTER_EXPECT_ERROR (errors[i], MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
    g_clear_error (&errors[i]);
  }
}

MUSTER_TEST (RemoteSession, sets_a_partial_run_up_with_the_names_of_its_feeds)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (MusterSession) session = create_session (&f);
  g_autoptr (GError) error = NULL;
  const MusterFeed feed = {"x:0", NULL};
  const MusterStep step = {.feeds = &feed, .n_feeds = 1};

  g_autofree char *handle =
      muster_session_set_up_partial_run (session, &step, test_deadline (), NULL, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (handle, "x:0");
}

MUSTER_TEST (RemoteSession, that_is_dropped_is_closed_behind_the_scenes)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  MusterSession *session = create_session (&f);

  g_object_unref (session);
  g_clear_object (&f.master);

  g_autofree char *closed = pop_closed (&f);
  MUSTER_EXPECT_STREQ (closed, "tiny");
}

MUSTER_TEST (RemoteSession, is_unavailable_when_its_master_has_gone)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (MusterSession) session = create_session (&f);
  g_autoptr (GError) error = NULL;
  muster_rpc_server_stop (f.server, 0);

  MUSTER_EXPECT_FALSE (muster_session_run_op (session, "a", test_deadline (), NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);
  muster_session_close_quietly (session); /* and this doesn't hang */
}

MUSTER_TEST (RemoteSession, makes_runs_and_releases_callables)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (MusterSession) session = create_session (&f);
  g_autoptr (GError) error = NULL;
  MusterFeed feed = {"x:0", NULL};
  static const char *const fetch = "y:0";
  MusterStep step = {.feeds = &feed, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1};
  gint64 deadline_us = test_deadline ();

  gint64 first = muster_session_make_callable (session, &step, deadline_us, NULL, &error);
  gint64 second = muster_session_make_callable (session, &step, deadline_us, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_NE (first, 0); /* though the master's own number is 0 */
  MUSTER_EXPECT_NE (second, first);

  g_autoptr (MusterTensor) fed = muster_tensor_new_float (4);
  g_autoptr (MusterTensor) fetched = NULL;
  MUSTER_EXPECT_TRUE (muster_session_run_callable (session, first, &fed, 1, deadline_us, &fetched,
                                                   NULL, NULL, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (muster_tensor_equal (fetched, fed));

  g_autoptr (MusterTensor) number = NULL;
  MUSTER_EXPECT_TRUE (muster_session_run_callable (session, second, NULL, 0, deadline_us, &number,
                                                   NULL, NULL, &error));
  g_autoptr (MusterTensor) wanted = muster_tensor_new_int64 (1);
  MUSTER_EXPECT_TRUE (muster_tensor_equal (number, wanted));

  MUSTER_EXPECT_TRUE (muster_session_release_callable (session, second, deadline_us, NULL, &error));
  g_mutex_lock (&f.lock);
  MUSTER_EXPECT_EQ (f.released, 1);
  g_mutex_unlock (&f.lock);
  MUSTER_EXPECT_FALSE (muster_session_release_callable (session, 99, deadline_us, NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

MUSTER_TEST (RemoteWatch, brings_readiness_and_then_why_it_ended)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (MusterSession) session = create_session (&f);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterWatch) watch = muster_session_watch (
      session, &(MusterWatchFor){.ready_for_local_init_op = "gate", .ready_op = NULL},
      test_deadline (), &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_auto (MusterReadiness) first = {0};
  g_auto (MusterReadiness) second = {0};
  g_auto (MusterReadiness) none = {0};

  MUSTER_EXPECT_TRUE (muster_watch_next (watch, &first, NULL, &error));
  MUSTER_EXPECT_TRUE (muster_watch_next (watch, &second, NULL, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (muster_watch_next (watch, &none, NULL, &error));

  MUSTER_EXPECT_FALSE (first.gate_open);
  MUSTER_EXPECT_FALSE (first.is_ready);
  MUSTER_EXPECT_STREQ (first.why_gate, "a and b are uninitialized");
  MUSTER_EXPECT_TRUE (first.why_not_ready == NULL);
  MUSTER_EXPECT_EQ (g_strv_length (first.missing), 2u);
  MUSTER_EXPECT_TRUE (second.gate_open);
  MUSTER_EXPECT_TRUE (second.is_ready);
  MUSTER_EXPECT_TRUE (second.missing == NULL);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED);
}

MUSTER_TEST (RemoteWatch, reports_the_chief_and_bounds_what_it_receives)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (MusterSession) session = create_session (&f);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterWatch) watch = muster_session_watch (
      session, &(MusterWatchFor){.ready_op = "ready", .model = "digits", .task = "worker:3"},
      test_deadline (), &error);
  g_auto (MusterReadiness) first = {0};
  g_auto (MusterReadiness) second = {0};

  MUSTER_EXPECT_TRUE (muster_watch_next (watch, &first, NULL, &error));
  MUSTER_EXPECT_TRUE (muster_watch_next (watch, &second, NULL, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (first.keeps_announcements);
  MUSTER_EXPECT_STREQ (first.graph_difference, "node 'a' is missing");
  MUSTER_ASSERT_NOT_NULL (first.chief);
  MUSTER_EXPECT_STREQ (first.chief->model, "digits");
  MUSTER_EXPECT_STREQ (first.chief->task, "worker:3");
  MUSTER_EXPECT_TRUE (strchr (first.chief->who, ':') != NULL);
  MUSTER_EXPECT_EQ (first.chief->phase, MUSTER_CHIEF_UNKNOWN);
  MUSTER_EXPECT_EQ (first.chief->phase_age_us, 0);
  MUSTER_EXPECT_EQ (first.chief->epoch, 7);
  MUSTER_EXPECT_EQ (first.chief->durable_step, 10);
  MUSTER_EXPECT_STREQ (first.chief->durable, "model.ckpt-10");
  MUSTER_EXPECT_EQ (strlen (first.chief->detail), 1024u);
  MUSTER_EXPECT_TRUE (first.chief->alive);
  MUSTER_EXPECT_EQ (first.min_tasks, 0u); /* not sent */
  MUSTER_EXPECT_EQ (second.min_tasks, 0u);
  MUSTER_EXPECT_FALSE (second.keeps_announcements);
  MUSTER_EXPECT_NULL (second.chief);
}

MUSTER_TEST (RemoteSession, that_is_given_up_is_closed_in_the_time_given)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (MusterSession) session = create_session (&f);
  g_atomic_int_set (&f.is_deaf, TRUE);

  muster_session_close_quietly_within (session, MUSTER_SECOND);

  g_autofree char *closed = pop_closed (&f);
  MUSTER_EXPECT_STREQ (closed, "tiny");
}

/* A parameter server that is away keeps TensorFlow's CloseSession for long. */
MUSTER_TEST (RemoteSession, that_is_lost_is_closed_without_waiting_for_the_answer)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (MusterSession) session = create_session (&f);
  g_atomic_int_set (&f.is_deaf, TRUE);

  muster_session_give_up (session);

  g_autofree char *closed = pop_closed (&f);
  MUSTER_EXPECT_STREQ (closed, "tiny");
  MusterRpcCall *call = g_async_queue_timeout_pop (f.hanging, 30 * MUSTER_SECOND);
  MUSTER_ASSERT_TRUE (call != NULL);
  MUSTER_EXPECT_FALSE (g_cancellable_is_cancelled (muster_rpc_call_cancellable (call)));
  g_async_queue_push (f.hanging, call);
}

static void
expect_refused (const char *target, MusterRpcCredentials *credentials, const char *text)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) master = muster_master_new_secured (target, credentials, &error);
  MUSTER_EXPECT_NULL (master);
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, text);
}

MUSTER_TEST (RemoteMaster, speaks_tls_where_its_target_says_so_and_nowhere_else)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterRpcCredentials) tls =
      muster_rpc_credentials_new (&(MusterRpcSecurity){.tls = TRUE}, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autofree char *token_file = g_build_filename (muster_test_tmpdir (), "token", NULL);
  g_file_set_contents_full (token_file, "secret", -1, G_FILE_SET_CONTENTS_NONE, 0600, NULL);
  g_autoptr (MusterRpcCredentials) token =
      muster_rpc_credentials_new (&(MusterRpcSecurity){.token_file = token_file}, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  g_autoptr (MusterMaster) secured =
      muster_master_new_secured ("grpcs://localhost:2222", tls, &error);
  g_autoptr (MusterMaster) by_system = muster_master_new_for_target ("grpcs://[::1]:2222", &error);
  g_autoptr (MusterMaster) plain =
      muster_master_new_secured ("grpc://localhost:2222", token, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (muster_master_target (secured), "grpcs://localhost:2222");
  MUSTER_EXPECT_STREQ (muster_master_target (by_system), "grpcs://[::1]:2222");
  MUSTER_EXPECT_STREQ (muster_master_target (plain), "grpc://localhost:2222");
  expect_refused ("grpc://localhost:2222", tls, "use 'grpcs://localhost:2222'");
  expect_refused ("localhost:2222", tls, "use 'grpcs://localhost:2222'");
  expect_refused ("grpcs://localhost:2222", token, "needs TLS");
}

MUSTER_TEST (RemoteWatch, brings_the_error_of_an_op)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (MusterSession) session = create_session (&f);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterWatch) watch = muster_session_watch (
      session, &(MusterWatchFor){.ready_for_local_init_op = NULL, .ready_op = "bad"},
      test_deadline (), &error);

  for (int i = 0; i < 2; i++) {
    g_auto (MusterReadiness) readiness = {0};
    MUSTER_EXPECT_TRUE (muster_watch_next (watch, &readiness, NULL, &error));
  }
  g_auto (MusterReadiness) readiness = {0};
  MUSTER_EXPECT_FALSE (muster_watch_next (watch, &readiness, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND);
  MUSTER_EXPECT_STREQ (error->message, "no such op");
}

/* --- what a gateway adopts --- */

MUSTER_TEST (RemoteMaster, is_the_remote_master_of_itself)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (GError) error = NULL;

  MUSTER_EXPECT_TRUE (muster_master_is_remote (f.master));
  g_autoptr (MusterMaster) remote = muster_master_remote (f.master, test_deadline (), NULL, &error);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (remote == f.master);
}

MUSTER_TEST (RemoteMaster, closes_an_adopted_session_that_is_dropped)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);

  MusterSession *session =
      muster_remote_master_adopt (MUSTER_REMOTE_MASTER (f.master), "tiny", NULL);
  MUSTER_EXPECT_STREQ (muster_session_handle (session), "tiny");
  MUSTER_EXPECT_TRUE (muster_remote_session_client (session) ==
                      muster_remote_master_client (MUSTER_REMOTE_MASTER (f.master)));
  g_object_unref (session);

  g_autofree char *closed = pop_closed (&f);
  MUSTER_EXPECT_STREQ (closed, "tiny");
}

MUSTER_TEST (RemoteMaster, sends_nothing_more_for_a_session_that_it_is_to_forget)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  MusterSession *first = muster_remote_master_adopt (MUSTER_REMOTE_MASTER (f.master), "gone", NULL);
  MusterSession *second =
      muster_remote_master_adopt (MUSTER_REMOTE_MASTER (f.master), "tiny", NULL);

  muster_remote_session_forget (first);
  g_object_unref (first);
  g_object_unref (second);

  g_autofree char *closed = pop_closed (&f); /* they are sent in order, on one connection */
  MUSTER_EXPECT_STREQ (closed, "tiny");
}

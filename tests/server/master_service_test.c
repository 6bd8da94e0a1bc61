// SPDX-License-Identifier: Apache-2.0
#include "ready/backoff.h"
#include "tests/server/served.h"
#include "tests/server/stuck_master.h"

#include "base/protowire_private.h"
#include "base/unpack_private.h"
#include "graph/graph_builder.h"
#include "rpc/messages/run_step_private.h"
#include "rpc/proto/master.pb-c.h"

static float
as_float (MusterTensor *tensor)
{
  return tensor != NULL ? *(const float *)muster_tensor_data (tensor) : -1.0f;
}

/* A graph of one constant. */
static MusterGraph *
constant_graph (const char *name, float value)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  g_autoptr (MusterTensor) tensor = muster_tensor_new_float (value);
  muster_graph_builder_constant (b, name, tensor);
  MusterGraph *graph = muster_graph_builder_end (b, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return graph;
}

static GBytes *
extend_request (const char *handle, MusterGraph *graph, gint64 version)
{
  GByteArray *out = g_byte_array_new ();
  GBytes *nodes = muster_graph_bytes (graph);
  muster_proto_put_string (out, 1, handle);
  muster_proto_put_bytes (out, 2, g_bytes_get_data (nodes, NULL), g_bytes_get_size (nodes));
  muster_proto_put_uint (out, 3, (guint64)version);
  return g_byte_array_free_to_bytes (out);
}

static GBytes *
run_request (const char *handle, const char *fetch, gboolean errors_in_body)
{
  static gint64 last_id;
  MusterStepRequest request = {
      .session_handle = handle,
      .step = {.fetches = &fetch, .n_fetches = 1},
      .store_errors_in_response_body = errors_in_body,
      .request_id = ++last_id,
  };
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  muster_step_request_encode_run (&request, &rope, NULL);
  return muster_rope_flatten (&rope);
}

MUSTER_TEST (MasterService, runs_a_step)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (session);

  g_autoptr (MusterTensor) sum = served_fetch (session, "sum:0", 40, NULL, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (as_float (sum), 42.0f);
}

MUSTER_TEST (MasterService, gives_each_session_a_handle_of_its_own)
{
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) a = served_session (&f, NULL);
  g_autoptr (MusterSession) b = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (a);
  MUSTER_ASSERT_NOT_NULL (b);

  MUSTER_EXPECT_TRUE (g_regex_match_simple ("^[0-9a-f]{16}$", muster_session_handle (a),
                                            (GRegexCompileFlags)0, (GRegexMatchFlags)0));
  MUSTER_EXPECT_FALSE (g_str_equal (muster_session_handle (a), muster_session_handle (b)));
}

MUSTER_TEST (MasterService, shares_variables_between_sessions)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) chief = served_session (&f, NULL);
  g_autoptr (MusterSession) worker = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (chief);
  MUSTER_ASSERT_NOT_NULL (worker);

  MUSTER_ASSERT_TRUE (served_run (chief, "init", &error));
  MUSTER_EXPECT_TRUE (muster_session_close (chief, test_deadline (), NULL, &error));
  g_autoptr (MusterTensor) v =
      muster_session_fetch (worker, "v/read:0", test_deadline (), NULL, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (as_float (v), 1.0f);
}

MUSTER_TEST (MasterService, puts_a_steps_error_into_the_body_with_where_it_ran)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (session);

  g_autoptr (GBytes) request = run_request (muster_session_handle (session), "v/read:0", TRUE);
  g_autoptr (GBytes) response = served_call (&f, "RunStep", request, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MusterTensor *none[1] = {NULL};
  const char *const fetches[] = {"v/read:0"};
  MUSTER_EXPECT_FALSE (muster_step_response_decode_run (response, fetches, 1, none, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_TRUE (g_str_has_prefix (error->message, "From /job:localhost/replica:0/task:0:\n"
                                                        "Attempting to use uninitialized value v"));
  EXPECT_SAYS (error, "{{node v");
}

MUSTER_TEST (MasterService, gives_a_steps_error_as_the_status_where_asked)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (session);

  g_autoptr (GBytes) request = run_request (muster_session_handle (session), "v/read:0", FALSE);
  g_autoptr (GBytes) response = served_call (&f, "RunStep", request, &error);

  MUSTER_EXPECT_NULL (response);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
}

MUSTER_TEST (MasterService, names_a_fetch_that_the_graph_lacks)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (session);

  g_autoptr (MusterTensor) none =
      muster_session_fetch (session, "nowhere:0", test_deadline (), NULL, &error);

  MUSTER_EXPECT_NULL (none);
  MUSTER_ASSERT_TRUE (error != NULL);
  EXPECT_SAYS (error, "nowhere");
}

MUSTER_TEST (MasterService, says_that_an_unknown_session_may_be_from_before_a_restart)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  for (int in_body = FALSE; in_body <= TRUE; in_body++) {
    const char *fetch = "sum:0";
    MusterTensor *tensor = NULL;
    g_autoptr (GBytes) request = run_request ("0123456789abcdef", fetch, in_body);
    g_autoptr (GBytes) response = served_call (&f, "RunStep", request, &error);

    MUSTER_EXPECT_EQ (response != NULL, in_body);
    if (response != NULL)
      MUSTER_EXPECT_FALSE (
          muster_step_response_decode_run (response, &fetch, 1, &tensor, NULL, &error));
    MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED,
                        "Session 0123456789abcdef is not found. Possibly, this master has "
                        "restarted.");
    g_clear_error (&error);
  }
}

MUSTER_TEST (MasterService, forgets_a_session_that_was_closed)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (session);

  MUSTER_ASSERT_TRUE (muster_session_close (session, test_deadline (), NULL, &error));
  g_autoptr (MusterTensor) sum = served_fetch (session, "sum:0", 1, NULL, &error);

  MUSTER_EXPECT_NULL (sum);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED);
}

MUSTER_TEST (MasterService, extends_a_graph_version_by_version)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (session);
  g_autoptr (MusterGraph) seven = constant_graph ("seven", 7);
  g_autoptr (MusterGraph) eight = constant_graph ("eight", 8);

  MUSTER_EXPECT_TRUE (muster_session_extend (session, seven, test_deadline (), NULL, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (muster_session_extend (session, eight, test_deadline (), NULL, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterTensor) value =
      muster_session_fetch (session, "eight:0", test_deadline (), NULL, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (as_float (value), 8.0f);
}

MUSTER_TEST (MasterService, refuses_an_extension_of_another_version)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (session);
  g_autoptr (MusterGraph) seven = constant_graph ("seven", 7);

  g_autoptr (GBytes) request = extend_request (muster_session_handle (session), seven, 3);
  g_autoptr (GBytes) response = served_call (&f, "ExtendSession", request, &error);

  MUSTER_EXPECT_NULL (response);
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED,
                      "Current version is 0 but caller expected 3.");
}

MUSTER_TEST (MasterService, refuses_a_name_that_the_graph_has_already)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (session);
  g_autoptr (MusterGraph) again = constant_graph ("two", 2);

  MUSTER_EXPECT_FALSE (muster_session_extend (session, again, test_deadline (), NULL, &error));

  MUSTER_ASSERT_TRUE (error != NULL);
  EXPECT_SAYS (error, "two");
}

MUSTER_TEST (MasterService, drops_variables_and_sessions_on_reset)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) before = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (before);
  MUSTER_ASSERT_TRUE (served_run (before, "init", &error));

  MUSTER_EXPECT_TRUE (muster_master_reset (f.remote, NULL, test_deadline (), NULL, &error));
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_FALSE (served_run (before, "init", &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED);
  MUSTER_EXPECT_TRUE (muster_failure_is_reset (error));
  g_clear_error (&error);
  g_autoptr (MusterSession) after = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (after);
  g_autoptr (MusterTensor) v =
      muster_session_fetch (after, "v/read:0", test_deadline (), NULL, &error);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
}

MUSTER_TEST (MasterService, says_of_two_resets_sessions_that_they_were_reset)
{
  g_auto (Served) f = served_start ();
  char *handles[3];
  for (int i = 0; i < 3; i++) {
    handles[i] = served_bare_session (&f, NULL, NULL);
    MUSTER_EXPECT_TRUE (muster_master_reset (f.remote, NULL, test_deadline (), NULL, NULL));
  }

  for (int i = 0; i < 3; i++) {
    g_autoptr (GError) error = NULL;
    MUSTER_TRACE ("%d", i);
    MUSTER_EXPECT_FALSE (served_bare_step (&f, handles[i], "init", &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED);
    MUSTER_EXPECT_EQ (muster_failure_is_reset (error), i > 0);
    g_free (handles[i]);
  }
}

MUSTER_TEST (MasterService, does_not_speak_of_a_reset_that_has_failed)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterStuckMaster) master = stuck_master_new ();
  g_auto (Served) f = served_start_over (MUSTER_MASTER (master));
  g_autofree char *handle = served_bare_session (&f, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_FALSE (muster_master_reset (f.remote, NULL, test_deadline (), NULL, NULL));

  MUSTER_EXPECT_FALSE (served_bare_step (&f, handle, "init", &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED);
  MUSTER_EXPECT_FALSE (muster_failure_is_reset (error));
}

MUSTER_TEST (MasterService, lists_the_masters_devices)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autoptr (GPtrArray) there =
      muster_master_list_devices (f.remote, test_deadline (), NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (GPtrArray) here = muster_master_list_devices (f.local, test_deadline (), NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_ASSERT_EQ (there->len, here->len);
  const MusterDevice *a = there->pdata[0];
  const MusterDevice *b = here->pdata[0];
  MUSTER_EXPECT_STREQ (a->name, b->name);
  MUSTER_EXPECT_STREQ (a->type, "CPU");
  MUSTER_EXPECT_EQ (a->incarnation, b->incarnation);
}

MUSTER_TEST (MasterService, lists_no_devices_for_an_unknown_session)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  Tensorflow__ListDevicesRequest message = TENSORFLOW__LIST_DEVICES_REQUEST__INIT;
  message.session_handle = (char *)"nobody";

  g_autoptr (GBytes) request = muster_pack (&message.base);
  g_autoptr (GBytes) response = served_call (&f, "ListDevices", request, &error);

  MUSTER_EXPECT_NULL (response);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

MUSTER_TEST (MasterService, runs_a_callable_until_it_is_released)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (session);
  const MusterFeed feed = {"x:0", NULL};
  const char *fetch = "sum:0";
  MusterStep step = {.feeds = &feed, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1};
  gint64 callable = muster_session_make_callable (session, &step, test_deadline (), NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterTensor) x = muster_tensor_new_float (5);
  MusterTensor *fed[] = {x};
  MusterTensor *fetched[1] = {NULL};

  MUSTER_EXPECT_TRUE (muster_session_run_callable (session, callable, fed, 1, test_deadline (),
                                                   fetched, NULL, NULL, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (as_float (fetched[0]), 7.0f);
  muster_tensor_unref (fetched[0]);

  MUSTER_EXPECT_FALSE (muster_session_run_callable (session, callable, NULL, 0, test_deadline (),
                                                    fetched, NULL, NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  g_clear_error (&error);

  MUSTER_EXPECT_TRUE (
      muster_session_release_callable (session, callable, test_deadline (), NULL, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (muster_session_run_callable (session, callable, fed, 1, test_deadline (),
                                                    fetched, NULL, NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

/* Sets "x:0", "sum:0" and "v:0" up in parts. */
static char *
set_up (MusterSession *session)
{
  g_autoptr (GError) error = NULL;
  const MusterFeed feed = {"x:0", NULL};
  const char *fetches[] = {"sum:0", "v:0"};
  const MusterStep step = {.feeds = &feed, .n_feeds = 1, .fetches = fetches, .n_fetches = 2};
  char *handle = muster_session_set_up_partial_run (session, &step, test_deadline (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return handle;
}

/* A part that fetches one tensor; x is fed unless NULL. */
static float
run_part (MusterSession *session, const char *handle, MusterTensor *x, const char *fetch,
          GError **error)
{
  const MusterFeed feed = {"x:0", x};
  g_autoptr (MusterTensor) got = NULL;
  const MusterStep part = {.feeds = &feed,
                           .n_feeds = x != NULL,
                           .fetches = &fetch,
                           .n_fetches = 1,
                           .deadline_us = test_deadline ()};
  return muster_session_run_part (session, handle, &part, &got, NULL, NULL, error) ? as_float (got)
                                                                                   : -1;
}

MUSTER_TEST (MasterService, runs_a_step_in_parts)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (session);
  MUSTER_ASSERT_TRUE (served_run (session, "init", &error));
  g_autoptr (MusterTensor) x = muster_tensor_new_float (3);

  g_autofree char *handle = set_up (session);
  MUSTER_ASSERT_NOT_NULL (handle);
  MUSTER_EXPECT_EQ (run_part (session, handle, NULL, "v:0", &error), 1.0f);
  MUSTER_EXPECT_EQ (run_part (session, handle, x, "sum:0", &error), 5.0f);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_EQ (run_part (session, handle, x, "sum:0", &error), -1.0f);
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                      "Must run PartialRunSetup before performing partial runs");
}

MUSTER_TEST (MasterService, says_which_feed_a_part_lacks)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (session);

  g_autofree char *handle = set_up (session);
  MUSTER_ASSERT_NOT_NULL (handle);
  MUSTER_EXPECT_EQ (run_part (session, handle, NULL, "sum:0", &error), -1.0f);
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                      "Fetch x:0 can't be computed from the feeds that have been fed so far.");
}

static void
expect_refused_config (const Tensorflow__ConfigProto *message)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autoptr (MusterGraph) graph = served_graph (NULL);
  g_autoptr (GBytes) config = muster_pack (&message->base);
  g_autoptr (MusterSession) session =
      muster_master_create_session (f.remote, graph, config, test_deadline (), NULL, &error);

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_ASSERT_TRUE (error != NULL);
  EXPECT_SAYS (error, "Distributed session does not support session thread "
                      "pool options.");
}

MUSTER_TEST (MasterService, refuses_thread_pools_of_a_sessions_own)
{
  Tensorflow__ConfigProto threads = TENSORFLOW__CONFIG_PROTO__INIT;
  threads.use_per_session_threads = TRUE;
  expect_refused_config (&threads);

  Tensorflow__ConfigProto pools = TENSORFLOW__CONFIG_PROTO__INIT;
  ProtobufCBinaryData pool = {0};
  pools.n_session_inter_op_thread_pool = 1;
  pools.session_inter_op_thread_pool = &pool;
  expect_refused_config (&pools);
}

MUSTER_TEST (MasterService, refuses_a_graph_that_is_none)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autoptr (GBytes) garbage = g_bytes_new_static ("\x0a\xff\xff", 3);
  g_autoptr (MusterGraph) graph = muster_graph_new (garbage);
  g_autoptr (MusterSession) session =
      muster_master_create_session (f.remote, graph, NULL, test_deadline (), NULL, &error);

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

MUSTER_TEST (MasterService, says_that_an_address_is_in_use)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autoptr (MusterServer) second = muster_server_new (f.local, NULL);
  MUSTER_EXPECT_EQ (muster_server_listen (second, muster_rpc_client_address (f.bare), &error), 0);

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);
}

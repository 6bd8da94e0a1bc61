// SPDX-License-Identifier: Apache-2.0
#include "tests/server/served.h"

#include "base/protowire_private.h"
#include "base/unpack_private.h"
#include "rpc/messages/run_step_private.h"
#include "rpc/proto/master.pb-c.h"
#include "rpc/proto/muster.pb-c.h"

#include <string.h>

#define SEED 20210607

static const char *const methods[] = {
    "/tensorflow.MasterService/CreateSession",
    "/tensorflow.MasterService/ExtendSession",
    "/tensorflow.MasterService/PartialRunSetup",
    "/tensorflow.MasterService/RunStep",
    "/tensorflow.MasterService/CloseSession",
    "/tensorflow.MasterService/ListDevices",
    "/tensorflow.MasterService/Reset",
    "/tensorflow.MasterService/MakeCallable",
    "/tensorflow.MasterService/RunCallable",
    "/tensorflow.MasterService/ReleaseCallable",
    "/muster.Readiness/Report",
    "/muster.Readiness/Status",
    "/muster.Readiness/CreateKnown",
    "/muster.Readiness/Drain",
};

/* Sends what may be nonsense: any answer will do, but there must be one. */
static void
send_any (Served *f, const char *method, const guint8 *data, gsize size)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = g_bytes_new (data, size);
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  muster_rope_append (&request, bytes);
  MusterRpcOptions options = {.deadline_us = test_deadline ()};
  g_autoptr (GBytes) response =
      muster_rpc_client_call (f->bare, method, &request, &options, NULL, &error);
  MUSTER_EXPECT_TRUE (response != NULL || error->domain == MUSTER_ERROR);
  if (muster_error_is (error, MUSTER_ERROR_UNAVAILABLE) ||
      muster_error_is (error, MUSTER_ERROR_DEADLINE_EXCEEDED))
    MUSTER_FAIL ("%s left no answer: %s", method, error->message);
}

static void
expect_still_serves (Served *f)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = served_session (f, NULL);
  MUSTER_ASSERT_NOT_NULL (session);
  g_autoptr (MusterTensor) sum = served_fetch (session, "sum:0", 1, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (MalformedRequests, of_random_bytes_are_answered)
{
  g_auto (Served) f = served_start ();
  g_autoptr (GRand) rand = g_rand_new_with_seed (SEED);
  guint8 bytes[256];
  for (gsize m = 0; m < G_N_ELEMENTS (methods) && !muster_test_has_failed (); m++)
    for (int round = 0; round < 200 && !muster_test_has_failed (); round++) {
      gsize size = (gsize)g_rand_int_range (rand, 1, sizeof bytes);
      for (gsize i = 0; i < size; i++)
        bytes[i] = (guint8)g_rand_int (rand);
      send_any (&f, methods[m], bytes, size);
    }

  expect_still_serves (&f);
}

static GBytes *
valid_create (void)
{
  g_autoptr (MusterGraph) graph = served_graph (NULL);
  GBytes *bytes = muster_graph_bytes (graph);
  Tensorflow__ConfigProto config_message = TENSORFLOW__CONFIG_PROTO__INIT;
  config_message.operation_timeout_in_ms = 20000;
  g_autoptr (GBytes) config = muster_pack (&config_message.base);
  GByteArray *out = g_byte_array_new ();
  muster_proto_put_bytes (out, 1, g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes));
  muster_proto_put_bytes (out, 2, g_bytes_get_data (config, NULL), g_bytes_get_size (config));
  muster_proto_put_string (out, 3, "grpc://localhost:2222");
  return g_byte_array_free_to_bytes (out);
}

static GBytes *
valid_step (const char *handle, gboolean is_callable)
{
  const char *name = "x:0", *fetch = "sum:0", *target = "two";
  g_autoptr (MusterTensor) x = muster_tensor_new_float (1);
  g_autoptr (GBytes) options = g_bytes_new_static ("\x10\x90\x4e", 3); /* 10 s */
  const MusterFeed feed = {name, x};
  MusterStepRequest request = {
      .session_handle = handle,
      .step = {.feeds = &feed,
               .n_feeds = 1,
               .fetches = &fetch,
               .n_fetches = 1,
               .targets = &target,
               .n_targets = 1,
               .options = options},
      .store_errors_in_response_body = TRUE,
      .request_id = 1,
      .callable = 1,
      .bare_feeds = &x,
      .n_bare_feeds = 1,
  };
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  if (is_callable)
    muster_step_request_encode_callable (&request, &rope, NULL);
  else
    muster_step_request_encode_run (&request, &rope, NULL);
  return muster_rope_flatten (&rope);
}

static GBytes *
valid_make_callable (const char *handle)
{
  char *feed = (char *)"x:0", *fetch = (char *)"sum:0", *target = (char *)"two";
  Tensorflow__CallableOptions options = TENSORFLOW__CALLABLE_OPTIONS__INIT;
  options.n_feed = options.n_fetch = options.n_target = 1;
  options.feed = &feed;
  options.fetch = &fetch;
  options.target = &target;
  Tensorflow__MakeCallableRequest message = TENSORFLOW__MAKE_CALLABLE_REQUEST__INIT;
  message.session_handle = (char *)handle;
  message.options = &options;
  return muster_pack (&message.base);
}

/* Cut short at every length (large ones at every seventh), and with one byte changed. */
static void
send_mutilated (Served *f, const char *method, GBytes *valid, GRand *rand)
{
  gsize size;
  const guint8 *data = g_bytes_get_data (valid, &size);
  gsize stride = size > 400 ? 7 : 1;
  for (gsize cut = 0; cut < size && !muster_test_has_failed (); cut += stride)
    send_any (f, method, data, cut);
  for (int round = 0; round < 200 && !muster_test_has_failed (); round++) {
    g_autofree guint8 *changed = g_memdup2 (data, size);
    changed[g_rand_int_range (rand, 0, (gint32)size)] = (guint8)g_rand_int (rand);
    send_any (f, method, changed, size);
  }
}

MUSTER_TEST (MalformedRequests, truncated_or_changed_are_answered)
{
  g_auto (Served) f = served_start ();
  g_autoptr (GRand) rand = g_rand_new_with_seed (SEED);
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (session);
  const char *handle = muster_session_handle (session);
  g_autoptr (GBytes) create = valid_create ();
  g_autoptr (GBytes) step = valid_step (handle, FALSE);
  g_autoptr (GBytes) callable = valid_make_callable (handle);
  g_autoptr (GBytes) run_callable = valid_step (handle, TRUE);

  send_mutilated (&f, "/tensorflow.MasterService/CreateSession", create, rand);
  send_mutilated (&f, "/tensorflow.MasterService/RunStep", step, rand);
  send_mutilated (&f, "/tensorflow.MasterService/MakeCallable", callable, rand);
  send_mutilated (&f, "/tensorflow.MasterService/RunCallable", run_callable, rand);

  expect_still_serves (&f);
}

/* Bytes written from the end towards the front, so that a length can be put before what it counts.
 */
typedef struct {
  guint8 *data;
  gsize at;
  gsize end;
} Backwards;

static void
wrap (Backwards *self, guint8 tag)
{
  guint8 head[12];
  gsize n = 0;
  head[n++] = tag;
  guint64 size = self->end - self->at;
  for (; size >= 0x80; size >>= 7)
    head[n++] = (guint8)(size | 0x80);
  head[n++] = (guint8)size;
  self->at -= n;
  memcpy (self->data + self->at, head, n);
}

static void
prepend (Backwards *self, const char *bytes, gsize size)
{
  self->at -= size;
  memcpy (self->data + self->at, bytes, size);
}

/* A CreateSessionRequest whose graph has one node, with functions in the attributes of functions.
 */
static GBytes *
deeply_nested (int depth)
{
  enum { SPACE = 1 << 20 };
  g_autofree guint8 *space = g_malloc (SPACE);
  Backwards out = {space, SPACE, SPACE};
  for (int i = 0; i < depth; i++) {
    wrap (&out, 0x52); /* AttrValue.func = 10 */
    wrap (&out, 0x12); /* AttrEntry.value = 2 */
    prepend (&out, "\x0a\x01k", 3);
    wrap (&out, i + 1 < depth ? 0x12 : 0x2a); /* NameAttrList.attr = 2, NodeDef.attr = 5 */
  }
  prepend (&out, "\x0a\x01n\x12\x04NoOp", 9);
  wrap (&out, 0x0a); /* GraphDef.node = 1 */
  wrap (&out, 0x0a); /* CreateSessionRequest.graph_def = 1 */
  return g_bytes_new (space + out.at, out.end - out.at);
}

MUSTER_TEST (MalformedRequests, nested_twenty_thousand_deep_are_refused)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autoptr (GBytes) request = deeply_nested (20000);
  g_autoptr (GBytes) response = served_call (&f, "CreateSession", request, &error);
  MUSTER_EXPECT_NULL (response);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  expect_still_serves (&f);
}

/* What the test above sends is wrong for its depth alone. */
MUSTER_TEST (MalformedRequests, nested_a_few_deep_are_not_malformed)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autoptr (GBytes) request = deeply_nested (3);
  g_autoptr (GBytes) response = served_call (&f, "CreateSession", request, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

static void
watch_any (Served *f, const guint8 *data, gsize size)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = g_bytes_new (data, size);
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  muster_rope_append (&request, bytes);
  MusterRpcOptions options = {.deadline_us = test_deadline ()};
  g_autoptr (MusterRpcStream) stream =
      muster_rpc_client_open (f->bare, "/muster.Readiness/Watch", &request, &options, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (GBytes) readiness =
      muster_rpc_stream_next_until (stream, MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_EXPECT_TRUE (readiness != NULL || error != NULL);
  if (muster_error_is (error, MUSTER_ERROR_UNAVAILABLE) ||
      muster_error_is (error, MUSTER_ERROR_DEADLINE_EXCEEDED))
    MUSTER_FAIL ("a watch was left without an answer: %s", error->message);
}

MUSTER_TEST (MalformedRequests, to_watch_are_answered)
{
  g_auto (Served) f = served_start ();
  g_autoptr (GRand) rand = g_rand_new_with_seed (SEED);
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) session = served_session (&f, &ready_op);
  MUSTER_ASSERT_NOT_NULL (session);
  Muster__WatchRequest message = MUSTER__WATCH_REQUEST__INIT;
  message.session_handle = (char *)muster_session_handle (session);
  message.ready_op = ready_op;
  g_autoptr (GBytes) valid = muster_pack (&message.base);
  gsize size;
  const guint8 *data = g_bytes_get_data (valid, &size);

  for (gsize cut = 0; cut < size && !muster_test_has_failed (); cut++)
    watch_any (&f, data, cut);
  for (int round = 0; round < 100 && !muster_test_has_failed (); round++) {
    g_autofree guint8 *changed = g_memdup2 (data, size);
    changed[g_rand_int_range (rand, 0, (gint32)size)] = (guint8)g_rand_int (rand);
    watch_any (&f, changed, size);
  }

  expect_still_serves (&f);
}

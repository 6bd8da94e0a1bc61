// SPDX-License-Identifier: Apache-2.0
/* Sessions of graphs that the server has, and which graphs it keeps. */
#include "server/core/known_graphs.h"

#include "graph/graph_builder.h"
#include "rpc/proto/master.pb-c.h"
#include "tests/server/served.h"

#include <string.h>

/* "sum" = x + a large constant; value tells one graph from another. */
static MusterGraph *
make_graph (float value)
{
  const gint64 n = 32 << 10;
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  g_autoptr (MusterTensor) large = muster_tensor_new (MUSTER_FLOAT, 1, &n);
  float *data = muster_tensor_data_mutable (large);
  for (gint64 i = 0; i < n; i++)
    data[i] = value + (float)i;
  muster_graph_builder_placeholder (builder, "x", MUSTER_FLOAT, 0, NULL);
  muster_graph_builder_constant (builder, "large", large);
  muster_graph_builder_node (builder, "AddV2", "sum");
  muster_graph_builder_input (builder, "x");
  muster_graph_builder_input (builder, "large");
  muster_graph_builder_attr_type (builder, "T", MUSTER_FLOAT);
  return muster_graph_builder_end (builder, NULL);
}

static MusterDigest
digest_of (GBytes *bytes)
{
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  muster_rope_append (&rope, bytes);
  return muster_digest_of (&rope);
}

/* Asks for a session of the graph without sending it: its handle, or NULL with an error. */
static char *
create_known (Served *f, MusterGraph *graph, gsize digest_size, guint64 more_bytes, GError **error)
{
  GBytes *bytes = muster_graph_bytes (graph);
  MusterDigest digest = digest_of (bytes);
  Muster__CreateKnownRequest request = MUSTER__CREATE_KNOWN_REQUEST__INIT;
  request.graph_sha256 = (ProtobufCBinaryData){digest_size, digest.bytes};
  request.graph_bytes = g_bytes_get_size (bytes) + more_bytes;
  g_autoptr (GBytes) answer =
      served_ask (f, "/muster.Readiness/CreateKnown", &request.base, NULL, error);
  if (answer == NULL)
    return NULL;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  gsize size;
  gconstpointer data = g_bytes_get_data (answer, &size);
  const Tensorflow__CreateSessionResponse *response = muster_unpack (
      &tensorflow__create_session_response__descriptor, data, size, arena, "response", error);
  return response != NULL ? g_strdup (response->session_handle) : NULL;
}

static void
expect_known (Served *f, MusterGraph *graph)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *handle = create_known (f, graph, MUSTER_DIGEST_BYTES, 0, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (served_bare_step (f, handle, "large", &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

static void
expect_refusal (Served *f, MusterGraph *graph, gsize digest_size, guint64 more_bytes, int code)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *handle = create_known (f, graph, digest_size, more_bytes, &error);
  MUSTER_EXPECT_TRUE (handle == NULL);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, code);
}

static void
create_by_name_what_was_sent_once (Served *f)
{
  g_autoptr (MusterGraph) graph = make_graph (1), other = make_graph (2);
  g_autoptr (GError) error = NULL;
  expect_refusal (f, graph, MUSTER_DIGEST_BYTES, 0, MUSTER_ERROR_NOT_FOUND);
  g_autoptr (MusterSession) session =
      muster_master_create_session (f->remote, graph, NULL, test_deadline (), NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  expect_known (f, graph);
  muster_session_close_quietly (session);
  expect_known (f, graph); /* also when its sessions are gone */
  expect_refusal (f, other, MUSTER_DIGEST_BYTES, 0, MUSTER_ERROR_NOT_FOUND);
  expect_refusal (f, graph, MUSTER_DIGEST_BYTES, 1, MUSTER_ERROR_NOT_FOUND);
  expect_refusal (f, graph, MUSTER_DIGEST_BYTES - 1, 0, MUSTER_ERROR_INVALID_ARGUMENT);
  g_autoptr (MusterSession) again = /* which asks by itself */
      muster_master_create_session (f->remote, graph, NULL, test_deadline (), NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterTensor) sum = served_fetch (again, "sum:0", 40, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (((const float *)muster_tensor_data (sum))[2], 43);
}

MUSTER_TEST (KnownGraphs, make_sessions_by_name)
{
  g_auto (Served) f = served_start ();
  create_by_name_what_was_sent_once (&f);
}

MUSTER_TEST (KnownGraphs, make_sessions_by_name_at_a_gateway)
{
  g_auto (Served) behind = served_start ();
  g_auto (Served) front = served_start_over (behind.remote);
  create_by_name_what_was_sent_once (&front);
}

/* --- the table --- */

static GBytes *
make_bytes (gsize size, char filler)
{
  char *data = g_malloc (size);
  memset (data, filler, size);
  return g_bytes_new_take (data, size);
}

MUSTER_TEST (KnownGraphs, share_the_bytes_of_equal_graphs)
{
  g_autoptr (GBytes) one = make_bytes (100 << 10, 'a'), same = make_bytes (100 << 10, 'a'),
                     other = make_bytes (100 << 10, 'b'), small = make_bytes (100, 'a');
  MusterKnownGraphs *graphs = muster_known_graphs_new ();
  guint64 n_bytes;
  g_autoptr (GBytes) first = muster_known_graphs_share (graphs, one, 0);
  g_autoptr (GBytes) second = muster_known_graphs_share (graphs, same, 0);
  g_autoptr (GBytes) third = muster_known_graphs_share (graphs, other, 0);
  g_autoptr (GBytes) fourth = muster_known_graphs_share (graphs, small, 0);
  MUSTER_EXPECT_TRUE (first == one && second == one && third == other && fourth == small);
  MUSTER_EXPECT_EQ (muster_known_graphs_size (graphs, &n_bytes), 2u);
  MUSTER_EXPECT_EQ (n_bytes, 200u << 10);
  muster_known_graphs_free (graphs);
}

/* A message may be much longer than its graph. */
MUSTER_TEST (KnownGraphs, keep_nothing_of_the_message_around_a_graph)
{
  MusterKnownGraphs *graphs = muster_known_graphs_new ();
  GBytes *message = make_bytes (10 << 20, 'a');
  g_autoptr (GBytes) graph = g_bytes_new_from_bytes (message, 5, 100 << 10);
  const guint8 *data = g_bytes_get_data (message, NULL);
  g_autoptr (GBytes) known = muster_known_graphs_share (graphs, graph, g_bytes_get_size (message));
  const guint8 *kept = g_bytes_get_data (known, NULL);
  MUSTER_EXPECT_TRUE (g_bytes_equal (known, graph));
  MUSTER_EXPECT_FALSE (kept >= data && kept < data + g_bytes_get_size (message));
  g_bytes_unref (message);
  muster_known_graphs_free (graphs);
}

MUSTER_TEST (KnownGraphs, keep_the_last_few_that_were_used)
{
  MusterKnownGraphs *graphs = muster_known_graphs_new ();
  g_autoptr (GBytes) first = make_bytes (100 << 10, 'a');
  const MusterDigest digest = digest_of (first);
  guint64 n_bytes;
  g_bytes_unref (muster_known_graphs_share (graphs, first, 0));
  for (char i = 0; i < 2 * MUSTER_MOST_KNOWN_GRAPHS; i++) {
    g_autoptr (GBytes) next = make_bytes (100 << 10, (char)('b' + i));
    g_bytes_unref (muster_known_graphs_share (graphs, next, 0));
    g_autoptr (GBytes) found = muster_known_graphs_find (graphs, digest.bytes, 100 << 10);
    MUSTER_EXPECT_TRUE (found == first); /* which counts as used */
  }
  MUSTER_EXPECT_EQ (muster_known_graphs_size (graphs, &n_bytes), MUSTER_MOST_KNOWN_GRAPHS);
  MUSTER_EXPECT_EQ (n_bytes, (guint64)MUSTER_MOST_KNOWN_GRAPHS * (100 << 10));
  for (char i = 0; i < MUSTER_MOST_KNOWN_GRAPHS; i++) {
    g_autoptr (GBytes) next = make_bytes (100 << 10, (char)('z' - i));
    g_bytes_unref (muster_known_graphs_share (graphs, next, 0));
  }
  MUSTER_EXPECT_TRUE (muster_known_graphs_find (graphs, digest.bytes, 100 << 10) == NULL);
  muster_known_graphs_free (graphs);
}

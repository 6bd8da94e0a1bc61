// SPDX-License-Identifier: Apache-2.0
#include "server/core/nested_message_private.h"

#include "base/error.h"
#include "base/protowire_private.h"
#include "tests/gtest_shim.h"

#include <string.h>

/* A message with a session's handle and, in field 2, these parts. */
static GBytes *
message_of (const char *const *parts)
{
  GByteArray *out = g_byte_array_new ();
  muster_proto_put_string (out, 1, "handle");
  for (; *parts != NULL; parts++)
    muster_proto_put_bytes (out, 2, *parts, strlen (*parts));
  muster_proto_put_uint (out, 3, 7);
  return g_byte_array_free_to_bytes (out);
}

MUSTER_TEST (NestedMessage, distinguishes_a_field_that_is_not_there_from_an_empty_one)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) without = message_of ((const char *const[]){NULL});
  g_autoptr (GBytes) with = message_of ((const char *const[]){"", NULL});
  g_autoptr (GBytes) none = NULL;
  g_autoptr (GBytes) empty = NULL;
  MUSTER_EXPECT_TRUE (muster_server_nested_message (without, 2, &none, &error));
  MUSTER_EXPECT_TRUE (muster_server_nested_message (with, 2, &empty, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_NULL (none);
  MUSTER_ASSERT_NOT_NULL (empty);
  MUSTER_EXPECT_EQ (g_bytes_get_size (empty), 0u);
}

MUSTER_TEST (NestedMessage, takes_a_graph_that_is_not_there_as_an_empty_one)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) message = message_of ((const char *const[]){NULL});
  g_autoptr (GBytes) graph = muster_server_nested_graph (message, 2, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (g_bytes_get_size (graph), 0u);
}

MUSTER_TEST (NestedMessage, gives_one_part_where_it_lies)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) message = message_of ((const char *const[]){"graph", NULL});
  gsize size;
  const char *data = g_bytes_get_data (message, &size);
  g_autoptr (GBytes) graph = muster_server_nested_graph (message, 2, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (g_bytes_get_size (graph), 5u);
  MUSTER_EXPECT_TRUE (g_bytes_get_data (graph, NULL) == g_strstr_len (data, (gssize)size, "graph"));
}

MUSTER_TEST (NestedMessage, joins_what_comes_in_parts)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) message = message_of ((const char *const[]){"ab", "", "c", "def", NULL});
  g_autoptr (GBytes) graph = muster_server_nested_graph (message, 2, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_MEMEQ (g_bytes_get_data (graph, NULL), g_bytes_get_size (graph), "abcdef", 6);
}

/* Each byte is copied once: were the whole copied for each part, this would take minutes. */
MUSTER_TEST (NestedMessage, joins_a_million_parts)
{
  const guint n_parts = 1000000;
  g_autoptr (GError) error = NULL;
  GByteArray *out = g_byte_array_new ();
  for (guint i = 0; i < n_parts; i++)
    muster_proto_put_bytes (out, 2, "x", 1);
  g_autoptr (GBytes) message = g_byte_array_free_to_bytes (out);

  g_autoptr (GBytes) graph = muster_server_nested_graph (message, 2, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (g_bytes_get_size (graph), n_parts);
}

MUSTER_TEST (NestedMessage, refuses_a_message_that_ends_within_a_field)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) message = g_bytes_new_static ("\x12\x01g\x12\x05gr", 7);
  GBytes *graph = NULL;
  MUSTER_EXPECT_FALSE (muster_server_nested_message (message, 2, &graph, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_NULL (graph);
}

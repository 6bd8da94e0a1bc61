// SPDX-License-Identifier: Apache-2.0
#include "base/unpack_private.h"

#include <string.h>

#include "base/error.h"
#include "base/protowire_private.h"
#include "graph/proto/graph.pb-c.h"
#include "graph/proto/meta_graph.pb-c.h"
#include "tests/gtest_shim.h"

#define GRAPH (&tensorflow__graph_def__descriptor)
#define NODE  (&tensorflow__node_def__descriptor)

/* Puts the head of a message before what is in reversed, which holds it back to front. */
static void
wrap (GByteArray *reversed, guint32 number)
{
  g_autoptr (GByteArray) head = g_byte_array_new ();
  muster_proto_put_head (head, number, reversed->len);
  for (guint i = head->len; i > 0; i--)
    g_byte_array_append (reversed, &head->data[i - 1], 1);
}

static void
reverse (GByteArray *bytes)
{
  for (guint i = 0; i < bytes->len / 2; i++) {
    const guint8 byte = bytes->data[i];
    bytes->data[i] = bytes->data[bytes->len - 1 - i];
    bytes->data[bytes->len - 1 - i] = byte;
  }
}

/* A graph of one node with an attribute of functions within functions. Each level is an AttrValue's
 * NameAttrList, that one's map entry, and its AttrValue; that makes 3 + 3 * levels messages below
 * the graph, and in the last a shape, 1 more, or a shape with a dimension, 2 more. */
static GByteArray *
nested_graph (int levels, int more)
{
  GByteArray *bytes = g_byte_array_new ();
  if (more > 1)
    wrap (bytes, 2);
  wrap (bytes, 7);
  for (int i = 0; i < levels; i++) {
    wrap (bytes, 2);
    wrap (bytes, 2);
    wrap (bytes, 10);
  }
  wrap (bytes, 2);
  wrap (bytes, 5);
  wrap (bytes, 1);
  reverse (bytes);
  return bytes;
}

static gboolean
check (const ProtobufCMessageDescriptor *descriptor, const GByteArray *bytes, GError **error)
{
  return muster_unpack_check (descriptor, bytes->data, bytes->len, "thing", error);
}

MUSTER_TEST (arena, gives_aligned_memory_that_does_not_overlap)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  guint8 *parts[2000];
  for (guint i = 0; i < G_N_ELEMENTS (parts); i++) {
    const gsize size = i % 7 == 0 ? i * 10 : i % 50;
    parts[i] = muster_arena_alloc (arena, size);
    MUSTER_ASSERT_EQ ((guintptr)parts[i] % 16, 0u);
    memset (parts[i], (int)(i & 0xff), size);
  }
  for (guint i = 0; i < G_N_ELEMENTS (parts); i++) {
    const gsize size = i % 7 == 0 ? i * 10 : i % 50;
    for (gsize j = 0; j < size; j++)
      MUSTER_ASSERT_EQ (parts[i][j], i & 0xff);
  }
  muster_arena_free (NULL);
}

MUSTER_TEST (unpack, reads_a_message_into_the_arena)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  muster_proto_put_string (bytes, 1, "sum");
  muster_proto_put_string (bytes, 2, "AddV2");
  muster_proto_put_string (bytes, 3, "a");
  muster_proto_put_string (bytes, 3, "größe");
  muster_proto_put_uint (bytes, 99, 5); /* of a later version */

  Tensorflow__NodeDef *node = muster_unpack (NODE, bytes->data, bytes->len, arena, "node", &error);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (node->name, "sum");
  MUSTER_ASSERT_EQ (node->n_input, 2u);
  MUSTER_EXPECT_STREQ (node->input[1], "größe");
  g_autoptr (GBytes) again = muster_pack (&node->base);
  MUSTER_EXPECT_MEMEQ (g_bytes_get_data (again, NULL), g_bytes_get_size (again), bytes->data,
                       bytes->len);
}

MUSTER_TEST (unpack, reads_nothing_as_an_empty_message)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  Tensorflow__GraphDef *graph = muster_unpack (GRAPH, NULL, 0, arena, "graph", &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (graph->n_node, 0u);
}

MUSTER_TEST (unpack, bounds_the_depth_where_protobuf_does)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GByteArray) deep = nested_graph (32, 1);     /* 100 */
  g_autoptr (GByteArray) too_deep = nested_graph (32, 2); /* 101 */
  MUSTER_EXPECT_TRUE (check (GRAPH, deep, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (check (GRAPH, too_deep, &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, "too deep");
}

MUSTER_TEST (unpack, refuses_twenty_thousand_levels_from_the_bytes)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_autoptr (GByteArray) bytes = nested_graph (20000, 1);
  MUSTER_EXPECT_NULL (muster_unpack (GRAPH, bytes->data, bytes->len, arena, "graph", &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

/* A node with this attribute, and one with a long name, so that the graph is a large one. */
static GByteArray *
large_graph (const char *const *attrs)
{
  GByteArray *graph = g_byte_array_new ();
  g_autofree char *name = g_strnfill (70000, 'x');
  for (gsize i = 0; attrs[i] != NULL; i++) {
    g_autoptr (GByteArray) node = g_byte_array_new ();
    g_autoptr (GByteArray) entry = g_byte_array_new ();
    muster_proto_put_string (node, 1, i == 0 ? name : "node");
    muster_proto_put_string (entry, 1, attrs[i]);
    muster_proto_put_bytes (entry, 2, "\x18\7", 2); /* i: 7 */
    muster_proto_put_bytes (node, 5, entry->data, entry->len);
    muster_proto_put_bytes (graph, 1, node->data, node->len);
  }
  return graph;
}

/* NULL with an error. */
static const Tensorflow__GraphDef *
unpack_shared (const GByteArray *bytes, MusterArena *arena, GError **error)
{
  g_autoptr (MusterUnpacker) unpacker = muster_unpacker_new (arena, "graph", bytes->len);
  Tensorflow__GraphDef *graph = muster_arena_alloc (arena, sizeof *graph);
  tensorflow__graph_def__init (graph);
  return muster_unpacker_add (unpacker, &graph->base, bytes->data, bytes->len, 0, error) ? graph
                                                                                         : NULL;
}

MUSTER_TEST (unpack, shares_equal_elements_of_a_large_message_that_stays_as_it_is)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_autoptr (GByteArray) bytes = large_graph ((const char *const[]){"a", "b", "a", "b", "a", NULL});
  const Tensorflow__GraphDef *graph = unpack_shared (bytes, arena, &error);
  const Tensorflow__GraphDef *apart =
      muster_unpack (GRAPH, bytes->data, bytes->len, arena, "graph", &error);
  MUSTER_ASSERT_NO_ERROR (error);
  for (gsize i = 0; i < 5; i++) {
    const Tensorflow__NodeDef__AttrEntry *attr = graph->node[i]->attr[0];
    MUSTER_EXPECT_STREQ (attr->key, i % 2 == 0 ? "a" : "b");
    MUSTER_EXPECT_EQ (attr->value->i, 7);
    MUSTER_EXPECT_EQ (attr == graph->node[0]->attr[0], i % 2 == 0);
    MUSTER_EXPECT_EQ (apart->node[i]->attr[0] == apart->node[0]->attr[0], i == 0);
  }
  g_autoptr (GBytes) again = muster_pack (&graph->base);
  MUSTER_EXPECT_MEMEQ (g_bytes_get_data (again, NULL), g_bytes_get_size (again), bytes->data,
                       bytes->len);
}

/* A part may lie deep in the whole, and come in pieces. */
MUSTER_TEST (unpack, adds_parts_to_a_message_at_its_depth)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_autoptr (MusterUnpacker) unpacker = muster_unpacker_new (arena, "graph", 0);
  g_autoptr (GByteArray) graph = nested_graph (20, 1);
  Tensorflow__NodeDef node = TENSORFLOW__NODE_DEF__INIT;
  MUSTER_EXPECT_TRUE (muster_unpacker_add (unpacker, &node.base, "\x12\1A", 3, 1, &error));
  MUSTER_EXPECT_TRUE (muster_unpacker_add (unpacker, &node.base, "\x1a\1x\x12\1B", 6, 1, &error));
  MUSTER_EXPECT_TRUE (muster_unpacker_add (unpacker, &node.base, "\x1a\1y", 3, 1, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (node.op, "B");
  MUSTER_EXPECT_EQ (node.n_input, 2u);
  MUSTER_EXPECT_STREQ (node.input[1], "y");

  Tensorflow__GraphDef whole = TENSORFLOW__GRAPH_DEF__INIT;
  MUSTER_EXPECT_TRUE (
      muster_unpacker_add (unpacker, &whole.base, graph->data, graph->len, 36, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (
      muster_unpacker_add (unpacker, &whole.base, graph->data, graph->len, 37, &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, "too deep");
}

/* The same bytes are deep enough in one place, and too deep in another. */
MUSTER_TEST (unpack, bounds_the_depth_of_equal_elements_too)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_autoptr (GByteArray) bytes = large_graph ((const char *const[]){"a", NULL});
  g_autoptr (GByteArray) in_bounds = nested_graph (20, 1), too_deep = nested_graph (35, 1);
  g_byte_array_append (bytes, in_bounds->data, in_bounds->len);
  MUSTER_EXPECT_TRUE (unpack_shared (bytes, arena, &error) != NULL);
  MUSTER_EXPECT_NO_ERROR (error);
  g_byte_array_append (bytes, too_deep->data, too_deep->len);
  MUSTER_EXPECT_NULL (unpack_shared (bytes, arena, &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, "too deep");
}

static void
expect_refused (const ProtobufCMessageDescriptor *descriptor, const char *bytes, gsize size,
                const char *names)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  MUSTER_TRACE ("%s", names);
  MUSTER_EXPECT_FALSE (muster_unpack_check (descriptor, bytes, size, "thing", NULL));
  MUSTER_EXPECT_NULL (muster_unpack (descriptor, bytes, size, arena, "thing", &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, names);
  MUSTER_EXPECT_TRUE (error != NULL && strstr (error->message, "Reading the thing: ") != NULL);
}

MUSTER_TEST (unpack, names_the_field_that_is_not_text)
{
  expect_refused (NODE, "\x0a\3a\0b", 5, "'name' of tensorflow.NodeDef");
  expect_refused (NODE, "\x12\2a\xff", 4, "'op' of tensorflow.NodeDef");
  expect_refused (NODE,
                  "\x12\x0b"
                  "123456789\xc3(",
                  13, "'op' of tensorflow.NodeDef");
  expect_refused (NODE,
                  "\x12\x09"
                  "1234\0"
                  "6789",
                  11, "'op' of tensorflow.NodeDef");
}

MUSTER_TEST (unpack, refuses_what_is_malformed)
{
  expect_refused (NODE, "\x0a\5abc", 5, "truncated");
  expect_refused (NODE, "\x08\1", 2, "'name' of tensorflow.NodeDef");
  expect_refused (NODE, "\x2b\x2c", 2, "malformed");               /* a group */
  expect_refused (GRAPH, "\x0a\2\x0a\5", 4, "tensorflow.NodeDef"); /* within a node */
  expect_refused (&tensorflow__save_slice_info_def__descriptor, "\x12\1\x80", 3, "'full_shape'");
  expect_refused (&tensorflow__collection_def__float_list__descriptor, "\x0a\3abc", 5, "'value'");
}

MUSTER_TEST (unpack, takes_packed_and_single_numbers)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  Tensorflow__SaveSliceInfoDef *slice = muster_unpack (
      &tensorflow__save_slice_info_def__descriptor, "\x12\2\1\2\x10\3", 6, arena, "slice", &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_ASSERT_EQ (slice->n_full_shape, 3u);
  MUSTER_EXPECT_EQ (slice->full_shape[2], 3);
}

MUSTER_TEST (unpack, merges_a_message_in_parts)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  /* versions { producer: 5 } versions { min_consumer: 6 } */
  Tensorflow__GraphDef *graph =
      muster_unpack (GRAPH, "\x22\2\x08\5\x22\2\x10\6", 8, arena, "graph", &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (graph->versions->producer, 5);
  MUSTER_EXPECT_EQ (graph->versions->min_consumer, 6);
}

MUSTER_TEST (unpack, merges_very_many_parts_without_copying_them_again_and_again)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  /* A copy of all before it for each part would make 800 GB. */
  const int n = 400000;
  for (int i = 0; i < n; i++)
    g_byte_array_append (bytes, (const guint8 *)"\x22\2\x18\7", 4);
  Tensorflow__GraphDef *graph =
      muster_unpack (GRAPH, bytes->data, bytes->len, arena, "graph", &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_ASSERT_EQ (graph->versions->n_bad_consumers, (size_t)n);
  MUSTER_EXPECT_EQ (graph->versions->bad_consumers[n - 1], 7);
}

MUSTER_TEST (unpack, lets_the_last_of_a_oneof_win)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  /* func { name: "f" }, then i: 7, then func { attr { key: "k" } } */
  const char bytes[] = "\x52\3\x0a\1f\x18\7\x52\5\x12\3\x0a\1k";
  Tensorflow__AttrValue *value = muster_unpack (&tensorflow__attr_value__descriptor, bytes,
                                                sizeof bytes - 1, arena, "value", &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_ASSERT_EQ (value->value_case, TENSORFLOW__ATTR_VALUE__VALUE_FUNC);
  MUSTER_EXPECT_STREQ (value->func->name, "");
  MUSTER_ASSERT_EQ (value->func->n_attr, 1u);
  MUSTER_EXPECT_STREQ (value->func->attr[0]->key, "k");
  MUSTER_EXPECT_NULL (value->func->attr[0]->value);
  Tensorflow__AttrValue *number = muster_unpack (&tensorflow__attr_value__descriptor,
                                                 "\x52\3\x0a\1f\x18\7", 7, arena, "v", &error);
  MUSTER_ASSERT_EQ (number->value_case, TENSORFLOW__ATTR_VALUE__VALUE_I);
  MUSTER_EXPECT_EQ (number->i, 7);
}

MUSTER_TEST (unpack, reads_every_kind_of_list)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const char bytes[] = "\x12\1a\x12\0\x1a\x0b\1\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"
                       "\x25\0\0\x80\x3f\x22\4\0\0\0\xc0\x2a\2\1\0\x32\1\x13";
  Tensorflow__AttrValue__ListValue *list = muster_unpack (
      &tensorflow__attr_value__list_value__descriptor, bytes, sizeof bytes - 1, arena, "l", &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_ASSERT_EQ (list->n_s, 2u);
  MUSTER_EXPECT_MEMEQ (list->s[0].data, list->s[0].len, "a", 1);
  MUSTER_EXPECT_EQ (list->s[1].len, 0u);
  MUSTER_ASSERT_EQ (list->n_i, 2u);
  MUSTER_EXPECT_EQ (list->i[1], -1);
  MUSTER_ASSERT_EQ (list->n_f, 2u);
  MUSTER_EXPECT_EQ (list->f[0], 1.0f);
  MUSTER_EXPECT_EQ (list->f[1], -2.0f);
  MUSTER_ASSERT_EQ (list->n_b, 2u);
  MUSTER_EXPECT_EQ (list->b[0], 1);
  MUSTER_EXPECT_EQ (list->b[1], 0);
  MUSTER_ASSERT_EQ (list->n_type, 1u);
  MUSTER_EXPECT_EQ (list->type[0], 19);
}

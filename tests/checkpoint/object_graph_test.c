// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/format/object_graph.h"

#include "base/error.h"
#include "base/protowire_private.h"
#include "tests/checkpoint/bundle_fixture.h"

#include <string.h>

#define SUFFIX "/.ATTRIBUTES/VARIABLE_VALUE"

static MusterBundleReader *
open_prefix (const char *prefix)
{
  g_autoptr (GError) error = NULL;
  MusterBundleReader *reader = muster_bundle_reader_open (NULL, prefix, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return reader;
}

static MusterObjectNames *
names_of (MusterBundleReader *reader)
{
  g_autoptr (GError) error = NULL;
  MusterObjectNames *names = muster_object_names_read (reader, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return names;
}

/* A checkpoint of these keys, and the graph's bytes as its graph. */
static MusterBundleReader *
checkpoint_of (const char *const *keys, const void *graph, gsize size)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *prefix = in_tmpdir ("objects");
  g_autoptr (MusterBundleWriter) writer = muster_bundle_writer_new (NULL, prefix, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  const MusterString text = {graph, size};
  g_autoptr (MusterTensor) one = muster_tensor_new_int32 (1);
  g_autoptr (MusterTensor) message = muster_tensor_new_strings (0, NULL, &text);
  for (; *keys != NULL; keys++)
    muster_bundle_writer_add (writer, *keys, one, NULL);
  muster_bundle_writer_add (writer, MUSTER_OBJECT_GRAPH_KEY, message, NULL);
  muster_bundle_writer_finish (writer, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return open_prefix (prefix);
}

static GByteArray *
add_child (GByteArray *node, guint id, const char *name)
{
  g_autoptr (GByteArray) child = g_byte_array_new ();
  muster_proto_put_uint (child, 1, id);
  muster_proto_put_string (child, 2, name);
  muster_proto_put_bytes (node, 1, child->data, child->len);
  return node;
}

static GByteArray *
add_attribute (GByteArray *node, const char *name, const char *full_name, const char *key)
{
  g_autoptr (GByteArray) attribute = g_byte_array_new ();
  muster_proto_put_string (attribute, 1, name);
  muster_proto_put_string (attribute, 2, full_name);
  muster_proto_put_string (attribute, 3, key);
  muster_proto_put_bytes (node, 2, attribute->data, attribute->len);
  return node;
}

/* Frees the node. */
static void
add_node (GByteArray *graph, GByteArray *node)
{
  muster_proto_put_bytes (graph, 1, node->data, node->len);
  g_byte_array_unref (node);
}

static void
expect_name (const MusterObjectNames *names, const char *key, const char *path,
             const char *full_name)
{
  const MusterObjectName *name = muster_object_names_find (names, key);
  MUSTER_TRACE ("%s", key);
  MUSTER_ASSERT_NOT_NULL (name);
  MUSTER_EXPECT_STREQ (name->key, key);
  MUSTER_EXPECT_STREQ (name->path, path);
  MUSTER_EXPECT_STREQ (name->full_name, full_name);
}

MUSTER_TEST (ObjectNames, of_tensorflows_checkpoint)
{
  g_autofree char *prefix = golden ("objects-1");
  g_autoptr (MusterBundleReader) reader = open_prefix (prefix);
  g_autoptr (MusterObjectNames) names = names_of (reader);
  guint n = 7;
  MUSTER_ASSERT_NOT_NULL (names);
  MUSTER_EXPECT_EQ (muster_object_names_n (names), muster_bundle_reader_n_entries (reader) - 1);

  expect_name (names, "net/first/kernel" SUFFIX, "net/first/kernel", "kernel");
  expect_name (names, "net/layers/1/kernel" SUFFIX, "net/layers/1/kernel", "kernel");
  expect_name (names, "net/table" SUFFIX, "net/table", "words");
  expect_name (names, "net/odd/a.Sb..c" SUFFIX, "net/odd/a/b.c", "odd_one");
  expect_name (names, "words/.ATTRIBUTES/table-keys", "words/table-keys", NULL);
  expect_name (names, "net/first/kernel/.OPTIMIZER_SLOT/optimizer/momentum" SUFFIX,
               "optimizer/momentum/net/first/kernel", "kernel/Momentum");

  MUSTER_EXPECT_STREQ (muster_object_names_key_of (names, "words", NULL), "net/table" SUFFIX);
  MUSTER_EXPECT_STREQ (muster_object_names_key_of (names, "net/layers/1/bias", NULL),
                       "net/layers/1/bias" SUFFIX);
  /* the other way to the first layer */
  MUSTER_EXPECT_STREQ (muster_object_names_key_of (names, "net/layers/0/kernel", &n),
                       "net/first/kernel" SUFFIX);
  MUSTER_EXPECT_EQ (n, 1u);
  MUSTER_EXPECT_STREQ (muster_object_names_key_of (names, "net/table" SUFFIX, NULL),
                       "net/table" SUFFIX);
  MUSTER_EXPECT_NULL (muster_object_names_key_of (names, "kernel", &n));
  MUSTER_EXPECT_EQ (n, 2u);
  MUSTER_EXPECT_NULL (muster_object_names_key_of (names, "net/nothing", &n));
  MUSTER_EXPECT_EQ (n, 0u);
  MUSTER_EXPECT_NULL (muster_object_names_key_of (names, "net/layers", NULL));
}

MUSTER_TEST (ObjectNames, of_a_saved_model)
{
  g_autofree char *prefix = golden ("saved_model/variables/variables");
  g_autoptr (MusterBundleReader) reader = open_prefix (prefix);
  g_autoptr (MusterObjectNames) names = names_of (reader);
  MUSTER_ASSERT_NOT_NULL (names);
  expect_name (names, "first/kernel" SUFFIX, "first/kernel", "kernel");
  MUSTER_EXPECT_STREQ (muster_object_names_key_of (names, "layers/0/bias", NULL),
                       "first/bias" SUFFIX);
}

MUSTER_TEST (ObjectNames, a_checkpoint_by_names_has_none)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *prefix = golden ("model-42");
  g_autoptr (MusterBundleReader) reader = open_prefix (prefix);
  MUSTER_EXPECT_NULL (muster_object_names_read (reader, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

/* Objects hold one another: a walk takes as many steps as the name has parts. */
MUSTER_TEST (ObjectNames, a_cycle_and_children_that_are_not_there)
{
  static const char *const keys[] = {"v" SUFFIX, NULL};
  g_autoptr (GByteArray) graph = g_byte_array_new ();
  add_node (graph,
            add_child (add_child (add_child (g_byte_array_new (), 0, "me"), 1, "w"), 99, "no"));
  add_node (graph, add_attribute (add_child (g_byte_array_new (), 0, "up"), "VARIABLE_VALUE",
                                  "scope/v", "v" SUFFIX));
  g_autoptr (MusterBundleReader) reader = checkpoint_of (keys, graph->data, graph->len);
  g_autoptr (MusterObjectNames) names = names_of (reader);
  MUSTER_ASSERT_NOT_NULL (names);
  MUSTER_EXPECT_STREQ (muster_object_names_key_of (names, "me/me/me/w/up/w", NULL), "v" SUFFIX);
  MUSTER_EXPECT_NULL (muster_object_names_key_of (names, "no", NULL));
  MUSTER_EXPECT_NULL (muster_object_names_key_of (names, "", NULL));
  MUSTER_EXPECT_STREQ (muster_object_names_key_of (names, "scope/v", NULL), "v" SUFFIX);
}

static void
expect_damage (const void *graph, gsize size, const char *words)
{
  static const char *const keys[] = {"v" SUFFIX, NULL};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterBundleReader) reader = checkpoint_of (keys, graph, size);
  g_autoptr (MusterObjectNames) names = muster_object_names_read (reader, &error);
  MUSTER_EXPECT_NULL (names);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
  if (error != NULL && strstr (error->message, words) == NULL)
    MUSTER_FAIL ("%s: no '%s'", error->message, words);
}

MUSTER_TEST (ObjectNames, what_is_malformed_is_data_loss)
{
  static const char graph_cut[] = {0x0a, 0x05, 0x00}, node_cut[] = {0x0a, 0x01, 0x0a},
                    child_cut[] = {0x0a, 0x03, 0x0a, 0x01, 0x12},
                    attribute_cut[] = {0x0a, 0x03, 0x12, 0x01, 0x12};
  expect_damage (graph_cut, sizeof graph_cut, "it is truncated");
  expect_damage (node_cut, sizeof node_cut, "a node is truncated");
  expect_damage (child_cut, sizeof child_cut, "a child is truncated");
  expect_damage (attribute_cut, sizeof attribute_cut, "an attribute is truncated");
  g_autoptr (GByteArray) graph = g_byte_array_new ();
  add_node (graph, add_attribute (g_byte_array_new (), "VARIABLE_VALUE", "\xff\xfe", "v" SUFFIX));
  expect_damage (graph->data, graph->len, "isn't UTF-8");
}

MUSTER_TEST (ObjectNames, a_graph_that_is_no_string_is_data_loss)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *prefix = in_tmpdir ("numbers");
  g_autoptr (MusterBundleWriter) writer = muster_bundle_writer_new (NULL, prefix, &error);
  g_autoptr (MusterTensor) one = muster_tensor_new_int32 (1);
  muster_bundle_writer_add (writer, MUSTER_OBJECT_GRAPH_KEY, one, NULL);
  muster_bundle_writer_finish (writer, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterBundleReader) reader = open_prefix (prefix);
  g_autoptr (MusterObjectNames) names = muster_object_names_read (reader, &error);
  MUSTER_EXPECT_NULL (names);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
}

/* Cuts and flipped bits all over a graph: an answer or an error, and no harm. */
MUSTER_TEST (ObjectNames, survive_any_bytes)
{
  static const char *const keys[] = {"a/w" SUFFIX, "a/b" SUFFIX, NULL};
  g_autoptr (GByteArray) graph = g_byte_array_new ();
  add_node (graph, add_child (g_byte_array_new (), 1, "a"));
  add_node (graph, add_attribute (add_child (g_byte_array_new (), 0, "up"), "VARIABLE_VALUE",
                                  "scope/w", "a/w" SUFFIX));
  for (guint bit = 0; bit < graph->len * 8; bit += 5) {
    g_autoptr (GError) error = NULL;
    g_autofree guint8 *bytes = g_memdup2 (graph->data, graph->len);
    bytes[bit / 8] ^= (guint8)(1 << (bit % 8));
    g_autoptr (MusterBundleReader) reader =
        checkpoint_of (keys, bytes, bit % 2 == 0 ? graph->len : bit / 8);
    g_autoptr (MusterObjectNames) names = muster_object_names_read (reader, &error);
    MUSTER_EXPECT_TRUE ((names == NULL) == (error != NULL));
    if (names != NULL)
      (void)muster_object_names_key_of (names, "a/up/a", NULL);
  }
}

// SPDX-License-Identifier: Apache-2.0
/* The object graph of a checkpoint: the input is the message, the keys are always the same. Each
 * key has its name, and every name leads to a key that is there. */
#include "base/error.h"
#include "checkpoint/format/bundle_writer.h"
#include "checkpoint/format/object_graph.h"
#include "tests/doubles/memory_storage.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

#define PREFIX "c"
#define SUFFIX "/.ATTRIBUTES/VARIABLE_VALUE"

const gsize muster_fuzz_n_picks = 0;

static const char *const keys[] = {
    "net/first/kernel" SUFFIX,
    "net/first/kernel/.OPTIMIZER_SLOT/optimizer/momentum" SUFFIX,
    "net/odd/a.Sb..c" SUFFIX,
    "net/table" SUFFIX,
    "step" SUFFIX,
    "words/.ATTRIBUTES/table-keys",
    "plain",
};

void
muster_fuzz_seeds (void)
{
  static const char *const prefixes[] = {
      "tests/checkpoint/testdata/objects-1",
      "tests/checkpoint/testdata/saved_model/variables/variables"};
  for (gsize i = 0; i < G_N_ELEMENTS (prefixes); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, prefixes[i], &error);
    g_assert_no_error (error);
    g_autoptr (MusterTensor) graph =
        muster_bundle_reader_read (reader, MUSTER_OBJECT_GRAPH_KEY, &error);
    g_assert_no_error (error);
    const MusterString text = muster_tensor_string (graph, 0);
    muster_fuzz_seed (NULL, text.data, text.size);
  }
}

static void
write_checkpoint (MusterStorage *storage, const guint8 *data, gsize size)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterBundleWriter) writer = muster_bundle_writer_new (storage, PREFIX, &error);
  g_autoptr (MusterTensor) one = muster_tensor_new_int32 (1);
  const MusterString text = {.data = (const char *)data, .size = size};
  g_autoptr (MusterTensor) graph = muster_tensor_new_strings (0, NULL, &text);
  for (gsize i = 0; i < G_N_ELEMENTS (keys); i++)
    muster_bundle_writer_add (writer, keys[i], one, NULL);
  muster_bundle_writer_add (writer, MUSTER_OBJECT_GRAPH_KEY, graph, NULL);
  muster_bundle_writer_finish (writer, &error);
  g_assert_no_error (error);
}

static void
check_name (const MusterObjectNames *names, const MusterObjectName *name)
{
  guint n;
  g_assert_true (muster_object_names_find (names, name->key) == name);
  g_assert_cmpstr (muster_object_names_key_of (names, name->key, &n), ==, name->key);
  g_assert_cmpuint (n, ==, 1);
  const char *key = muster_object_names_key_of (names, name->path, &n);
  g_assert_true (key != NULL ? n == 1 && muster_object_names_find (names, key) != NULL : n != 1);
  if (name->full_name == NULL)
    return;
  g_assert_true (g_utf8_validate (name->full_name, -1, NULL));
  key = muster_object_names_key_of (names, name->full_name, &n);
  g_assert_true (key != NULL ? n == 1 && muster_object_names_find (names, key) != NULL : n > 1);
}

int
LLVMFuzzerTestOneInput (const guint8 *data, gsize size)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMemoryStorage) memory = memory_storage_new ();
  write_checkpoint (MUSTER_STORAGE (memory), data, size);
  g_autoptr (MusterBundleReader) reader =
      muster_bundle_reader_open (MUSTER_STORAGE (memory), PREFIX, &error);
  g_assert_no_error (error);
  g_autoptr (MusterObjectNames) names = muster_object_names_read (reader, &error);
  g_assert_true ((names == NULL) == (error != NULL));
  if (names == NULL)
    return 0;
  g_assert_cmpuint (muster_object_names_n (names), ==, G_N_ELEMENTS (keys));
  for (gsize i = 0; i < muster_object_names_n (names); i++)
    check_name (names, muster_object_names_at (names, i));
  (void)muster_object_names_key_of (names, "net/layers/0/kernel", NULL);
  return 0;
}

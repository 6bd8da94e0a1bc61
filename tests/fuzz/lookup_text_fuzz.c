// SPDX-License-Identifier: Apache-2.0
/* A lookup table out of a text file. The first byte of the input picks the dtypes and the columns,
 * the rest is the file: what could be read can be exported, and there is nothing of what couldn't.
 */
#include "engine/resources/lookup_text.h"
#include "tests/doubles/memory_storage.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static const struct {
  MusterDType key, value;
  gint64 key_index, value_index;
} picks[] = {
    {MUSTER_STRING, MUSTER_INT64, MUSTER_LOOKUP_WHOLE_LINE, MUSTER_LOOKUP_LINE_NUMBER},
    {MUSTER_INT64, MUSTER_STRING, MUSTER_LOOKUP_LINE_NUMBER, 2},
    {MUSTER_STRING, MUSTER_FLOAT, 0, 1},
    {MUSTER_INT32, MUSTER_INT32, 1, 0},
    {MUSTER_INT64, MUSTER_DOUBLE, MUSTER_LOOKUP_WHOLE_LINE, MUSTER_LOOKUP_WHOLE_LINE},
    {MUSTER_STRING, MUSTER_BOOL, 0, 1},
};

int
LLVMFuzzerTestOneInput (const guint8 *data, gsize size)
{
  if (size == 0)
    return 0;
  const guint8 pick = data[0] % G_N_ELEMENTS (picks);
  const MusterLookupKind kind = {.key_dtype = picks[pick].key, .value_dtype = picks[pick].value};
  const MusterLookupText text = {.filename = "words",
                                 .vocab_size = (gint64)(data[0] / G_N_ELEMENTS (picks)) % 4 - 1,
                                 .delimiter = '\t',
                                 .key_index = picks[pick].key_index,
                                 .value_index = picks[pick].value_index,
                                 .offset = G_MAXINT64};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) keys = NULL, values = NULL;
  g_autoptr (MusterMemoryStorage) memory = memory_storage_new ();
  g_autoptr (MusterLookupTable) table = muster_lookup_table_new (&kind);
  memory_storage_put (memory, "words", data + 1, size - 1);
  const gboolean filled = muster_lookup_table_fill_from_text (table, &text, MUSTER_STORAGE (memory),
                                                              NULL, NULL, &error);
  g_assert_true (filled == (error == NULL));
  g_assert_true (filled == muster_lookup_table_is_filled (table));
  if (!filled) {
    g_assert_cmpint (muster_lookup_table_size (table), ==, 0);
    return 0;
  }
  g_assert_true (muster_lookup_table_export (table, &keys, &values, NULL, NULL));
  g_assert_cmpint (muster_tensor_n_elements (keys), ==, muster_lookup_table_size (table));
  g_autoptr (MusterTensor) found = muster_lookup_table_find (table, keys, values, NULL, NULL);
  g_assert_true (found != NULL && muster_tensor_equal (found, values));
  return 0;
}

void
muster_fuzz_seeds (void)
{
  static const char *const seeds[] = {
      "a\nb\r\nc", "x\ty\tz\n1\t2\t3\n", "a\t1.5\nb\t-0x1p3\n", "1\t-2\n 3 \t+4\n", "7\n8\n",
      "a\n\nb"};
  for (guint8 i = 0; i < G_N_ELEMENTS (seeds); i++)
    muster_fuzz_seed (&i, seeds[i], strlen (seeds[i]));
}

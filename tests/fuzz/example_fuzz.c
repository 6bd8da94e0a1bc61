// SPDX-License-Identifier: Apache-2.0
/* Bytes as a tensorflow.Example: each feature counted and copied as each of its types. */
#include "engine/kernels/io/example_parser.h"
#include "tests/fuzz/fuzz.h"

const gsize muster_fuzz_n_picks = 0;

static void
read_as (MusterString feature, MusterDType dtype, gsize size)
{
  const gsize each = dtype == MUSTER_STRING  ? sizeof (MusterString)
                     : dtype == MUSTER_FLOAT ? sizeof (float)
                                             : sizeof (gint64);
  const gint64 n = muster_feature_count (feature, dtype);
  g_assert_true (n >= -1 && n <= (gint64)size);
  if (n <= 0)
    return;
  g_autofree guint8 *values = g_malloc ((gsize)n * each); /* not one byte more */
  muster_feature_copy (feature, dtype, values);
  gsize total = 0;
  for (gint64 i = 0; dtype == MUSTER_STRING && i < n; i++)
    total += ((const MusterString *)values)[i].size;
  g_assert_true (total <= size);
}

int
LLVMFuzzerTestOneInput (const guint8 *data, gsize size)
{
  g_auto (MusterBudget) budget = {.limit = (gsize)1 << 30};
  g_auto (MusterText) features = {.budget = &budget};
  const MusterString bytes = {.data = (const char *)data, .size = size};
  const gboolean is_good = muster_example_read (bytes, &features, NULL);
  g_assert_true (muster_example_n_features (&features) <= size);
  for (gsize i = 0; is_good && i < muster_example_n_features (&features); i++) {
    const MusterFeature *feature = muster_example_feature (&features, i);
    MusterDType dtype;
    if (muster_feature_dtype (feature->value, &dtype) && dtype != MUSTER_INVALID)
      read_as (feature->value, dtype, size);
  }
  return 0;
}

void
muster_fuzz_seeds (void)
{
  static const char seeds[][32] = {
      "\x0a\x0d\x0a\x0b\x0a\1s\x12\6\x0a\4\x0a\2ab",
      "\x0a\x11\x0a\x0f\x0a\1f\x12\x0a\x12\x08\x0a\6\1\2\3\4\5\6",
      "\x0a\x0d\x0a\x0b\x0a\1i\x12\6\x1a\4\x0a\2\1\2",
      "\x0a\x0d\x0a\x0b\x12\6\x1a\4\x08\1\x08\2\x0a\1i\x10\1",
  };
  for (gsize i = 0; i < G_N_ELEMENTS (seeds); i++)
    muster_fuzz_seed (NULL, seeds[i], strlen (seeds[i]));
}

// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/io/example_parser.h"

#include "tests/gtest_shim.h"

#include <string.h>

#define BYTES(text) ((MusterString){.data = (text), .size = sizeof (text) - 1})

/* "s" has ["ab", ""], "i" [1, 300] packed, "f" [1.0] by itself; "e" is empty; "s" comes again. */
static const char whole[] = "\x0a\x32"
                            "\x0a\x0d\x0a\1s\x12\x08\x0a\6\x0a\2ab\x0a\0"
                            "\x0a\x0c\x0a\1i\x12\7\x1a\5\x0a\3\1\xac\2"
                            "\x0a\x0c\x0a\1f\x12\7\x12\5\x0d\0\0\x80?"
                            "\x0a\5\x0a\1e\x12\0"
                            "\x10\7"
                            "\x0a\7\x0a\5\x0a\1s\x12\0";

static const MusterFeature *
feature_at (const MusterText *features, gsize i, const char *name)
{
  const MusterFeature *feature = muster_example_feature (features, i);
  MUSTER_EXPECT_MEMEQ (feature->name.data, feature->name.size, name, strlen (name));
  return feature;
}

MUSTER_TEST (Example, has_its_features_in_their_order)
{
  g_auto (MusterBudget) budget = {.limit = 1 << 20};
  g_auto (MusterText) features = {.budget = &budget};
  MusterString strings[2];
  gint64 ints[2];
  float number;
  MusterDType dtype;
  MUSTER_ASSERT_TRUE (muster_example_read (BYTES (whole), &features, NULL));
  MUSTER_ASSERT_TRUE (muster_example_n_features (&features) == 5);
  const MusterString text = feature_at (&features, 0, "s")->value;
  const MusterString whole_numbers = feature_at (&features, 1, "i")->value;
  const MusterString numbers = feature_at (&features, 2, "f")->value;
  const MusterString empty = feature_at (&features, 3, "e")->value;
  (void)feature_at (&features, 4, "s");
  MUSTER_EXPECT_TRUE (muster_feature_dtype (text, &dtype) && dtype == MUSTER_STRING);
  MUSTER_EXPECT_TRUE (muster_feature_dtype (whole_numbers, &dtype) && dtype == MUSTER_INT64);
  MUSTER_EXPECT_TRUE (muster_feature_dtype (numbers, &dtype) && dtype == MUSTER_FLOAT);
  MUSTER_EXPECT_TRUE (muster_feature_dtype (empty, &dtype) && dtype == MUSTER_INVALID);
  MUSTER_ASSERT_TRUE (muster_feature_count (text, MUSTER_STRING) == 2);
  MUSTER_ASSERT_TRUE (muster_feature_count (whole_numbers, MUSTER_INT64) == 2);
  MUSTER_ASSERT_TRUE (muster_feature_count (numbers, MUSTER_FLOAT) == 1);
  muster_feature_copy (text, MUSTER_STRING, strings);
  muster_feature_copy (whole_numbers, MUSTER_INT64, ints);
  muster_feature_copy (numbers, MUSTER_FLOAT, &number);
  MUSTER_EXPECT_MEMEQ (strings[0].data, strings[0].size, "ab", 2);
  MUSTER_EXPECT_EQ (strings[1].size, 0);
  MUSTER_EXPECT_EQ (ints[1], 300);
  MUSTER_EXPECT_TRUE (number == 1);
}

/* Whatever is cut off, nothing behind the end is read. */
MUSTER_TEST (Example, that_is_truncated_is_none_or_has_less)
{
  for (gsize size = 0; size < sizeof whole - 1; size++) {
    g_auto (MusterBudget) budget = {.limit = 1 << 20};
    g_auto (MusterText) features = {.budget = &budget};
    g_autofree char *copy = size > 0 ? g_memdup2 (whole, size) : NULL;
    if (!muster_example_read ((MusterString){.data = copy, .size = size}, &features, NULL))
      continue;
    for (gsize i = 0; i < muster_example_n_features (&features); i++) {
      const MusterString value = muster_example_feature (&features, i)->value;
      MusterDType dtype;
      if (muster_feature_dtype (value, &dtype) && dtype != MUSTER_INVALID)
        MUSTER_EXPECT_LE (muster_feature_count (value, dtype), 2);
    }
  }
}

MUSTER_TEST (Example, whose_last_float_is_truncated_has_those_before)
{
  float numbers[] = {0, 2};
  const MusterString value = BYTES ("\x12\x08\x0a\6\0\0\x80?\1\1");
  MUSTER_ASSERT_TRUE (muster_feature_count (value, MUSTER_FLOAT) == 1);
  muster_feature_copy (value, MUSTER_FLOAT, numbers);
  MUSTER_EXPECT_TRUE (numbers[0] == 1 && numbers[1] == 2);
}

MUSTER_TEST (Example, whose_values_are_damaged_says_so)
{
  MusterDType dtype;
  MUSTER_EXPECT_FALSE (muster_feature_dtype (BYTES ("\x22\0"), &dtype));
  MUSTER_EXPECT_EQ (muster_feature_count (BYTES ("\x0a\3\x0a\5a"), MUSTER_STRING), -1);
  MUSTER_EXPECT_EQ (muster_feature_count (BYTES ("\x12\3\x0d\0\0"), MUSTER_FLOAT), -1);
  MUSTER_EXPECT_EQ (muster_feature_count (BYTES ("\x12\7\x0a\xff\xff\xff\xff\x0f."), MUSTER_FLOAT),
                    -1);
  MUSTER_EXPECT_EQ (muster_feature_count (BYTES ("\x1a\3\x0a\1\xff"), MUSTER_INT64), -1);
  MUSTER_EXPECT_EQ (muster_feature_count (BYTES ("\x1a\2\x0d\1"), MUSTER_INT64), -1);
  MUSTER_EXPECT_EQ (muster_feature_count (BYTES ("\x1a"), MUSTER_INT64), -1);
}

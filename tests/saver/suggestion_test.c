// SPDX-License-Identifier: Apache-2.0
#include "saver/builder/suggestion_private.h"

#include "base/names_private.h"
#include "checkpoint/format/bundle_reader.h"
#include "tests/doubles/small_model.h"
#include "tests/gtest_shim.h"

MUSTER_TEST (Suggestion, counts_edits)
{
  MUSTER_EXPECT_EQ (muster_edit_distance ("bias", "bias", 9), 0u);
  MUSTER_EXPECT_EQ (muster_edit_distance ("bias", "biases", 9), 2u);
  MUSTER_EXPECT_EQ (muster_edit_distance ("kernel", "colonel", 9), 4u);
  MUSTER_EXPECT_EQ (muster_edit_distance ("", "abc", 9), 3u);
}

MUSTER_TEST (Suggestion, stops_counting_at_the_limit)
{
  MUSTER_EXPECT_EQ (muster_edit_distance ("abcdef", "uvwxyz", 3), 4u);
  MUSTER_EXPECT_EQ (muster_edit_distance ("a", "abcdefgh", 3), 4u);
}

MUSTER_TEST (Suggestion, gives_up_on_names_of_any_length)
{
  g_autofree char *monster = g_strnfill (100000, 'x');

  MUSTER_EXPECT_EQ (muster_edit_distance (monster, monster, 7), 8u);
}

MUSTER_TEST (Suggestion, finds_the_name_that_was_meant)
{
  const MusterSmallVariable variables[] = {
      {"dense/bias", MUSTER_FLOAT, 1, {2, 0}},
      {"dense/kernel", MUSTER_FLOAT, 1, {2, 0}},
  };
  g_autofree char *prefix = g_build_filename (muster_test_tmpdir (), "model", NULL);

  MUSTER_ASSERT_TRUE (muster_small_model_write (prefix, variables, 2, 0, NULL));
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, prefix, NULL);
  MUSTER_ASSERT_TRUE (reader != NULL);

  gsize n;
  g_autofree const MusterBundleEntry **there = muster_bundle_reader_entries (reader, &n);
  g_autoptr (GHashTable) taken = g_hash_table_new (g_str_hash, g_str_equal);
  MUSTER_EXPECT_STREQ (muster_suggest_name (there, n, taken, "dense/biases"), "dense/bias");
  MUSTER_EXPECT_STREQ (muster_suggest_name (there, n, taken, "dense_1/kernel"), "dense/kernel");
  MUSTER_EXPECT_NULL (muster_suggest_name (there, n, taken, "global_step"));
  MUSTER_EXPECT_STREQ (muster_suggest_name (there, n, taken, "hidden/bias"), "dense/bias");
  MUSTER_EXPECT_STREQ (muster_suggest_name (there, n, taken, "a/hidden/kernel"), "dense/kernel");
  g_hash_table_add (taken, (gpointer) "dense/bias");
  MUSTER_EXPECT_NULL (muster_suggest_name (there, n, taken, "hidden/bias"));
  MUSTER_EXPECT_NULL (muster_suggest_name (there, n, taken, "dense/biases"));
}

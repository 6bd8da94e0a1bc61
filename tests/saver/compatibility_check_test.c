// SPDX-License-Identifier: Apache-2.0
#include "saver/saver.h"
#include "tests/doubles/small_model.h"
#include "tests/gtest_shim.h"

#include <string.h>

static const MusterSmallVariable graph[] = {
    {"dense_1/kernel", MUSTER_FLOAT, 2, {64, 256}},
    {"dense_1/bias", MUSTER_FLOAT, 1, {256, 0}},
    {"dense_2/bias", MUSTER_FLOAT, 1, {10, 0}},
    {"embedding", MUSTER_FLOAT, 1, {4, 0}},
};

static MusterSaver *
saver_for (const MusterSmallVariable *variables, gsize n)
{
  g_autoptr (MusterMetaGraph) meta_graph = muster_small_model_new (variables, n, 5);
  return muster_saver_new (meta_graph, NULL, NULL);
}

static char *
write_model (const MusterSmallVariable *variables, gsize n)
{
  char *prefix = g_build_filename (muster_test_tmpdir (), "model.ckpt-1200", NULL);
  if (!muster_small_model_write (prefix, variables, n, 1, NULL))
    MUSTER_FAIL ("can't write '%s'", prefix);
  return prefix;
}

MUSTER_TEST (CompatibilityCheck, passes_a_checkpoint_that_fits)
{
  g_autoptr (MusterSaver) saver = saver_for (graph, G_N_ELEMENTS (graph));
  g_autofree char *prefix = write_model (graph, G_N_ELEMENTS (graph));
  g_autoptr (GError) error = NULL;

  MUSTER_EXPECT_TRUE (muster_saver_check_compatible (saver, prefix, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

/* SAV.63: names that the saver doesn't know are ignored */
MUSTER_TEST (CompatibilityCheck, passes_a_checkpoint_that_holds_more)
{
  g_autoptr (MusterSaver) saver = saver_for (graph, 2);
  g_autofree char *prefix = write_model (graph, G_N_ELEMENTS (graph));

  MUSTER_EXPECT_TRUE (muster_saver_check_compatible (saver, prefix, NULL, NULL));
}

/* SAV.63, SAV.65, SAV.66, DIFF.21 */
MUSTER_TEST (CompatibilityCheck, lists_every_fault_at_once)
{
  const MusterSmallVariable file[] = {
      {"dense_1/kernel", MUSTER_FLOAT, 2, {64, 128}},
      {"dense_1/bias", MUSTER_FLOAT, 1, {256, 0}},
      {"dense_2/biases", MUSTER_FLOAT, 1, {10, 0}},
      {"embedding", MUSTER_INT32, 1, {4, 0}},
  };
  g_autoptr (MusterSaver) saver = saver_for (graph, G_N_ELEMENTS (graph));
  g_autofree char *prefix = write_model (file, G_N_ELEMENTS (file));
  g_autoptr (GError) error = NULL;

  MUSTER_EXPECT_FALSE (muster_saver_check_compatible (saver, prefix, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  g_autofree char *expected = g_strdup_printf (
      "'%s' does not fit the graph: 3 of 4 variables\n"
      "  dense_1/kernel  shape [64,128] in the checkpoint, [64,256] in the graph\n"
      "  dense_2/bias    not found in checkpoint; nearest: dense_2/biases\n"
      "  embedding       int32 in the checkpoint, float in the graph\n"
      "  to read what was renamed, use `muster prepare "
      "--rename='dense_2/bias=dense_2/biases'`, or once `muster checkpoint rename "
      "--map='dense_2/biases=dense_2/bias'`\n"
      "  if it is another model's, use another directory; to initialise what isn't "
      "in the checkpoint, use --allow-missing (allow_missing)",
      prefix);
  MUSTER_EXPECT_STREQ (error->message, expected);
}

MUSTER_TEST (CompatibilityCheck, names_the_first_of_many_that_are_missing)
{
  MusterSmallVariable all[200];
  char names[G_N_ELEMENTS (all)][16];
  g_autoptr (GError) error = NULL;
  for (guint i = 0; i < G_N_ELEMENTS (all); i++) {
    g_snprintf (names[i], sizeof names[i], "v%03u", i);
    all[i] = (MusterSmallVariable){names[i], MUSTER_FLOAT, 1, {1, 0}};
  }
  g_autoptr (MusterSaver) saver = saver_for (all, G_N_ELEMENTS (all));
  g_autofree char *prefix = write_model (graph, 1);

  MUSTER_EXPECT_FALSE (muster_saver_check_compatible (saver, prefix, NULL, &error));

  MUSTER_ASSERT_TRUE (error != NULL);
  MUSTER_EXPECT_TRUE (strstr (error->message, "200 of 200 variables\n  v000  not found") != NULL);
  MUSTER_EXPECT_TRUE (strstr (error->message, "\n  and 150 more\n") != NULL);
  MUSTER_EXPECT_TRUE (g_str_has_suffix (error->message, "another model: use another directory"));
}

MUSTER_TEST (CompatibilityCheck, advises_the_rule_for_a_scope_that_was_renamed)
{
  const MusterSmallVariable here[] = {{"hidden/bias", MUSTER_FLOAT, 1, {2, 0}},
                                      {"hidden/kernel", MUSTER_FLOAT, 1, {2, 0}},
                                      {"out/bias", MUSTER_FLOAT, 1, {2, 0}}};
  const MusterSmallVariable there[] = {{"dense/bias", MUSTER_FLOAT, 1, {2, 0}},
                                       {"dense/kernel", MUSTER_FLOAT, 1, {2, 0}},
                                       {"out/bias", MUSTER_FLOAT, 1, {2, 0}}};
  g_autoptr (MusterSaver) saver = saver_for (here, G_N_ELEMENTS (here));
  g_autofree char *prefix = write_model (there, G_N_ELEMENTS (there));
  g_autoptr (GError) error = NULL;

  MUSTER_EXPECT_FALSE (muster_saver_check_compatible (saver, prefix, NULL, &error));

  MUSTER_ASSERT_TRUE (error != NULL);
  MUSTER_EXPECT_TRUE (
      strstr (error->message, "hidden/kernel  not found in checkpoint; nearest: dense/kernel"));
  MUSTER_EXPECT_TRUE (strstr (error->message,
                              "`muster prepare --rename='hidden/*=dense/*'`, or once "
                              "`muster checkpoint rename --map='dense/*=hidden/*'`"));
}

/* A difference of shapes isn't mended by that. */
MUSTER_TEST (CompatibilityCheck, proposes_to_initialise_only_what_is_missing)
{
  const MusterSmallVariable file[] = {{"dense_1/kernel", MUSTER_FLOAT, 2, {64, 128}}};
  g_autoptr (MusterSaver) saver = saver_for (graph, 1);
  g_autofree char *prefix = write_model (file, 1);
  g_autoptr (GError) error = NULL;

  MUSTER_EXPECT_FALSE (muster_saver_check_compatible (saver, prefix, NULL, &error));

  MUSTER_ASSERT_TRUE (error != NULL);
  MUSTER_EXPECT_TRUE (strstr (error->message, "allow") == NULL);
}

/* SAV.61 */
MUSTER_TEST (CompatibilityCheck, says_that_there_is_no_such_checkpoint)
{
  g_autoptr (MusterSaver) saver = saver_for (graph, 1);
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_FALSE (muster_saver_check_compatible (saver, "/nowhere/model", NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND);
  MUSTER_ASSERT_TRUE (error != NULL);
  MUSTER_EXPECT_TRUE (g_str_has_prefix (
      error->message, "The passed save_path is not a valid checkpoint: /nowhere/model"));
}

static void
expect_named (const char *given, const char *expected)
{
  g_autoptr (MusterSaver) saver = saver_for (graph, 1);
  g_autoptr (GError) error = NULL;
  MUSTER_TRACE ("%s", given);

  MUSTER_EXPECT_FALSE (muster_saver_check_compatible (saver, given, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND);
  MUSTER_ASSERT_TRUE (error != NULL);
  MUSTER_EXPECT_TRUE (strstr (error->message, expected) != NULL);
}

MUSTER_TEST (CompatibilityCheck, names_the_checkpoint_that_was_meant)
{
  static const char *const ends[] = {".index", ".data-00000-of-00001", ".meta"};
  g_autofree char *prefix = g_build_filename (muster_test_tmpdir (), "model.ckpt-40", NULL);
  g_autofree char *start = g_build_filename (muster_test_tmpdir (), "model.ckpt", NULL);
  g_autoptr (GError) error = NULL;
  muster_small_model_write (prefix, graph, 1, 1, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  for (gsize i = 0; i < G_N_ELEMENTS (ends); i++) {
    g_autofree char *given = g_strconcat (prefix, ends[i], NULL);
    g_autofree char *meant = g_strdup_printf ("of the checkpoint '%s'", prefix);
    expect_named (given, meant);
  }
  g_autofree char *one = g_strdup_printf ("use one of '%s'", prefix);
  expect_named (start, one);
  expect_named (muster_test_tmpdir (), "use --checkpoint-dir");
}

MUSTER_TEST (CompatibilityCheck, names_what_lies_in_the_place_of_an_index)
{
  static const struct {
    const char *text, *name;
  } cases[] = {
      {"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "Git LFS"},
      {"<!DOCTYPE html><html><body>Sign in</body></html>\n", "HTML"},
  };
  g_autoptr (MusterSaver) saver = saver_for (graph, 1);
  g_autofree char *prefix = g_build_filename (muster_test_tmpdir (), "m", NULL);
  g_autofree char *index = g_strconcat (prefix, ".index", NULL);

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    MUSTER_EXPECT_TRUE (g_file_set_contents (index, cases[i].text, -1, NULL));
    MUSTER_EXPECT_FALSE (muster_saver_check_compatible (saver, prefix, NULL, &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
    MUSTER_ASSERT_TRUE (error != NULL);
    MUSTER_EXPECT_TRUE (strstr (error->message, cases[i].name) != NULL);
  }
}

/* Changes one byte of each part of the data file in turn, and cuts it. */
MUSTER_TEST (CompatibilityCheck, finds_damage_wherever_it_is)
{
  g_autoptr (MusterSaver) saver = saver_for (graph, G_N_ELEMENTS (graph));
  g_autofree char *prefix = write_model (graph, G_N_ELEMENTS (graph));
  g_autofree char *path = g_strconcat (prefix, ".data-00000-of-00001", NULL);
  g_autofree char *bytes = NULL;
  gsize size;

  MUSTER_ASSERT_TRUE (g_file_get_contents (path, &bytes, &size, NULL));
  for (int part = 0; part < 8; part++) {
    g_autoptr (GError) error = NULL;
    gsize place = (size - 1) * (gsize)part / 7;
    bytes[place] ^= 1;
    g_file_set_contents (path, bytes, (gssize)size, NULL);
    bytes[place] ^= 1;
    MUSTER_EXPECT_FALSE (muster_saver_check_compatible (saver, prefix, NULL, &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
  }
  g_autoptr (GError) cut = NULL;
  g_file_set_contents (path, bytes, (gssize)size - 1, NULL);
  MUSTER_EXPECT_FALSE (muster_saver_check_compatible (saver, prefix, NULL, &cut));
  MUSTER_EXPECT_ERROR (cut, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
}

/* SAV.15: the index alone makes a checkpoint, but not a whole one */
MUSTER_TEST (CompatibilityCheck, finds_that_the_data_are_missing)
{
  g_autoptr (MusterSaver) saver = saver_for (graph, 1);
  g_autofree char *prefix = write_model (graph, 1);
  g_autofree char *path = g_strconcat (prefix, ".data-00000-of-00001", NULL);
  g_autoptr (GError) error = NULL;

  MUSTER_EXPECT_TRUE (muster_storage_remove (muster_local_storage (), path, NULL));
  MUSTER_EXPECT_FALSE (muster_saver_check_compatible (saver, prefix, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
}

MUSTER_TEST (CompatibilityCheck, can_be_cancelled)
{
  g_autoptr (MusterSaver) saver = saver_for (graph, G_N_ELEMENTS (graph));
  g_autofree char *prefix = write_model (graph, G_N_ELEMENTS (graph));
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;

  g_cancellable_cancel (cancellable);
  MUSTER_EXPECT_FALSE (muster_saver_check_compatible (saver, prefix, cancellable, &error));

  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

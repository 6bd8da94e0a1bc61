// SPDX-License-Identifier: Apache-2.0
/* What is made of checkpoints: averages, parts and other names; and what is refused.
 * tests/tensorflow/edit_test.py has TensorFlow read the results. */
#include "base/error.h"
#include "graph/npy.h"
#include "tests/checkpoint/edit_fixture.h"
#include "tests/doubles/memory_storage.h"

#include <glib/gstdio.h>
#include <string.h>

static gboolean
merge (MusterStorage *storage, const char *a, const char *b, GError **error)
{
  const char *const from[] = {a, b, NULL};
  const MusterEditOptions options = {.storage = storage};
  return muster_checkpoint_merge (from, "to/mean", &options, NULL, NULL, NULL, MUSTER_WAIT_FOREVER,
                                  NULL, error);
}

MUSTER_TEST (Merge, averages_floats_and_takes_the_rest_from_the_last)
{
  g_autoptr (MusterStorage) storage = edit_store_with ("run/m-1", 1);
  edit_write_model (storage, "run/m-2", 2000, 4);
  g_autoptr (GError) error = NULL;

  MUSTER_EXPECT_TRUE (merge (storage, "run/m-1", "run/m-2", &error));

  MUSTER_ASSERT_NO_ERROR (error);
  edit_expect_first (storage, "to/mean", "a", "2.5");
  edit_expect_first (storage, "to/mean", "b/step", "4");
  edit_expect_first (storage, "to/mean", "w", "4");
  g_autofree char *files = edit_files_in (storage, "to");
  MUSTER_EXPECT_TRUE (strstr (files, "checkpoint") == NULL); /* nobody lists it */
}

/* The command reads what it replaces. */
MUSTER_TEST (Edit, in_place_leaves_no_data_of_what_it_replaces)
{
  static const char *const rules[] = {"a", "x", NULL}, *const all[] = {"*", NULL};
  g_autofree char *directory = in_tmpdir ("place"), *prefix = in_tmpdir ("place/m-1");
  const char *const twice[] = {prefix, prefix, NULL};
  const MusterEditOptions options = {.replaces = TRUE};
  g_autoptr (GError) error = NULL;
  MUSTER_ASSERT_EQ (g_mkdir (directory, 0777), 0);
  edit_write_model (NULL, prefix, 2000, 1);

  MUSTER_EXPECT_TRUE (muster_checkpoint_merge (twice, prefix, &options, NULL, NULL, NULL,
                                               MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_TRUE (muster_checkpoint_rename (prefix, rules, prefix, &options, NULL, NULL, NULL,
                                                MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_TRUE (muster_checkpoint_extract (prefix, all, prefix, &options, NULL, NULL, NULL,
                                                 MUSTER_WAIT_FOREVER, NULL, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  edit_expect_first (NULL, prefix, "x", "1");
  g_auto (GStrv) files = muster_storage_list (muster_local_storage (), directory, NULL);
  guint n_data = 0;
  for (char **file = files; *file != NULL; file++)
    n_data += strstr (*file, ".data-") != NULL;
  MUSTER_EXPECT_EQ (n_data, 1u);
}

static void
expect_no_merge (MusterStorage *storage, const char *other, const char *why)
{
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_FALSE (merge (storage, "run/m-1", other, &error));
  MUSTER_EXPECT_TRUE (muster_error_is (error, MUSTER_ERROR_INVALID_ARGUMENT));
  MUSTER_EXPECT_TRUE (strstr (error->message, why) != NULL);
  g_autofree char *files = edit_files_in (storage, "to");
  MUSTER_EXPECT_STREQ (files, "");
}

static void
write_only (MusterStorage *storage, const char *prefix, const char *name, const char *slice,
            MusterTensor *tensor)
{
  g_autoptr (MusterBundleWriter) writer = muster_bundle_writer_new (storage, prefix, NULL);
  add_tensor (writer, name, slice, tensor);
  MUSTER_EXPECT_TRUE (muster_bundle_writer_finish (writer, NULL));
}

MUSTER_TEST (Merge, names_the_first_difference)
{
  g_autoptr (MusterStorage) storage = MUSTER_STORAGE (memory_storage_new ());
  const gint64 dims[] = {2, 3}, part[] = {1, 3};
  write_only (storage, "run/m-1", "a", NULL, counting_int32 (2, dims, 0));
  write_only (storage, "run/type", "a", NULL, edit_floats (6, 0));
  write_only (storage, "run/shape", "a", NULL, counting_int32 (1, dims, 0));
  write_only (storage, "run/name", "b", NULL, counting_int32 (2, dims, 0));
  expect_no_merge (storage, "run/type",
                   "the tensor 'a' has the type int32 in 'run/m-1', but float in 'run/type'");
  expect_no_merge (storage, "run/shape",
                   "the tensor 'a' has the shape [2,3] in 'run/m-1', but [2] in 'run/shape'");
  expect_no_merge (storage, "run/name", "'run/name' has no tensor 'a', which 'run/m-1' has");
  g_autoptr (MusterBundleWriter) writer = muster_bundle_writer_new (storage, "run/slices", NULL);
  add_tensor (writer, "a", "2 3 0,1:-", counting_int32 (2, part, 0));
  add_tensor (writer, "a", "2 3 1,1:-", counting_int32 (2, part, 0));
  MUSTER_EXPECT_TRUE (muster_bundle_writer_finish (writer, NULL));
  expect_no_merge (storage, "run/slices",
                   "the tensor 'a' is partitioned differently in 'run/m-1' than in 'run/slices'");
}

/* Half a unit in the last place of each type, and what a second rounding would lose. */
MUSTER_TEST (Merge, rounds_once)
{
  static const struct {
    MusterDType dtype;
    guint16 a, b, c, mean; /* bits */
  } cases[] = {
      {MUSTER_HALF, 0x3c00, 0x3c01, 0x3c01, 0x3c01}, /* 1, 1 + u, 1 + u: 1 + 2/3 u */
      {MUSTER_HALF, 0x3c00, 0x3c00, 0x3c01, 0x3c00}, /* 1 + 1/3 u */
      {MUSTER_HALF, 0x7bff, 0x7bff, 0x7bff, 0x7bff}, /* the sum is beyond the type */
      {MUSTER_BFLOAT16, 0x3f80, 0x3f81, 0x3f81, 0x3f81},
      {MUSTER_BFLOAT16, 0x7f7f, 0x7f7f, 0x7f7f, 0x7f7f},
  };
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (MusterStorage) storage = MUSTER_STORAGE (memory_storage_new ());
    const guint16 bits[] = {cases[i].a, cases[i].b, cases[i].c};
    const char *const from[] = {"m-0", "m-1", "m-2", NULL};
    const MusterEditOptions options = {.storage = storage};
    g_autoptr (GError) error = NULL;
    for (gsize k = 0; k < 3; k++) {
      MusterTensor *tensor = muster_tensor_new (cases[i].dtype, 0, NULL);
      memcpy (muster_tensor_data_mutable (tensor), &bits[k], sizeof bits[k]);
      write_only (storage, from[k], "x", NULL, tensor);
    }
    MUSTER_EXPECT_TRUE (muster_checkpoint_merge (from, "mean", &options, NULL, NULL, NULL,
                                                 MUSTER_WAIT_FOREVER, NULL, &error));
    MUSTER_ASSERT_NO_ERROR (error);
    g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (storage, "mean", &error);
    g_autoptr (MusterTensor) mean = muster_bundle_reader_read (reader, "x", &error);
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_EQ (*(const guint16 *)muster_tensor_data (mean), cases[i].mean);
  }
}

/* 2, 2 + 2^-9, 2^-24 and 0: their mean is a little above the middle of 1 and the next number, where
 * a float between would be the middle itself. */
MUSTER_TEST (Merge, doesnt_round_to_float_first)
{
  static const guint16 bits[] = {0x4000, 0x4001, 0x0001, 0x0000};
  static const char *const from[] = {"m-0", "m-1", "m-2", "m-3", NULL};
  g_autoptr (MusterStorage) storage = MUSTER_STORAGE (memory_storage_new ());
  const MusterEditOptions options = {.storage = storage};
  g_autoptr (GError) error = NULL;
  for (gsize k = 0; k < G_N_ELEMENTS (bits); k++) {
    MusterTensor *tensor = muster_tensor_new (MUSTER_HALF, 0, NULL);
    memcpy (muster_tensor_data_mutable (tensor), &bits[k], sizeof bits[k]);
    write_only (storage, from[k], "x", NULL, tensor);
  }
  MUSTER_EXPECT_TRUE (muster_checkpoint_merge (from, "mean", &options, NULL, NULL, NULL,
                                               MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (storage, "mean", &error);
  g_autoptr (MusterTensor) mean = muster_bundle_reader_read (reader, "x", &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (*(const guint16 *)muster_tensor_data (mean), 0x3c01);
}

MUSTER_TEST (Extract, keeps_slices_and_refuses_a_pattern_without_a_match)
{
  g_autoptr (MusterStorage) storage = edit_store_with ("run/m-5", 1);
  const MusterEditOptions options = {.storage = storage};
  const char *const some[] = {"w", "b/*", NULL}, *const none[] = {"a", "c*", NULL};
  g_autoptr (GError) error = NULL;
  MusterEditReport report;
  MUSTER_EXPECT_TRUE (muster_checkpoint_extract ("run/m-5", some, "to/small", &options, &report,
                                                 NULL, NULL, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (storage, "to/small", NULL);
  MUSTER_EXPECT_EQ (muster_bundle_reader_n_entries (reader), 2);
  MUSTER_EXPECT_EQ (muster_bundle_reader_n_slices (reader, "w"), 2);
  MUSTER_EXPECT_EQ (report.bytes, 48 + 8);
  edit_expect_first (storage, "to/small", "b/step", "1");

  MUSTER_EXPECT_FALSE (muster_checkpoint_extract ("run/m-5", none, "to/none", &options, NULL, NULL,
                                                  NULL, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_TRUE (muster_error_is (error, MUSTER_ERROR_NOT_FOUND));
  MUSTER_EXPECT_TRUE (strstr (error->message, "matches 'c*'") != NULL);
}

MUSTER_TEST (Extract, writes_npy_files)
{
  g_autoptr (MusterStorage) storage = edit_store_with ("run/m-5", 1);
  const MusterEditOptions options = {.storage = storage};
  const char *const some[] = {"?", "b/step", NULL}, *const words[] = {"words", NULL};
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (muster_checkpoint_extract_npy ("run/m-5", some, "to", &options, NULL, NULL,
                                                     NULL, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  g_autofree char *files = edit_files_in (storage, "to");
  MUSTER_EXPECT_TRUE (strstr (files, "tempstate") == NULL);
  g_autoptr (GBytes) file = muster_storage_read (storage, "to/w.npy", &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterTensor) w = muster_npy_read (file, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  const gint32 *data = muster_tensor_data (w);
  MUSTER_EXPECT_TRUE (muster_tensor_n_elements (w) == 12 && data[0] == 1 && data[6] == 100);
  g_autoptr (GBytes) step = muster_storage_read (storage, "to/b/step.npy", &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_FALSE (muster_checkpoint_extract_npy ("run/m-5", some, "to", &options, NULL, NULL,
                                                      NULL, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_TRUE (muster_error_is (error, MUSTER_ERROR_ALREADY_EXISTS));
  g_clear_error (&error);
  MUSTER_EXPECT_FALSE (muster_checkpoint_extract_npy ("run/m-5", words, "to", &options, NULL, NULL,
                                                      NULL, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_TRUE (muster_error_is (error, MUSTER_ERROR_UNIMPLEMENTED));
}

MUSTER_TEST (Extract, skips_what_is_no_number_unless_it_is_named)
{
  g_autoptr (MusterStorage) storage = edit_store_with ("run/m-5", 1);
  const MusterEditOptions options = {.storage = storage};
  const char *const all[] = {"*", NULL}, *const named[] = {"*", "words", NULL};
  MusterEditReport report;
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_FALSE (muster_checkpoint_extract_npy ("run/m-5", named, "to", &options, NULL, NULL,
                                                      NULL, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_TRUE (muster_error_is (error, MUSTER_ERROR_UNIMPLEMENTED));
  g_clear_error (&error);
  MUSTER_EXPECT_TRUE (muster_checkpoint_extract_npy ("run/m-5", all, "to", &options, &report, NULL,
                                                     NULL, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (report.n_skipped, 1u);
  g_autofree char *files = edit_files_in (storage, "to");
  MUSTER_EXPECT_TRUE (strstr (files, "words") == NULL && strstr (files, "w.npy") != NULL);
}

/* A checkpoint's names are whoever's wrote it. */
MUSTER_TEST (Extract, writes_nothing_outside_its_directory)
{
  static const char *const names[] = {"../x", "/x", "a/../../x", "a//x", "..", ".", "a/"};
  const char *const all[] = {"*", NULL};
  for (gsize i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autoptr (MusterStorage) storage = MUSTER_STORAGE (memory_storage_new ());
    const MusterEditOptions options = {.storage = storage};
    g_autoptr (GError) error = NULL;
    write_only (storage, "run/m", names[i], NULL, edit_floats (1, 0));
    MUSTER_EXPECT_FALSE (muster_checkpoint_extract_npy ("run/m", all, "to", &options, NULL, NULL,
                                                        NULL, MUSTER_WAIT_FOREVER, NULL, &error));
    MUSTER_EXPECT_TRUE (muster_error_is (error, MUSTER_ERROR_INVALID_ARGUMENT));
  }
}

static gboolean
rename_as (MusterStorage *storage, const char *const *names, GError **error)
{
  const MusterEditOptions options = {.storage = storage, .replaces = TRUE};
  return muster_checkpoint_rename ("run/m-5", names, "to/m", &options, NULL, NULL, NULL,
                                   MUSTER_WAIT_FOREVER, NULL, error);
}

MUSTER_TEST (Rename, changes_names_and_beginnings_and_keeps_slices)
{
  g_autoptr (MusterStorage) storage = edit_store_with ("run/m-5", 1);
  const char *const names[] = {"w", "a", "a", "w", "b/*", "c/d/*", NULL};
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (rename_as (storage, names, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (storage, "to/m", NULL);
  g_auto (GStrv) found = muster_bundle_reader_names (reader);
  g_autofree char *joined = g_strjoinv (" ", found);
  MUSTER_EXPECT_STREQ (joined, "a c/d/step w words");
  MUSTER_EXPECT_EQ (muster_bundle_reader_n_slices (reader, "a"), 2);
  edit_expect_first (storage, "to/m", "w", "1");
  g_autoptr (MusterTensor) a = muster_bundle_reader_read (reader, "a", &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (((const gint32 *)muster_tensor_data (a))[6], 100);
}

MUSTER_TEST (Rename, refuses_collisions_and_names_that_arent_there)
{
  g_autoptr (MusterStorage) storage = edit_store_with ("run/m-5", 1);
  static const struct {
    const char *names[5];
    MusterError code;
  } cases[] = {
      {{"a", "w", NULL}, MUSTER_ERROR_ALREADY_EXISTS},
      {{"a", "x", "w", "x", NULL}, MUSTER_ERROR_ALREADY_EXISTS},
      {{"nothing", "x", NULL}, MUSTER_ERROR_NOT_FOUND},
      {{"c/*", "x/*", NULL}, MUSTER_ERROR_NOT_FOUND},
      {{"b/*", "x", NULL}, MUSTER_ERROR_INVALID_ARGUMENT},
      {{"a", "", NULL}, MUSTER_ERROR_INVALID_ARGUMENT},
      {{"a", "\xff", NULL}, MUSTER_ERROR_INVALID_ARGUMENT},
      {{"a", NULL}, MUSTER_ERROR_INVALID_ARGUMENT},
      {{NULL}, MUSTER_ERROR_INVALID_ARGUMENT},
  };
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    MUSTER_EXPECT_FALSE (rename_as (storage, cases[i].names, &error));
    MUSTER_EXPECT_TRUE (muster_error_is (error, cases[i].code));
    MUSTER_EXPECT_FALSE (muster_checkpoint_exists (storage, "to/m"));
  }
}

MUSTER_TEST (Rename, refuses_objects)
{
  g_autofree char *from = golden ("objects-1");
  g_autofree char *to = in_tmpdir ("renamed");
  const char *const names[] = {"*", "x*", NULL};
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_FALSE (muster_checkpoint_rename (from, names, to, NULL, NULL, NULL, NULL,
                                                 MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_TRUE (muster_error_is (error, MUSTER_ERROR_UNIMPLEMENTED));
}

MUSTER_TEST (Extract, knows_objects_by_their_paths)
{
  g_autofree char *from = golden ("objects-1");
  g_autofree char *to = in_tmpdir ("npy");
  g_autofree char *file = g_strconcat (to, "/net/first/kernel.npy", NULL);
  const char *const names[] = {"net/first/*", NULL};
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (muster_checkpoint_extract_npy (from, names, to, NULL, NULL, NULL, NULL,
                                                     MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterTensor) kernel = muster_npy_load (file, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_tensor_n_elements (kernel), 12);
}

// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/format/bundle_writer.h"

#include "base/error.h"
#include "tests/checkpoint/bundle_fixture.h"

#include <string.h>

static gboolean
write_number (MusterStorage *storage, const char *name, gint64 number, GError **error)
{
  g_autofree char *prefix = in_tmpdir (name);
  g_autoptr (MusterBundleWriter) writer = muster_bundle_writer_new (storage, prefix, error);
  g_autoptr (MusterTensor) tensor = muster_tensor_new_int64 (number);
  return writer != NULL && muster_bundle_writer_add (writer, "number", tensor, error) &&
         muster_bundle_writer_finish (writer, error);
}

/* The number, or -1 where there is no checkpoint. Anything else is a broken promise. */
static gint64
read_number (const char *name)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *prefix = in_tmpdir (name);
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, prefix, &error);
  if (reader == NULL) {
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND);
    return -1;
  }
  g_autoptr (MusterTensor) tensor = muster_bundle_reader_read (reader, "number", &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return tensor != NULL ? *(const gint64 *)muster_tensor_data (tensor) : -2;
}

MUSTER_TEST (BundleWriter, publishes_data_then_index_each_synced_before_its_rename)
{
  g_autoptr (MusterFaultyStorage) storage = faulty_storage_new (0);
  MUSTER_EXPECT_TRUE (write_number (MUSTER_STORAGE (storage), "m", 5, NULL));

  MUSTER_EXPECT_STREQ (storage->log->str,
                       "create m.data-00000-of-00001.temp; append; sync; close; "
                       "look m.index; list; create m.index.temp; append; sync; close; "
                       "rename to m.data-00000-of-00001; sync directory; rename to m.index; "
                       "sync directory; ");
  MUSTER_EXPECT_EQ (read_number ("m"), 5);
  MUSTER_EXPECT_EQ (count_files (), 2u);
}

MUSTER_TEST (BundleWriter, a_crash_anywhere_leaves_the_old_checkpoint_or_the_new_one)
{
  gboolean is_written = FALSE;
  gint64 before = 1;
  for (int fail_at = 1; !is_written && fail_at < 60; fail_at++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterFaultyStorage) storage = faulty_storage_new (fail_at);
    g_autofree char *name = g_strdup_printf ("m-%d", fail_at);
    MUSTER_TRACE ("failing call %d", fail_at);
    MUSTER_EXPECT_TRUE (write_number (NULL, name, 1, NULL));

    is_written = write_number (MUSTER_STORAGE (storage), name, 2, &error);

    if (!is_written)
      MUSTER_EXPECT_ERROR (error, G_FILE_ERROR, G_FILE_ERROR_NOSPC);
    const gint64 number = read_number (name);
    MUSTER_EXPECT_TRUE (number == 1 || number == 2);
    MUSTER_EXPECT_GE (number, before); /* from some call on, the new one */
    MUSTER_EXPECT_TRUE (!is_written || number == 2);
    before = number;
  }
}

MUSTER_TEST (BundleWriter, freed_before_finish_it_leaves_nothing)
{
  g_autofree char *prefix = in_tmpdir ("m");
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) tensor = muster_tensor_new_float (1);
  MusterBundleWriter *writer = muster_bundle_writer_new (NULL, prefix, &error);
  MUSTER_EXPECT_TRUE (muster_bundle_writer_add (writer, "a", tensor, &error));
  MUSTER_EXPECT_EQ (count_files (), 1u);
  MUSTER_EXPECT_FALSE (muster_checkpoint_exists (NULL, prefix));

  muster_bundle_writer_free (writer);

  MUSTER_EXPECT_EQ (count_files (), 0u);
}

MUSTER_TEST (BundleWriter, names_are_unique_and_slices_fit_together)
{
  g_autofree char *prefix = in_tmpdir ("m");
  g_autoptr (MusterBundleWriter) writer = muster_bundle_writer_new (NULL, prefix, NULL);
  g_autoptr (MusterTensor) two = counting_int32 (1, (const gint64[]){2}, 0);
  g_autoptr (MusterTensor) other = muster_tensor_new_strv ((const char *const[]){"x", "y", NULL});
  static const struct {
    const char *name, *slice;
    int code;
  } cases[] = {
      {"whole", NULL, 0},
      {"whole", NULL, MUSTER_ERROR_ALREADY_EXISTS},
      {"whole", "4 0,2", MUSTER_ERROR_ALREADY_EXISTS},
      {"parts", "4 0,2", 0},
      {"parts", "4 0,2", MUSTER_ERROR_ALREADY_EXISTS},
      {"parts", "4 1,2", MUSTER_ERROR_ALREADY_EXISTS},
      {"parts", "5 2,2", MUSTER_ERROR_INVALID_ARGUMENT},
      {"parts", "4 3,2", MUSTER_ERROR_INVALID_ARGUMENT},
      {"parts", "4 2,1", MUSTER_ERROR_INVALID_ARGUMENT},
      {"parts", "2,2", MUSTER_ERROR_INVALID_ARGUMENT},
      {"parts", "nonsense", MUSTER_ERROR_INVALID_ARGUMENT},
      {"parts", NULL, MUSTER_ERROR_ALREADY_EXISTS},
      {"parts", "4 2,2", 0},
      {"all of it", "2 0,2", 0},
      {"all of it", NULL, MUSTER_ERROR_ALREADY_EXISTS},
      {"", NULL, MUSTER_ERROR_INVALID_ARGUMENT},
      {"\xff", "4 0,2", MUSTER_ERROR_INVALID_ARGUMENT},
  };
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    MUSTER_TRACE ("case %d", (int)i);
    const gboolean is_added =
        cases[i].slice != NULL
            ? muster_bundle_writer_add_slice (writer, cases[i].name, cases[i].slice, two, &error)
            : muster_bundle_writer_add (writer, cases[i].name, two, &error);
    MUSTER_EXPECT_EQ (is_added, cases[i].code == 0);
    if (cases[i].code != 0)
      MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, cases[i].code);
  }
  g_autoptr (GError) error = NULL;
  muster_bundle_writer_add_slice (writer, "mixed", "4 0,2", two, NULL);
  MUSTER_EXPECT_FALSE (muster_bundle_writer_add_slice (writer, "mixed", "4 2,2", other, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_TRUE (muster_bundle_writer_finish (writer, NULL));
  MUSTER_EXPECT_FALSE (muster_bundle_writer_finish (writer, NULL));
  MUSTER_EXPECT_FALSE (muster_bundle_writer_add (writer, "late", two, NULL));
}

MUSTER_TEST (BundleWriter, takes_all_at_once_and_some_more)
{
  static const char *const texts[] = {"b", "a/longer", "a", NULL}, *const twice[] = {"a", "a",
                                                                                     NULL};
  static const char *const empty[] = {"a", "", NULL}, *const bytes[] = {"\xff", NULL};
  g_autofree char *prefix = in_tmpdir ("all");
  g_autoptr (MusterBundleWriter) writer = muster_bundle_writer_new (NULL, prefix, NULL);
  g_autoptr (MusterTensor) vector = muster_tensor_new_strv (texts);
  g_autoptr (MusterBundleNames) names = muster_bundle_names_new (vector);
  MusterTensor *tensors[3];
  for (int i = 0; i < 3; i++)
    tensors[i] = counting_int32 (1, (const gint64[]){i + 1}, i);
  MUSTER_EXPECT_TRUE (muster_bundle_writer_add_all (writer, names, tensors, NULL));
  MUSTER_EXPECT_FALSE (muster_bundle_writer_add (writer, "a/longer", tensors[0], NULL));
  MUSTER_EXPECT_TRUE (muster_bundle_writer_add (writer, "a/between", tensors[0], NULL));
  MUSTER_EXPECT_TRUE (muster_bundle_writer_finish (writer, NULL));
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, prefix, NULL);
  for (int i = 0; i < 3; i++) {
    g_autoptr (MusterTensor) read = muster_bundle_reader_read (reader, texts[i], NULL);
    MUSTER_EXPECT_TRUE (read != NULL && muster_tensor_equal (read, tensors[i]));
    muster_tensor_unref (tensors[i]);
  }
  MUSTER_EXPECT_TRUE (muster_bundle_reader_verify (reader, NULL, NULL, NULL, NULL));

  const char *const *const refused[] = {twice, empty, bytes};
  for (gsize i = 0; i < G_N_ELEMENTS (refused); i++) {
    g_autoptr (MusterTensor) wrong = muster_tensor_new_strv (refused[i]);
    g_autoptr (MusterBundleNames) none = muster_bundle_names_new (wrong);
    MUSTER_EXPECT_TRUE (none == NULL);
  }
}

MUSTER_TEST (BundleWriter, a_directory_that_is_not_there_is_an_error_with_its_path)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *prefix = in_tmpdir ("absent/m");

  MUSTER_EXPECT_NULL (muster_bundle_writer_new (NULL, prefix, &error));

  MUSTER_EXPECT_SAYS (error, G_FILE_ERROR, G_FILE_ERROR_NOENT, prefix);
}

MUSTER_TEST (BundleWriter, many_tensors_and_large_ones_come_back)
{
  g_autofree char *prefix = in_tmpdir ("m");
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterBundleWriter) writer = muster_bundle_writer_new (NULL, prefix, &error);
  for (int i = 0; i < 3000; i++) {
    const gint64 dims[] = {i % 7 == 0 ? 3000 + i : i % 13};
    g_autofree char *name = g_strdup_printf ("layer_%d/weights", (i * 7919) % 3000);
    g_autoptr (MusterTensor) tensor = counting_int32 (1, dims, i);
    muster_bundle_writer_add (writer, name, tensor, &error);
  }
  g_autoptr (MusterTensor) huge = counting_int32 (1, (const gint64[]){700000}, 5);
  muster_bundle_writer_add (writer, "huge", huge, &error);
  MUSTER_EXPECT_TRUE (muster_bundle_writer_finish (writer, &error));
  MUSTER_ASSERT_NO_ERROR (error);

  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, prefix, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_bundle_reader_n_entries (reader), 3001u);
  for (int i = 0; i < 3000; i++) {
    const gint64 dims[] = {i % 7 == 0 ? 3000 + i : i % 13};
    g_autofree char *name = g_strdup_printf ("layer_%d/weights", (i * 7919) % 3000);
    g_autoptr (MusterTensor) expected = counting_int32 (1, dims, i);
    g_autoptr (MusterTensor) read = muster_bundle_reader_read (reader, name, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_ASSERT_TRUE (muster_tensor_equal (read, expected));
  }
  g_autoptr (MusterTensor) read = muster_bundle_reader_read (reader, "huge", &error);
  MUSTER_EXPECT_TRUE (muster_tensor_equal (read, huge));
}

/* Writes a part with a slice of "w" (rows of 4) and one tensor of its own. */
static char *
write_part (const char *name, const char *slice, gint32 first, const char *own)
{
  g_autoptr (GError) error = NULL;
  char *prefix = in_tmpdir (name);
  g_autoptr (MusterBundleWriter) writer = muster_bundle_writer_new (NULL, prefix, &error);
  g_autoptr (MusterTensor) part = counting_int32 (1, (const gint64[]){2}, first);
  muster_bundle_writer_add_slice (writer, "w", slice, part, &error);
  muster_bundle_writer_add (writer, own, part, &error);
  muster_bundle_writer_finish (writer, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return prefix;
}

MUSTER_TEST (BundleMerge, makes_one_checkpoint_of_several)
{
  g_autofree char *a = write_part ("a", "4 0,2", 0, "x"), *b = write_part ("b", "4 2,2", 2, "y");
  g_autofree char *prefix = in_tmpdir ("whole");
  g_autoptr (GError) error = NULL;

  MUSTER_EXPECT_TRUE (
      muster_bundle_merge (NULL, (const char *const[]){a, b, NULL}, prefix, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, prefix, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_bundle_reader_n_shards (reader), 2);
  MUSTER_EXPECT_EQ (muster_bundle_reader_n_entries (reader), 3u);
  g_autoptr (MusterTensor) w = muster_bundle_reader_read (reader, "w", &error);
  g_autoptr (MusterTensor) y = muster_bundle_reader_read (reader, "y", &error);
  g_autoptr (MusterTensor) expected = counting_int32 (1, (const gint64[]){4}, 0);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (muster_tensor_equal (w, expected));
  MUSTER_EXPECT_EQ (((const gint32 *)muster_tensor_data (y))[0], 2);
  MUSTER_EXPECT_EQ (count_files (), 3u);
}

MUSTER_TEST (BundleMerge, refuses_what_is_there_twice_and_touches_nothing)
{
  g_autofree char *a = write_part ("a", "4 0,2", 0, "x"), *b = write_part ("b", "4 2,2", 2, "x"),
                  *c = write_part ("c", "5 2,2", 2, "z"), *d = write_part ("d", "4 0,2", 2, "z"),
                  *absent = in_tmpdir ("absent"), *prefix = in_tmpdir ("whole");
  const struct {
    const char *parts[3];
    int code;
  } cases[] = {
      {{a, b}, MUSTER_ERROR_ALREADY_EXISTS},        {{a, c}, MUSTER_ERROR_INVALID_ARGUMENT},
      {{a, d}, MUSTER_ERROR_ALREADY_EXISTS},        {{a, absent}, MUSTER_ERROR_NOT_FOUND},
      {{a, prefix}, MUSTER_ERROR_INVALID_ARGUMENT}, {{NULL}, MUSTER_ERROR_INVALID_ARGUMENT},
  };
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    MUSTER_TRACE ("case %d", (int)i);
    MUSTER_EXPECT_FALSE (muster_bundle_merge (NULL, cases[i].parts, prefix, &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, cases[i].code);
    MUSTER_EXPECT_EQ (count_files (), 8u);
  }
}

MUSTER_TEST (BundleMerge, a_crash_anywhere_leaves_the_parts_or_nothing_at_the_prefix)
{
  for (int fail_at = 1; fail_at < 60; fail_at++) {
    g_autofree char *name = g_strdup_printf ("a-%d", fail_at),
                    *other = g_strdup_printf ("b-%d", fail_at),
                    *whole = g_strdup_printf ("w-%d", fail_at);
    g_autofree char *a = write_part (name, "4 0,2", 0, "x"),
                    *b = write_part (other, "4 2,2", 2, "y");
    g_autofree char *prefix = in_tmpdir (whole);
    g_autoptr (MusterFaultyStorage) storage = faulty_storage_new (fail_at);
    if (muster_bundle_merge (MUSTER_STORAGE (storage), (const char *const[]){a, b, NULL}, prefix,
                             NULL)) {
      MUSTER_EXPECT_GE (fail_at, 15); /* only taking the parts' indexes away may fail unnoticed */
      return;
    }
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, prefix, &error);
    MUSTER_TRACE ("failing call %d", fail_at);
    if (reader != NULL)
      MUSTER_EXPECT_TRUE (muster_bundle_reader_verify (reader, NULL, NULL, NULL, &error));
    else
      MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND);
  }
  MUSTER_FAIL ("it never ends");
}

MUSTER_TEST (BundleMerge, that_fails_leaves_the_parts_as_they_were)
{
  g_autofree char *a = write_part ("a", "4 0,2", 0, "x"), *b = write_part ("b", "4 2,2", 2, "y");
  g_autofree char *prefix = in_tmpdir ("whole");
  const char *const parts[] = {a, b, NULL};
  int n_failed = 0;
  for (int fail_at = 1; fail_at < 30; fail_at++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterFaultyStorage) storage = faulty_storage_new (fail_at);
    storage->once = TRUE;
    MUSTER_TRACE ("failing call %d", fail_at);
    if (muster_bundle_merge (MUSTER_STORAGE (storage), parts, prefix, NULL) ||
        muster_checkpoint_exists (NULL, prefix))
      break; /* from the index's rename on it is the whole's */
    n_failed++;
    for (int i = 0; i < 2; i++) {
      g_autoptr (MusterBundleReader) part = muster_bundle_reader_open (NULL, parts[i], &error);
      MUSTER_ASSERT_NO_ERROR (error);
      g_autofree char *own = g_strdup (i == 0 ? "x" : "y");
      g_autoptr (MusterTensor) tensor = muster_bundle_reader_read (part, own, &error);
      MUSTER_ASSERT_NO_ERROR (error);
    }
    MUSTER_EXPECT_EQ (count_files (), 4u);
  }
  MUSTER_EXPECT_EQ (n_failed, 18);
}

// SPDX-License-Identifier: Apache-2.0
/* Checkpoints that TensorFlow wrote (record_golden.py). */
#include "base/error.h"
#include "tests/checkpoint/bundle_fixture.h"

#include <string.h>

static MusterBundleReader *
open_golden (const char *name)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *prefix = golden (name);
  MusterBundleReader *reader = muster_bundle_reader_open (NULL, prefix, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return reader;
}

static void
expect_equal (MusterBundleReader *reader, const char *name, const char *slice,
              MusterTensor *expected)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) wanted = expected;
  g_autoptr (MusterTensor) read = muster_bundle_reader_read_slice (reader, name, slice, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  if (read == NULL)
    return;
  g_autofree char *a = muster_tensor_to_string (read, 20);
  g_autofree char *b = muster_tensor_to_string (wanted, 20);
  MUSTER_EXPECT_STREQ (a, b);
  MUSTER_EXPECT_TRUE (muster_tensor_equal (read, wanted));
}

MUSTER_TEST (Golden, every_dtype_reads_as_tensorflow_wrote_it)
{
  static const struct {
    const char *name;
    MusterDType dtype;
  } cases[] = {
      {"dtype/float32", MUSTER_FLOAT},       {"dtype/float64", MUSTER_DOUBLE},
      {"dtype/int32", MUSTER_INT32},         {"dtype/uint8", MUSTER_UINT8},
      {"dtype/int16", MUSTER_INT16},         {"dtype/int8", MUSTER_INT8},
      {"dtype/complex64", MUSTER_COMPLEX64}, {"dtype/int64", MUSTER_INT64},
      {"dtype/bool", MUSTER_BOOL},           {"dtype/bfloat16", MUSTER_BFLOAT16},
      {"dtype/uint16", MUSTER_UINT16},       {"dtype/complex128", MUSTER_COMPLEX128},
      {"dtype/float16", MUSTER_HALF},        {"dtype/uint32", MUSTER_UINT32},
      {"dtype/uint64", MUSTER_UINT64},
  };
  const gint64 dims[] = {2, 3};
  g_autoptr (MusterBundleReader) reader = open_golden ("dtypes");
  MUSTER_ASSERT_NOT_NULL (reader);

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    expect_equal (reader, cases[i].name, NULL, pattern (cases[i].dtype, 2, dims));

  MUSTER_EXPECT_EQ (muster_bundle_reader_n_entries (reader), G_N_ELEMENTS (cases) + 6);
  MUSTER_EXPECT_EQ (muster_bundle_reader_n_shards (reader), 1);
}

MUSTER_TEST (Golden, an_index_that_tensorflow_compressed_with_snappy)
{
  static const struct {
    const char *name;
    float value;
  } cases[] = {{"a", 0.5f}, {"b", 2}, {"c", 3}};
  g_autoptr (MusterBundleReader) reader = open_golden ("snappy");
  g_autoptr (GError) error = NULL;
  MUSTER_ASSERT_NOT_NULL (reader);

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    expect_equal (reader, cases[i].name, NULL, muster_tensor_new_float (cases[i].value));

  MUSTER_EXPECT_TRUE (muster_bundle_reader_verify (reader, NULL, NULL, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

/* Equal to what the same TensorFlow wrote in the format of today; n: how many there are. */
static void
expect_as (const char *v1, const char *v2, gsize n)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterBundleReader) old = open_golden (v1), new = open_golden (v2);
  MUSTER_ASSERT_TRUE (old != NULL && new != NULL);
  MUSTER_EXPECT_EQ (muster_bundle_reader_n_entries (old), n);
  for (gsize i = 0; i < muster_bundle_reader_n_entries (old); i++) {
    const char *name = muster_bundle_reader_entry (old, i)->name;
    MusterTensor *wanted = muster_bundle_reader_read (new, name, &error);
    MUSTER_EXPECT_NO_ERROR (error);
    if (wanted != NULL)
      expect_equal (old, name, NULL, wanted);
  }
  MUSTER_EXPECT_TRUE (muster_bundle_reader_verify (old, NULL, NULL, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (Golden, v1_checkpoints_read_as_tensorflow_wrote_them)
{
  expect_as ("v1", "dtypes", 18);
  expect_as ("v1_parts-\?\?\?\?\?-of-00002", "shards", 3);
}

MUSTER_TEST (Golden, a_part_of_a_partitioned_variable_of_a_v1_checkpoint)
{
  const gint64 dims[] = {2, 4};
  g_autoptr (MusterBundleReader) reader = open_golden ("v1_parts-\?\?\?\?\?-of-00002");
  MUSTER_ASSERT_NOT_NULL (reader);
  expect_equal (reader, "w", "5 4 2,2:-", counting_int32 (2, dims, 8));
}

MUSTER_TEST (Golden, strings_scalars_and_empty_tensors)
{
  char x[200];
  memset (x, 'x', sizeof x);
  const MusterString texts[] = {{"", 0}, {"one", 3}, {"\0\xff two", 6}, {x, sizeof x}};
  const gint64 square[] = {2, 2}, no_rows[] = {0, 2}, empty[] = {0, 3};
  g_autoptr (MusterBundleReader) reader = open_golden ("dtypes");
  MUSTER_ASSERT_NOT_NULL (reader);

  expect_equal (reader, "strings", NULL, muster_tensor_new_strings (2, square, texts));
  expect_equal (reader, "strings", "2 2 1,1:-",
                muster_tensor_new_strings (2, (const gint64[]){1, 2}, texts + 2));
  expect_equal (reader, "strings/none", NULL, muster_tensor_new_strings (2, no_rows, NULL));
  expect_equal (reader, "scalar", NULL, muster_tensor_new_int64 (7));
  expect_equal (reader, "scalar/string", NULL, muster_tensor_new_string ("alone"));
  expect_equal (reader, "empty", NULL, muster_tensor_new (MUSTER_FLOAT, 2, empty));
}

MUSTER_TEST (Golden, shards_and_the_slices_across_them)
{
  const gint64 w_dims[] = {5, 4}, b_dims[] = {2, 1}, part[] = {3, 4};
  const float a[] = {1, 2, 3};
  const gint64 b[] = {4, 5};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterBundleReader) reader = open_golden ("shards");
  MUSTER_ASSERT_NOT_NULL (reader);

  MUSTER_EXPECT_EQ (muster_bundle_reader_n_shards (reader), 2);
  MUSTER_EXPECT_EQ (muster_bundle_reader_n_entries (reader), 3u);
  MUSTER_EXPECT_STREQ (muster_bundle_reader_entry (reader, 2)->name, "w");
  MUSTER_EXPECT_TRUE (muster_bundle_reader_find (reader, "w")->is_sliced);
  expect_equal (reader, "w", NULL, counting_int32 (2, w_dims, 0));
  expect_equal (reader, "w", "0,3:-", counting_int32 (2, part, 0));   /* as one shard holds it */
  expect_equal (reader, "w", "1,3:0,4", counting_int32 (2, part, 4)); /* across both */
  expect_equal (
      reader, "a", NULL,
      muster_tensor_new_from_data (MUSTER_FLOAT, 1, (const gint64[]){3}, a, sizeof a, &error));
  expect_equal (reader, "b", NULL,
                muster_tensor_new_from_data (MUSTER_INT64, 2, b_dims, b, sizeof b, &error));
  MUSTER_EXPECT_TRUE (muster_bundle_reader_verify (reader, NULL, NULL, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (Golden, slices_in_two_dimensions_and_of_long_numbers)
{
  const char *name = "odd\xc3\xbf name";
  gint16 *data = g_new (gint16, 600);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterBundleReader) reader = open_golden ("slices");
  MUSTER_ASSERT_NOT_NULL (reader);
  for (int k = 0; k < 600; k++)
    data[k] = (gint16)k;
  g_autoptr (GBytes) bytes = g_bytes_new_take (data, 600 * sizeof (gint16));

  expect_equal (
      reader, name, NULL,
      muster_tensor_new_from_bytes (MUSTER_INT16, 2, (const gint64[]){200, 3}, bytes, &error));
  const gint16 column[] = {68 * 3 + 1, 69 * 3 + 1, 70 * 3 + 1, 71 * 3 + 1};
  expect_equal (reader, name, "200 3 68,4:1,1",
                muster_tensor_new_from_data (MUSTER_INT16, 2, (const gint64[]){4, 1}, column,
                                             sizeof column, &error));
  MUSTER_EXPECT_FALSE (muster_bundle_reader_find (reader, "whole by parts")->is_sliced);
}

MUSTER_TEST (Golden, what_a_saver_left)
{
  const gint64 dims[] = {5, 2};
  g_autoptr (MusterTensor) table = muster_tensor_new (MUSTER_FLOAT, 2, dims);
  for (int k = 0; k < 10; k++)
    ((float *)muster_tensor_data_mutable (table))[k] = (float)k;
  g_autoptr (GError) error = NULL;
  g_autofree char *directory = golden ("");
  g_autofree char *latest = muster_latest_checkpoint (NULL, directory, &error);
  g_autofree char *expected = golden ("model-42");
  g_autoptr (MusterBundleReader) reader = open_golden ("model-42");
  MUSTER_ASSERT_NOT_NULL (reader);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (latest, expected);
  expect_equal (reader, "table", NULL, muster_tensor_ref (table));
  expect_equal (reader, "step", NULL, muster_tensor_new_int64 (42));
}

static int
by_offset (gconstpointer a, gconstpointer b)
{
  const MusterBundleEntry *left = *(MusterBundleEntry *const *)a;
  const MusterBundleEntry *right = *(MusterBundleEntry *const *)b;
  if (left->offset != right->offset)
    return left->offset < right->offset ? -1 : 1;
  return (left->size > right->size) - (left->size < right->size);
}

MUSTER_TEST (Golden, a_written_checkpoint_has_tensorflows_bytes)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *prefix = in_tmpdir ("again"), *index = in_tmpdir ("again.index");
  g_autofree char *theirs = golden ("dtypes.index"),
                  *data = in_tmpdir ("again.data-00000-of-00001");
  g_autofree char *their_data = golden ("dtypes.data-00000-of-00001");
  g_autoptr (MusterBundleReader) reader = open_golden ("dtypes");
  g_autoptr (MusterBundleWriter) writer = muster_bundle_writer_new (NULL, prefix, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  g_autoptr (GPtrArray) order = g_ptr_array_new ();
  for (gsize i = 0; i < muster_bundle_reader_n_entries (reader); i++)
    g_ptr_array_add (order, (gpointer)muster_bundle_reader_entry (reader, i));
  g_ptr_array_sort (order, by_offset);
  for (guint i = 0; i < order->len; i++) {
    const MusterBundleEntry *entry = order->pdata[i];
    g_autoptr (MusterTensor) tensor = muster_bundle_reader_read (reader, entry->name, &error);
    muster_bundle_writer_add (writer, entry->name, tensor, &error);
    MUSTER_ASSERT_NO_ERROR (error);
  }
  MUSTER_EXPECT_TRUE (muster_bundle_writer_finish (writer, &error));

  g_autoptr (GBytes) a = get_file (index), b = get_file (theirs);
  g_autoptr (GBytes) c = get_file (data), d = get_file (their_data);
  MUSTER_EXPECT_MEMEQ (g_bytes_get_data (a, NULL), g_bytes_get_size (a), g_bytes_get_data (b, NULL),
                       g_bytes_get_size (b));
  MUSTER_EXPECT_MEMEQ (g_bytes_get_data (c, NULL), g_bytes_get_size (c), g_bytes_get_data (d, NULL),
                       g_bytes_get_size (d));
}

// SPDX-License-Identifier: Apache-2.0
/* What the writer does with large checkpoints, many tensors and little room. */
#include "base/error.h"
#include "checkpoint/format/bundle_writer.h"
#include "tests/checkpoint/bundle_fixture.h"

#include <string.h>

/* Sizes around every boundary: nothing, below and at the alignment, the block, and over it. */
static const gint64 sizes[] = {0,      1,      1023,   1024,   1025,   65535, 65536, 65537,
                               131071, 131072, 131073, 200000, 300000, 3,     17,    70001};

static void
add_all (MusterBundleWriter *writer, GError **error)
{
  g_autofree char *x = g_strnfill (300000, 'x');
  const MusterString texts[] = {{"", 0}, {x, 127}, {x, 128}, {x, 16383}, {x, 16384}, {x, 300000}};
  g_autoptr (MusterTensor) strings =
      muster_tensor_new_strings (1, (const gint64[]){G_N_ELEMENTS (texts)}, texts);
  for (gsize i = 0; i < G_N_ELEMENTS (sizes); i++) {
    g_autofree char *name = g_strdup_printf ("tensor-%d", (int)i);
    g_autoptr (MusterTensor) tensor = counting_int32 (1, &sizes[i], (gint32)i);
    muster_bundle_writer_add (writer, name, tensor, i == 0 ? error : NULL);
    if (i == G_N_ELEMENTS (sizes) / 2)
      muster_bundle_writer_add (writer, "strings", strings, NULL);
  }
}

static gboolean
write_all (MusterStorage *storage, const char *prefix, guint n_shards, GCancellable *cancellable,
           GError **error)
{
  g_autoptr (MusterBundleWriter) writer = muster_bundle_writer_new (storage, prefix, error);
  if (writer == NULL)
    return FALSE;
  muster_bundle_writer_set_n_shards (writer, n_shards);
  muster_bundle_writer_set_cancellable (writer, cancellable);
  add_all (writer, NULL);
  return muster_bundle_writer_finish (writer, error);
}

static void
expect_all (const char *prefix, gint32 n_shards)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, prefix, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_bundle_reader_n_shards (reader), n_shards);
  MUSTER_EXPECT_TRUE (muster_bundle_reader_verify (reader, NULL, NULL, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  for (gsize i = 0; i < G_N_ELEMENTS (sizes); i++) {
    g_autofree char *name = g_strdup_printf ("tensor-%d", (int)i);
    g_autoptr (MusterTensor) wanted = counting_int32 (1, &sizes[i], (gint32)i);
    g_autoptr (MusterTensor) tensor = muster_bundle_reader_read (reader, name, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_TRUE (muster_tensor_equal (tensor, wanted));
  }
  g_autoptr (MusterTensor) strings = muster_bundle_reader_read (reader, "strings", &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_tensor_string (strings, 5).size, 300000u);
}

MUSTER_TEST (BundleShards, come_back_however_many_there_are)
{
  for (guint n = 0; n <= 9; n++) {
    g_autofree char *name = g_strdup_printf ("m-%u", n);
    g_autofree char *prefix = in_tmpdir (name);
    g_autoptr (GError) error = NULL;
    MUSTER_TRACE ("%u shards", n);
    MUSTER_EXPECT_TRUE (write_all (NULL, prefix, n, NULL, &error));
    MUSTER_EXPECT_NO_ERROR (error);
    expect_all (prefix, (gint32)CLAMP (n, 1, 8));
  }
}

MUSTER_TEST (BundleShards, are_about_as_large_as_each_other)
{
  g_autofree char *prefix = in_tmpdir ("m");
  MUSTER_EXPECT_TRUE (write_all (NULL, prefix, 3, NULL, NULL));
  guint64 least = G_MAXUINT64, most = 0;
  for (int i = 0; i < 3; i++) {
    g_autofree char *path = g_strdup_printf ("%s.data-%05d-of-00003", prefix, i);
    MusterStorageInfo info;
    MUSTER_ASSERT_TRUE (muster_storage_stat (muster_local_storage (), path, &info, NULL));
    least = MIN (least, info.size);
    most = MAX (most, info.size);
  }
  MUSTER_EXPECT_LE (most - least, least / 10);
}

MUSTER_TEST (BundleShards, a_failure_in_any_of_them_takes_all_of_them_away)
{
  g_autofree char *prefix = in_tmpdir ("m");
  gboolean is_written = FALSE;
  MUSTER_EXPECT_TRUE (write_all (NULL, prefix, 2, NULL, NULL));
  for (int fail_at = 1; !is_written && fail_at < 200; fail_at++) {
    g_autoptr (MusterFaultyStorage) storage = faulty_storage_new (fail_at);
    g_autoptr (GError) error = NULL;
    storage->once = TRUE;
    MUSTER_TRACE ("failing call %d", fail_at);
    is_written = write_all (MUSTER_STORAGE (storage), prefix, 4, NULL, &error);
    if (is_written || strstr (storage->log->str, "rename to m.index; ") != NULL)
      break;
    MUSTER_EXPECT_ERROR (error, G_FILE_ERROR, G_FILE_ERROR_NOSPC);
    MUSTER_EXPECT_EQ (count_files (), 3u);
    expect_all (prefix, 2);
  }
}

MUSTER_TEST (BundleShards, a_full_disk_is_reported_before_a_byte_is_written)
{
  for (int hides_free_space = 0; hides_free_space < 2; hides_free_space++) {
    g_autofree char *prefix = in_tmpdir ("m");
    g_autoptr (MusterFaultyStorage) storage = faulty_storage_new (0);
    g_autoptr (GError) error = NULL;
    storage->free_bytes = 3 << 20; /* each of two files fits, but not both */
    storage->hides_free_space = hides_free_space;
    MUSTER_TRACE ("room hidden: %d", hides_free_space);

    MUSTER_EXPECT_FALSE (
        write_all (MUSTER_STORAGE (storage), prefix, hides_free_space ? 1 : 2, NULL, &error));

    MUSTER_EXPECT_ERROR (error, G_FILE_ERROR, G_FILE_ERROR_NOSPC);
    MUSTER_EXPECT_TRUE (strstr (error->message, muster_test_tmpdir ()) != NULL);
    MUSTER_EXPECT_TRUE (strstr (error->message, "the checkpoint needs 5.0 MB") != NULL);
    if (!hides_free_space)
      MUSTER_EXPECT_TRUE (strstr (error->message, "; free: 3.1 MB") != NULL);
    MUSTER_EXPECT_TRUE (strstr (storage->log->str, "append") == NULL);
    MUSTER_EXPECT_EQ (count_files (), 0u);
  }
}

MUSTER_TEST (BundleShards, a_disk_that_fills_up_on_the_way_leaves_the_old_one)
{
  g_autofree char *prefix = in_tmpdir ("m");
  g_autoptr (MusterFaultyStorage) storage = faulty_storage_new (5);
  g_autoptr (GError) error = NULL;
  storage->once = TRUE;
  MUSTER_EXPECT_TRUE (write_all (NULL, prefix, 1, NULL, NULL));

  MUSTER_EXPECT_FALSE (write_all (MUSTER_STORAGE (storage), prefix, 1, NULL, &error));

  MUSTER_EXPECT_SAYS (error, G_FILE_ERROR, G_FILE_ERROR_NOSPC, "the checkpoint needs 5.0 MB");
  MUSTER_EXPECT_EQ (count_files (), 2u);
  expect_all (prefix, 1);
}

MUSTER_TEST (BundleShards, cancelled_it_stops_and_leaves_nothing)
{
  g_autofree char *prefix = in_tmpdir ("m");
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  g_cancellable_cancel (cancellable);

  MUSTER_EXPECT_FALSE (write_all (NULL, prefix, 2, cancellable, &error));

  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  MUSTER_EXPECT_EQ (count_files (), 0u);
}

/* Adding takes no copy, and finishing lets go. */
MUSTER_TEST (BundleShards, hold_a_reference_until_they_are_written)
{
  g_autofree char *prefix = in_tmpdir ("m");
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterBundleWriter) writer = muster_bundle_writer_new (NULL, prefix, &error);
  g_autoptr (MusterTensor) tensor = muster_tensor_new_float (1);
  muster_bundle_writer_add (writer, "a", tensor, &error);
  MUSTER_EXPECT_FALSE (muster_tensor_is_exclusive (tensor));

  MUSTER_EXPECT_TRUE (muster_bundle_writer_finish (writer, &error));

  MUSTER_EXPECT_TRUE (muster_tensor_is_exclusive (tensor));
}

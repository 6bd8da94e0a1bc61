// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/format/bundle_publish_private.h"

#include "base/error.h"
#include "tests/checkpoint/bundle_fixture.h"

#include <string.h>

/* A checkpoint of a number and of a partitioned tensor, in one data file. */
static char *
write_one (const char *name, gint64 number)
{
  g_autoptr (GError) error = NULL;
  char *prefix = in_tmpdir (name);
  g_autoptr (MusterBundleWriter) writer = muster_bundle_writer_new (NULL, prefix, &error);
  g_autoptr (MusterTensor) tensor = muster_tensor_new_int64 (number);
  g_autoptr (MusterTensor) part = counting_int32 (1, (const gint64[]){2}, (gint32)number);
  muster_bundle_writer_add (writer, "number", tensor, &error);
  muster_bundle_writer_add_slice (writer, "w", "4 0,2", part, &error);
  muster_bundle_writer_add_slice (writer, "w", "4 2,2", part, &error);
  muster_bundle_writer_finish (writer, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return prefix;
}

/* Its number, where all of it is whole; 0 where there is none. */
static gint64
number_at (const char *prefix, int *n_shards)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, prefix, &error);
  if (reader == NULL) {
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND);
    return 0;
  }
  MUSTER_EXPECT_TRUE (muster_bundle_reader_verify (reader, NULL, NULL, NULL, &error));
  g_autoptr (MusterTensor) number = muster_bundle_reader_read (reader, "number", &error);
  g_autoptr (MusterTensor) part = muster_bundle_reader_read_slice (reader, "w", "4 0,2", &error);
  MUSTER_EXPECT_NO_ERROR (error);
  if (number == NULL || part == NULL)
    return -1;
  const gint64 value = *(const gint64 *)muster_tensor_data (number);
  MUSTER_EXPECT_EQ (((const gint32 *)muster_tensor_data (part))[1], value + 1);
  if (n_shards != NULL)
    *n_shards = muster_bundle_reader_n_shards (reader);
  return value;
}

static char **
list_files (void)
{
  return muster_storage_list (muster_local_storage (), muster_test_tmpdir (), NULL);
}

#define EXPECT_FILES(...)                                                                          \
  do {                                                                                             \
    const char *const wanted[] = {__VA_ARGS__, NULL};                                              \
    g_auto (GStrv) files = list_files ();                                                          \
    g_autofree char *got = g_strjoinv (" ", files);                                                \
    g_autofree char *all = g_strjoinv (" ", (char **)wanted);                                      \
    MUSTER_EXPECT_STREQ (got, all);                                                                \
  } while (0)

MUSTER_TEST (BundlePublish, syncs_the_files_and_the_names_before_the_index_gets_its_own)
{
  g_autofree char *from = write_one ("from", 5), *to = in_tmpdir ("to");
  g_autoptr (MusterFaultyStorage) storage = faulty_storage_new (0);
  g_autoptr (GError) error = NULL;

  MUSTER_EXPECT_TRUE (muster_bundle_publish (MUSTER_STORAGE (storage), from, to, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (storage->log->str,
                       "read from.index; look from.data-00000-of-00001; sync directory; "
                       "sync directory; look to.index; list; rename to to.data-00000-of-00001; "
                       "sync directory; rename to to.index; sync directory; ");
  MUSTER_EXPECT_EQ (number_at (to, NULL), 5);
  EXPECT_FILES ("to.data-00000-of-00001", "to.index");
}

MUSTER_TEST (BundlePublish, takes_the_place_of_a_checkpoint_that_is_there)
{
  g_autofree char *first = write_one ("to", 1), *second = write_one ("from", 2),
                  *third = write_one ("other", 3);
  g_autoptr (GError) error = NULL;
  int n_shards;

  MUSTER_EXPECT_TRUE (muster_bundle_publish (NULL, second, first, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (number_at (first, &n_shards), 2);
  MUSTER_EXPECT_EQ (n_shards, 2);
  EXPECT_FILES ("other.data-00000-of-00001", "other.index", "to.data-00000-of-00002",
                "to.data-00001-of-00002", "to.index");

  /* And back: it doesn't grow from save to save. */
  MUSTER_EXPECT_TRUE (muster_bundle_publish (NULL, third, first, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (number_at (first, &n_shards), 3);
  MUSTER_EXPECT_EQ (n_shards, 1);
  EXPECT_FILES ("to.data-00000-of-00001", "to.index");
}

MUSTER_TEST (BundlePublish, a_crash_anywhere_leaves_the_old_or_the_new_one)
{
  gboolean is_published = FALSE;
  gint64 before = 1;
  for (int fail_at = 1; !is_published && fail_at < 60; fail_at++) {
    g_autofree char *to_name = g_strdup_printf ("to-%d", fail_at),
                    *from_name = g_strdup_printf ("from-%d", fail_at);
    g_autofree char *to = write_one (to_name, 1), *from = write_one (from_name, 2);
    g_autoptr (MusterFaultyStorage) storage = faulty_storage_new (fail_at);
    MUSTER_TRACE ("failing call %d", fail_at);

    is_published = muster_bundle_publish (MUSTER_STORAGE (storage), from, to, NULL);

    const gint64 number = number_at (to, NULL);
    MUSTER_EXPECT_GE (number, before);
    MUSTER_EXPECT_LE (number, 2);
    before = number;
    /* What the crash has left is in nobody's way, and doesn't stay. */
    g_autofree char *again = write_one (from_name, 3);
    MUSTER_EXPECT_TRUE (muster_bundle_publish (NULL, again, to, NULL));
    MUSTER_EXPECT_EQ (number_at (to, NULL), 3);
  }
  MUSTER_EXPECT_EQ (before, 2);
}

MUSTER_TEST (BundlePublish, that_fails_leaves_everything_as_it_was)
{
  g_autofree char *to = write_one ("to", 1), *from = write_one ("from", 2);
  g_auto (GStrv) files = list_files ();
  g_autofree char *names = g_strjoinv (" ", files);
  int n_failed = 0;
  for (int fail_at = 1; fail_at < 60 && number_at (to, NULL) == 1; fail_at++) {
    g_autoptr (MusterFaultyStorage) storage = faulty_storage_new (fail_at);
    storage->once = TRUE;
    MUSTER_TRACE ("failing call %d", fail_at);
    if (muster_bundle_publish (MUSTER_STORAGE (storage), from, to, NULL) ||
        number_at (to, NULL) != 1)
      break;
    n_failed++;
    g_auto (GStrv) now = list_files ();
    g_autofree char *now_names = g_strjoinv (" ", now);
    MUSTER_EXPECT_STREQ (now_names, names);
    MUSTER_EXPECT_EQ (number_at (from, NULL), 2);
  }
  MUSTER_EXPECT_EQ (n_failed, 17);
}

MUSTER_TEST (BundlePublish, data_without_an_index_is_nobodys)
{
  g_autofree char *to = in_tmpdir ("to"), *from = write_one ("from", 4);
  put_file ("to.data-00000-of-00001", "left", 4);
  put_file ("to.data-00002-of-00007", "left", 4);
  put_file ("to.data-00000-of-00003.tempstate1", "a writer's", 10);
  put_file ("to.data-0-of-3", "no data file", 12);
  put_file ("to2.data-00000-of-00002", "another's", 9);
  g_autoptr (GError) error = NULL;

  MUSTER_EXPECT_TRUE (muster_bundle_publish (NULL, from, to, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (number_at (to, NULL), 4);
  EXPECT_FILES ("to.data-0-of-3", "to.data-00000-of-00001", "to.data-00000-of-00003.tempstate1",
                "to.index", "to2.data-00000-of-00002");
}

MUSTER_TEST (BundlePublish, leaves_the_data_of_an_old_one_that_is_being_read)
{
  g_autofree char *to = write_one ("to", 1), *from = write_one ("from", 2),
                  *other = write_one ("other", 3), *index = in_tmpdir ("to.index");
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, to, &error);
  MusterStorageLock *lock =
      muster_storage_lock (muster_local_storage (), index, MUSTER_LOCK_SHARED, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_TRUE (muster_bundle_publish (NULL, from, to, &error));

  MUSTER_EXPECT_EQ (number_at (to, NULL), 2);
  g_autoptr (MusterTensor) number = muster_bundle_reader_read (reader, "number", &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (*(const gint64 *)muster_tensor_data (number), 1);
  muster_storage_unlock (muster_local_storage (), lock);
  MUSTER_EXPECT_TRUE (muster_bundle_publish (NULL, other, to, &error));
  MUSTER_EXPECT_EQ (number_at (to, NULL), 3);
  EXPECT_FILES ("to.data-00000-of-00003", "to.data-00001-of-00003", "to.data-00002-of-00003",
                "to.index");
}

MUSTER_TEST (BundlePublish, refuses_what_is_not_whole)
{
  g_autofree char *to = write_one ("to", 1), *cut = write_one ("cut", 2),
                  *bare = write_one ("bare", 3), *absent = in_tmpdir ("absent");
  g_autofree char *data = in_tmpdir ("bare.data-00000-of-00001");
  put_file ("cut.data-00000-of-00001", "0123456789", 10);
  muster_storage_remove (muster_local_storage (), data, NULL);
  const struct {
    const char *from;
    GQuark domain;
    int code;
  } cases[] = {
      {cut, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS},
      {bare, G_FILE_ERROR, G_FILE_ERROR_NOENT},
      {absent, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND},
      {to, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT},
  };
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    MUSTER_TRACE ("case %d", (int)i);
    MUSTER_EXPECT_FALSE (muster_bundle_publish (NULL, cases[i].from, to, &error));
    MUSTER_EXPECT_TRUE (g_error_matches (error, cases[i].domain, cases[i].code));
    MUSTER_EXPECT_EQ (number_at (to, NULL), 1);
  }
}

/* A file of TensorFlow's, with slices and shards, whose index is written again. */
MUSTER_TEST (BundlePublish, keeps_every_entry_of_what_another_wrote)
{
  static const char *const names[] = {"dtypes", "slices", "shards", "model-42"};
  for (gsize i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autoptr (GError) error = NULL;
    g_autofree char *from = in_tmpdir (names[i]), *whole = golden (names[i]),
                    *to = write_one ("to", 1);
    copy_golden (names[i]);
    MUSTER_TRACE ("checkpoint %s", names[i]);

    MUSTER_EXPECT_TRUE (muster_bundle_publish (NULL, from, to, &error));

    MUSTER_ASSERT_NO_ERROR (error);
    g_autoptr (MusterBundleReader) there = muster_bundle_reader_open (NULL, to, &error);
    g_autoptr (MusterBundleReader) wanted = muster_bundle_reader_open (NULL, whole, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_TRUE (muster_bundle_reader_verify (there, NULL, NULL, NULL, &error));
    MUSTER_EXPECT_EQ (muster_bundle_reader_n_entries (there),
                      muster_bundle_reader_n_entries (wanted));
    for (gsize k = 0; k < muster_bundle_reader_n_entries (wanted); k++) {
      const MusterBundleEntry *entry = muster_bundle_reader_entry (wanted, k);
      g_autoptr (MusterTensor) a = muster_bundle_reader_read (wanted, entry->name, &error);
      g_autoptr (MusterTensor) b = muster_bundle_reader_read (there, entry->name, &error);
      MUSTER_ASSERT_NO_ERROR (error);
      MUSTER_EXPECT_TRUE (muster_tensor_equal (a, b));
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "checkpoint/store/storage.h"
#include "checkpoint/stores/default_storage.h"
#include "tests/checkpoint/bundle_fixture.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

MUSTER_TEST (Storage, publish_replaces_a_file_whole_and_leaves_nothing_beside_it)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = in_tmpdir ("file");
  MusterStorage *storage = muster_local_storage ();

  MUSTER_EXPECT_TRUE (muster_storage_publish (storage, path, "old", 3, &error));
  MUSTER_EXPECT_TRUE (muster_storage_publish (storage, path, "newer", 5, &error));

  g_autoptr (GBytes) bytes = muster_storage_read (storage, path, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_MEMEQ (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes), "newer", 5);
  g_auto (GStrv) names = muster_storage_list (storage, muster_test_tmpdir (), &error);
  MUSTER_EXPECT_EQ (g_strv_length (names), 1u);
}

MUSTER_TEST (Storage, publish_that_fails_anywhere_leaves_the_old_file)
{
  g_autofree char *path = in_tmpdir ("file");
  muster_storage_publish (muster_local_storage (), path, "old", 3, NULL);
  for (int fail_at = 1; fail_at <= 5; fail_at++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterFaultyStorage) storage = faulty_storage_new (fail_at);
    MUSTER_EXPECT_FALSE (muster_storage_publish (MUSTER_STORAGE (storage), path, "x", 1, &error));
    MUSTER_EXPECT_ERROR (error, G_FILE_ERROR, G_FILE_ERROR_NOSPC);
    g_autoptr (GBytes) bytes = get_file (path);
    MUSTER_EXPECT_EQ (g_bytes_get_size (bytes), 3u);
  }
}

MUSTER_TEST (Storage, publish_syncs_before_it_renames_and_the_directory_after)
{
  g_autofree char *path = in_tmpdir ("file");
  g_autoptr (MusterFaultyStorage) storage = faulty_storage_new (0);

  MUSTER_EXPECT_TRUE (muster_storage_publish (MUSTER_STORAGE (storage), path, "x", 1, NULL));

  MUSTER_EXPECT_STREQ (storage->log->str, "create file.temp; append; sync; close; rename to file; "
                                          "sync directory; ");
}

MUSTER_TEST (Storage, a_large_file_reads_as_a_small_one_does)
{
  for (gsize size = 0; size < 300 * 1000; size = size * 7 + 1) {
    g_autoptr (GError) error = NULL;
    g_autofree char *data = g_malloc (size + 1), *path = in_tmpdir ("file");
    memset (data, (int)size, size);
    put_file ("file", data, size);
    g_autoptr (GBytes) bytes = muster_storage_read (muster_local_storage (), path, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_MEMEQ (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes), data, size);
  }
}

MUSTER_TEST (Storage, what_is_not_a_file_is_refused_with_its_path)
{
  g_autofree char *absent = in_tmpdir ("absent"), *pipe = in_tmpdir ("pipe");
  MusterStorage *storage = muster_local_storage ();
  g_autoptr (GError) of_absent = NULL, of_directory = NULL, of_pipe = NULL, of_list = NULL;
  MUSTER_ASSERT_EQ (mkfifo (pipe, 0600), 0);

  MUSTER_EXPECT_NULL (muster_storage_read (storage, absent, &of_absent));
  MUSTER_EXPECT_NULL (muster_storage_read (storage, muster_test_tmpdir (), &of_directory));
  MUSTER_EXPECT_NULL (muster_storage_read (storage, pipe, &of_pipe));
  MUSTER_EXPECT_NULL (muster_storage_list (storage, absent, &of_list));

  MUSTER_EXPECT_SAYS (of_absent, G_FILE_ERROR, G_FILE_ERROR_NOENT, absent);
  MUSTER_EXPECT_ERROR (of_directory, G_FILE_ERROR, G_FILE_ERROR_ISDIR);
  MUSTER_EXPECT_ERROR (of_pipe, G_FILE_ERROR, G_FILE_ERROR_INVAL);
  MUSTER_EXPECT_ERROR (of_list, G_FILE_ERROR, G_FILE_ERROR_NOENT);
  MUSTER_EXPECT_TRUE (muster_storage_remove (storage, absent, NULL));
}

MUSTER_TEST (Storage, a_file_is_read_from_any_place_and_short_only_at_its_end)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = in_tmpdir ("file");
  MusterStorage *storage = muster_local_storage ();
  char buffer[8] = "";
  guint64 size = 0;
  put_file ("file", "0123456789", 10);

  MusterStorageInput *input = muster_storage_open (storage, path, &size, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (size, 10u);
  MUSTER_EXPECT_EQ (muster_storage_read_at (storage, input, 2, buffer, 3, &error), 3);
  MUSTER_EXPECT_STREQ (buffer, "234");
  MUSTER_ASSERT_EQ (truncate (path, 4), 0); /* while it is read */
  MUSTER_EXPECT_EQ (muster_storage_read_at (storage, input, 2, buffer, 8, &error), 2);
  MUSTER_EXPECT_EQ (muster_storage_read_at (storage, input, 100, buffer, 8, &error), 0);
  MUSTER_ASSERT_NO_ERROR (error);
  muster_storage_close_input (storage, input);
}

MUSTER_TEST (Storage, closes_no_file_without_a_word)
{
  muster_storage_close_input (muster_local_storage (), NULL);
}

MUSTER_TEST (Storage, space_is_allocated_before_it_is_written_and_leaves_the_length_alone)
{
  g_autoptr (GError) error = NULL, full = NULL;
  g_autofree char *path = in_tmpdir ("file");
  MusterStorage *storage = muster_local_storage ();
  MusterStorageInfo info;
  guint64 free_bytes = 0;

  MUSTER_EXPECT_TRUE (
      muster_storage_free_space (storage, muster_test_tmpdir (), &free_bytes, &error));
  MUSTER_EXPECT_TRUE (free_bytes > 0 && free_bytes < G_MAXUINT64);
  MusterStorageFile *file = muster_storage_create (storage, path, &error);
  MUSTER_EXPECT_TRUE (muster_storage_reserve (storage, file, 1 << 20, &error));
  MUSTER_EXPECT_TRUE (muster_storage_append (storage, file, "abc", 3, &error));
  MUSTER_EXPECT_FALSE (muster_storage_reserve (storage, file, G_MAXINT64 / 2, &full));
  MUSTER_EXPECT_TRUE (muster_storage_close (storage, file, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_ASSERT_TRUE (muster_storage_stat (storage, path, &info, &error));
  MUSTER_EXPECT_EQ (info.size, 3u);
  MUSTER_EXPECT_TRUE (full && full->domain == G_FILE_ERROR);
}

MUSTER_TEST (Storage, a_lock_excludes_and_ends)
{
  g_autoptr (GError) error = NULL, busy = NULL, used = NULL, absent = NULL;
  g_autofree char *path = in_tmpdir ("file");
  MusterStorage *storage = muster_local_storage ();

  MUSTER_EXPECT_NULL (muster_storage_lock (storage, path, MUSTER_LOCK_SHARED, &absent));
  MUSTER_EXPECT_ERROR (absent, G_FILE_ERROR, G_FILE_ERROR_NOENT);
  MusterStorageLock *writer = muster_storage_lock (storage, path, MUSTER_LOCK_EXCLUSIVE, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_NULL (muster_storage_lock (storage, path, MUSTER_LOCK_EXCLUSIVE, &busy));
  MUSTER_EXPECT_ERROR (busy, G_IO_ERROR, G_IO_ERROR_BUSY);
  muster_storage_unlock (storage, writer);

  MusterStorageLock *reader = muster_storage_lock (storage, path, MUSTER_LOCK_SHARED, &error);
  MusterStorageLock *other = muster_storage_lock (storage, path, MUSTER_LOCK_SHARED, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_NULL (muster_storage_lock (storage, path, MUSTER_LOCK_UNUSED, &used));
  MUSTER_EXPECT_ERROR (used, G_IO_ERROR, G_IO_ERROR_BUSY);
  muster_storage_unlock (storage, reader);
  muster_storage_unlock (storage, other);
  muster_storage_unlock (storage, muster_storage_lock (storage, path, MUSTER_LOCK_UNUSED, &error));
  MUSTER_ASSERT_NO_ERROR (error);
}

/* In a child, and as seen by it: 0 if it got the lock. */
static int
lock_in_child (const char *path, MusterLockMode mode)
{
  int status = -1;
  const pid_t child = fork ();
  if (child == 0) {
    MusterStorageLock *lock = muster_storage_lock (muster_local_storage (), path, mode, NULL);
    _exit (lock != NULL ? 0 : 1);
  }
  MUSTER_EXPECT_EQ (waitpid (child, &status, 0), child);
  return WIFEXITED (status) ? WEXITSTATUS (status) : -1;
}

MUSTER_TEST (Storage, a_lock_of_a_process_is_against_others_and_not_against_itself)
{
  MusterStorage *storage = muster_local_storage ();
  g_autofree char *path = g_build_filename (muster_test_tmpdir (), "chief", NULL);
  g_autoptr (GError) error = NULL;

  MusterStorageLock *one = muster_storage_lock (storage, path, MUSTER_LOCK_PROCESS, &error);
  MusterStorageLock *two = muster_storage_lock (storage, path, MUSTER_LOCK_PROCESS, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (lock_in_child (path, MUSTER_LOCK_PROCESS), 1);
  MUSTER_EXPECT_EQ (lock_in_child (path, MUSTER_LOCK_PROCESS_SHARED), 1);
  muster_storage_unlock (storage, one);
  MUSTER_EXPECT_EQ (lock_in_child (path, MUSTER_LOCK_PROCESS), 1);
  muster_storage_unlock (storage, two);
  MUSTER_EXPECT_EQ (lock_in_child (path, MUSTER_LOCK_PROCESS), 0);
}

MUSTER_TEST (Storage, shared_locks_of_processes_go_together)
{
  MusterStorage *storage = muster_local_storage ();
  g_autofree char *path = g_build_filename (muster_test_tmpdir (), "chief", NULL);

  MusterStorageLock *lock = muster_storage_lock (storage, path, MUSTER_LOCK_PROCESS_SHARED, NULL);
  MUSTER_ASSERT_TRUE (lock != NULL);
  MUSTER_EXPECT_EQ (lock_in_child (path, MUSTER_LOCK_PROCESS_SHARED), 0);
  MUSTER_EXPECT_EQ (lock_in_child (path, MUSTER_LOCK_PROCESS), 1);
  muster_storage_unlock (storage, lock);
}

/* A child that outlives its parent, as a data loader does, holds nothing. */
MUSTER_TEST (Storage, a_child_has_no_part_in_a_lock_of_a_process)
{
  MusterStorage *storage = muster_local_storage ();
  g_autofree char *path = g_build_filename (muster_test_tmpdir (), "chief", NULL);
  int wait_for_end[2];

  MusterStorageLock *lock = muster_storage_lock (storage, path, MUSTER_LOCK_PROCESS, NULL);
  MUSTER_ASSERT_TRUE (lock != NULL);
  MUSTER_ASSERT_EQ (pipe (wait_for_end), 0);
  const pid_t child = fork ();
  if (child == 0) {
    char byte;
    close (wait_for_end[1]);
    _exit (read (wait_for_end[0], &byte, 1) == 0 ? 0 : 1);
  }
  muster_storage_unlock (storage, lock);
  MUSTER_EXPECT_EQ (lock_in_child (path, MUSTER_LOCK_PROCESS), 0);
  close (wait_for_end[0]);
  close (wait_for_end[1]);
  MUSTER_EXPECT_EQ (waitpid (child, NULL, 0), child);
}

MUSTER_TEST (Storage, a_directory_is_made_with_those_above_it)
{
  g_autoptr (GError) error = NULL, in_the_way = NULL;
  g_autofree char *path = in_tmpdir ("a/b/c"), *file = in_tmpdir ("file");
  g_autofree char *below_a_file = in_tmpdir ("file/d");
  MusterStorage *storage = muster_local_storage ();
  put_file ("file", "x", 1);

  MUSTER_EXPECT_TRUE (muster_storage_make_directory (storage, path, &error));
  MUSTER_EXPECT_TRUE (muster_storage_make_directory (storage, path, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (muster_storage_make_directory (storage, below_a_file, &in_the_way));
  MUSTER_EXPECT_ERROR (in_the_way, G_FILE_ERROR, G_FILE_ERROR_NOTDIR);
}

MUSTER_TEST (Storage, a_path_with_a_scheme_is_refused_by_every_command_and_makes_nothing)
{
  static const char *const paths[] = {"s3://bucket/run", "gs://bucket/run", "hdfs://host:9000/run",
                                      "a+b-c.d://run"};
  MusterStorage *storage = muster_local_storage ();
  g_autofree char *before = g_get_current_dir ();
  MUSTER_ASSERT_EQ (g_chdir (muster_test_tmpdir ()), 0);

  for (gsize i = 0; i < G_N_ELEMENTS (paths); i++) {
    const char *path = paths[i];
    GError *errors[12] = {NULL};
    guint64 size;
    MusterStorageInfo info;
    MUSTER_EXPECT_FALSE (muster_storage_check_path (NULL, "directory", path, &errors[0]));
    MUSTER_EXPECT_NULL (muster_storage_create (storage, path, &errors[1]));
    MUSTER_EXPECT_NULL (muster_storage_open (storage, path, &size, &errors[2]));
    MUSTER_EXPECT_FALSE (muster_storage_rename (storage, "x", path, &errors[3]));
    MUSTER_EXPECT_FALSE (muster_storage_remove (storage, path, &errors[4]));
    MUSTER_EXPECT_NULL (muster_storage_list (storage, path, &errors[5]));
    MUSTER_EXPECT_FALSE (muster_storage_stat (storage, path, &info, &errors[6]));
    MUSTER_EXPECT_FALSE (muster_storage_sync_directory (storage, path, &errors[7]));
    MUSTER_EXPECT_FALSE (muster_storage_make_directory (storage, path, &errors[8]));
    MUSTER_EXPECT_FALSE (muster_storage_free_space (storage, path, &size, &errors[9]));
    MUSTER_EXPECT_NULL (muster_storage_lock (storage, path, MUSTER_LOCK_EXCLUSIVE, &errors[10]));
    MUSTER_EXPECT_FALSE (muster_storage_publish (storage, path, "x", 1, &errors[11]));
    for (gsize j = 0; j < G_N_ELEMENTS (errors); j++) {
      MUSTER_EXPECT_SAYS (errors[j], MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, path);
      g_clear_error (&errors[j]);
    }
  }

  g_auto (GStrv) names = muster_storage_list (storage, ".", NULL);
  MUSTER_EXPECT_EQ (g_strv_length (names), 0u);
  MUSTER_ASSERT_EQ (g_chdir (before), 0);
}

MUSTER_TEST (Storage, a_uri_of_a_local_file_is_its_path)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = in_tmpdir ("by-uri/file");
  MusterStorage *storage = muster_default_storage ();

  for (int i = 0; i < 2; i++) {
    g_autofree char *uri = g_strconcat (i == 0 ? "file://" : "file://localhost", path, NULL);
    g_autofree char *directory = g_path_get_dirname (uri);
    MUSTER_EXPECT_TRUE (muster_storage_make_directory (storage, directory, &error));
    MUSTER_EXPECT_TRUE (muster_storage_publish (storage, uri, i == 0 ? "a" : "b", 1, &error));
    MUSTER_ASSERT_NO_ERROR (error);
    g_autoptr (GBytes) bytes = muster_storage_read (storage, path, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_EQ (*(const char *)g_bytes_get_data (bytes, NULL), i == 0 ? 'a' : 'b');
    g_auto (GStrv) names = muster_storage_list (storage, directory, &error);
    MUSTER_EXPECT_EQ (g_strv_length (names), 1u);
  }
}

/* Data directories hold for it, too. */
MUSTER_TEST (Storage, a_uri_of_a_local_file_outside_the_data_directories_is_refused)
{
  g_autoptr (GError) error = NULL, outside = NULL;
  g_autofree char *directory = in_tmpdir ("within");
  MUSTER_EXPECT_TRUE (muster_storage_make_directory (muster_local_storage (), directory, &error));
  g_autoptr (MusterStorage) storage =
      muster_local_storage_new_within ((const char *const[]){directory, NULL}, &error);
  g_autofree char *inside = g_strconcat ("file://", directory, "/x", NULL);
  g_autofree char *escape = g_strconcat ("file://", directory, "/../x", NULL);

  MUSTER_EXPECT_TRUE (muster_storage_publish (storage, inside, "x", 1, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (muster_storage_publish (storage, escape, "x", 1, &outside));
  MUSTER_EXPECT_SAYS (outside, MUSTER_ERROR, MUSTER_ERROR_PERMISSION_DENIED, "data directories");
}

MUSTER_TEST (Storage, a_file_whose_name_merely_has_a_colon_is_a_file)
{
  static const char *const paths[] = {"a:b", "s3:/x", "1s3://x", "://x", "dir/s3://x", "-s3://x"};
  for (gsize i = 0; i < G_N_ELEMENTS (paths); i++)
    MUSTER_EXPECT_TRUE (muster_storage_check_path (NULL, "path", paths[i], NULL));
}

MUSTER_TEST (Storage, no_path_is_refused_in_words)
{
  for (int i = 0; i < 2; i++) {
    g_autoptr (GError) error = NULL;
    MUSTER_EXPECT_FALSE (
        muster_storage_check_path (NULL, "checkpoint directory", i == 0 ? NULL : "", &error));
    MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, "checkpoint directory");
  }
}

/* Counts what is appended. */
#define MUSTER_TYPE_COUNTING_STORAGE (muster_counting_storage_get_type ())
G_DECLARE_FINAL_TYPE (MusterCountingStorage, muster_counting_storage, MUSTER, COUNTING_STORAGE,
                      MusterForwardingStorage)

struct _MusterCountingStorage {
  MusterForwardingStorage parent;
  guint n_appends;
};

static gboolean
counting_append (MusterStorage *storage, MusterStorageFile *file, const void *data, gsize size,
                 GError **error)
{
  MusterCountingStorage *self = MUSTER_COUNTING_STORAGE (storage);
  self->n_appends++;
  return muster_storage_append (muster_forwarding_storage_inner (&self->parent), file, data, size,
                                error);
}

static void
muster_counting_storage_iface_init (MusterStorageInterface *iface)
{
  iface->append = counting_append;
}

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterCountingStorage, muster_counting_storage,
                               MUSTER_TYPE_FORWARDING_STORAGE,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_STORAGE,
                                                      muster_counting_storage_iface_init))

static void
muster_counting_storage_class_init (MusterCountingStorageClass *klass G_GNUC_UNUSED)
{
}

static void
muster_counting_storage_init (MusterCountingStorage *self G_GNUC_UNUSED)
{
}

MUSTER_TEST (ForwardingStorage, a_class_that_overrides_one_operation_keeps_all_others)
{
  g_autoptr (MusterCountingStorage) counting = g_object_new (MUSTER_TYPE_COUNTING_STORAGE, NULL);
  g_autoptr (MusterForwardingStorage) outer = g_object_new (MUSTER_TYPE_FORWARDING_STORAGE, NULL);
  MusterStorage *storage = MUSTER_STORAGE (outer);
  g_autofree char *folder = in_tmpdir ("folder"), *path = g_build_filename (folder, "file", NULL);
  g_autofree char *other = g_build_filename (folder, "other", NULL);
  g_autoptr (GError) error = NULL;
  MusterStorageInfo info;
  guint64 free_bytes = 0;
  muster_forwarding_storage_set_inner (outer, MUSTER_STORAGE (counting));

  MUSTER_ASSERT_TRUE (muster_storage_make_directory (storage, folder, &error));
  MusterStorageFile *file = muster_storage_create (storage, path, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (muster_storage_reserve (storage, file, 5, &error));
  MUSTER_EXPECT_TRUE (muster_storage_append (storage, file, "12345", 5, &error));
  MUSTER_EXPECT_TRUE (muster_storage_sync (storage, file, &error));
  MUSTER_EXPECT_TRUE (muster_storage_close (storage, file, &error));
  MUSTER_EXPECT_TRUE (muster_storage_rename (storage, path, other, &error));
  MUSTER_EXPECT_TRUE (muster_storage_sync_directory (storage, folder, &error));
  MUSTER_EXPECT_TRUE (muster_storage_stat (storage, other, &info, &error));
  MUSTER_EXPECT_EQ (info.size, 5u);
  g_autoptr (GBytes) bytes = muster_storage_read (storage, other, &error);
  MUSTER_EXPECT_MEMEQ (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes), "12345", 5);
  MUSTER_EXPECT_TRUE (muster_storage_free_space (storage, folder, &free_bytes, &error));
  MUSTER_EXPECT_TRUE (free_bytes > 0);
  MusterStorageLock *lock = muster_storage_lock (storage, other, MUSTER_LOCK_EXCLUSIVE, &error);
  MUSTER_EXPECT_NULL (
      muster_storage_lock (muster_local_storage (), other, MUSTER_LOCK_EXCLUSIVE, NULL));
  muster_storage_unlock (storage, lock);
  g_auto (GStrv) names = muster_storage_list (storage, folder, &error);
  MUSTER_EXPECT_EQ (g_strv_length (names), 1u);
  MUSTER_EXPECT_FALSE (muster_storage_check_path (storage, "path", "s3://x", NULL));
  MUSTER_EXPECT_TRUE (muster_storage_remove (storage, other, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (g_file_test (other, G_FILE_TEST_EXISTS));
  MUSTER_EXPECT_EQ (counting->n_appends, 1u);
}

/* --- a store that fails without an error --- */

#define MUSTER_TYPE_MUTE_STORAGE (muster_mute_storage_get_type ())
G_DECLARE_FINAL_TYPE (MusterMuteStorage, muster_mute_storage, MUSTER, MUTE_STORAGE,
                      MusterForwardingStorage)

struct _MusterMuteStorage {
  MusterForwardingStorage parent;
  gssize n_read;
};

static gssize
mute_read_at (MusterStorage *storage, MusterStorageInput *input G_GNUC_UNUSED,
              guint64 offset G_GNUC_UNUSED, void *buffer G_GNUC_UNUSED, gsize size G_GNUC_UNUSED,
              GError **error G_GNUC_UNUSED)
{
  return MUSTER_MUTE_STORAGE (storage)->n_read;
}

static gboolean
mute_stat (MusterStorage *storage G_GNUC_UNUSED, const char *path G_GNUC_UNUSED,
           MusterStorageInfo *info G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
  return FALSE;
}

static MusterStorageLock *
mute_lock (MusterStorage *storage G_GNUC_UNUSED, const char *path G_GNUC_UNUSED,
           MusterLockMode mode G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
  return NULL;
}

static void
muster_mute_storage_iface_init (MusterStorageInterface *iface)
{
  iface->read_at = mute_read_at;
  iface->stat = mute_stat;
  iface->lock = mute_lock;
}

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterMuteStorage, muster_mute_storage,
                               MUSTER_TYPE_FORWARDING_STORAGE,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_STORAGE,
                                                      muster_mute_storage_iface_init))

static void
muster_mute_storage_class_init (MusterMuteStorageClass *klass G_GNUC_UNUSED)
{
}

static void
muster_mute_storage_init (MusterMuteStorage *self G_GNUC_UNUSED)
{
}

MUSTER_TEST (Storage, an_operation_that_fails_without_an_error_is_named)
{
  g_autoptr (MusterMuteStorage) mute = g_object_new (MUSTER_TYPE_MUTE_STORAGE, NULL);
  MusterStorage *storage = MUSTER_STORAGE (mute);
  g_autoptr (GError) of_read = NULL, of_stat = NULL, of_lock = NULL;
  g_autofree char *path = in_tmpdir ("file");
  MusterStorageInfo info;
  put_file ("file", "abc", 3);
  mute->n_read = -1;

  MUSTER_EXPECT_NULL (muster_storage_read (storage, path, &of_read));
  MUSTER_EXPECT_FALSE (muster_storage_stat (storage, path, &info, &of_stat));
  MUSTER_EXPECT_NULL (muster_storage_lock (storage, path, MUSTER_LOCK_SHARED, &of_lock));

  MUSTER_EXPECT_SAYS (of_read, MUSTER_ERROR, MUSTER_ERROR_INTERNAL,
                      "MusterMuteStorage: read_at () failed without an error");
  MUSTER_EXPECT_SAYS (of_stat, MUSTER_ERROR, MUSTER_ERROR_INTERNAL,
                      "MusterMuteStorage: stat () failed without an error");
  MUSTER_EXPECT_SAYS (of_lock, MUSTER_ERROR, MUSTER_ERROR_INTERNAL,
                      "MusterMuteStorage: lock () failed without an error");
  MUSTER_EXPECT_FALSE (muster_storage_stat (storage, path, &info, NULL));
}

MUSTER_TEST (Storage, no_more_bytes_are_read_than_there_was_room_for)
{
  g_autoptr (MusterMuteStorage) mute = g_object_new (MUSTER_TYPE_MUTE_STORAGE, NULL);
  g_autoptr (GError) error = NULL;
  g_autofree char *path = in_tmpdir ("file");
  put_file ("file", "abc", 3);
  mute->n_read = 4;

  MUSTER_EXPECT_NULL (muster_storage_read (MUSTER_STORAGE (mute), path, &error));

  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL,
                      "MusterMuteStorage: read_at () returned 4 bytes, 3 were asked for");
}

// SPDX-License-Identifier: Apache-2.0
#include "bundle/storage.h"
#include "tests/bundle/bundle_fixture.h"

#include <string.h>
#include <sys/stat.h>

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
    g_autoptr (FaultyStorage) storage = faulty_storage_new (fail_at);
    MUSTER_EXPECT_FALSE (muster_storage_publish (MUSTER_STORAGE (storage), path, "x", 1, &error));
    MUSTER_EXPECT_ERROR (error, G_FILE_ERROR, G_FILE_ERROR_NOSPC);
    g_autoptr (GBytes) bytes = get_file (path);
    MUSTER_EXPECT_EQ (g_bytes_get_size (bytes), 3u);
  }
}

MUSTER_TEST (Storage, publish_syncs_before_it_renames_and_the_directory_after)
{
  g_autofree char *path = in_tmpdir ("file");
  g_autoptr (FaultyStorage) storage = faulty_storage_new (0);

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

  MUSTER_EXPECT_ERROR (of_absent, G_FILE_ERROR, G_FILE_ERROR_NOENT);
  MUSTER_EXPECT_TRUE (strstr (of_absent->message, absent) != NULL);
  MUSTER_EXPECT_ERROR (of_directory, G_FILE_ERROR, G_FILE_ERROR_ISDIR);
  MUSTER_EXPECT_ERROR (of_pipe, G_FILE_ERROR, G_FILE_ERROR_INVAL);
  MUSTER_EXPECT_ERROR (of_list, G_FILE_ERROR, G_FILE_ERROR_NOENT);
  MUSTER_EXPECT_TRUE (muster_storage_remove (storage, absent, NULL));
}

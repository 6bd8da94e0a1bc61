// SPDX-License-Identifier: Apache-2.0
/* Local files within some directories: what is outside stays as it is. */
#include "base/error.h"
#include "checkpoint/store/storage.h"
#include "tests/checkpoint/bundle_fixture.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The test's folder has "data" and "fast", which are allowed, and "outside" with a file "secret".
 */
static MusterStorage *
storage_within (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *data = in_tmpdir ("data"), *fast = in_tmpdir ("fast");
  g_autofree char *outside = in_tmpdir ("outside");
  MUSTER_EXPECT_EQ (g_mkdir (data, 0755), 0);
  MUSTER_EXPECT_EQ (g_mkdir (fast, 0755), 0);
  MUSTER_EXPECT_EQ (g_mkdir (outside, 0755), 0);
  put_file ("outside/secret", "secret", 6);
  MusterStorage *storage =
      muster_local_storage_new_within ((const char *const[]){data, fast, NULL}, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return storage;
}

static void
link_to (const char *target, const char *name)
{
  g_autofree char *link = in_tmpdir (name);
  MUSTER_EXPECT_EQ (symlink (target, link), 0);
}

static void
expect_secret_is_whole (void)
{
  g_autofree char *outside = in_tmpdir ("outside"), *secret = in_tmpdir ("outside/secret");
  g_autoptr (GBytes) bytes = get_file (secret);
  g_auto (GStrv) names = muster_storage_list (muster_local_storage (), outside, NULL);
  MUSTER_EXPECT_EQ (g_strv_length (names), 1u);
  MUSTER_EXPECT_MEMEQ (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes), "secret", 6);
}

#define N_OPERATIONS 13

/* Does everything that opens, names or changes `path` below the test's folder. */
static void
try_all (MusterStorage *storage, const char *name, GError *errors[N_OPERATIONS])
{
  g_autofree char *path = in_tmpdir (name), *own = in_tmpdir ("data/own");
  MusterStorageInfo info;
  guint64 size;
  put_file ("data/own", "x", 1);
  MUSTER_EXPECT_NULL (muster_storage_open (storage, path, &size, &errors[0]));
  MUSTER_EXPECT_NULL (muster_storage_create (storage, path, &errors[1]));
  MUSTER_EXPECT_FALSE (muster_storage_rename (storage, path, own, &errors[2]));
  MUSTER_EXPECT_FALSE (muster_storage_rename (storage, own, path, &errors[3]));
  MUSTER_EXPECT_FALSE (muster_storage_remove (storage, path, &errors[4]));
  MUSTER_EXPECT_NULL (muster_storage_list (storage, path, &errors[5]));
  MUSTER_EXPECT_FALSE (muster_storage_stat (storage, path, &info, &errors[6]));
  MUSTER_EXPECT_FALSE (muster_storage_sync_directory (storage, path, &errors[7]));
  MUSTER_EXPECT_FALSE (muster_storage_make_directory (storage, path, &errors[8]));
  MUSTER_EXPECT_FALSE (muster_storage_free_space (storage, path, &size, &errors[9]));
  MUSTER_EXPECT_NULL (muster_storage_lock (storage, path, MUSTER_LOCK_EXCLUSIVE, &errors[10]));
  MUSTER_EXPECT_NULL (muster_storage_lock (storage, path, MUSTER_LOCK_SHARED, &errors[11]));
  MUSTER_EXPECT_FALSE (muster_storage_publish (storage, path, "x", 1, &errors[12]));
}

static void
expect_outside (MusterStorage *storage, const char *name)
{
  GError *errors[N_OPERATIONS] = {NULL};
  try_all (storage, name, errors);
  for (gsize i = 0; i < N_OPERATIONS; i++) {
    MUSTER_EXPECT_SAYS (errors[i], MUSTER_ERROR, MUSTER_ERROR_PERMISSION_DENIED,
                        "is outside the server's data directories ('");
    g_clear_error (&errors[i]);
  }
  expect_secret_is_whole ();
}

MUSTER_TEST (DataDirs, refuse_each_operation_on_what_is_outside)
{
  g_autoptr (MusterStorage) storage = storage_within ();
  g_autofree char *absolute = in_tmpdir ("outside");
  link_to ("../outside", "data/relative");
  link_to (absolute, "data/absolute");
  link_to ("data/none/../../outside", "link"); /* outside itself */

  expect_outside (storage, "outside/secret");
  expect_outside (storage, "outside/absent");
  expect_outside (storage, "outside/absent/below");
  expect_outside (storage, "data/../outside/secret");
  expect_outside (storage, "data/./../outside/absent");
  expect_outside (storage, "data/absent/../../outside/secret");
  expect_outside (storage, "data/relative/secret");
  expect_outside (storage, "data/relative/absent");
  expect_outside (storage, "data/absolute/secret");
  expect_outside (storage, "data/absolute/absent/below");
  expect_outside (storage, "data2"); /* begins as data does */
  expect_outside (storage, "link");
}

/* Renaming and removing act on the link itself; what opens it is refused. */
MUSTER_TEST (DataDirs, refuse_to_follow_a_last_link_that_leads_out)
{
  g_autoptr (MusterStorage) storage = storage_within ();
  g_autofree char *link = in_tmpdir ("data/link"), *secret = in_tmpdir ("outside/secret");
  g_autofree char *made = in_tmpdir ("outside/made"), *dangling = in_tmpdir ("data/dangling");
  GError *errors[3] = {NULL};
  guint64 size;
  link_to (secret, "data/link");
  link_to (made, "data/dangling");

  MUSTER_EXPECT_NULL (muster_storage_open (storage, link, &size, &errors[0]));
  MUSTER_EXPECT_NULL (muster_storage_create (storage, link, &errors[1]));
  MUSTER_EXPECT_NULL (muster_storage_create (storage, dangling, &errors[2]));
  for (gsize i = 0; i < G_N_ELEMENTS (errors); i++) {
    MUSTER_EXPECT_ERROR (errors[i], MUSTER_ERROR, MUSTER_ERROR_PERMISSION_DENIED);
    g_clear_error (&errors[i]);
  }
  MUSTER_EXPECT_TRUE (muster_storage_publish (storage, link, "own", 3, NULL));
  MUSTER_EXPECT_TRUE (muster_storage_remove (storage, dangling, NULL));
  g_autoptr (GBytes) bytes = muster_storage_read (storage, link, NULL);
  MUSTER_EXPECT_MEMEQ (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes), "own", 3);
  expect_secret_is_whole ();
}

/* Writes a file in a new directory, moves it, reads it back and removes it all. */
static void
expect_inside (MusterStorage *storage, const char *name)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = in_tmpdir (name), *below = g_build_filename (path, "a", "b", NULL);
  g_autofree char *file = g_build_filename (below, "file", NULL);
  g_autofree char *other = g_build_filename (path, "other", NULL);
  g_autofree char *above = g_build_filename (path, "a", NULL);
  MusterStorageInfo info;
  guint64 free_bytes = 0;

  MUSTER_EXPECT_TRUE (muster_storage_make_directory (storage, below, &error));
  MUSTER_EXPECT_TRUE (muster_storage_publish (storage, file, "text", 4, &error));
  MUSTER_EXPECT_TRUE (muster_storage_stat (storage, file, &info, &error));
  MUSTER_EXPECT_EQ (info.size, 4u);
  MUSTER_EXPECT_TRUE (muster_storage_rename (storage, file, other, &error));
  g_autoptr (GBytes) bytes = muster_storage_read (storage, other, &error);
  MUSTER_EXPECT_MEMEQ (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes), "text", 4);
  MUSTER_EXPECT_TRUE (muster_storage_free_space (storage, below, &free_bytes, &error));
  MUSTER_EXPECT_TRUE (free_bytes > 0);
  muster_storage_unlock (storage,
                         muster_storage_lock (storage, other, MUSTER_LOCK_EXCLUSIVE, &error));
  g_auto (GStrv) names = muster_storage_list (storage, path, &error);
  MUSTER_EXPECT_TRUE (g_strv_contains ((const char *const *)names, "other"));
  MUSTER_EXPECT_TRUE (muster_storage_remove (storage, other, &error));
  MUSTER_EXPECT_TRUE (muster_storage_remove (storage, below, &error));
  MUSTER_EXPECT_TRUE (muster_storage_remove (storage, above, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (DataDirs, allow_everything_inside_by_each_of_its_names)
{
  g_autoptr (MusterStorage) storage = storage_within ();
  g_autofree char *fast = in_tmpdir ("fast"), *data = in_tmpdir ("data");
  link_to ("run", "data/relative");
  link_to (fast, "data/to_fast"); /* from one to the other */
  link_to (data, "elsewhere");    /* from outside */
  put_file ("data/own", "x", 1);

  expect_inside (storage, "data");
  expect_inside (storage, "fast/run");
  expect_inside (storage, "data//run/./x/../y");
  expect_inside (storage, "outside/../data/run");
  g_autofree char *run = in_tmpdir ("data/run");
  MUSTER_EXPECT_TRUE (muster_storage_make_directory (storage, run, NULL));
  expect_inside (storage, "data/relative");
  expect_inside (storage, "data/to_fast");
  expect_inside (storage, "elsewhere/run");
  g_autofree char *before = g_get_current_dir ();
  MUSTER_ASSERT_EQ (g_chdir (data), 0);
  g_autoptr (GBytes) bytes = muster_storage_read (storage, "own", NULL);
  MUSTER_EXPECT_TRUE (bytes != NULL);
  MUSTER_ASSERT_EQ (g_chdir (before), 0);
}

MUSTER_TEST (DataDirs, say_what_is_wrong_inside_as_without_them)
{
  g_autoptr (MusterStorage) storage = storage_within ();
  g_autofree char *absent = in_tmpdir ("data/absent"), *file = in_tmpdir ("data/file");
  g_autofree char *below = in_tmpdir ("data/file/below"), *data = in_tmpdir ("data");
  g_autoptr (GError) of_absent = NULL, of_file = NULL, of_below = NULL, of_data = NULL;
  put_file ("data/file", "x", 1);

  MUSTER_EXPECT_NULL (muster_storage_read (storage, absent, &of_absent));
  MUSTER_EXPECT_ERROR (of_absent, G_FILE_ERROR, G_FILE_ERROR_NOENT);
  MUSTER_EXPECT_NULL (muster_storage_list (storage, file, &of_file));
  MUSTER_EXPECT_ERROR (of_file, G_FILE_ERROR, G_FILE_ERROR_NOTDIR);
  MUSTER_EXPECT_FALSE (muster_storage_make_directory (storage, below, &of_below));
  MUSTER_EXPECT_ERROR (of_below, G_FILE_ERROR, G_FILE_ERROR_NOTDIR);
  MUSTER_EXPECT_TRUE (muster_storage_remove (storage, absent, NULL));
  MUSTER_EXPECT_FALSE (muster_storage_remove (storage, data, &of_data));
  MUSTER_EXPECT_ERROR (of_data, MUSTER_ERROR, MUSTER_ERROR_PERMISSION_DENIED);
}

MUSTER_TEST (DataDirs, may_be_removed_and_made_again)
{
  g_autoptr (MusterStorage) storage = storage_within ();
  g_autofree char *fast = in_tmpdir ("fast"), *path = in_tmpdir ("fast/run");
  g_autoptr (GError) error = NULL;
  MUSTER_ASSERT_EQ (g_rmdir (fast), 0);
  MUSTER_EXPECT_FALSE (muster_storage_make_directory (storage, path, &error));
  MUSTER_EXPECT_ERROR (error, G_FILE_ERROR, G_FILE_ERROR_NOENT);
  MUSTER_ASSERT_EQ (g_mkdir (fast, 0755), 0);
  expect_inside (storage, "fast/run");
}

MUSTER_TEST (DataDirs, are_checked_when_they_are_set)
{
  g_autofree char *absent = in_tmpdir ("absent"), *file = in_tmpdir ("file");
  g_autoptr (GError) of_absent = NULL, of_file = NULL;
  put_file ("file", "x", 1);
  MUSTER_EXPECT_NULL (
      muster_local_storage_new_within ((const char *const[]){absent, NULL}, &of_absent));
  MUSTER_EXPECT_SAYS (of_absent, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, absent);
  MUSTER_EXPECT_NULL (
      muster_local_storage_new_within ((const char *const[]){file, NULL}, &of_file));
  MUSTER_EXPECT_SAYS (of_file, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, file);
}

MUSTER_TEST (DataDirs, of_the_root_directory_confine_nothing)
{
  g_autoptr (MusterStorage) storage =
      muster_local_storage_new_within ((const char *const[]){"/", NULL}, NULL);
  MUSTER_ASSERT_NOT_NULL (storage);
  expect_inside (storage, "anywhere");
}

/* --- a directory that changes while it is used --- */

#define N_SWAPS 300

typedef struct {
  char *folder, *link; /* (owned) exchanged all the time */
  gint is_over;        /* atomic */
} Swapper;

static gpointer
swap (gpointer data)
{
  Swapper *self = data;
  for (guint i = 0; i < N_SWAPS * 10 && !g_atomic_int_get (&self->is_over); i++)
    if (renameat2 (AT_FDCWD, self->folder, AT_FDCWD, self->link, RENAME_EXCHANGE) != 0)
      break;
  return NULL;
}

MUSTER_TEST (DataDirs, let_nothing_out_while_a_directory_becomes_a_link)
{
  g_autoptr (MusterStorage) storage = storage_within ();
  g_autofree char *outside = in_tmpdir ("outside"), *path = in_tmpdir ("data/folder/secret");
  g_autofree char *new = in_tmpdir ("data/folder/new");
  g_autofree char *below = in_tmpdir ("data/folder/below");
  Swapper swapper = {.folder = in_tmpdir ("data/folder"), .link = in_tmpdir ("data/link")};
  MUSTER_ASSERT_EQ (g_mkdir (swapper.folder, 0755), 0);
  link_to (outside, "data/link");
  put_file ("data/folder/secret", "", 0);
  GThread *thread = g_thread_new ("swap", swap, &swapper);

  for (guint i = 0; i < N_SWAPS; i++) {
    g_autoptr (GBytes) bytes = muster_storage_read (storage, path, NULL);
    if (bytes != NULL)
      MUSTER_ASSERT_EQ (g_bytes_get_size (bytes), 0u);
    (void)muster_storage_publish (storage, new, "x", 1, NULL);
    (void)muster_storage_make_directory (storage, below, NULL);
    (void)muster_storage_remove (storage, path, NULL);
  }
  g_atomic_int_set (&swapper.is_over, TRUE);
  g_thread_join (thread);
  expect_secret_is_whole ();
  g_free (swapper.folder);
  g_free (swapper.link);
}

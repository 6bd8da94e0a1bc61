// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "checkpoint/format/bundle_writer.h"
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/stores/default_storage.h"
#include "tests/doubles/object_storage.h"
#include "tests/gtest_shim.h"

#include <string.h>

static MusterStorage *
make_objects (GError **error G_GNUC_UNUSED)
{
  return MUSTER_STORAGE (object_storage_new ());
}

static MusterStorage *
make_none (GError **error)
{
  muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED, "the library for it is missing");
  return NULL;
}

static MusterStorage *
default_storage (void)
{
  muster_storage_offer ("test", make_objects);
  muster_storage_offer ("none", make_none);
  return muster_default_storage ();
}

static gboolean
publish (MusterStorage *storage, const char *path, GError **error)
{
  return muster_storage_publish (storage, path, "x", 1, error);
}

MUSTER_TEST (DefaultStorage, sends_a_path_to_the_store_of_its_scheme)
{
  MusterStorage *storage = default_storage ();
  g_autofree char *local = g_build_filename (muster_test_tmpdir (), "a", NULL);
  g_autoptr (GError) error = NULL;

  MUSTER_EXPECT_TRUE (publish (storage, "test://bucket/a", &error));
  MUSTER_EXPECT_TRUE (publish (storage, local, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  g_auto (GStrv) names = muster_storage_list (storage, "test://bucket", &error);
  MUSTER_EXPECT_STREQ (names[0], "a");
  MUSTER_EXPECT_FALSE (muster_storage_can_rename (storage, "test://bucket/a"));
  MUSTER_EXPECT_TRUE (muster_storage_can_rename (storage, local));
  MUSTER_EXPECT_TRUE (muster_storage_is_local (storage, local));
  MUSTER_EXPECT_TRUE (muster_storage_is_local (NULL, local));
  MUSTER_EXPECT_FALSE (muster_storage_is_local (storage, "test://bucket/a"));
}

MUSTER_TEST (DefaultStorage, refuses_a_scheme_without_a_store_by_its_name)
{
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_FALSE (publish (default_storage (), "gs://bucket/a", &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_TRUE (error != NULL && strstr (error->message, "no store supports 'gs://'"));
}

MUSTER_TEST (DefaultStorage, says_why_a_store_cannot_be_made)
{
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_FALSE (publish (default_storage (), "none://bucket/a", &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNIMPLEMENTED);
}

MUSTER_TEST (DefaultStorage, writes_a_checkpoint_at_the_top_of_a_bucket)
{
  g_autoptr (MusterTensor) value = muster_tensor_new_string ("v");
  g_autoptr (GError) error = NULL;
  (void)default_storage ();
  g_autoptr (MusterBundleWriter) writer = muster_bundle_writer_new (NULL, "test://top/m-1", &error);

  MUSTER_ASSERT_TRUE (writer != NULL && muster_bundle_writer_add (writer, "v", value, &error));
  MUSTER_EXPECT_TRUE (muster_bundle_writer_finish (writer, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (muster_checkpoint_exists (NULL, "test://top/m-1"));
  MUSTER_EXPECT_TRUE (muster_checkpoint_matches (NULL, "test://top/m-*"));
  MUSTER_EXPECT_TRUE (muster_remove_checkpoint (NULL, "test://top/m-1", &error));
  MUSTER_EXPECT_FALSE (muster_checkpoint_exists (NULL, "test://top/m-1"));
}

MUSTER_TEST (DefaultStorage, names_checkpoints_relative_to_their_directory)
{
  MusterStorage *storage = default_storage ();
  g_autoptr (MusterCheckpointState) state = muster_checkpoint_state_new ();
  g_autoptr (GError) error = NULL;
  muster_checkpoint_state_add (state, "test://bucket/run/m-1", 1);
  MUSTER_ASSERT_TRUE (muster_checkpoint_state_write (storage, "test://bucket/run", state, &error));
  g_autoptr (GBytes) text = muster_storage_read (storage, "test://bucket/run/checkpoint", &error);
  MUSTER_ASSERT_TRUE (text != NULL);
  MUSTER_EXPECT_TRUE (
      g_str_has_prefix (g_bytes_get_data (text, NULL), "model_checkpoint_path: \"m-1\"\n"));
  g_autoptr (MusterCheckpointState) read =
      muster_checkpoint_state_read (storage, "test://bucket/run/", &error);
  MUSTER_EXPECT_STREQ (read->latest, "test://bucket/run/m-1");
}

MUSTER_TEST (DefaultStorage, ends_by_the_deadline_in_the_store_of_a_scheme)
{
  g_autoptr (MusterStorage) late = muster_storage_bound (default_storage (), 0, NULL, NULL);
  g_autofree char *local = g_build_filename (muster_test_tmpdir (), "b", NULL);
  g_autoptr (GError) error = NULL;

  MUSTER_EXPECT_TRUE (publish (late, local, &error));
  MUSTER_EXPECT_FALSE (publish (late, "test://bucket/b", &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
}

/* --- within some directories --- */

static MusterStorage *
within (const char *const *directories)
{
  g_autoptr (GError) error = NULL;
  (void)default_storage ();
  MusterStorage *storage = muster_default_storage_new_within (directories, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return storage;
}

static void
expect_outside (MusterStorage *storage, const char *path)
{
  g_autoptr (GError) error = NULL;
  MUSTER_TRACE ("%s", path);
  MUSTER_EXPECT_FALSE (publish (storage, path, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_PERMISSION_DENIED);
}

MUSTER_TEST (DefaultStorageWithin, allows_what_lies_below_a_prefix)
{
  const char *const directories[] = {"test://bucket/run/", muster_test_tmpdir (), NULL};
  g_autoptr (MusterStorage) storage = within (directories);
  g_autofree char *local = g_build_filename (muster_test_tmpdir (), "c", NULL);
  g_autoptr (GError) error = NULL;

  MUSTER_EXPECT_TRUE (publish (storage, "test://bucket/run/a", &error));
  MUSTER_EXPECT_TRUE (publish (storage, local, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  expect_outside (storage, "test://bucket/other/a");
  expect_outside (storage, "test://bucket/running/a");
  expect_outside (storage, "test://bucket/run/../other/a");
  expect_outside (storage, "test://bucket/run/./a");
  expect_outside (storage, "TEST://bucket/run/a");
  expect_outside (storage, "/etc/muster-outside");
  g_autoptr (MusterStorage) bound = muster_storage_bound (storage, MUSTER_WAIT_FOREVER, NULL, NULL);
  expect_outside (bound, "test://bucket/other/a");
}

MUSTER_TEST (DefaultStorageWithin, allows_no_object_store_where_only_directories_are_given)
{
  const char *const directories[] = {muster_test_tmpdir (), NULL};
  g_autoptr (MusterStorage) storage = within (directories);
  expect_outside (storage, "test://bucket/run/a");
}

MUSTER_TEST (DefaultStorageWithin, allows_no_file_where_only_prefixes_are_given)
{
  const char *const directories[] = {"test://bucket/run", NULL};
  g_autoptr (MusterStorage) storage = within (directories);
  g_autofree char *local = g_build_filename (muster_test_tmpdir (), "d", NULL);

  expect_outside (storage, local);
}

MUSTER_TEST (DefaultStorageWithin, refuses_a_directory_of_no_store)
{
  const char *const unknown[] = {"gs://bucket/run", NULL}, *const none[] = {"test://", NULL};
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_NULL (muster_default_storage_new_within (unknown, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  g_clear_error (&error);
  (void)default_storage ();
  MUSTER_EXPECT_NULL (muster_default_storage_new_within (none, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

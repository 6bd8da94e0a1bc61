// SPDX-License-Identifier: Apache-2.0
/* The same in an object store. */
#include "base/error.h"
#include "checkpoint/state/checkpoint_record_private.h"
#include "graph/npy.h"
#include "tests/checkpoint/edit_fixture.h"
#include "tests/doubles/object_storage.h"

#include <string.h>

static char *
name_of_first (MusterStorage *storage, const char *directory, const char *part)
{
  g_auto (GStrv) names = muster_storage_list (storage, directory, NULL);
  for (char **name = names; name != NULL && *name != NULL; name++)
    if (strstr (*name, part) != NULL)
      return g_build_filename (directory, *name, NULL);
  return NULL;
}

/* Nothing is read back there unless it is asked for, and what was sent isn't sent again. */
MUSTER_TEST (Objects, are_copied_into_and_resumed)
{
  g_autoptr (MusterObjectStorage) objects = object_storage_new ();
  MusterStorage *storage = MUSTER_STORAGE (objects);
  g_autoptr (GError) error = NULL;
  MusterEditReport report;
  edit_write_model (storage, "s3://run/m-5", 2000, 1);
  g_autoptr (MusterObjectStorage) dies = object_storage_process (objects);
  object_storage_stop_at (dies, 6, FALSE);
  MUSTER_EXPECT_FALSE (edit_copy (MUSTER_STORAGE (dies), "s3://run/m-5", "s3://to/m-5",
                                  MUSTER_COPY_LATEST_AUTO, NULL, NULL));
  g_autofree char *left = name_of_first (storage, "s3://to", ".saving-");
  MUSTER_ASSERT_TRUE (left != NULL);

  MUSTER_EXPECT_TRUE (
      edit_copy (storage, "s3://run/m-5", "s3://to/m-5", MUSTER_COPY_LATEST_AUTO, &report, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (report.kept_bytes > 0 && report.is_latest);
  edit_expect_first (storage, "s3://to/m-5", "a", "1");
  g_autofree char *temporary = name_of_first (storage, "s3://to", ".saving-");
  MUSTER_EXPECT_STREQ (temporary, NULL);
}

typedef struct {
  MusterStorage *storage;
  const char *to;
} Other;

static void
copy_another (gpointer data)
{
  const Other *other = data;
  MUSTER_EXPECT_TRUE (
      edit_copy (other->storage, "s3://run/m-6", other->to, MUSTER_COPY_LATEST_AUTO, NULL, NULL));
}

/* Two copies into one directory: neither is lost. */
MUSTER_TEST (Objects, are_listed_though_another_was_faster)
{
  static const char *const files[] = {"checkpoint", "checkpoint.muster"};
  for (gsize i = 0; i < G_N_ELEMENTS (files); i++) {
    g_autoptr (MusterObjectStorage) objects = object_storage_new ();
    g_autoptr (MusterObjectStorage) second = object_storage_process (objects);
    MusterStorage *storage = MUSTER_STORAGE (objects);
    Other other = {.storage = MUSTER_STORAGE (second), .to = "s3://to/m-6"};
    g_autoptr (GError) error = NULL;
    edit_write_model (storage, "s3://run/m-5", 10, 1);
    edit_write_model (storage, "s3://run/m-6", 10, 2);
    object_storage_before_replace (objects, files[i], copy_another, &other);

    MUSTER_EXPECT_TRUE (
        edit_copy (storage, "s3://run/m-5", "s3://to/m-5", MUSTER_COPY_LATEST_AUTO, NULL, &error));

    MUSTER_ASSERT_NO_ERROR (error);
    g_autofree char *list = edit_list_of (storage, "s3://to");
    MUSTER_EXPECT_STREQ (list, "s3://to/m-6 s3://to/m-5 s3://to/m-6");
    g_autoptr (MusterCheckpointRecord) record =
        muster_checkpoint_record_read (storage, "s3://to", NULL);
    MUSTER_EXPECT_EQ (record->checkpoints->len, 2);
  }
}

/* Whatever is damaged is found on the way in, though nothing is read back. */
MUSTER_TEST (Objects, have_no_damage_copied_into_them)
{
  g_autoptr (MusterObjectStorage) objects = object_storage_new ();
  MusterStorage *storage = MUSTER_STORAGE (objects);
  const char *const from[] = {"s3://run/m-5", NULL}, *const all[] = {"*", NULL};
  const char *const names[] = {"a", "x", NULL};
  const MusterEditOptions options = {.storage = storage};
  edit_write_model (storage, "s3://run/m-5", 2000, 1);
  for (int shard = 0; shard < 3; shard++) {
    g_autofree char *path = g_strdup_printf ("s3://run/m-5.data-0000%d-of-00003", shard);
    g_autoptr (GBytes) good = muster_storage_read (storage, path, NULL);
    g_autofree guint8 *bad = g_memdup2 (g_bytes_get_data (good, NULL), g_bytes_get_size (good));
    bad[0] ^= 1;
    MUSTER_EXPECT_TRUE (
        muster_storage_replace (storage, path, bad, g_bytes_get_size (good), NULL, NULL, NULL));
    for (int i = 0; i < 4; i++) {
      g_autoptr (GError) error = NULL;
      const gint64 never = MUSTER_WAIT_FOREVER;
      const gboolean is_done =
          i == 0   ? edit_copy (storage, *from, "s3://to/x", MUSTER_COPY_LATEST_AUTO, NULL, &error)
          : i == 1 ? muster_checkpoint_merge (from, "s3://to/x", &options, NULL, NULL, NULL, never,
                                              NULL, &error)
          : i == 2 ? muster_checkpoint_extract (*from, all, "s3://to/x", &options, NULL, NULL, NULL,
                                                never, NULL, &error)
                   : muster_checkpoint_rename (*from, names, "s3://to/x", &options, NULL, NULL,
                                               NULL, never, NULL, &error);
      MUSTER_EXPECT_FALSE (is_done);
      MUSTER_EXPECT_TRUE (muster_error_is (error, MUSTER_ERROR_DATA_LOSS));
      MUSTER_EXPECT_FALSE (muster_checkpoint_exists (storage, "s3://to/x"));
    }
    MUSTER_EXPECT_TRUE (muster_storage_replace (storage, path, g_bytes_get_data (good, NULL),
                                                g_bytes_get_size (good), NULL, NULL, NULL));
  }
}

MUSTER_TEST (Objects, get_averages_parts_other_names_and_numpy_files)
{
  g_autoptr (MusterObjectStorage) objects = object_storage_new ();
  MusterStorage *storage = MUSTER_STORAGE (objects);
  const char *const from[] = {"s3://run/m-5", "s3://run/m-6", NULL}, *const all[] = {"?", NULL};
  const char *const names[] = {"a", "x", NULL};
  const MusterEditOptions options = {.storage = storage, .replaces = TRUE, .reads_back = TRUE};
  const gint64 never = MUSTER_WAIT_FOREVER;
  edit_write_model (storage, from[0], 2000, 1);
  edit_write_model (storage, from[1], 2000, 4);
  for (int i = 0; i < 2; i++) { /* and again over what is there */
    g_autoptr (GError) error = NULL;
    muster_checkpoint_merge (from, "s3://to/mean", &options, NULL, NULL, NULL, never, NULL, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    edit_expect_first (storage, "s3://to/mean", "a", "2.5");
    muster_checkpoint_rename (from[0], names, "s3://to/new", &options, NULL, NULL, NULL, never,
                              NULL, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    edit_expect_first (storage, "s3://to/new", "x", "1");
    muster_checkpoint_extract (from[0], all, "s3://to/part", &options, NULL, NULL, NULL, never,
                               NULL, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    edit_expect_first (storage, "s3://to/part", "w", "1");
    muster_checkpoint_extract_npy (from[0], all, "s3://npy", &options, NULL, NULL, NULL, never,
                                   NULL, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    g_autoptr (GBytes) file = muster_storage_read (storage, "s3://npy/a.npy", &error);
    MUSTER_ASSERT_NO_ERROR (error);
    g_autoptr (MusterTensor) a = muster_npy_read (file, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_EQ (muster_tensor_n_elements (a), 2000);
  }
}

/* One call finds no store: a copy has its meta graph or isn't made, and one that is there already
 * isn't made again. */
MUSTER_TEST (Objects, are_copied_whole_and_once_in_an_outage)
{
  static const char from[] = "s3://run/m-5", to[] = "s3://to/m-5";
  g_autoptr (MusterObjectStorage) filled = object_storage_new ();
  MusterStorageInfo info;
  edit_write_model (MUSTER_STORAGE (filled), from, 10, 1);
  MUSTER_ASSERT_TRUE (
      muster_storage_publish (MUSTER_STORAGE (filled), "s3://run/m-5.meta", "graph", 5, NULL));
  for (int is_there = 0; is_there < 2; is_there++) {
    gboolean has_failed = TRUE;
    for (guint n = 1; has_failed && n < 100; n++) {
      g_autoptr (MusterObjectStorage) store = object_storage_copy (filled);
      MusterStorage *storage = MUSTER_STORAGE (store);
      MusterEditReport report;
      MUSTER_TRACE ("call %u of a copy that is%s there", n, is_there ? "" : "n't");
      object_storage_miss_at (store, n);
      const gboolean is_made =
          edit_copy (storage, from, to, MUSTER_COPY_LATEST_AUTO, &report, NULL);
      has_failed = object_storage_has_failed (store);
      object_storage_miss_at (store, 0);
      MUSTER_EXPECT_TRUE (!is_made || report.was_there == is_there);
      MUSTER_EXPECT_TRUE (!is_made ||
                          muster_storage_stat (storage, "s3://to/m-5.meta", &info, NULL));
    }
    MUSTER_EXPECT_FALSE (has_failed);
    MUSTER_EXPECT_TRUE (
        edit_copy (MUSTER_STORAGE (filled), from, to, MUSTER_COPY_LATEST_AUTO, NULL, NULL));
  }
}

// SPDX-License-Identifier: Apache-2.0
/* Writing, merging and publishing in an object store, where nothing is renamed: stopped at every
 * call, the old checkpoint is there or the new one, and of two writers one loses. */
#include "base/error.h"
#include "checkpoint/format/bundle_index_private.h"
#include "checkpoint/format/bundle_place_private.h"
#include "checkpoint/format/bundle_publish_private.h"
#include "checkpoint/format/bundle_writer.h"
#include "tests/checkpoint/valued.h"
#include "tests/doubles/object_storage.h"
#include "tests/gtest_shim.h"

#define PREFIX  "s3://run/model"
#define PLACING "s3://run/.placing-0123abcd-model"
#define SAVING  "s3://run/.saving-0123abcd-model"

enum { OLD = 1, NEW = 2, NEXT = 3 };

typedef gboolean (*Operation) (MusterStorage *storage, guint8 value, GError **error);

static gboolean
write_at (MusterStorage *storage, const char *prefix, const char *name, guint8 value,
          GError **error)
{
  return valued_write (storage, prefix, name, value, 2, error);
}

static gboolean
write_whole (MusterStorage *storage, guint8 value, GError **error)
{
  return write_at (storage, PREFIX, "a", value, error);
}

static gboolean
merge_into (MusterStorage *storage, const char *prefix, guint8 value, GError **error)
{
  static const char *const parts[] = {"s3://run/parts/a", "s3://run/parts/b", NULL};
  return write_at (storage, parts[0], "a", value, error) &&
         write_at (storage, parts[1], "b", value, error) &&
         muster_bundle_merge (storage, parts, prefix, error);
}

static gboolean
merge (MusterStorage *storage, guint8 value, GError **error)
{
  return merge_into (storage, PREFIX, value, error);
}

/* As a saver does. */
static gboolean
publish_from (MusterStorage *storage, const char *from, guint8 value, GError **error)
{
  MusterBundlePublishing what = {.from = from, .to = PREFIX, .is_own = TRUE};
  if (!write_at (storage, from, "a", value, error))
    return FALSE;
  if (muster_bundle_publish_with (storage, &what, error))
    return TRUE;
  if (!what.is_unsure)
    muster_bundle_discard (storage, from);
  return FALSE;
}

static gboolean
publish_placed (MusterStorage *storage, guint8 value, GError **error)
{
  return publish_from (storage, PLACING, value, error);
}

static gboolean
publish_elsewhere (MusterStorage *storage, guint8 value, GError **error)
{
  return publish_from (storage, SAVING, value, error);
}

static gboolean
publish_merged (MusterStorage *storage, guint8 value, GError **error)
{
  return merge_into (storage, PLACING, value, error) &&
         muster_bundle_publish (storage, PLACING, PREFIX, error);
}

static int
value_at (MusterStorage *storage, GError **error)
{
  return valued_read (storage, PREFIX, error);
}

/* The files beside the checkpoint's own: left over. */
static int
n_left (MusterObjectStorage *store)
{
  gint32 n_shards = 0;
  MUSTER_EXPECT_TRUE (
      muster_bundle_index_count_shards (MUSTER_STORAGE (store), PREFIX, &n_shards, NULL));
  return (int)object_storage_n_files (store) - n_shards - 1;
}

/* What is wrong for the process that comes next. */
static char *
fault_of (Operation operation, MusterObjectStorage *left, int least, int most, gboolean is_swept)
{
  g_autoptr (MusterObjectStorage) other = object_storage_copy (left);
  MusterStorage *storage = MUSTER_STORAGE (other);
  g_autoptr (GError) error = NULL;
  int value = value_at (storage, &error);
  if (value < least || value > most)
    return g_strdup_printf ("it holds %d: %s", value, error != NULL ? error->message : "no error");
  if (is_swept && !muster_storage_sweep (storage, "s3://run", G_MAXINT64, &error))
    return g_strdup_printf ("sweeping: %s", error->message);
  if (is_swept && object_storage_n_uploads (other) > 0)
    return g_strdup ("there are uploads left");
  if (!operation (storage, NEXT, &error))
    return g_strdup_printf ("the next one: %s", error->message);
  value = value_at (storage, &error);
  return value == NEXT ? NULL : g_strdup_printf ("after the next one it holds %d", value);
}

/* Stops the operation at its every call, before it is done or before its answer, on a store where
 * before has made a checkpoint. */
static char *
try (Operation before, Operation operation, gboolean has_effect)
{
  g_autoptr (MusterObjectStorage) first = object_storage_new ();
  gboolean went_through = FALSE;
  MUSTER_EXPECT_TRUE (before (MUSTER_STORAGE (first), OLD, NULL));
  for (guint at = 1; !went_through; at++) {
    g_autoptr (MusterObjectStorage) process = object_storage_copy (first);
    object_storage_stop_at (process, at, has_effect);
    const gboolean made = operation (MUSTER_STORAGE (process), NEW, NULL);
    went_through = !object_storage_has_stopped (process);
    for (int is_swept = 0; is_swept < 2; is_swept++) {
      g_autofree char *fault = fault_of (operation, process, made ? NEW : OLD, NEW, is_swept);
      if (fault != NULL)
        return g_strdup_printf ("stopped at call %u, %s", at, fault);
    }
  }
  return NULL;
}

static void
expect_no_fault (Operation before, Operation operation)
{
  for (int has_effect = 0; has_effect < 2; has_effect++) {
    g_autofree char *fault = try (before, operation, has_effect);
    MUSTER_EXPECT_STREQ (fault, NULL);
  }
}

MUSTER_TEST (ObjectPublish, leaves_the_old_or_the_new_one_wherever_a_writer_stops)
{
  expect_no_fault (write_whole, write_whole);
  expect_no_fault (merge, write_whole);
}

MUSTER_TEST (ObjectPublish, leaves_the_old_or_the_new_one_wherever_a_merge_stops)
{
  expect_no_fault (write_whole, merge);
  expect_no_fault (merge, merge);
}

MUSTER_TEST (ObjectPublish, leaves_the_old_or_the_new_one_wherever_publishing_stops)
{
  expect_no_fault (publish_placed, publish_placed);
  expect_no_fault (publish_elsewhere, publish_placed);
  expect_no_fault (publish_placed, publish_elsewhere);
  expect_no_fault (publish_placed, publish_merged);
}

/* One call fails, and the process goes on. */
static void
expect_nothing_left (Operation operation)
{
  g_autoptr (MusterObjectStorage) first = object_storage_new ();
  gboolean has_failed = TRUE;
  MUSTER_EXPECT_TRUE (operation (MUSTER_STORAGE (first), OLD, NULL));
  for (guint at = 1; has_failed && at < 100; at++) {
    g_autoptr (MusterObjectStorage) process = object_storage_copy (first);
    object_storage_fail_at (process, at);
    g_autoptr (GError) error = NULL;
    const gboolean made = operation (MUSTER_STORAGE (process), NEW, &error);
    has_failed = object_storage_has_failed (process);
    MUSTER_TRACE ("call %u: %s", at, error != NULL ? error->message : "well");
    MUSTER_EXPECT_EQ (value_at (MUSTER_STORAGE (process), NULL), made ? NEW : OLD);
    MUSTER_EXPECT_EQ (object_storage_n_uploads (process), 0u);
    if (!has_failed)
      MUSTER_EXPECT_EQ (n_left (process), 0);
  }
}

MUSTER_TEST (ObjectPublish, survives_the_failure_of_any_call)
{
  expect_nothing_left (write_whole);
  expect_nothing_left (publish_placed);
  expect_nothing_left (publish_elsewhere);
}

MUSTER_TEST (ObjectPublish, sends_each_byte_once_where_the_names_are_known)
{
  g_autoptr (MusterObjectStorage) store = object_storage_new ();
  MUSTER_ASSERT_TRUE (publish_placed (MUSTER_STORAGE (store), NEW, NULL));
  MUSTER_EXPECT_EQ (object_storage_copied (store), 0u);
  MUSTER_EXPECT_EQ (object_storage_n_files (store), 3u); /* two data files and the index */
}

/* --- one call finds no store --- */

static gboolean
is_outage (const GError *error)
{
  return g_error_matches (error, G_IO_ERROR, G_IO_ERROR_HOST_UNREACHABLE);
}

/* No number is free and no index absent because the store is away. */
MUSTER_TEST (ObjectPublish, replaces_nothing_that_an_outage_hides)
{
  g_autoptr (MusterObjectStorage) store = object_storage_new ();
  MusterStorage *storage = MUSTER_STORAGE (store);
  g_autoptr (GError) of_number = NULL, of_version = NULL;
  MUSTER_ASSERT_TRUE (write_whole (storage, OLD, NULL));

  object_storage_miss_at (store, 1);
  MUSTER_EXPECT_EQ (muster_bundle_free_number (storage, PREFIX, 1, &of_number), 0);
  MUSTER_EXPECT_TRUE (is_outage (of_number));
  object_storage_miss_at (store, 1);
  MUSTER_EXPECT_NULL (muster_bundle_index_version (storage, PREFIX, &of_version));
  MUSTER_EXPECT_TRUE (is_outage (of_version));
}

/* Or it would be set aside. */
MUSTER_TEST (ObjectPublish, is_not_damaged_by_an_outage)
{
  g_autoptr (MusterObjectStorage) store = object_storage_new ();
  int value = 0;
  MUSTER_ASSERT_TRUE (write_whole (MUSTER_STORAGE (store), OLD, NULL));
  for (guint n = 1; value != OLD && n < 20; n++) {
    g_autoptr (GError) error = NULL;
    object_storage_miss_at (store, n);
    value = value_at (MUSTER_STORAGE (store), &error);
    MUSTER_EXPECT_TRUE (value == OLD || is_outage (error));
  }
  MUSTER_EXPECT_EQ (value, OLD);
}

/* A save that was published and then ended: what it left names the data of the checkpoint. */
MUSTER_TEST (ObjectPublish, loses_no_data_to_a_discard_in_an_outage)
{
  g_autofree char *left = muster_bundle_index_path (PLACING);
  g_autofree char *index = muster_bundle_index_path (PREFIX);
  for (guint n = 1; n < 10; n++) {
    g_autoptr (MusterObjectStorage) store = object_storage_new ();
    MusterStorage *storage = MUSTER_STORAGE (store);
    MUSTER_ASSERT_TRUE (write_at (storage, PLACING, "a", NEW, NULL));
    MUSTER_ASSERT_TRUE (muster_storage_copy (storage, left, index, NULL));
    object_storage_miss_at (store, n);
    muster_bundle_discard (storage, PLACING);
    object_storage_miss_at (store, 0);
    MUSTER_TRACE ("call %u", n);
    MUSTER_EXPECT_EQ (value_at (storage, NULL), NEW);
  }
}

/* --- two writers --- */

static void
write_in_between (gpointer other)
{
  MUSTER_EXPECT_TRUE (write_whole (other, NEXT, NULL));
}

MUSTER_TEST (ObjectPublish, loses_to_a_writer_that_publishes_first)
{
  g_autoptr (MusterObjectStorage) store = object_storage_new ();
  g_autoptr (MusterObjectStorage) other = object_storage_process (store);
  g_autoptr (GError) error = NULL;
  MUSTER_ASSERT_TRUE (write_whole (MUSTER_STORAGE (store), OLD, NULL));
  object_storage_before_replace (store, "model.index", write_in_between, other);
  MUSTER_EXPECT_FALSE (publish_placed (MUSTER_STORAGE (store), NEW, &error));
  MUSTER_EXPECT_TRUE (muster_error_is (error, MUSTER_ERROR_ABORTED));
  MUSTER_EXPECT_EQ (value_at (MUSTER_STORAGE (store), NULL), NEXT);
  MUSTER_EXPECT_EQ (n_left (store), 0);
}

MUSTER_TEST (ObjectPublish, never_writes_over_the_data_of_another_writer)
{
  g_autoptr (MusterObjectStorage) store = object_storage_new ();
  g_autoptr (MusterObjectStorage) other = object_storage_process (store);
  g_autoptr (MusterBundleWriter) writer =
      valued_writer (MUSTER_STORAGE (store), PREFIX, "a", NEW, 1, NULL);
  g_autoptr (GError) error = NULL;
  MusterStorage *storage = MUSTER_STORAGE (other);

  /* A name that is taken between the list and the end of the upload. */
  MusterStorageFile *file =
      muster_storage_create (storage, "s3://run/model.data-00000-of-00001", NULL);
  MUSTER_ASSERT_TRUE (muster_bundle_writer_finish (writer, NULL));
  MUSTER_EXPECT_FALSE (muster_storage_close (storage, file, &error));
  MUSTER_EXPECT_TRUE (muster_error_is (error, MUSTER_ERROR_ABORTED));
  MUSTER_EXPECT_EQ (value_at (storage, NULL), NEW);
}

MUSTER_TEST (ObjectPublish, publishes_only_over_the_version_that_it_was_told)
{
  g_autoptr (MusterObjectStorage) store = object_storage_new ();
  MusterStorage *storage = MUSTER_STORAGE (store);
  g_autoptr (GError) error = NULL;
  g_autofree char *version = muster_bundle_index_version (storage, PREFIX, &error);
  const char *const nothing = "";

  MUSTER_EXPECT_STREQ (version, nothing);
  MUSTER_ASSERT_TRUE (write_at (storage, PLACING, "a", NEW, NULL));
  MUSTER_ASSERT_TRUE (write_whole (storage, OLD, NULL));
  MusterBundlePublishing what = {.from = PLACING, .to = PREFIX, .is_own = TRUE, .version = version};
  MUSTER_EXPECT_FALSE (muster_bundle_publish_with (storage, &what, &error));
  MUSTER_EXPECT_TRUE (muster_error_is (error, MUSTER_ERROR_ABORTED));
  MUSTER_EXPECT_FALSE (what.is_unsure);
  muster_bundle_discard (storage, PLACING);
  MUSTER_EXPECT_EQ (value_at (storage, NULL), OLD);
}

/* --- the store's own operations --- */

MUSTER_TEST (ObjectStorage, shows_a_file_once_it_is_closed)
{
  g_autoptr (MusterObjectStorage) store = object_storage_new ();
  MusterStorage *storage = MUSTER_STORAGE (store);
  MusterStorageInfo info;
  MusterStorageFile *file = muster_storage_create (storage, "s3://run/a", NULL);
  MUSTER_ASSERT_TRUE (muster_storage_append (storage, file, "abc", 3, NULL));
  MUSTER_EXPECT_FALSE (muster_storage_stat (storage, "s3://run/a", &info, NULL));
  MUSTER_ASSERT_TRUE (muster_storage_close (storage, file, NULL));
  MUSTER_EXPECT_TRUE (muster_storage_stat (storage, "s3://run/a", &info, NULL));
  file = muster_storage_create (storage, "s3://run/b", NULL);
  muster_storage_abandon (storage, file);
  MUSTER_EXPECT_FALSE (muster_storage_stat (storage, "s3://run/b", &info, NULL));
}

MUSTER_TEST (ObjectStorage, ends_when_its_time_is_up_or_it_is_cancelled)
{
  g_autoptr (MusterObjectStorage) store = object_storage_new ();
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (MusterStorage) late = muster_storage_bound (MUSTER_STORAGE (store), 0, NULL, NULL);
  g_autoptr (MusterStorage) cancelled =
      muster_storage_bound (MUSTER_STORAGE (store), MUSTER_WAIT_FOREVER, NULL, cancellable);
  g_autoptr (GError) error = NULL;

  MUSTER_EXPECT_FALSE (write_whole (late, NEW, &error));
  MUSTER_EXPECT_TRUE (muster_error_is (error, MUSTER_ERROR_DEADLINE_EXCEEDED));
  g_clear_error (&error);
  MUSTER_EXPECT_TRUE (write_whole (cancelled, NEW, NULL));
  g_cancellable_cancel (cancellable);
  MUSTER_EXPECT_FALSE (write_whole (cancelled, NEXT, &error));
  MUSTER_EXPECT_TRUE (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED));
  MUSTER_EXPECT_EQ (value_at (MUSTER_STORAGE (store), NULL), NEW);
}

// SPDX-License-Identifier: Apache-2.0
/* A copy, an average, a part and a renamed one, stopped at every call: every state of the store
 * that a power cut may then leave has only whole checkpoints, the directory's latest among them,
 * and the same work then succeeds; the same in an object store. */
#include "checkpoint/edit/edit.h"
#include "checkpoint/format/bundle_reader.h"
#include "checkpoint/format/bundle_writer.h"
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/state/quarantine.h"
#include "tests/doubles/crash_storage.h"
#include "tests/doubles/object_storage.h"
#include "tests/gtest_shim.h"

#include <string.h>

enum { OLD = 1, NEW = 2 };

static gboolean
write_at (MusterStorage *storage, const char *prefix, guint8 value, GError **error)
{
  static const gint64 sizes[] = {1, 5000, 7};
  g_autoptr (MusterBundleWriter) writer = muster_bundle_writer_new (storage, prefix, error);
  if (writer == NULL)
    return FALSE;
  muster_bundle_writer_set_n_shards (writer, 2);
  for (gsize i = 0; i < G_N_ELEMENTS (sizes); i++) {
    g_autofree char *name = g_strdup_printf ("a/%d", (int)i);
    g_autoptr (MusterTensor) tensor = muster_tensor_new (MUSTER_UINT8, 1, &sizes[i]);
    memset (muster_tensor_data_mutable (tensor), value, (gsize)sizes[i]);
    if (!muster_bundle_writer_add (writer, name, tensor, error))
      return FALSE;
  }
  return muster_bundle_writer_finish (writer, error);
}

typedef gboolean (*Operation) (const MusterEditOptions *options, GError **error);

static gboolean
copy (const MusterEditOptions *options, GError **error)
{
  return muster_checkpoint_copy ("/run/m-2", "/to/m-2", options, NULL, NULL, NULL,
                                 MUSTER_WAIT_FOREVER, NULL, error);
}

static gboolean
merge (const MusterEditOptions *options, GError **error)
{
  static const char *const from[] = {"/run/m-2", "/run/m-2", NULL};
  return muster_checkpoint_merge (from, "/to/m-2", options, NULL, NULL, NULL, MUSTER_WAIT_FOREVER,
                                  NULL, error);
}

static gboolean
extract (const MusterEditOptions *options, GError **error)
{
  static const char *const all[] = {"*", NULL};
  return muster_checkpoint_extract ("/run/m-2", all, "/to/m-2", options, NULL, NULL, NULL,
                                    MUSTER_WAIT_FOREVER, NULL, error);
}

static gboolean
rename_it (const MusterEditOptions *options, GError **error)
{
  static const char *const names[] = {"a/*", "b/*", NULL};
  return muster_checkpoint_rename ("/run/m-2", names, "/to/m-2", options, NULL, NULL, NULL,
                                   MUSTER_WAIT_FOREVER, NULL, error);
}

/* The value of every tensor; -1 with an error. */
static int
value_at (MusterStorage *storage, const char *prefix, GError **error)
{
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (storage, prefix, error);
  if (reader == NULL || !muster_bundle_reader_verify (reader, NULL, NULL, NULL, error))
    return -1;
  g_autoptr (MusterTensor) tensor =
      muster_bundle_reader_read (reader, muster_bundle_reader_entry (reader, 1)->name, error);
  return tensor != NULL ? *(const guint8 *)muster_tensor_data (tensor) : -1;
}

/* Whatever is listed is whole; the latest is the old one, or the new one. */
static char *
fault_of (MusterStorage *storage, gboolean is_listed, gboolean must_be_new)
{
  g_autoptr (GError) error = NULL;
  g_auto (GStrv) all = muster_checkpoint_list (storage, "/to", &error);
  g_autofree char *latest = muster_latest_checkpoint (storage, "/to", &error);
  if (all == NULL || latest == NULL)
    return g_strdup_printf ("no list or latest: %s", error != NULL ? error->message : "none");
  gboolean is_new = FALSE;
  for (char **prefix = all; *prefix != NULL; prefix++) {
    const int value = value_at (storage, *prefix, &error);
    if (value < OLD)
      return g_strdup_printf ("'%s': %s", *prefix, error != NULL ? error->message : "damaged");
    is_new = is_new || strcmp (*prefix, "/to/m-2") == 0;
  }
  if (must_be_new && !is_new)
    return g_strdup ("it said that it was there");
  const gboolean is_latest = strcmp (latest, "/to/m-2") == 0;
  return (must_be_new && is_listed != is_latest) || (is_latest && !is_listed)
             ? g_strdup_printf ("the latest is '%s'", latest)
             : NULL;
}

static gboolean
has_temporaries (MusterStorage *storage)
{
  g_auto (GStrv) names = muster_storage_list (storage, "/to", NULL);
  g_autofree char *all = g_strjoinv (" ", names);
  return strstr (all, ".saving-") != NULL;
}

/* What is in a store is right, and the work can be done again. */
static char *
fault_after (Operation operation, MusterStorage *storage, gboolean must_be_new)
{
  const gboolean is_listed = operation == copy;
  const MusterEditOptions options = {.storage = storage, .replaces = TRUE};
  g_autoptr (GError) error = NULL;
  char *fault = fault_of (storage, is_listed, must_be_new);
  if (fault != NULL)
    return fault;
  if (!operation (&options, &error))
    return g_strdup_printf ("again: %s", error->message);
  if (has_temporaries (storage))
    return g_strdup ("temporary files are left");
  return fault_of (storage, is_listed, TRUE);
}

/* Two checkpoints, and a copy of the first. */
static void
begin (MusterStorage *storage)
{
  const MusterEditOptions options = {.storage = storage};
  for (int i = 0; i < 2; i++)
    muster_storage_make_directory (storage, i == 0 ? "/run" : "/to", NULL);
  MUSTER_EXPECT_TRUE (write_at (storage, "/run/m-1", OLD, NULL));
  MUSTER_EXPECT_TRUE (write_at (storage, "/run/m-2", NEW, NULL));
  MUSTER_EXPECT_TRUE (muster_checkpoint_copy ("/run/m-1", "/to/m-1", &options, NULL, NULL, NULL,
                                              MUSTER_WAIT_FOREVER, NULL, NULL));
}

static char *
try (Operation operation)
{
  g_autoptr (MusterCrashStorage) first = muster_crash_storage_new ();
  gboolean went_through = FALSE;
  begin (MUSTER_STORAGE (first));
  for (guint at = 1; !went_through; at++) {
    g_autoptr (MusterCrashStorage) crash = muster_crash_storage_copy (first);
    g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
    const MusterEditOptions options = {.storage = MUSTER_STORAGE (crash)};
    muster_crash_storage_stop_at (crash, at);
    const gboolean made = operation (&options, NULL);
    went_through = !muster_crash_storage_has_stopped (crash);
    for (guint i = 0; i < muster_crash_storage_n_outcomes (crash); i++) {
      g_autofree char *what = NULL;
      g_autoptr (MusterCrashStorage) after = muster_crash_storage_outcome (crash, i, &what);
      if (!g_hash_table_add (seen, muster_crash_storage_fingerprint (after)))
        continue;
      g_autofree char *fault = fault_after (operation, MUSTER_STORAGE (after), made);
      if (fault != NULL)
        return g_strdup_printf ("stopped at call %u, with %s: %s", at, what, fault);
    }
  }
  return NULL;
}

/* An object store's: each process that ends, with or without its last call's effect. */
static char *
try_objects (Operation operation, gboolean has_effect)
{
  g_autoptr (MusterObjectStorage) first = object_storage_new ();
  gboolean went_through = FALSE;
  begin (MUSTER_STORAGE (first));
  for (guint at = 1; !went_through; at++) {
    g_autoptr (MusterObjectStorage) process = object_storage_copy (first);
    const MusterEditOptions options = {.storage = MUSTER_STORAGE (process)};
    object_storage_stop_at (process, at, has_effect);
    const gboolean made = operation (&options, NULL);
    went_through = !object_storage_has_stopped (process);
    g_autoptr (MusterObjectStorage) next = object_storage_process (process);
    g_autofree char *fault = fault_after (operation, MUSTER_STORAGE (next), made);
    if (fault != NULL)
      return g_strdup_printf ("stopped at call %u, %s: %s", at, has_effect ? "done" : "not done",
                              fault);
  }
  return NULL;
}

static void
expect_no_fault (Operation operation)
{
  g_autofree char *fault = try (operation);
  g_autofree char *before = try_objects (operation, FALSE);
  g_autofree char *after = try_objects (operation, TRUE);
  MUSTER_EXPECT_STREQ (fault, NULL);
  MUSTER_EXPECT_STREQ (before, NULL);
  MUSTER_EXPECT_STREQ (after, NULL);
}

MUSTER_TEST (EditCrash, in_a_copy)
{
  expect_no_fault (copy);
}

MUSTER_TEST (EditCrash, in_an_average)
{
  expect_no_fault (merge);
}

MUSTER_TEST (EditCrash, in_a_part)
{
  expect_no_fault (extract);
}

MUSTER_TEST (EditCrash, in_new_names)
{
  expect_no_fault (rename_it);
}

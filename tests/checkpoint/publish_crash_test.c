// SPDX-License-Identifier: Apache-2.0
/* Writing, merging and publishing over a checkpoint of the same name, stopped at every call: every
 * state of the store that a power cut may then leave holds the old checkpoint or the new one. */
#include "checkpoint/format/bundle_publish_private.h"
#include "checkpoint/format/bundle_writer.h"
#include "checkpoint/state/checkpoint_state.h"
#include "tests/checkpoint/valued.h"
#include "tests/doubles/crash_storage.h"
#include "tests/gtest_shim.h"

#include <string.h>

#define PREFIX "/run/model"
#define SAVING "/run/.saving-1-model"

enum { OLD = 1, NEW = 2, NEXT = 3 };

/* Makes a checkpoint of this value at PREFIX. */
typedef gboolean (*Operation) (MusterStorage *storage, guint8 value, GError **error);

static gboolean
write_at (MusterStorage *storage, const char *prefix, const char *name, guint8 value,
          GError **error)
{
  return valued_write (storage, prefix, name, value, 0, error);
}

static gboolean
write_whole (MusterStorage *storage, guint8 value, GError **error)
{
  return write_at (storage, PREFIX, "a", value, error);
}

static gboolean
merge_into (MusterStorage *storage, const char *prefix, guint8 value, GError **error)
{
  static const char *const parts[] = {"/run/parts/a", "/run/parts/b", NULL};
  return muster_storage_make_directory (storage, "/run/parts", error) &&
         write_at (storage, parts[0], "a", value, error) &&
         write_at (storage, parts[1], "b", value, error) &&
         muster_bundle_merge (storage, parts, prefix, error);
}

static gboolean
merge (MusterStorage *storage, guint8 value, GError **error)
{
  return merge_into (storage, PREFIX, value, error);
}

static gboolean
publish_whole (MusterStorage *storage, guint8 value, GError **error)
{
  return write_at (storage, SAVING, "a", value, error) &&
         muster_bundle_publish (storage, SAVING, PREFIX, error);
}

static gboolean
publish_merged (MusterStorage *storage, guint8 value, GError **error)
{
  return merge_into (storage, SAVING, value, error) &&
         muster_bundle_publish (storage, SAVING, PREFIX, error);
}

static int
value_at (MusterStorage *storage, GError **error)
{
  return valued_read (storage, PREFIX, error);
}

static char *
fault_of (Operation operation, MusterCrashStorage *crash, int least, int most)
{
  MusterStorage *storage = MUSTER_STORAGE (crash);
  g_autoptr (GError) error = NULL;
  int value = value_at (storage, &error);
  if (value < least || value > most)
    return g_strdup_printf ("it holds %d: %s", value, error != NULL ? error->message : "no error");
  if (!operation (storage, NEXT, &error))
    return g_strdup_printf ("the next one: %s", error->message);
  value = value_at (storage, &error);
  return value == NEXT ? NULL : g_strdup_printf ("after the next one it holds %d", value);
}

static char *
fault_of_outcomes (Operation operation, MusterCrashStorage *crash, int least, int most)
{
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  for (guint i = 0; i < muster_crash_storage_n_outcomes (crash); i++) {
    g_autofree char *what = NULL;
    g_autoptr (MusterCrashStorage) after = muster_crash_storage_outcome (crash, i, &what);
    if (!g_hash_table_add (seen, muster_crash_storage_fingerprint (after)))
      continue;
    g_autofree char *fault = fault_of (operation, after, least, most);
    if (fault != NULL)
      return g_strdup_printf ("with %s: %s", what, fault);
  }
  return NULL;
}

/* Stops verb at its every call, on a store where before has made a checkpoint n times. */
static char *
try (Operation before, int n, Operation operation, const char *lazy)
{
  g_autoptr (MusterCrashStorage) first = muster_crash_storage_new ();
  gboolean went_through = FALSE;
  muster_storage_make_directory (MUSTER_STORAGE (first), "/run", NULL);
  for (int i = 0; i < n; i++)
    MUSTER_EXPECT_TRUE (before (MUSTER_STORAGE (first), OLD, NULL));
  for (guint at = 1; !went_through; at++) {
    g_autoptr (MusterCrashStorage) crash = muster_crash_storage_copy (first);
    muster_crash_storage_set_lazy (crash, lazy);
    muster_crash_storage_stop_at (crash, at);
    gboolean made = operation (MUSTER_STORAGE (crash), NEW, NULL);
    went_through = !muster_crash_storage_has_stopped (crash);
    g_autofree char *fault = fault_of_outcomes (operation, crash, made ? NEW : OLD, NEW);
    if (fault != NULL)
      return g_strdup_printf ("stopped at call %u, %s", at, fault);
  }
  return NULL;
}

static void
expect_no_fault (Operation before, int n, Operation operation, const char *lazy)
{
  g_autofree char *fault = try (before, n, operation, lazy);

  MUSTER_EXPECT_STREQ (fault, NULL);
}

MUSTER_TEST (PublishCrash, in_a_writer_over_one)
{
  expect_no_fault (write_whole, 1, write_whole, NULL);
  expect_no_fault (write_whole, 2, write_whole, NULL);
  expect_no_fault (merge, 1, write_whole, NULL);
}

MUSTER_TEST (PublishCrash, in_a_merge_over_one)
{
  expect_no_fault (merge, 1, merge, NULL);
  expect_no_fault (merge, 2, merge, NULL);
  expect_no_fault (write_whole, 1, merge, NULL);
}

MUSTER_TEST (PublishCrash, in_publishing_over_one)
{
  expect_no_fault (publish_whole, 1, publish_whole, "/.saving-");
  expect_no_fault (publish_merged, 1, publish_whole, "/.saving-");
  expect_no_fault (publish_whole, 3, publish_merged, "/.saving-");
  expect_no_fault (publish_merged, 2, publish_merged, "/.saving-");
}

/* Makes the state file name so many checkpoints. */
static gboolean
name_in_state (MusterStorage *storage, int n, GError **error)
{
  g_autoptr (MusterCheckpointState) state = muster_checkpoint_state_new ();
  for (int i = 1; i <= n; i++)
    g_ptr_array_add (state->all, g_strdup_printf ("/run/model-%d", i));
  state->latest = g_strdup_printf ("/run/model-%d", n);
  return muster_checkpoint_state_write (storage, "/run", state, error);
}

/* How many it names, the latest last; -1 where that isn't so, with or without an error. */
static int
named_in_state (MusterCrashStorage *crash, GError **error)
{
  g_autoptr (MusterCheckpointState) state =
      muster_checkpoint_state_read (MUSTER_STORAGE (crash), "/run", error);
  g_autofree char *latest =
      state != NULL ? g_strdup_printf ("/run/model-%d", (int)state->all->len) : g_strdup ("");
  return state != NULL && strcmp (state->latest, latest) == 0 ? (int)state->all->len : -1;
}

/* SAV.8: the file is the old one or the new one, whole, whenever the power goes */
MUSTER_TEST (PublishCrash, in_an_update_of_the_state_file)
{
  g_autoptr (MusterCrashStorage) first = muster_crash_storage_new ();
  gboolean went_through = FALSE;
  guint n_stops = 0;
  muster_storage_make_directory (MUSTER_STORAGE (first), "/run", NULL);
  MUSTER_ASSERT_TRUE (name_in_state (MUSTER_STORAGE (first), 5, NULL));

  for (guint at = 1; !went_through; at++) {
    g_autoptr (MusterCrashStorage) crash = muster_crash_storage_copy (first);
    muster_crash_storage_stop_at (crash, at);
    gboolean written = name_in_state (MUSTER_STORAGE (crash), 2, NULL);
    went_through = !muster_crash_storage_has_stopped (crash);
    n_stops += !went_through;
    for (guint i = 0; i < muster_crash_storage_n_outcomes (crash); i++) {
      g_autofree char *what = NULL;
      g_autoptr (GError) error = NULL;
      g_autoptr (MusterCrashStorage) after = muster_crash_storage_outcome (crash, i, &what);
      int named = named_in_state (after, &error);
      MUSTER_TRACE ("stopped at call %u with %s: %s", at, what, error ? error->message : "");
      MUSTER_EXPECT_TRUE (named == 2 || (named == 5 && !written));
    }
  }
  MUSTER_EXPECT_GT (n_stops, 2u);
}

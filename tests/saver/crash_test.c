// SPDX-License-Identifier: Apache-2.0
/* A save stopped at its every call, and after each stop every state of the store that a power cut
 * may leave: a new process restores the old model or the new one, byte for byte, and its next save
 * works. */
#include "checkpoint/state/checkpoint_check.h"
#include "checkpoint/state/checkpoint_state.h"
#include "tests/doubles/crash_storage.h"
#include "tests/doubles/narrow_storage.h"
#include "tests/gtest_shim.h"
#include "tests/saver/model_life.h"

#include <string.h>

#define DIRECTORY "/run"
/* What the model's every byte is: in the checkpoints before, in the save that is stopped, in the
 * one after. */
enum { OLDEST = 1, OLD = 2, NEW = 3, NEXT = 4 };

typedef struct {
  MusterShardedModel model;
  gint64 steps[3];     /* of OLDEST, OLD and NEW; -1: without a number; -2: there is no such save */
  gboolean is_damaged; /* NEW is saved and damaged; it is a restore that is stopped */
  gboolean is_async;   /* saved in the background */
  gboolean is_full;    /* there is no room for NEW, unless OLDEST goes */
} Story;

/* Of the disk that has no room for a third. */
static guint64 full_size;

/* Starts another life; on such a disk, once two are there, by a rule that keeps one. */
static ModelLife
live (const Story *story, MusterCrashStorage *crash)
{
  g_autoptr (MusterNarrowStorage) disk = muster_narrow_storage_new ();
  muster_forwarding_storage_set_inner (MUSTER_FORWARDING_STORAGE (disk), MUSTER_STORAGE (crash));
  const gboolean has_two =
      muster_checkpoint_exists (MUSTER_STORAGE (crash), DIRECTORY "/model.ckpt-20");
  const MusterSaverOptions options = {.storage = story->is_full ? MUSTER_STORAGE (disk)
                                                                : MUSTER_STORAGE (crash),
                                      .max_to_keep = story->is_full && has_two ? 1 : 0};
  ModelLife life = model_life_new (&story->model, &options, NULL);

  if (story->is_async)
    model_life_save_in_background (&life);
  return life;
}

static gboolean
save (ModelLife *life, guint8 value, gint64 step, GError **error)
{
  return model_life_save (life, value, DIRECTORY, step, error);
}

static int
restore (ModelLife *life, GError **error)
{
  return model_life_restore (life, DIRECTORY, error);
}

static void
note_size (const ModelLife *life)
{
  MusterCheckpointOverview one = {0};
  MUSTER_EXPECT_TRUE (
      muster_checkpoint_inspect (life->storage, DIRECTORY "/model.ckpt-10", &one, NULL));
  full_size = muster_narrow_storage_used (life->storage, DIRECTORY) +
              muster_saver_estimate_bytes (life->saver) - one.bytes / 2;
}

/* The store with the saves of before. */
static MusterCrashStorage *
begin (const Story *story, GError **error)
{
  g_autoptr (MusterCrashStorage) crash = muster_crash_storage_new ();
  g_auto (ModelLife) life = live (story, crash);
  muster_storage_make_directory (life.storage, DIRECTORY, NULL);
  for (int i = 0; i < 2; i++)
    if (story->steps[i] >= -1 && !save (&life, (guint8)(OLDEST + i), story->steps[i], error))
      return NULL;
  if (story->is_full)
    note_size (&life);
  return muster_crash_storage_copy (crash);
}

/* --- what must hold after a crash --- */

/* TensorFlow takes a state file with any other field for none at all. */
static gboolean
is_known_field (const char *line)
{
  static const char *const fields[] = {
      "model_checkpoint_path: \"", "all_model_checkpoint_paths: \"",
      "all_model_checkpoint_timestamps: ", "last_preserved_timestamp: "};
  for (gsize i = 0; i < G_N_ELEMENTS (fields); i++)
    if (g_str_has_prefix (line, fields[i]))
      return TRUE;
  return *line == '\0';
}

static char *
fault_of_state_file (MusterStorage *storage)
{
  g_autoptr (GBytes) bytes = muster_storage_read (storage, DIRECTORY "/checkpoint", NULL);
  gsize size;
  const char *data = bytes != NULL ? g_bytes_get_data (bytes, &size) : NULL;
  if (data == NULL)
    return NULL;
  g_autofree char *text = g_strndup (data, size);
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  for (char **line = lines; *line; line++)
    if (!is_known_field (*line))
      return g_strdup_printf ("the state file has the line '%s'", *line);
  return NULL;
}

/* Whatever the directory lists is whole, and so is what the state file names and is there. */
static char *
fault_of_listed (MusterStorage *storage)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterCheckpointState) state =
      muster_checkpoint_state_read (storage, DIRECTORY, &error);
  char *fault = error != NULL ? g_strdup (error->message) : NULL;

  for (guint i = 0; fault == NULL && state != NULL && i < state->all->len; i++)
    if (muster_checkpoint_exists (storage, state->all->pdata[i]))
      fault = model_life_fault (storage, state->all->pdata[i]);
  return fault != NULL ? fault : model_life_fault_of_listed (storage, DIRECTORY);
}

static char *
fault_of_restored (ModelLife *life, int least, int most)
{
  g_autoptr (GError) error = NULL;
  int value = restore (life, &error);
  if (value >= least && value <= most)
    return NULL;
  return g_strdup_printf ("it restores %d: %s", value, error != NULL ? error->message : "no error");
}

/* The process that comes after the crash goes on where the old or the new save left off. */
static char *
fault_of (const Story *story, MusterCrashStorage *crash, int least, int most, gboolean goes_on)
{
  g_auto (ModelLife) life = live (story, crash);
  g_autoptr (GError) error = NULL;
  char *fault = fault_of_state_file (life.storage);
  if (fault == NULL && !story->is_damaged)
    fault = fault_of_listed (life.storage);
  if (fault == NULL)
    fault = fault_of_restored (&life, least, most);
  if (fault != NULL || !goes_on)
    return fault;
  if (!save (&life, NEXT, story->steps[2] + (story->steps[2] > 0), &error))
    return g_strdup_printf ("the next save: %s", error->message);
  g_auto (ModelLife) next = live (story, crash);
  fault = fault_of_restored (&next, NEXT, NEXT);
  return fault != NULL ? fault : fault_of_listed (next.storage);
}

/* The next save takes the most time: it is made after every fourth crash. */
static gboolean
goes_on (guint nth)
{
  return nth % 4 == 0 || g_getenv ("MUSTER_LONG") != NULL;
}

/* Tries every outcome of a crash now, each once; the first fault (nullable). */
static char *
fault_of_outcomes (const Story *story, MusterCrashStorage *crash, int least, int most)
{
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  static guint n_seen, n_tried;
  for (guint i = 0; i < muster_crash_storage_n_outcomes (crash); i++) {
    g_autofree char *what = NULL;
    g_autoptr (MusterCrashStorage) after = muster_crash_storage_outcome (crash, i, &what);
    if (!g_hash_table_add (seen, muster_crash_storage_fingerprint (after)))
      continue;
    if (!muster_crash_storage_is_tried (n_seen++))
      continue;
    g_autofree char *fault = fault_of (story, after, least, most, goes_on (n_tried++));
    if (fault != NULL)
      return g_strdup_printf ("with %s: %s", what, fault);
  }
  return NULL;
}

/* --- a save and its crashes --- */

typedef struct {
  guint n_stops; /* calls at which it was stopped */
  gboolean ignores_files, ignores_directories;
  gboolean is_lazy; /* the master is another process, and doesn't sync what it writes */
} Trial;

/* Saves NEW, stopped at the n-th call; whether it went through. */
static gboolean
stop_at (const Story *story, const Trial *trial, MusterCrashStorage *crash, guint n, char **fault)
{
  g_auto (ModelLife) life = live (story, crash);
  int old = restore (&life, NULL);
  MUSTER_EXPECT_EQ (old, story->steps[1] >= -1 ? OLD : 0);
  if (story->is_full)
    muster_narrow_storage_set_size (MUSTER_NARROW_STORAGE (life.storage), full_size);
  muster_crash_storage_stop_at (crash, n);
  MUSTER_SESSION_GET_CLASS (life.session)->is_here = !trial->is_lazy;
  gboolean saved = save (&life, NEW, story->steps[2], NULL);
  MUSTER_SESSION_GET_CLASS (life.session)->is_here = TRUE;
  gboolean stopped = muster_crash_storage_has_stopped (crash);
  *fault = fault_of_outcomes (story, crash, saved ? NEW : old, NEW);
  return saved && !stopped;
}

/* The first fault that a crash at any call of the save leaves (nullable). */
static char *
try (const Story *story, Trial *trial)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterCrashStorage) before = begin (story, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  for (guint n = 1; before != NULL; n++) {
    g_autoptr (MusterCrashStorage) crash = muster_crash_storage_copy (before);
    g_autofree char *fault = NULL;
    muster_crash_storage_ignore_syncs (crash, trial->ignores_files, trial->ignores_directories);
    muster_crash_storage_set_lazy (crash, trial->is_lazy ? "/.saving-" : NULL);
    gboolean went_through = stop_at (story, trial, crash, n, &fault);
    if (fault != NULL)
      return g_strdup_printf ("stopped at call %u, %s", n, fault);
    if (went_through)
      break;
    trial->n_stops = n;
  }
  return NULL;
}

static void
expect_no_fault (const Story *story)
{
  Trial trial = {0};
  g_autofree char *fault = try (story, &trial);

  MUSTER_EXPECT_STREQ (fault, NULL);
  MUSTER_EXPECT_GT (trial.n_stops, 10u);

  trial = (Trial){.is_lazy = TRUE};
  g_autofree char *lazy_fault = try (story, &trial);
  MUSTER_EXPECT_STREQ (lazy_fault, NULL);
}

MUSTER_TEST (Crash, in_the_first_save)
{
  const Story story = {.model = {.is_whole = TRUE, .max_to_keep = 5}, .steps = {-2, -2, 30}};
  expect_no_fault (&story);
}

MUSTER_TEST (Crash, in_a_save_of_another_step)
{
  const Story story = {.model = {.is_whole = TRUE, .max_to_keep = 5}, .steps = {10, 20, 30}};
  expect_no_fault (&story);
}

MUSTER_TEST (Crash, in_a_save_that_lets_an_old_one_go)
{
  const Story story = {.model = {.is_whole = TRUE, .max_to_keep = 2}, .steps = {10, 20, 30}};
  expect_no_fault (&story);
}

MUSTER_TEST (Crash, in_a_save_that_keeps_none_beside_it)
{
  const Story story = {.model = {.is_whole = TRUE, .max_to_keep = 1}, .steps = {10, 20, 30}};
  expect_no_fault (&story);
}

MUSTER_TEST (Crash, in_a_save_that_needs_the_room_of_an_old_one)
{
  const Story story = {
      .model = {.is_whole = TRUE, .max_to_keep = 5}, .steps = {10, 20, 30}, .is_full = TRUE};
  expect_no_fault (&story);
}

MUSTER_TEST (Crash, in_a_save_in_the_background_that_needs_the_room_of_an_old_one)
{
  const Story story = {.model = {.is_whole = TRUE, .max_to_keep = 5},
                       .steps = {10, 20, 30},
                       .is_async = TRUE,
                       .is_full = TRUE};
  expect_no_fault (&story);
}

MUSTER_TEST (Crash, in_a_save_of_the_same_name)
{
  const Story story = {.model = {.is_whole = TRUE, .max_to_keep = 5}, .steps = {10, 20, 20}};
  expect_no_fault (&story);
}

MUSTER_TEST (Crash, in_a_save_without_a_number)
{
  const Story story = {.model = {.is_whole = TRUE, .max_to_keep = 5}, .steps = {-2, -1, -1}};
  expect_no_fault (&story);
}

MUSTER_TEST (Crash, in_a_sharded_save_of_another_step)
{
  const Story story = {.model = {.max_to_keep = 2}, .steps = {10, 20, 30}};
  expect_no_fault (&story);
}

MUSTER_TEST (Crash, in_a_sharded_save_of_the_same_name)
{
  const Story story = {.model = {.max_to_keep = 5}, .steps = {10, 20, 20}};
  expect_no_fault (&story);
}

MUSTER_TEST (Crash, in_a_save_in_the_background)
{
  const Story story = {
      .model = {.is_whole = TRUE, .max_to_keep = 2}, .steps = {10, 20, 30}, .is_async = TRUE};
  expect_no_fault (&story);
}

MUSTER_TEST (Crash, in_a_sharded_save_in_the_background)
{
  const Story story = {.model = {.max_to_keep = 5}, .steps = {10, 20, 20}, .is_async = TRUE};
  expect_no_fault (&story);
}

/* --- a restore that sets the newest checkpoint aside --- */

static void
damage (MusterStorage *storage)
{
  MusterStorageFile *file =
      muster_storage_create (storage, DIRECTORY "/model.ckpt-30.data-00000-of-00001", NULL);
  char zeros[48] = {0};

  MUSTER_ASSERT_TRUE (file != NULL);
  muster_storage_append (storage, file, zeros, sizeof zeros, NULL);
  muster_storage_sync (storage, file, NULL);
  muster_storage_close (storage, file, NULL);
}

MUSTER_TEST (Crash, in_a_restore_that_falls_back)
{
  const Story story = {
      .model = {.is_whole = TRUE, .max_to_keep = 5}, .steps = {10, 20, 30}, .is_damaged = TRUE};
  g_autoptr (MusterCrashStorage) before = begin (&story, NULL);
  int restored = -1;
  MUSTER_ASSERT_TRUE (before != NULL);
  {
    g_auto (ModelLife) life = live (&story, before);
    MUSTER_EXPECT_EQ (restore (&life, NULL), OLD);
    MUSTER_EXPECT_TRUE (save (&life, NEW, 30, NULL));
    damage (life.storage);
  }

  for (guint n = 1; restored != OLD && n < 100; n++) {
    g_autoptr (MusterCrashStorage) crash = muster_crash_storage_copy (before);
    g_auto (ModelLife) life = live (&story, crash);
    muster_crash_storage_stop_at (crash, n);
    int value = restore (&life, NULL);
    restored = muster_crash_storage_has_stopped (crash) ? -1 : value;
    g_autofree char *fault = fault_of_outcomes (&story, crash, OLD, OLD);
    MUSTER_TRACE ("stopped at call %u", n);
    MUSTER_EXPECT_STREQ (fault, NULL);
  }
  MUSTER_EXPECT_EQ (restored, OLD);
}

/* --- calls that fail --- */

/* A file that a failed save should have taken away. */
static char *
left_over (MusterCrashStorage *crash)
{
  g_auto (GStrv) names = muster_storage_list (MUSTER_STORAGE (crash), DIRECTORY, NULL);
  for (char **name = names; name != NULL && *name != NULL; name++)
    if (strstr (*name, ".saving-") != NULL || strstr (*name, ".tempstate") != NULL)
      return g_strdup_printf ("'%s' is left", *name);
  return NULL;
}

/* One call of the save fails, whichever: the old model or the new one is there, and nothing else.
 * (Where no more than the last sync has failed it may be the new one, and the save has failed.) */
static void
expect_no_loss_by_failure (const Story *story)
{
  g_autoptr (MusterCrashStorage) first = begin (story, NULL);
  gboolean has_failed = TRUE;
  for (guint n = 1; has_failed && !muster_test_has_failed (); n++) {
    g_autoptr (MusterCrashStorage) crash = muster_crash_storage_copy (first);
    g_auto (ModelLife) life = live (story, crash);
    g_autoptr (GError) error = NULL;
    MUSTER_EXPECT_EQ (restore (&life, NULL), OLD);
    muster_crash_storage_fail_at (crash, n);
    gboolean saved = save (&life, NEW, story->steps[2], &error);
    has_failed = muster_crash_storage_has_failed (crash);
    muster_crash_storage_fail_at (crash, 0);
    g_autofree char *left = left_over (crash);
    g_autofree char *fault = fault_of (story, crash, saved ? NEW : OLD, NEW, TRUE);
    MUSTER_TRACE ("call %u fails: %s", n, error ? error->message : "and the save is well");
    MUSTER_EXPECT_STREQ (left, NULL);
    MUSTER_EXPECT_STREQ (fault, NULL);
  }
}

MUSTER_TEST (Failure, loses_nothing_in_a_save_of_another_step)
{
  const Story story = {.model = {.is_whole = TRUE, .max_to_keep = 2}, .steps = {10, 20, 30}};
  expect_no_loss_by_failure (&story);
}

MUSTER_TEST (Failure, loses_nothing_in_a_save_of_the_same_name)
{
  const Story story = {.model = {.is_whole = TRUE, .max_to_keep = 2}, .steps = {10, 20, 20}};
  expect_no_loss_by_failure (&story);
}

MUSTER_TEST (Failure, loses_nothing_in_a_sharded_save)
{
  const Story story = {.model = {.max_to_keep = 2}, .steps = {10, 20, 30}};
  expect_no_loss_by_failure (&story);
}

MUSTER_TEST (Failure, loses_nothing_in_a_save_in_the_background)
{
  const Story story = {.model = {.max_to_keep = 2}, .steps = {10, 20, 30}, .is_async = TRUE};
  expect_no_loss_by_failure (&story);
}

/* --- this test isn't blind --- */

MUSTER_TEST (Crash, loses_a_model_whose_files_are_not_synced)
{
  const Story story = {.model = {.is_whole = TRUE, .max_to_keep = 2}, .steps = {10, 20, 30}};
  Trial trial = {.ignores_files = TRUE};
  g_autofree char *fault = try (&story, &trial);

  MUSTER_EXPECT_TRUE (fault != NULL);
}

MUSTER_TEST (Crash, loses_a_model_whose_directory_is_not_synced)
{
  const Story story = {.model = {.is_whole = TRUE, .max_to_keep = 2}, .steps = {10, 20, 30}};
  Trial trial = {.ignores_directories = TRUE};
  g_autofree char *fault = try (&story, &trial);

  MUSTER_EXPECT_TRUE (fault != NULL);
}

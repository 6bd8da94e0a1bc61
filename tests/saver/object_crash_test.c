// SPDX-License-Identifier: Apache-2.0
/* Saves in an object store, which has no rename and no locks. A save is stopped at its every call,
 * with that call done or not: a new process restores the old model or the new one, and its next
 * save works and leaves nothing but checkpoints. Of two chiefs the older one loses. */
#include "base/error.h"
#include "checkpoint/state/checkpoint_mark_private.h"
#include "checkpoint/state/checkpoint_record_private.h"
#include "checkpoint/state/checkpoint_removal_private.h"
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/state/quarantine.h"
#include "tests/doubles/object_storage.h"
#include "tests/gtest_shim.h"
#include "tests/saver/model_life.h"

#include <string.h>

#define DIRECTORY "s3://bucket/run"

enum { OLDEST = 1, OLD = 2, NEW = 3, NEXT = 4 };

typedef struct {
  MusterShardedModel model;
  gint64 steps[3]; /* of OLDEST, OLD and NEW */
  gboolean is_async;
} Story;

/* With a lease: a chief. */
static ModelLife
live (const Story *story, MusterObjectStorage *process)
{
  const MusterSaverOptions options = {.storage = MUSTER_STORAGE (process)};
  ModelLife life = model_life_new (&story->model, &options, NULL);
  model_life_claim (&life);
  if (story->is_async)
    model_life_save_in_background (&life);
  return life;
}

static gint64
soon (void)
{
  return g_get_monotonic_time () + 60 * MUSTER_SECOND;
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

static MusterObjectStorage *
begin (const Story *story)
{
  MusterObjectStorage *store = object_storage_new ();
  g_auto (ModelLife) life = live (story, store);
  g_autoptr (GError) error = NULL;
  for (int i = 0; i < 2; i++)
    MUSTER_EXPECT_TRUE (save (&life, (guint8)(OLDEST + i), story->steps[i], &error));
  MUSTER_EXPECT_NO_ERROR (error);
  return store;
}

/* --- what must hold --- */

static char *
fault_of_listed (MusterStorage *storage)
{
  return model_life_fault_of_listed (storage, DIRECTORY);
}

/* A data file without an index, or a hidden file. */
static char *
left_over (MusterStorage *storage)
{
  g_auto (GStrv) names = muster_storage_list (storage, DIRECTORY, NULL);
  for (char **name = names; name != NULL && *name != NULL; name++) {
    const char *dot = strstr (*name, ".data-");
    g_autofree char *base = dot != NULL ? g_strndup (*name, (gsize)(dot - *name)) : NULL;
    g_autofree char *index = base != NULL ? g_strconcat (base, ".index", NULL) : NULL;
    if (**name == '.' || (index != NULL && !g_strv_contains ((const char *const *)names, index)))
      return g_strdup (*name);
  }
  return NULL;
}

/* What the process that comes next finds. */
static char *
fault_of (const Story *story, MusterObjectStorage *store, int least, int most)
{
  g_autoptr (MusterObjectStorage) process = object_storage_process (store);
  g_autoptr (GError) error = NULL;
  char *fault = fault_of_listed (MUSTER_STORAGE (process));
  if (fault != NULL)
    return fault;
  g_auto (ModelLife) life = live (story, process);
  int value = restore (&life, &error);
  if (value < least || value > most)
    return g_strdup_printf ("it restores %d: %s", value, error != NULL ? error->message : "-");
  if (!save (&life, NEXT, 40, &error))
    return g_strdup_printf ("the next save: %s", error->message);
  value = restore (&life, &error);
  if (value != NEXT)
    return g_strdup_printf ("then it restores %d: %s", value, error != NULL ? error->message : "-");
  fault = left_over (MUSTER_STORAGE (process));
  if (fault == NULL && object_storage_n_uploads (process) > 0)
    fault = g_strdup ("uploads are left");
  return fault != NULL ? fault : fault_of_listed (MUSTER_STORAGE (process));
}

static void
expect_no_loss_by_stop (const Story *story)
{
  g_autoptr (MusterObjectStorage) first = begin (story);
  guint n_stops = 0;
  for (guint n = 1; n < 400 && !muster_test_has_failed (); n++) {
    gboolean has_stopped = FALSE;
    for (int has_effect = 0; has_effect < 2; has_effect++) {
      g_autoptr (MusterObjectStorage) process = object_storage_copy (first);
      gboolean saved;
      {
        g_auto (ModelLife) life = live (story, process);
        MUSTER_EXPECT_EQ (restore (&life, NULL), OLD);
        object_storage_stop_at (process, n, has_effect);
        saved = save (&life, NEW, story->steps[2], NULL);
        has_stopped = object_storage_has_stopped (process);
      }
      g_autofree char *fault = fault_of (story, process, saved ? NEW : OLD, NEW);
      MUSTER_TRACE ("stopped at call %u, %s", n, has_effect ? "done" : "not done");
      MUSTER_EXPECT_STREQ (fault, NULL);
    }
    if (!has_stopped)
      break;
    n_stops = n;
  }
  MUSTER_EXPECT_GT (n_stops, 5u);
}

/* There are no locks here that a reader could hold. */
MUSTER_TEST (ObjectCrash, what_is_evaluated_is_not_removed_meanwhile)
{
  static const char prefix[] = DIRECTORY "/model.ckpt-10";
  const Story story = {.model = {.is_whole = TRUE, .max_to_keep = 1}, .steps = {10, 20, 30}};
  g_autoptr (MusterObjectStorage) store = object_storage_new ();
  g_autoptr (MusterObjectStorage) reader = object_storage_process (store);
  g_auto (ModelLife) life = live (&story, store);
  g_autoptr (GError) error = NULL;
  double hold = 0;
  save (&life, OLDEST, 10, &error);
  MUSTER_EXPECT_TRUE (muster_checkpoint_hold (MUSTER_STORAGE (reader), prefix, 3600 * MUSTER_SECOND,
                                              &hold, MUSTER_WAIT_FOREVER, NULL, &error));
  save (&life, OLD, 20, &error);
  save (&life, NEW, 30, &error);
  MUSTER_EXPECT_TRUE (muster_checkpoint_exists (MUSTER_STORAGE (store), prefix));
  MUSTER_EXPECT_FALSE (
      muster_checkpoint_exists (MUSTER_STORAGE (store), DIRECTORY "/model.ckpt-20"));

  MUSTER_EXPECT_TRUE (muster_checkpoint_set_evaluated (MUSTER_STORAGE (reader), prefix,
                                                       &(MusterEvaluationMarks){.hold = hold},
                                                       MUSTER_WAIT_FOREVER, NULL, &error));
  save (&life, NEXT, 40, &error);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (muster_checkpoint_exists (MUSTER_STORAGE (store), prefix));
}

MUSTER_TEST (ObjectCrash, loses_nothing_in_a_save_of_another_step)
{
  const Story story = {.model = {.is_whole = TRUE, .max_to_keep = 2}, .steps = {10, 20, 30}};
  expect_no_loss_by_stop (&story);
}

MUSTER_TEST (ObjectCrash, loses_nothing_in_a_save_of_the_same_name)
{
  const Story story = {.model = {.is_whole = TRUE, .max_to_keep = 2}, .steps = {10, 20, 20}};
  expect_no_loss_by_stop (&story);
}

MUSTER_TEST (ObjectCrash, loses_nothing_in_a_sharded_save)
{
  const Story story = {.model = {.max_to_keep = 2}, .steps = {10, 20, 30}};
  expect_no_loss_by_stop (&story);
}

MUSTER_TEST (ObjectCrash, loses_nothing_in_a_save_in_the_background)
{
  const Story story = {
      .model = {.is_whole = TRUE, .max_to_keep = 2}, .steps = {10, 20, 30}, .is_async = TRUE};
  expect_no_loss_by_stop (&story);
}

/* --- one call fails --- */

MUSTER_TEST (ObjectFailure, loses_nothing_at_any_call_of_a_save)
{
  const Story story = {.model = {.is_whole = TRUE, .max_to_keep = 2}, .steps = {10, 20, 30}};
  g_autoptr (MusterObjectStorage) first = begin (&story);
  gboolean has_failed = TRUE;
  for (guint n = 1; has_failed && !muster_test_has_failed (); n++) {
    g_autoptr (MusterObjectStorage) process = object_storage_copy (first);
    g_autoptr (GError) error = NULL;
    gboolean saved;
    {
      g_auto (ModelLife) life = live (&story, process);
      MUSTER_EXPECT_EQ (restore (&life, NULL), OLD);
      object_storage_fail_at (process, n);
      saved = save (&life, NEW, 30, &error);
      has_failed = object_storage_has_failed (process);
      MUSTER_EXPECT_EQ (object_storage_n_uploads (process), 0u);
    }
    g_autofree char *fault = fault_of (&story, process, saved ? NEW : OLD, NEW);
    MUSTER_TRACE ("call %u fails: %s", n, error != NULL ? error->message : "and the save is well");
    MUSTER_EXPECT_STREQ (fault, NULL);
  }
}

/* A checkpoint that the list has isn't doomed, and the list is as long as it should be. */
static char *
fault_of_doomed (MusterStorage *storage, int n_kept)
{
  g_autoptr (MusterCheckpointState) state = muster_checkpoint_state_read (storage, DIRECTORY, NULL);
  g_autoptr (MusterCheckpointRecord) record =
      muster_checkpoint_record_read (storage, DIRECTORY, NULL);

  if (state == NULL || record == NULL)
    return g_strdup ("no state or no record");
  if (state->all->len > (guint)n_kept)
    return g_strdup_printf ("%u are listed", state->all->len);
  for (guint i = 0; i < state->all->len; i++) {
    const MusterSideCheckpoint *one = muster_checkpoint_record_find (record, state->all->pdata[i]);
    if (one == NULL || one->pending_delete)
      return g_strdup_printf ("'%s' is %s", (char *)state->all->pdata[i],
                              one == NULL ? "unknown" : "doomed");
  }
  return NULL;
}

/* The process that had a failure goes on, and keeps more than before. */
static char *
fault_of_next (ModelLife *life, const Story *story)
{
  g_autoptr (GError) error = NULL;
  if (!save (life, NEXT, 40, &error))
    return g_strdup_printf ("the next save: %s", error->message);
  if (restore (life, &error) != NEXT)
    return g_strdup ("the next save isn't what is restored");
  char *fault = fault_of_listed (life->storage);
  return fault != NULL ? fault : fault_of_doomed (life->storage, story->model.max_to_keep);
}

typedef void (*Harm) (MusterObjectStorage *process, guint n);

/* At each call of a save and of the restore before it. */
static void
expect_no_loss_by (const Story *story, Harm harm, const char *what)
{
  g_autoptr (MusterObjectStorage) first = begin (story);
  gboolean has_failed = TRUE;
  guint n = 1;
  for (; has_failed && !muster_test_has_failed (); n++) {
    g_autoptr (MusterObjectStorage) process = object_storage_copy (first);
    g_autoptr (GError) error = NULL;
    g_autofree char *next = NULL;
    {
      g_auto (ModelLife) life = live (story, process);
      harm (process, n);
      if (restore (&life, NULL) == OLD)
        (void)save (&life, NEW, story->steps[2], &error);
      has_failed = object_storage_has_failed (process);
      harm (process, 0);
      next = fault_of_next (&life, story);
    }
    MUSTER_TRACE ("%s at call %u, keeping %d: %s", what, n, story->model.max_to_keep,
                  error != NULL ? error->message : "and the save is well");
    MUSTER_EXPECT_STREQ (next, NULL);
    g_autofree char *fault = fault_of (story, process, NEXT, NEXT);
    MUSTER_EXPECT_STREQ (fault, NULL);
  }
  MUSTER_EXPECT_GT (n, 6u);
}

MUSTER_TEST (ObjectFailure, dooms_nothing_that_is_listed_and_loses_nothing_by_a_passing_failure)
{
  for (int keep = 1; keep <= 2; keep++) {
    const Story story = {.model = {.is_whole = TRUE, .max_to_keep = keep}, .steps = {10, 20, 30}};
    expect_no_loss_by (&story, object_storage_fail_at, "a failure");
    expect_no_loss_by (&story, object_storage_lose_at, "a lost answer");
    expect_no_loss_by (&story, object_storage_miss_at, "no connection");
  }
}

/* The record dooms what leaves the list; the state, which is written after it, stays as it was.
 * Then a job that keeps more takes over. */
MUSTER_TEST (ObjectFailure, what_stays_in_the_list_is_not_doomed)
{
  const Story story = {.model = {.is_whole = TRUE, .max_to_keep = 2}, .steps = {10, 20, 30}};
  const Story more = {.model = {.is_whole = TRUE, .max_to_keep = 5}, .steps = {10, 20, 30}};
  g_autoptr (MusterObjectStorage) first = begin (&story);
  gboolean has_failed = TRUE;
  for (guint n = 1; has_failed && !muster_test_has_failed (); n++) {
    g_autoptr (MusterObjectStorage) process = object_storage_copy (first);
    gboolean is_saved;
    {
      g_auto (ModelLife) life = live (&story, process);
      MUSTER_EXPECT_EQ (restore (&life, NULL), OLD);
      object_storage_fail_at (process, n);
      is_saved = save (&life, NEW, 30, NULL);
      has_failed = object_storage_has_failed (process);
    }
    g_auto (ModelLife) life = live (&more, process);
    MUSTER_EXPECT_EQ (restore (&life, NULL), is_saved ? NEW : OLD);
    MUSTER_EXPECT_TRUE (save (&life, NEXT, 40, NULL));
    g_autofree char *fault = fault_of_doomed (life.storage, 5);
    MUSTER_TRACE ("call %u fails", n);
    MUSTER_EXPECT_STREQ (fault, NULL);
  }
}

/* --- another process removes one --- */

/* As `muster checkpoint prune` does before it removes the files. */
static void
doom (MusterStorage *storage, const char *prefix)
{
  g_autoptr (MusterCheckpointState) state = muster_checkpoint_state_read (storage, DIRECTORY, NULL);
  g_autoptr (MusterCheckpointRecord) record =
      muster_checkpoint_record_read (storage, DIRECTORY, NULL);
  MUSTER_EXPECT_TRUE (muster_checkpoint_state_forget (state, prefix));
  muster_checkpoint_record_find (record, prefix)->pending_delete = TRUE;
  MUSTER_EXPECT_TRUE (muster_checkpoint_state_write (storage, DIRECTORY, state, NULL));
  MUSTER_EXPECT_TRUE (muster_checkpoint_record_write (storage, DIRECTORY, record, NULL));
}

/* A save comes between. */
MUSTER_TEST (ObjectPrune, is_not_forgotten_by_a_save)
{
  static const char prefix[] = DIRECTORY "/model.ckpt-10";
  const Story story = {.model = {.is_whole = TRUE, .max_to_keep = 5}, .steps = {10, 20, 30}};
  g_autoptr (MusterObjectStorage) store = begin (&story);
  g_autoptr (MusterObjectStorage) other = object_storage_process (store);
  g_auto (ModelLife) life = live (&story, store);
  MUSTER_EXPECT_EQ (restore (&life, NULL), OLD);
  MUSTER_EXPECT_TRUE (save (&life, NEW, 30, NULL));

  doom (MUSTER_STORAGE (other), prefix);
  MUSTER_EXPECT_TRUE (save (&life, NEW, 40, NULL));
  MUSTER_EXPECT_TRUE (muster_remove_checkpoint (MUSTER_STORAGE (other), prefix, NULL));
  MUSTER_EXPECT_TRUE (save (&life, NEXT, 50, NULL));

  g_autoptr (MusterCheckpointState) state =
      muster_checkpoint_state_read (MUSTER_STORAGE (other), DIRECTORY, NULL);
  for (guint i = 0; i < state->all->len; i++)
    MUSTER_EXPECT_TRUE (muster_checkpoint_exists (MUSTER_STORAGE (other), state->all->pdata[i]));
  MUSTER_EXPECT_EQ (state->all->len, 4u);
}

/* --- what it costs --- */

MUSTER_TEST (ObjectSave, sends_each_byte_once)
{
  const Story story = {.model = {.is_whole = TRUE, .rows = 1 << 16, .max_to_keep = 2},
                       .steps = {10, 20, 30}};
  g_autoptr (MusterObjectStorage) store = begin (&story);
  g_auto (ModelLife) life = live (&story, store);
  const guint64 before = object_storage_sent (store);
  MUSTER_EXPECT_TRUE (save (&life, NEW, 30, NULL));
  MUSTER_EXPECT_EQ (object_storage_copied (store), 0u);
  MUSTER_EXPECT_LT (object_storage_sent (store) - before, (guint64)(1 << 20) + (1 << 18));
}

MUSTER_TEST (ObjectSave, keeps_as_many_as_it_should)
{
  const Story story = {.model = {.is_whole = TRUE, .max_to_keep = 2}, .steps = {10, 20, 30}};
  g_autoptr (MusterObjectStorage) store = begin (&story);
  g_auto (ModelLife) life = live (&story, store);
  MUSTER_EXPECT_EQ (restore (&life, NULL), OLD);
  MUSTER_EXPECT_TRUE (save (&life, NEW, 30, NULL));
  g_auto (GStrv) listed = muster_checkpoint_list (life.storage, DIRECTORY, NULL);
  g_autofree char *names = g_strjoinv (" ", listed);
  MUSTER_EXPECT_STREQ (names, DIRECTORY "/model.ckpt-20 " DIRECTORY "/model.ckpt-30");
}

/* --- two chiefs --- */

static const Story plain = {.model = {.is_whole = TRUE, .max_to_keep = 2}, .steps = {10, 20, 30}};

static void
take_over (gpointer other)
{
  ModelLife *life = other;
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (muster_saver_claim_directory (life->saver, DIRECTORY, soon (), NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

static void
take_over_and_save (gpointer other)
{
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (save (other, NEXT, 30, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

/* The other chief comes just before that file is replaced. */
static void
expect_loss (const char *file, void (*act) (gpointer data), int value)
{
  g_autoptr (MusterObjectStorage) store = begin (&plain);
  g_autoptr (MusterObjectStorage) second = object_storage_process (store);
  g_autoptr (GError) error = NULL;
  g_auto (ModelLife) old = live (&plain, store);
  g_auto (ModelLife) new = live (&plain, second);
  MUSTER_EXPECT_EQ (restore (&old, NULL), OLD);
  MUSTER_EXPECT_TRUE (muster_saver_claim_directory (old.saver, DIRECTORY, soon (), NULL, NULL));
  object_storage_before_replace (store, file, act, &new);
  MUSTER_TRACE ("before %s", file);
  MUSTER_EXPECT_FALSE (save (&old, NEW, 30, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_TRUE (error != NULL && strstr (error->message, "was taken over by the chief of"));
  MUSTER_EXPECT_EQ (restore (&new, NULL), value);
  g_autofree char *fault = fault_of_listed (MUSTER_STORAGE (store));
  MUSTER_EXPECT_STREQ (fault, NULL);
  g_clear_error (&error);
  MUSTER_EXPECT_FALSE (save (&old, NEW, 40, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
}

MUSTER_TEST (ObjectChiefs, the_older_one_loses_to_a_claim_and_is_told_whose)
{
  expect_loss ("checkpoint.muster", take_over, OLD);
}

MUSTER_TEST (ObjectChiefs, the_older_one_loses_to_a_save_wherever_it_comes)
{
  expect_loss ("model.ckpt-30.index", take_over_and_save, NEXT);
  expect_loss ("checkpoint.muster", take_over_and_save, NEXT);
  expect_loss ("checkpoint", take_over_and_save, NEXT);
}

/* Both claim an unclaimed directory at once: one after the other has it. */
MUSTER_TEST (ObjectChiefs, a_claim_that_loses_the_race_is_made_again)
{
  g_autoptr (MusterObjectStorage) store = object_storage_new ();
  g_autoptr (MusterObjectStorage) second = object_storage_process (store);
  g_autoptr (GError) error = NULL;
  g_auto (ModelLife) one = live (&plain, store);
  g_auto (ModelLife) other = live (&plain, second);
  object_storage_before_replace (store, "checkpoint.muster", take_over, &other);
  MUSTER_EXPECT_TRUE (muster_saver_claim_directory (one.saver, DIRECTORY, soon (), NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  g_autoptr (MusterCheckpointRecord) record =
      muster_checkpoint_record_read (one.storage, DIRECTORY, NULL);
  MUSTER_EXPECT_EQ (record->epoch, 2);
  MUSTER_EXPECT_TRUE (save (&one, NEW, 30, NULL));
  MUSTER_EXPECT_FALSE (save (&other, NEXT, 30, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
}

/* --- what is left by others --- */

static void
put (MusterStorage *storage, const char *name)
{
  g_autofree char *path = g_build_filename (DIRECTORY, name, NULL);

  MUSTER_EXPECT_TRUE (muster_storage_replace (storage, path, "x", 1, NULL, NULL, NULL));
}

static gboolean
has (MusterStorage *storage, const char *name)
{
  g_autofree char *path = g_build_filename (DIRECTORY, name, NULL);
  MusterStorageInfo info;
  return muster_storage_stat (storage, path, &info, NULL);
}

MUSTER_TEST (ObjectSweep, removes_what_is_older_than_the_claim_and_nobodys)
{
  g_autoptr (MusterObjectStorage) store = begin (&plain);
  g_autoptr (MusterObjectStorage) process = object_storage_process (store);
  MusterStorage *storage = MUSTER_STORAGE (store);
  put (storage, "model.ckpt-25.data-00000-of-00001");
  put (storage, "other-25.data-00000-of-00001");
  put (storage, "notes.txt");
  put (storage, ".probe-0123456789abcdef0123456789abcdef.index");
  MusterStorageFile *upload =
      muster_storage_create (storage, DIRECTORY "/model.ckpt-26.data-00000-of-00001", NULL);
  MUSTER_EXPECT_EQ (object_storage_n_uploads (store), 1u);
  g_auto (ModelLife) life = live (&plain, process);
  MUSTER_EXPECT_EQ (restore (&life, NULL), OLD);
  MUSTER_EXPECT_TRUE (save (&life, NEW, 30, NULL));

  MUSTER_EXPECT_FALSE (has (storage, "model.ckpt-25.data-00000-of-00001"));
  MUSTER_EXPECT_FALSE (has (storage, ".probe-0123456789abcdef0123456789abcdef.index"));
  MUSTER_EXPECT_TRUE (has (storage, "other-25.data-00000-of-00001"));
  MUSTER_EXPECT_TRUE (has (storage, "notes.txt"));
  MUSTER_EXPECT_TRUE (has (storage, "model.ckpt-20.index"));
  MUSTER_EXPECT_EQ (object_storage_n_uploads (store), 0u);
  muster_storage_abandon (storage, upload);
}

/* Nobody has claimed the directory: who writes there may be alive for a day. */
MUSTER_TEST (ObjectSweep, leaves_what_may_be_somebodys_without_a_chief)
{
  static const char *const names[] = {DIRECTORY "/model.ckpt-25.data-00000-of-00001",
                                      DIRECTORY "/model.ckpt-26.data-00000-of-00001"};
  g_autoptr (MusterObjectStorage) store = begin (&plain);
  g_autoptr (MusterObjectStorage) process = object_storage_process (store);
  MusterStorageFile *uploads[2];
  const gint64 two_days_us = (gint64)48 * 3600 * MUSTER_SECOND;
  object_storage_pass (store, -two_days_us);
  uploads[0] = muster_storage_create (MUSTER_STORAGE (store), names[0], NULL);
  object_storage_pass (store, two_days_us);
  uploads[1] = muster_storage_create (MUSTER_STORAGE (store), names[1], NULL);
  g_auto (ModelLife) life = live (&plain, process);
  muster_saver_set_lease (life.saver, NULL);
  MUSTER_EXPECT_TRUE (save (&life, NEW, 30, NULL));
  MUSTER_EXPECT_EQ (object_storage_n_uploads (store), 1u);
  MUSTER_EXPECT_TRUE (muster_storage_close (MUSTER_STORAGE (store), uploads[1], NULL));
  muster_storage_abandon (MUSTER_STORAGE (store), uploads[0]);
}

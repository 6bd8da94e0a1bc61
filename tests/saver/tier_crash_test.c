// SPDX-License-Identifier: Apache-2.0
/* A run that begins, saves in two tiers and is stopped at its every call, and after each stop every
 * state of the store that a power cut may leave: the next process restores the old model or the new
 * one, and so does the one after it; whatever either tier lists is whole; without the fast tier the
 * durable one has the old model at least; and the next save works. */
#include "checkpoint/state/checkpoint_state.h"
#include "saver/tiered.h"
#include "tests/doubles/crash_storage.h"
#include "tests/gtest_shim.h"
#include "tests/saver/model_life.h"

#include <string.h>

#define FAST    MUSTER_TIER_BIT (0)
#define DURABLE MUSTER_TIER_BIT (1)
#define BOTH    (FAST | DURABLE)

/* What the model's every byte is. */
enum { OLDEST = 1, OLD = 2, NEW = 3, NEXT = 4 };

static const char *const directories[] = {"/fast", "/run"};

typedef struct {
  MusterShardedModel model;
  MusterTierSet due;     /* of the save that is stopped */
  MusterTierSet old_due; /* of the one before */
} Story;

static ModelLife
live (const Story *story, MusterCrashStorage *crash, gsize n_fast)
{
  const MusterTier fast = {.directory = directories[0], .save_steps = 10, .max_to_keep = 2};
  const MusterSaverOptions options = {
      .storage = MUSTER_STORAGE (crash), .fast = &fast, .n_fast = n_fast, .no_meta_graph = TRUE};
  return model_life_new (&story->model, &options, NULL);
}

static gint64
soon (void)
{
  return g_get_monotonic_time () + 60 * MUSTER_SECOND;
}

/* Saves; *copied (nullable) is set if the copies have been made too. */
static gboolean
save (ModelLife *life, guint8 value, gint64 step, MusterTierSet due, gboolean *copied,
      GError **error)
{
  g_auto (MusterSaved) saved = {0};
  if (!muster_sharded_model_set (life->model, life->session, value, error) ||
      !muster_saver_save_with (life->saver, life->session, directories[1], step, due, &saved,
                               soon (), NULL, error))
    return FALSE;
  const gboolean is_done = muster_saver_sync_copies (life->saver, soon (), NULL, NULL);
  if (copied != NULL)
    *copied = is_done;
  return TRUE;
}

/* The value of the newest checkpoint; 0 where there is none, -1 with an error. Begins a run. */
static int
resume (ModelLife *life, GError **error)
{
  const MusterRestoreOptions latest = {.directory = directories[1]};
  g_auto (MusterRestored) restored = {0};
  g_autoptr (GError) unable = NULL;
  if (!muster_saver_restore (life->saver, life->session, &latest, &restored, soon (), NULL, error))
    return -1;
  if (!muster_saver_begin_run (life->saver, directories[1], restored.prefix, -1, soon (), NULL,
                               &unable))
    g_debug ("no run has begun: %s", unable->message);
  return restored.prefix != NULL ? muster_sharded_model_get (life->session, error) : 0;
}

/* Tiers that drop themselves say so, thousands of times. */
static GLogWriterOutput
hear_nothing (GLogLevelFlags level, const GLogField *fields, gsize n, gpointer data)
{
  return (level & G_LOG_LEVEL_WARNING) != 0 ? G_LOG_WRITER_HANDLED
                                            : g_log_writer_default (level, fields, n, data);
}

static void
be_quiet (void)
{
  static gsize is_quiet;
  if (!g_once_init_enter (&is_quiet))
    return;
  g_log_set_writer_func (hear_nothing, NULL, NULL);
  g_once_init_leave (&is_quiet, 1);
}

static MusterCrashStorage *
begin (const Story *story, GError **error)
{
  be_quiet ();

  g_autoptr (MusterCrashStorage) crash = muster_crash_storage_new ();
  g_auto (ModelLife) life = live (story, crash, 1);

  for (gsize i = 0; i < 2; i++)
    muster_storage_make_directory (life.storage, directories[i], NULL);
  if (resume (&life, error) < 0 || !save (&life, OLDEST, 10, BOTH, NULL, error) ||
      !save (&life, OLD, 20, story->old_due, NULL, error))
    return NULL;
  return muster_crash_storage_copy (crash);
}

/* --- what must hold after a crash --- */

static char *
fault_of_listed (MusterStorage *storage)
{
  char *fault = NULL;
  for (gsize i = 0; fault == NULL && i < 2; i++)
    fault = model_life_fault_of_listed (storage, directories[i]);
  return fault;
}

/* One process after another restores the same. */
static char *
fault_of_resumed (const Story *story, MusterCrashStorage *crash, gsize n_fast, int least, int most)
{
  int before = -1;
  for (int i = 0; i < 2; i++) {
    g_auto (ModelLife) life = live (story, crash, n_fast);
    g_autoptr (GError) error = NULL;
    const int value = resume (&life, &error);
    if (value < least || value > most || (i > 0 && value != before))
      return g_strdup_printf ("process %d restores %d%s: %s", i + 1, value,
                              n_fast == 0 ? " without the fast tier" : "",
                              error != NULL ? error->message : "no error");
    before = value;
  }
  return NULL;
}

typedef struct {
  int least, most; /* what may be restored, */
  int bottom;      /* and at least without the fast tier */
  gboolean goes_on;
} Expected;

static char *
fault_of (const Story *story, MusterCrashStorage *crash, const Expected *expected)
{
  g_autoptr (MusterCrashStorage) other = muster_crash_storage_copy (crash);
  g_autoptr (GError) error = NULL;
  char *fault = fault_of_listed (MUSTER_STORAGE (crash));
  if (fault == NULL)
    fault = fault_of_resumed (story, other, 0, expected->bottom, expected->most);
  if (fault == NULL)
    fault = fault_of_resumed (story, crash, 1, expected->least, expected->most);
  if (fault != NULL || !expected->goes_on)
    return fault;
  g_auto (ModelLife) life = live (story, crash, 1);
  gboolean copied = FALSE;
  if (resume (&life, &error) < 0 || !save (&life, NEXT, 40, BOTH, &copied, &error) || !copied)
    return g_strdup_printf ("the next save: %s", error != NULL ? error->message : "not copied");
  fault = fault_of_resumed (story, crash, 1, NEXT, NEXT);
  if (fault == NULL)
    fault = fault_of_resumed (story, crash, 0, NEXT, NEXT);
  return fault != NULL ? fault : fault_of_listed (MUSTER_STORAGE (crash));
}

/* The next save takes the most time. */
static gboolean
goes_on (guint nth)
{
  return nth % 8 == 0 || g_getenv ("MUSTER_LONG") != NULL;
}

static char *
fault_of_outcomes (const Story *story, MusterCrashStorage *crash, Expected expected)
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
    expected.goes_on = goes_on (n_tried++);
    g_autofree char *fault = fault_of (story, after, &expected);
    if (fault != NULL)
      return g_strdup_printf ("with %s: %s", what, fault);
  }
  return NULL;
}

static int
bottom_before (const Story *story)
{
  return (story->old_due & DURABLE) != 0 ? OLD : OLDEST;
}

/* Resumes and saves NEW, stopped at the n-th call; whether it went through. */
static gboolean
stop_at (const Story *story, MusterCrashStorage *crash, guint n, char **fault)
{
  g_auto (ModelLife) life = live (story, crash, 1);
  gboolean copied = FALSE;
  muster_crash_storage_stop_at (crash, n);
  MUSTER_EXPECT_EQ (resume (&life, NULL), OLD);
  const gboolean saved = save (&life, NEW, 30, story->due, &copied, NULL);
  const gboolean stopped = muster_crash_storage_has_stopped (crash);
  const gboolean is_bottom = saved && copied && !stopped && (story->due & DURABLE) != 0;
  const Expected expected = {
      .least = saved ? NEW : OLD, .most = NEW, .bottom = is_bottom ? NEW : bottom_before (story)};
  *fault = fault_of_outcomes (story, crash, expected);
  return saved && !stopped;
}

static void
expect_no_fault (const Story *story)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterCrashStorage) before = begin (story, &error);
  guint n_stops = 0;
  MUSTER_EXPECT_NO_ERROR (error);
  for (guint n = 1; before != NULL; n++) {
    g_autoptr (MusterCrashStorage) crash = muster_crash_storage_copy (before);
    g_autofree char *fault = NULL;
    const gboolean went_through = stop_at (story, crash, n, &fault);
    MUSTER_TRACE ("stopped at call %u", n);
    MUSTER_EXPECT_STREQ (fault, NULL);
    if (fault != NULL || went_through)
      break;
    n_stops = n;
  }
  MUSTER_EXPECT_GT (n_stops, 20u);
}

MUSTER_TEST (TierCrash, in_a_save_that_is_copied_on)
{
  const Story story = {.model = {.is_whole = TRUE, .max_to_keep = 2}, .due = BOTH, .old_due = BOTH};
  expect_no_fault (&story);
}

MUSTER_TEST (TierCrash, in_a_save_in_the_fast_tier_alone)
{
  const Story story = {.model = {.is_whole = TRUE, .max_to_keep = 2}, .due = FAST, .old_due = FAST};
  expect_no_fault (&story);
}

MUSTER_TEST (TierCrash, in_a_copy_after_saves_in_the_fast_tier_alone)
{
  const Story story = {
      .model = {.is_whole = TRUE, .max_to_keep = 1}, .due = DURABLE, .old_due = FAST};
  expect_no_fault (&story);
}

MUSTER_TEST (TierCrash, in_the_last_save_which_goes_to_the_durable_tier)
{
  const Story story = {.model = {.is_whole = TRUE, .max_to_keep = 2}, .due = 0, .old_due = FAST};
  expect_no_fault (&story);
}

MUSTER_TEST (TierCrash, in_a_sharded_save_that_is_copied_on)
{
  const Story story = {.model = {.max_to_keep = 2}, .due = BOTH, .old_due = BOTH};
  expect_no_fault (&story);
}

/* --- one call fails, for want of space --- */

static char *
left_over (MusterCrashStorage *crash)
{
  for (gsize i = 0; i < 2; i++) {
    g_auto (GStrv) names = muster_storage_list (MUSTER_STORAGE (crash), directories[i], NULL);
    for (char **name = names; name != NULL && *name != NULL; name++)
      if (strstr (*name, ".saving-") != NULL || strstr (*name, ".tempstate") != NULL)
        return g_strdup_printf ("'%s' is left in '%s'", *name, directories[i]);
  }
  return NULL;
}

MUSTER_TEST (TierFull, at_any_call_loses_nothing)
{
  const Story story = {.model = {.is_whole = TRUE, .max_to_keep = 2}, .due = BOTH, .old_due = BOTH};
  g_autoptr (MusterCrashStorage) first = begin (&story, NULL);
  gboolean has_failed = TRUE;
  for (guint n = 1; has_failed && !muster_test_has_failed (); n++) {
    g_autoptr (MusterCrashStorage) crash = muster_crash_storage_copy (first);
    g_auto (ModelLife) life = live (&story, crash, 1);
    gboolean copied = FALSE;
    MUSTER_EXPECT_EQ (resume (&life, NULL), OLD);
    muster_crash_storage_fail_at (crash, n);
    const gboolean saved = save (&life, NEW, 30, BOTH, &copied, NULL);
    has_failed = muster_crash_storage_has_failed (crash);
    muster_crash_storage_fail_at (crash, 0);
    const Expected expected = {.least = saved ? NEW : OLD,
                               .most = NEW,
                               .bottom = saved && copied ? NEW : OLD,
                               .goes_on = TRUE};
    g_autofree char *left = left_over (crash);
    g_autofree char *fault = fault_of (&story, crash, &expected);
    MUSTER_TRACE ("call %u fails", n);
    MUSTER_EXPECT_TRUE (saved); /* in one tier or the other */
    MUSTER_EXPECT_STREQ (left, NULL);
    MUSTER_EXPECT_STREQ (fault, NULL);
  }
}

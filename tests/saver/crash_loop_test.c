// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/state/checkpoint_record_private.h"
#include "tests/saver/restore_fixture.h"

/* What processes that died at once tell of the checkpoint that they began from. */

static const char *
life_in_record (void)
{
  g_autoptr (MusterCheckpointRecord) record =
      muster_checkpoint_record_read (muster_local_storage (), muster_test_tmpdir (), NULL);
  return record != NULL && record->life != NULL ? g_intern_string (record->life) : NULL;
}

/* One process that restores and dies without a word. */
static char *
live_and_die (void)
{
  g_auto (Fixture) f = set_up (three, 3);
  MUSTER_EXPECT_TRUE (restore_latest (&f, (MusterRestoreOptions){.count_deaths = TRUE}));
  MUSTER_EXPECT_NO_ERROR (f.error);
  return g_path_get_basename (f.restored.prefix != NULL ? f.restored.prefix : "none");
}

MUSTER_TEST (CrashLoop, quarantine_a_checkpoint_that_killed_three_running)
{
  g_autofree char *older = write_as ("model.ckpt-3", three, 3, 3);
  g_autofree char *newer = write_as ("model.ckpt-4", three, 3, 4);
  write_state (older, newer, NULL);

  for (int i = 0; i < 3; i++) {
    g_autofree char *from = live_and_die ();
    MUSTER_EXPECT_STREQ (from, "model.ckpt-4");
  }
  g_auto (Fixture) f = set_up (three, 3);
  MUSTER_EXPECT_TRUE (restore_latest (&f, (MusterRestoreOptions){.count_deaths = TRUE}));

  MUSTER_EXPECT_STREQ (f.restored.prefix, older);
  MUSTER_ASSERT_TRUE (f.restored.passed_over != NULL);
  MUSTER_EXPECT_TRUE (
      strstr (f.restored.passed_over, "died right after restoring it 3 times in a row"));
  MUSTER_EXPECT_TRUE (exists ("model.ckpt-4.bad"));
  MUSTER_EXPECT_STREQ (life_in_record (), "model.ckpt-3");
}

MUSTER_TEST (CrashLoop, that_outlive_their_checkpoint_clear_it)
{
  g_autofree char *older = write_as ("model.ckpt-3", three, 3, 3);
  g_autofree char *newer = write_as ("model.ckpt-4", three, 3, 4);
  write_state (older, newer, NULL);

  for (int i = 0; i < 2; i++)
    g_free (live_and_die ());
  {
    g_auto (Fixture) good = set_up (three, 3);
    MUSTER_EXPECT_TRUE (restore_latest (&good, (MusterRestoreOptions){.count_deaths = TRUE}));
    MUSTER_EXPECT_TRUE (muster_saver_mark_good (good.saver, NULL));
    MUSTER_EXPECT_NULL (life_in_record ());
    MUSTER_EXPECT_TRUE (muster_saver_mark_good (good.saver, NULL));
  }
  for (int i = 0; i < 3; i++) {
    g_autofree char *from = live_and_die ();
    MUSTER_EXPECT_STREQ (from, "model.ckpt-4");
  }
}

/* One that ended for another reason is neither a death nor a proof. */
MUSTER_TEST (CrashLoop, that_are_cleared_do_not_count)
{
  g_autofree char *older = write_as ("model.ckpt-3", three, 3, 3);
  g_autofree char *newer = write_as ("model.ckpt-4", three, 3, 4);
  write_state (older, newer, NULL);

  for (int i = 0; i < 2; i++)
    g_free (live_and_die ());
  for (int i = 0; i < 3; i++) {
    g_auto (Fixture) f = set_up (three, 3);
    MUSTER_EXPECT_TRUE (restore_latest (&f, (MusterRestoreOptions){.count_deaths = TRUE}));
    MUSTER_EXPECT_STREQ (f.restored.prefix, newer);
    MUSTER_EXPECT_TRUE (muster_saver_clear_crash_loop (f.saver, NULL));
  }
  g_free (live_and_die ());
  g_autofree char *from = live_and_die ();
  MUSTER_EXPECT_STREQ (from, "model.ckpt-3");
}

/* A verb that tries again is still the same life. */
MUSTER_TEST (CrashLoop, are_not_ended_by_another_restore_of_the_same_saver)
{
  g_autofree char *only = write_as ("model.ckpt-4", three, 3, 4);
  write_state (only, NULL);
  g_auto (Fixture) f = set_up (three, 3);

  for (int i = 0; i < 5; i++)
    MUSTER_EXPECT_TRUE (restore_latest (&f, (MusterRestoreOptions){.count_deaths = TRUE}));

  MUSTER_EXPECT_STREQ (f.restored.prefix, only);
}

MUSTER_TEST (CrashLoop, are_not_counted_unless_asked)
{
  g_autofree char *only = write_as ("model.ckpt-4", three, 3, 4);
  write_state (only, NULL);
  g_auto (Fixture) f = set_up (three, 3);

  MUSTER_EXPECT_TRUE (restore_latest (&f, (MusterRestoreOptions){0}));

  MUSTER_EXPECT_NULL (life_in_record ());
}

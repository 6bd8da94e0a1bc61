// SPDX-License-Identifier: Apache-2.0
/* A backup on a machine that may lose power at any call (behaviours B004.21, D004.6, D004.7). */
#include "tests/callbacks/backup_fixture.h"
#include "tests/doubles/crash_storage.h"
#include "tests/gtest_shim.h"

#define N_EPOCHS  2
#define N_BATCHES 2
#define TOTAL     (N_EPOCHS * N_BATCHES)

static MusterBackupOptions
options (gboolean is_double)
{
  return (MusterBackupOptions){.backup_dir = "/backup",
                               .save_freq = {.kind = MUSTER_SAVE_EVERY_N, .n = 1},
                               .double_checkpoint = is_double};
}

/* Whatever a crash has left, the next run ends with weights that have seen each batch once; and it
 * has lost no more than the batch whose save was under way. */
static void
expect_resumes (MusterCrashStorage *disk, guint outcome, gboolean is_double, gint64 n_trained)
{
  g_autofree char *what = NULL;
  g_autoptr (MusterCrashStorage) after = muster_crash_storage_outcome (disk, outcome, &what);
  g_auto (Program) program = program_new (MUSTER_STORAGE (after));
  g_autoptr (GError) error = NULL;

  MUSTER_EXPECT_TRUE (program_fit (&program, options (is_double), N_EPOCHS, N_BATCHES, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (program.canary, TOTAL);
  if (n_trained < TOTAL)
    MUSTER_EXPECT_LE (program.n_trained, TOTAL - MAX (n_trained - 1, 0));
  if (muster_test_has_failed ())
    muster_test_fail (__FILE__, __LINE__, "after %" G_GINT64_FORMAT " batches: %s", n_trained,
                      what);
}

/* TRUE once nothing has stopped it. */
static gboolean
crash_at (guint call, gboolean is_double)
{
  g_autoptr (MusterCrashStorage) disk = muster_crash_storage_new ();
  g_auto (Program) program = program_new (MUSTER_STORAGE (disk));
  g_autoptr (GError) error = NULL;
  muster_crash_storage_stop_at (disk, call);
  gboolean is_done = program_fit (&program, options (is_double), N_EPOCHS, N_BATCHES, &error);
  if (!muster_crash_storage_has_stopped (disk))
    return is_done;
  guint n = muster_crash_storage_n_outcomes (disk);
  for (guint i = 0; i < n && !muster_test_has_failed (); i++)
    expect_resumes (disk, i, is_double, program.n_trained);
  return muster_test_has_failed ();
}

/* B004.21, D004.6, D004.7 */
MUSTER_TEST (BackupCrash, comes_back_with_weights_and_place_that_belong_together)
{
  for (int is_double = 0; is_double < 2; is_double++) {
    guint call = 1;
    while (!crash_at (call, is_double != 0))
      call++;
    MUSTER_EXPECT_GE (call, 4u * TOTAL); /* it has been through all of it */
  }
}

/* Only one call fails, for want of room: what is there is as it was, and training can go on later.
 */
MUSTER_TEST (BackupCrash, leaves_what_is_there_where_a_save_fails)
{
  for (guint call = 1;; call++) {
    g_autoptr (MusterCrashStorage) disk = muster_crash_storage_new ();
    g_auto (Program) first = program_new (MUSTER_STORAGE (disk));
    g_auto (Program) second = program_new (MUSTER_STORAGE (disk));
    g_autoptr (GError) error = NULL;
    muster_crash_storage_fail_at (disk, call);

    (void)program_fit (&first, options (TRUE), N_EPOCHS, N_BATCHES, NULL);
    if (!muster_crash_storage_has_failed (disk))
      break;
    if (first.n_trained == TOTAL && g_str_has_suffix (first.diary->str, "over"))
      continue;
    MUSTER_EXPECT_TRUE (program_fit (&second, options (TRUE), N_EPOCHS, N_BATCHES, &error));
    MUSTER_EXPECT_NO_ERROR (error);
    MUSTER_EXPECT_EQ (second.canary, TOTAL);
  }
}

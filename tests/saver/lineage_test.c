// SPDX-License-Identifier: Apache-2.0
/* Which checkpoints of a fast tier count at a restore: those of the job's own past. */
#include "tests/doubles/fake_master.h"
#include "tests/saver/tiers_fixture.h"

#include <glib/gstdio.h>

/* A fast tier with w = 10 at step 10 in both tiers, and 20 at step 20 in the fast one alone. */
static void
live_once (Tiers *f)
{
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (tiers_begin (f, NULL, -1, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  tiers_save_all (f, 10, 10, BOTH);
  tiers_save_all (f, 20, 20, FAST);
}

static void
expect_told (const char *passed_over, const char *what)
{
  MUSTER_TRACE ("%s", passed_over != NULL ? passed_over : "nothing was said");
  MUSTER_EXPECT_TRUE (passed_over != NULL && strstr (passed_over, what) != NULL);
}

/* Removes a directory of files. */
static void
wipe (const char *directory)
{
  g_auto (GStrv) files = muster_storage_list (muster_local_storage (), directory, NULL);
  for (char **file = files; file != NULL && *file != NULL; file++) {
    g_autofree char *path = g_build_filename (directory, *file, NULL);
    (void)g_remove (path);
  }
  (void)g_remove (directory);
}

MUSTER_TEST (Lineage, goes_through_several_lives)
{
  g_auto (Tiers) f = tiers_set_up ();
  live_once (&f);

  MUSTER_EXPECT_EQ (tiers_resume (&f, NULL), 20);
  MUSTER_EXPECT_EQ (tiers_resume (&f, NULL), 20); /* died before it saved */
  tiers_save_all (&f, 30, 30, FAST);
  g_autofree char *told = NULL;
  MUSTER_EXPECT_EQ (tiers_resume (&f, &told), 30);
  MUSTER_EXPECT_STREQ (told, NULL);
}

MUSTER_TEST (Lineage, leaves_out_what_was_saved_after_the_step_that_another_run_went_on_from)
{
  g_auto (Tiers) f = tiers_set_up ();
  g_autofree char *told = NULL;
  g_autoptr (GError) error = NULL;
  live_once (&f);
  g_autofree char *older = g_build_filename (f.run, "model.ckpt-10", NULL);
  tiers_start (&f);
  const MusterRestoreOptions exactly = {.prefix = older};
  MUSTER_EXPECT_TRUE (
      muster_saver_restore (f.saver, f.session, &exactly, NULL, tiers_soon (), NULL, &error));
  MUSTER_EXPECT_TRUE (tiers_begin (&f, older, -1, &error));
  tiers_save_all (&f, 15, 15, 0); /* where the fast tier's 20 is another branch's */

  MUSTER_EXPECT_EQ (tiers_resume (&f, &told), 15);

  expect_told (told, "superseded: the job went on from step 10");
}

/* A copy that was still waiting when the job was set back. */
MUSTER_TEST (Lineage, a_late_copy_of_a_branch_that_was_left_is_not_made)
{
  g_auto (Tiers) f = tiers_set_up ();
  g_autoptr (GError) error = NULL;
  live_once (&f);
  g_autofree char *older = g_build_filename (f.run, "model.ckpt-10", NULL);
  g_autofree char *left = g_build_filename (f.fast, "model.ckpt-20", NULL);
  MUSTER_EXPECT_TRUE (tiers_begin (&f, older, -1, &error));

  muster_saver_copy_down (f.saver, f.run, left);
  MUSTER_EXPECT_TRUE (muster_saver_sync_copies (f.saver, tiers_soon (), NULL, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (tiers_w_in (f.run, 20), -1);
  MUSTER_EXPECT_EQ (tiers_resume (&f, NULL), 10);
}

MUSTER_TEST (Lineage, leaves_out_what_was_there_before_the_model_was_initialised_anew)
{
  g_auto (Tiers) f = tiers_set_up ();
  g_autofree char *told = NULL;
  g_autoptr (GError) error = NULL;
  live_once (&f);
  tiers_start (&f);
  MUSTER_EXPECT_TRUE (tiers_begin (&f, NULL, -1, &error)); /* told to */
  tiers_save_all (&f, 5, 5, 0);

  MUSTER_EXPECT_EQ (tiers_resume (&f, &told), 5);

  expect_told (told, "another run saved it");
}

MUSTER_TEST (Lineage, leaves_out_a_fast_tier_that_a_run_went_without)
{
  g_auto (Tiers) f = tiers_set_up ();
  g_autofree char *told = NULL;
  g_autoptr (GError) error = NULL;
  live_once (&f);
  g_autofree char *away = g_strconcat (f.fast, ".away", NULL);
  MUSTER_EXPECT_EQ (g_rename (f.fast, away), 0);
  MUSTER_EXPECT_EQ (tiers_resume (&f, NULL), 10);
  g_clear_object (&f.saver); /* this run has no fast tier */
  f.saver = tiers_saver (&f, NULL);
  MUSTER_EXPECT_TRUE (
      muster_saver_begin_run (f.saver, f.run, NULL, 10, tiers_soon (), NULL, &error));
  tiers_save_all (&f, 12, 12, 0);
  wipe (f.fast);
  MUSTER_EXPECT_EQ (g_rename (away, f.fast), 0);

  MUSTER_EXPECT_EQ (tiers_resume (&f, &told), 12);

  expect_told (told, "behind: its directory was last claimed with epoch");
}

MUSTER_TEST (Lineage, takes_the_fast_tier_when_the_durable_one_is_away)
{
  g_auto (Tiers) f = tiers_set_up ();
  live_once (&f);
  wipe (f.run);

  MUSTER_EXPECT_EQ (tiers_resume (&f, NULL), 20);
  tiers_save_all (&f, 30, 30, BOTH);
  MUSTER_EXPECT_EQ (tiers_resume (&f, NULL), 30);
}

MUSTER_TEST (Lineage, refuses_the_fast_tier_of_another_job)
{
  g_auto (Tiers) f = tiers_set_up ();
  g_autofree char *told = NULL;
  live_once (&f);
  g_autofree char *own = f.run;
  f.run = g_build_filename (muster_test_tmpdir (), "other", NULL);

  MUSTER_EXPECT_EQ (tiers_resume (&f, &told), -1);

  expect_told (told, "it belongs to the job in '");
  expect_told (told, own);
}

/* A chief that was cut off goes on saving in the fast tier, which the next one couldn't reach. */
MUSTER_TEST (Lineage, leaves_out_what_a_fenced_chief_saves)
{
  g_auto (Tiers) f = tiers_set_up ();
  g_auto (Tiers) g = tiers_set_up ();
  g_autofree char *told = NULL;
  g_autoptr (GError) error = NULL;
  live_once (&f);
  g_clear_object (&g.saver);
  g.saver = tiers_saver (&g, NULL);
  MUSTER_EXPECT_TRUE (
      muster_saver_begin_run (g.saver, g.run, NULL, 10, tiers_soon (), NULL, &error));
  tiers_save_all (&g, 11, 11, 0);
  tiers_save_all (&f, 99, 99, FAST);

  MUSTER_EXPECT_EQ (tiers_resume (&f, &told), 11);

  expect_told (told, "model.ckpt-99");
}

/* --- claims --- */

/* The engine in this process keeps no announcements: the lease is on another master. */
static MusterLease *
claim (void)
{
  const MusterClaim what = {.model = "digits", .take_over = TRUE};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_autoptr (MusterFakeMaster) master = muster_fake_master_new (clock);
  g_autoptr (MusterSession) session = muster_master_create_session (
      MUSTER_MASTER (master), NULL, NULL, MUSTER_WAIT_FOREVER, NULL, NULL);
  muster_fake_master_set_announcing (master);
  MusterLease *lease = muster_session_claim (session, &what, NULL, tiers_soon (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return lease;
}

static gint64
epoch_of (const char *directory)
{
  g_autoptr (MusterCheckpointRecord) record = muster_checkpoint_record_read (NULL, directory, NULL);
  return record != NULL ? record->epoch : -1;
}

static void
set_epoch (const char *directory, gint64 epoch)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterCheckpointRecord) record = muster_checkpoint_record_read (NULL, directory, NULL);
  record->epoch = epoch;
  g_free (record->chief);
  record->chief = g_strdup ("somebody");
  muster_storage_make_directory (muster_local_storage (), directory, &error);
  MUSTER_EXPECT_TRUE (muster_checkpoint_record_write (NULL, directory, record, &error));
}

MUSTER_TEST (Lineage, a_chief_has_the_same_epoch_in_all_tiers)
{
  g_auto (Tiers) f = tiers_set_up ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterLease) lease = claim ();
  set_epoch (f.run, 41);
  set_epoch (f.fast, 7);
  muster_saver_set_lease (f.saver, lease);

  MUSTER_EXPECT_TRUE (tiers_begin (&f, NULL, -1, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (epoch_of (f.run), 42);
  MUSTER_EXPECT_EQ (epoch_of (f.fast), 42);
}

/* A chief restored from a fast tier that was too full to be claimed, and died before the copy. */
MUSTER_TEST (Lineage, a_tier_that_could_not_be_claimed_still_has_what_the_job_started_from)
{
  g_auto (Tiers) f = tiers_set_up ();
  live_once (&f);
  MUSTER_EXPECT_EQ (tiers_resume (&f, NULL), 20);
  set_epoch (f.run, 5);

  MUSTER_EXPECT_EQ (tiers_resume (&f, NULL), 20);
}

MUSTER_TEST (Lineage, a_tier_with_a_lower_epoch_is_behind)
{
  g_auto (Tiers) f = tiers_set_up ();
  g_autofree char *told = NULL;
  live_once (&f);
  set_epoch (f.run, 5);

  MUSTER_EXPECT_EQ (tiers_resume (&f, &told), 10);

  expect_told (told, "behind");
}

// SPDX-License-Identifier: Apache-2.0
/* Copies between tiers, and the chief's lease. */
#include "checkpoint/store/directory_lock_private.h"
#include "saver/tiered.h"

#include "tests/doubles/gate_storage.h"
#include "tests/saver/directory_fixture.h"

static MusterLease *
claim (Fixture *f)
{
  const MusterClaim claim = {.model = "digits", .take_over = TRUE};
  g_autoptr (GError) error = NULL;
  muster_fake_master_set_announcing (f->master);
  MusterLease *lease =
      muster_session_claim (f->session, &claim, NULL, MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return lease;
}

/* Saves step 1 in both tiers; the copy waits at the gate. */
static gboolean
save_and_begin_copy (Fixture *f, MusterGateStorage *gates, MusterLease *lease, const char *run,
                     MusterSaved *saved)
{
  const MusterTierSet due = MUSTER_TIER_BIT (0) | MUSTER_TIER_BIT (1);
  g_autoptr (GError) error = NULL;
  muster_gate_storage_let_through (gates);
  muster_gate_storage_close_gate (gates, MUSTER_GATE_BEGIN); /* the copier's thread alone waits */
  muster_saver_set_lease (f->saver, lease);
  const gboolean is_saved =
      muster_saver_begin_run (f->saver, run, NULL, -1, MUSTER_WAIT_FOREVER, NULL, &error) &&
      muster_saver_save_with (f->saver, f->session, run, 1, due, saved, MUSTER_WAIT_FOREVER, NULL,
                              &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return is_saved && muster_gate_storage_wait_for_arrival (gates, MUSTER_GATE_BEGIN);
}

/* A chief whose master died holds its directories by another lease when a copy of the session
 * before ends: that copy is given up, and nothing has failed. */
MUSTER_TEST (TierLease, a_copy_that_outlives_its_session_is_no_failure)
{
  g_autoptr (MusterGateStorage) gates = muster_gate_storage_new ();
  g_autofree char *fast = g_build_filename (muster_test_tmpdir (), "fast", NULL);
  g_autofree char *run = g_build_filename (muster_test_tmpdir (), "run", NULL);
  const MusterTier tier = {.directory = fast, .save_steps = 10};
  g_auto (Fixture) f = set_up ((MusterSaverOptions){
      .storage = MUSTER_STORAGE (gates), .fast = &tier, .n_fast = 1, .no_probe = TRUE});
  g_autoptr (MusterLease) before = claim (&f);
  g_autoptr (GError) error = NULL;
  g_auto (MusterSaved) saved = {0};
  MUSTER_ASSERT_TRUE (save_and_begin_copy (&f, gates, before, run, &saved));

  g_autoptr (MusterLease) after = claim (&f);
  muster_saver_set_lease (f.saver, after);
  MUSTER_EXPECT_TRUE (
      muster_saver_begin_run (f.saver, run, saved.prefix, 1, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  muster_gate_storage_open_gate (gates, MUSTER_GATE_BEGIN);

  MUSTER_EXPECT_TRUE (muster_saver_sync_copies (f.saver, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_NULL (muster_saver_take_copy_failure (f.saver, NULL));
}

static void
unlock (gpointer lock)
{
  muster_directory_unlock (lock);
}

/* A copy takes longer than it may wait for its directory's lock. */
MUSTER_TEST (TierLease, a_copy_that_takes_long_still_waits_for_a_lock)
{
  g_autoptr (MusterGateStorage) gates = muster_gate_storage_new ();
  g_autofree char *fast = g_build_filename (muster_test_tmpdir (), "fast", NULL);
  g_autofree char *run = g_build_filename (muster_test_tmpdir (), "run", NULL);
  const MusterTier tier = {.directory = fast, .save_steps = 10};
  g_auto (Fixture) f = set_up ((MusterSaverOptions){
      .storage = MUSTER_STORAGE (gates), .fast = &tier, .n_fast = 1, .no_probe = TRUE});
  g_autoptr (MusterLease) lease = claim (&f);
  g_autoptr (GError) error = NULL;
  g_auto (MusterSaved) saved = {0};
  MUSTER_ASSERT_TRUE (save_and_begin_copy (&f, gates, lease, run, &saved));

  muster_fake_clock_pass (f.clock, 60 * MUSTER_SECOND);
  MusterDirectoryLock *lock =
      muster_directory_lock (NULL, run, MUSTER_WAIT_FOREVER, MUSTER_CLOCK (f.clock), NULL, &error);
  MUSTER_ASSERT_TRUE (lock != NULL);
  muster_fake_clock_at (f.clock, muster_fake_clock_elapsed_us (f.clock) + 5 * MUSTER_SECOND, unlock,
                        lock);
  muster_gate_storage_open_gate (gates, MUSTER_GATE_BEGIN);

  MUSTER_EXPECT_TRUE (muster_saver_sync_copies (f.saver, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  g_autofree char *copy = g_build_filename (run, "model.ckpt-1", NULL);
  MUSTER_EXPECT_TRUE (muster_checkpoint_exists (NULL, copy));
}

/* Another process holds the fast tier's lock, and doesn't go on. */
MUSTER_TEST (TierLease, a_save_waits_for_the_lock_of_a_fast_tier_only_so_long)
{
  g_autofree char *fast = g_build_filename (muster_test_tmpdir (), "fast", NULL);
  g_autofree char *run = g_build_filename (muster_test_tmpdir (), "run", NULL);
  const MusterTier tier = {.directory = fast, .save_steps = 10};
  g_auto (Fixture) f = set_up ((MusterSaverOptions){.fast = &tier, .n_fast = 1, .no_probe = TRUE});
  g_autoptr (MusterLease) lease = claim (&f);
  g_autoptr (GError) error = NULL;
  g_auto (MusterSaved) saved = {0};
  muster_saver_set_lease (f.saver, lease);
  MUSTER_ASSERT_TRUE (
      muster_saver_begin_run (f.saver, run, NULL, -1, MUSTER_WAIT_FOREVER, NULL, &error));
  g_autoptr (MusterDirectoryLock) lock =
      muster_directory_lock (NULL, fast, MUSTER_WAIT_FOREVER, MUSTER_CLOCK (f.clock), NULL, &error);
  MUSTER_ASSERT_TRUE (lock != NULL);

  MUSTER_EXPECT_TRUE (muster_saver_save_with (
      f.saver, f.session, run, 1, MUSTER_TIER_BIT (0), &saved,
      muster_clock_now_us (MUSTER_CLOCK (f.clock)) + 60 * MUSTER_SECOND, NULL, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (saved.prefix != NULL && g_str_has_prefix (saved.prefix, run));
}

// SPDX-License-Identifier: Apache-2.0
/* A tier that is full, broken, gone or silent. */
#include "tests/doubles/heard.h"
#include "tests/doubles/narrow_storage.h"
#include "tests/saver/tiers_fixture.h"

#include <glib/gstdio.h>

/* A job that has saved 10 in both tiers. */
static Tiers
begin (void)
{
  Tiers f = tiers_set_up ();
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (tiers_begin (&f, NULL, -1, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  tiers_save_all (&f, 10, 10, BOTH);
  heard_begin (G_LOG_LEVEL_WARNING);
  return f;
}

static guint
n_left (const char *directory)
{
  g_auto (GStrv) files = muster_storage_list (muster_local_storage (), directory, NULL);
  guint n = 0;
  for (char **file = files; file != NULL && *file != NULL; file++)
    n += g_str_has_prefix (*file, ".saving-");
  return n;
}

static void
expect_dropped (MusterFault fault)
{
  g_auto (Tiers) f = begin ();
  g_autoptr (GError) error = NULL;
  muster_faulty_storage_set (f.storage, f.fast, fault);

  g_autofree char *prefix = tiers_save (&f, 20, 20, FAST, &error);
  g_autofree char *next = tiers_save (&f, 30, 30, BOTH, &error);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (prefix != NULL && g_str_has_prefix (prefix, f.run));
  MUSTER_EXPECT_EQ (tiers_w_in (f.run, 20), 20);
  MUSTER_EXPECT_EQ (tiers_w_in (f.run, 30), 30);
  MUSTER_EXPECT_EQ (muster_saver_tiers_in_use (f.saver), DURABLE);
  g_autofree char *message = heard_field ("tier", "MESSAGE");
  MUSTER_EXPECT_EQ (heard_count (NULL, NULL), 1u);
  MUSTER_EXPECT_TRUE (message != NULL && strstr (message, f.fast) && strstr (message, f.run));
  muster_faulty_storage_set (f.storage, NULL, MUSTER_FAULT_NONE);
  MUSTER_EXPECT_EQ (tiers_resume (&f, NULL), 30);
  MUSTER_EXPECT_EQ (muster_saver_tiers_in_use (f.saver), BOTH); /* tried again */
  tiers_save_all (&f, 40, 40, FAST);
  MUSTER_EXPECT_EQ (tiers_w_in (f.fast, 40), 40);
  MUSTER_EXPECT_EQ (n_left (f.fast), 0u);
}

MUSTER_TEST (TierFault, a_fast_tier_without_space_drops_itself)
{
  expect_dropped (MUSTER_FAULT_NO_SPACE);
}

MUSTER_TEST (TierFault, a_fast_tier_that_fills_up_drops_itself)
{
  expect_dropped (MUSTER_FAULT_FILLS_UP);
}

/* As a master reports it from another host, where a check of the space tells nothing. */
MUSTER_TEST (TierFault, a_fast_tier_whose_quota_is_used_up_drops_itself)
{
  expect_dropped (MUSTER_FAULT_EXHAUSTED);
}

MUSTER_TEST (TierFault, a_fast_tier_that_breaks_drops_itself)
{
  expect_dropped (MUSTER_FAULT_BROKEN);
}

/* What was saved there and nowhere else is lost; what is saved next isn't. */
MUSTER_TEST (TierFault, a_fast_tier_that_vanishes_costs_what_was_in_it_alone)
{
  g_auto (Tiers) f = begin ();
  g_autoptr (GError) error = NULL;
  tiers_save_all (&f, 20, 20, FAST);
  g_autofree char *away = g_strconcat (f.fast, ".away", NULL);
  MUSTER_EXPECT_EQ (g_rename (f.fast, away), 0);
  g_file_set_contents (f.fast, "", 0, NULL); /* it can't be made again */

  MUSTER_EXPECT_EQ (tiers_resume (&f, NULL), 10);
  MUSTER_EXPECT_EQ (muster_saver_tiers_in_use (f.saver), DURABLE);
  g_autofree char *prefix = tiers_save (&f, 15, 15, BOTH, &error);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (tiers_w_in (f.run, 15), 15);
  MUSTER_EXPECT_EQ (tiers_resume (&f, NULL), 15);
}

/* A copy to a full disk fails like a save: once, and the fast tier goes on. */
static void
expect_failed_copy (MusterFault fault)
{
  g_auto (Tiers) f = begin ();
  g_autoptr (GError) error = NULL, failure = NULL, none = NULL;
  gint64 step = -1;
  muster_faulty_storage_set (f.storage, f.run, fault);

  g_autofree char *prefix = tiers_save (&f, 20, 20, BOTH, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (muster_saver_sync_copies (f.saver, tiers_soon (), NULL, &failure));
  MUSTER_EXPECT_TRUE (failure != NULL && strstr (failure->message, f.run));
  MUSTER_EXPECT_TRUE (muster_saver_sync_copies (f.saver, tiers_soon (), NULL, &none));
  g_autoptr (GError) again = muster_saver_take_copy_failure (f.saver, &step);
  MUSTER_EXPECT_NO_ERROR (again);

  MUSTER_EXPECT_EQ (muster_saver_tiers_in_use (f.saver), BOTH);
  muster_faulty_storage_set (f.storage, NULL, MUSTER_FAULT_NONE);
  MUSTER_EXPECT_EQ (tiers_w_in (f.run, 20), -1);
  MUSTER_EXPECT_EQ (n_left (f.run), 0u);
  tiers_save_all (&f, 30, 30, BOTH);
  MUSTER_EXPECT_EQ (tiers_w_in (f.run, 30), 30);
}

/* In each of the tiers the oldest one, which the rules don't keep any more, goes before the save or
 * the copy. */
MUSTER_TEST (TierFault, a_full_tier_gives_up_what_its_rules_do_not_keep)
{
  g_auto (Tiers) f = tiers_set_up ();
  g_autoptr (MusterNarrowStorage) disk = muster_narrow_storage_new ();
  muster_forwarding_storage_set_inner (MUSTER_FORWARDING_STORAGE (f.storage),
                                       MUSTER_STORAGE (disk));
  MUSTER_EXPECT_EQ (tiers_resume (&f, NULL), -1);
  tiers_save_all (&f, 10, 10, BOTH);
  tiers_save_all (&f, 20, 20, BOTH);
  f.keep = 1;
  muster_meta_graph_unref (f.meta_graph);
  f.meta_graph = muster_small_model_new (muster_small_variables, 2, 1);
  MUSTER_EXPECT_EQ (tiers_resume (&f, NULL), 20);
  muster_narrow_storage_fill (disk, f.fast, muster_saver_estimate_bytes (f.saver) - 1);

  tiers_save_all (&f, 30, 30, BOTH);

  MUSTER_EXPECT_EQ (muster_saver_tiers_in_use (f.saver), BOTH);
  MUSTER_EXPECT_EQ (tiers_w_in (f.fast, 30), 30);
  MUSTER_EXPECT_EQ (tiers_w_in (f.run, 30), 30);
  MUSTER_EXPECT_EQ (tiers_w_in (f.fast, 10), -1);
  MUSTER_EXPECT_EQ (tiers_w_in (f.run, 10), -1);
}

MUSTER_TEST (TierFault, a_copy_without_space_is_reported_once)
{
  expect_failed_copy (MUSTER_FAULT_NO_SPACE);
}

MUSTER_TEST (TierFault, a_copy_that_fills_the_disk_is_reported_once_and_leaves_nothing)
{
  expect_failed_copy (MUSTER_FAULT_FILLS_UP);
}

MUSTER_TEST (TierFault, a_slow_tier_is_passed_over_for_one_that_answers)
{
  g_auto (Tiers) f = begin ();
  g_autoptr (GError) error = NULL;
  const MusterRestoreOptions latest = {.directory = f.run};
  g_auto (MusterRestored) restored = {0};
  tiers_save_all (&f, 20, 20, FAST);
  tiers_start (&f);
  muster_faulty_storage_set (f.storage, f.fast, MUSTER_FAULT_HANGS);

  /* its share of twelve seconds is six */
  MUSTER_EXPECT_TRUE (muster_saver_restore (f.saver, f.session, &latest, &restored,
                                            g_get_monotonic_time () + 12 * MUSTER_SECOND, NULL,
                                            &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (tiers_w (&f), 10);
  MUSTER_EXPECT_TRUE (restored.warning != NULL && strstr (restored.warning, "didn't answer"));
}

/* A job that starts isn't held up by what a slow tier has to say of its time. */
MUSTER_TEST (TierFault, a_slow_tier_is_passed_over_for_the_account_of_the_time)
{
  g_auto (Tiers) f = begin ();
  MusterGoodput goodput = {.began_us = 9, .step = 20};
  muster_saver_set_goodput (f.saver, &goodput);
  tiers_save_all (&f, 20, 20, FAST);
  MUSTER_EXPECT_TRUE (muster_saver_read_goodput (f.saver, f.run, &goodput));
  muster_faulty_storage_set (f.storage, f.fast, MUSTER_FAULT_HANGS);

  MUSTER_EXPECT_FALSE (muster_saver_read_goodput (f.saver, f.run, &goodput));
}

MUSTER_TEST (TierFault, a_broken_durable_tier_is_passed_over_for_the_fast_one)
{
  g_auto (Tiers) f = begin ();
  g_autoptr (GError) error = NULL;
  tiers_save_all (&f, 20, 20, FAST);
  tiers_start (&f);
  muster_faulty_storage_set (f.storage, f.run, MUSTER_FAULT_BROKEN);

  g_autofree char *prefix = tiers_restore (&f, NULL, &error);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (prefix != NULL && g_str_has_prefix (prefix, f.fast));
  MUSTER_EXPECT_EQ (tiers_w (&f), 20);
}

/* The durable tier is there again when the run begins: what a run without this fast tier has saved
 * there must not be lost behind an old checkpoint. */
MUSTER_TEST (TierFault, a_newer_checkpoint_in_a_durable_tier_that_was_broken_is_not_left_behind)
{
  g_auto (Tiers) f = begin ();
  g_autoptr (GError) error = NULL, failure = NULL;
  tiers_save_all (&f, 20, 20, FAST);
  tiers_save_all (&f, 30, 30, 0); /* in the durable one alone */
  tiers_start (&f);
  muster_faulty_storage_set (f.storage, f.run, MUSTER_FAULT_BROKEN);
  g_autofree char *prefix = tiers_restore (&f, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (tiers_w (&f), 20);
  muster_faulty_storage_set (f.storage, NULL, MUSTER_FAULT_NONE);

  MUSTER_EXPECT_FALSE (tiers_begin (&f, prefix, -1, &failure));

  MUSTER_EXPECT_ERROR (failure, MUSTER_ERROR,
                       MUSTER_ERROR_UNAVAILABLE); /* the session is made again */
  MUSTER_EXPECT_TRUE (failure != NULL && strstr (failure->message, "model.ckpt-30"));
  MUSTER_EXPECT_EQ (tiers_resume (&f, NULL), 30);
}

MUSTER_TEST (TierFault, a_run_goes_on_from_the_fast_tier_if_that_was_the_newest_after_all)
{
  g_auto (Tiers) f = begin ();
  g_autoptr (GError) error = NULL;
  tiers_save_all (&f, 20, 20, FAST);
  tiers_start (&f);
  muster_faulty_storage_set (f.storage, f.run, MUSTER_FAULT_BROKEN);
  g_autofree char *prefix = tiers_restore (&f, NULL, &error);
  muster_faulty_storage_set (f.storage, NULL, MUSTER_FAULT_NONE);

  MUSTER_EXPECT_TRUE (tiers_begin (&f, prefix, -1, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (tiers_w (&f), 20);
}

/* A model isn't initialised anew because a tier can't be read. */
static void
expect_no_fresh_start (const char *broken)
{
  g_auto (Tiers) f = tiers_set_up ();
  g_autoptr (GError) error = NULL;
  g_autofree char *directory = g_build_filename (muster_test_tmpdir (), broken, NULL);
  muster_faulty_storage_set (f.storage, directory, MUSTER_FAULT_BROKEN);

  g_autofree char *prefix = tiers_restore (&f, NULL, &error);

  MUSTER_EXPECT_NULL (prefix);
  MUSTER_EXPECT_TRUE (error != NULL && strstr (error->message, directory));
}

MUSTER_TEST (TierFault, nothing_is_begun_anew_while_a_tier_cannot_be_read)
{
  expect_no_fresh_start ("run");
  expect_no_fresh_start ("fast");
}

MUSTER_TEST (TierFault, a_damaged_checkpoint_is_passed_over_for_the_same_in_the_other_tier)
{
  g_auto (Tiers) f = begin ();
  g_autofree char *data = g_build_filename (f.fast, "model.ckpt-10.data-00000-of-00001", NULL);
  g_autofree char *bytes = NULL, *told = NULL;
  gsize size;
  MUSTER_ASSERT_TRUE (g_file_get_contents (data, &bytes, &size, NULL));
  bytes[size / 2] ^= 1;
  MUSTER_EXPECT_TRUE (g_file_set_contents (data, bytes, (gssize)size, NULL));

  MUSTER_EXPECT_EQ (tiers_resume (&f, &told), 10);

  MUSTER_EXPECT_TRUE (told != NULL && strstr (told, "set aside"));
  g_autofree char *aside = g_build_filename (f.fast, "model.ckpt-10.bad.index", NULL);
  MUSTER_EXPECT_TRUE (g_file_test (aside, G_FILE_TEST_EXISTS));
}

/* A master that doesn't see one of the directories. */
static void
expect_open (const char *unseen)
{
  g_auto (Tiers) f = tiers_set_up ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterFaultyStorage) theirs = muster_faulty_storage_new ();
  g_autofree char *directory = g_build_filename (muster_test_tmpdir (), unseen, NULL);
  muster_faulty_storage_set (theirs, directory, MUSTER_FAULT_ABSENT);
  g_autoptr (MusterMaster) master = muster_local_master_new_with (MUSTER_STORAGE (theirs), 0);
  g_autoptr (MusterSession) session = muster_master_create_session (
      master, muster_meta_graph_graph (f.meta_graph), NULL, MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_SESSION_GET_CLASS (session)->is_here = FALSE;
  const gboolean is_open =
      muster_saver_open_tiers (f.saver, session, f.run, tiers_soon (), NULL, &error);
  MUSTER_SESSION_GET_CLASS (session)->is_here = TRUE;

  MUSTER_EXPECT_TRUE (is_open);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_saver_tiers_in_use (f.saver), BOTH);
}

MUSTER_TEST (TierFault, a_tier_that_the_master_does_not_share_is_written_by_the_chief)
{
  expect_open ("fast");
  expect_open ("run");
}

/* As where a store has no locks, and retention was quicker: the tier is well. */
MUSTER_TEST (TierFault, a_copy_whose_original_is_gone_is_left_out)
{
  g_auto (Tiers) f = begin ();
  g_autoptr (GError) error = NULL;
  g_autofree char *gone = g_build_filename (f.fast, "model.ckpt-9", NULL);

  muster_saver_copy_down (f.saver, f.run, gone);
  MUSTER_EXPECT_TRUE (muster_saver_sync_copies (f.saver, tiers_soon (), NULL, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_saver_tiers_in_use (f.saver), BOTH);
}

/* A damaged original isn't copied. */
MUSTER_TEST (TierFault, a_copy_is_read_back)
{
  g_auto (Tiers) f = begin ();
  g_autoptr (GError) error = NULL;
  tiers_save_all (&f, 20, 20, FAST);
  g_autofree char *prefix = g_build_filename (f.fast, "model.ckpt-20", NULL);
  g_autofree char *data = g_strconcat (prefix, ".data-00000-of-00001", NULL);
  g_autofree char *bytes = NULL;
  gsize size;
  MUSTER_ASSERT_TRUE (g_file_get_contents (data, &bytes, &size, NULL));
  bytes[size / 2] ^= 1;
  MUSTER_EXPECT_TRUE (g_file_set_contents (data, bytes, (gssize)size, NULL));

  muster_saver_copy_down (f.saver, f.run, prefix);
  MUSTER_EXPECT_TRUE (muster_saver_sync_copies (f.saver, tiers_soon (), NULL, &error));

  MUSTER_EXPECT_EQ (tiers_w_in (f.run, 20), -1);
  MUSTER_EXPECT_EQ (n_left (f.run), 0u);
  MUSTER_EXPECT_EQ (muster_saver_tiers_in_use (f.saver), DURABLE); /* its memory is bad */
}

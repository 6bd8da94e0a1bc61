// SPDX-License-Identifier: Apache-2.0
/* Saving in two tiers: one save, copied on. */
#include "saver/save_ticket_private.h"
#include "tests/saver/tiers_fixture.h"

#include <glib/gstdio.h>
#include <unistd.h>

#include <math.h>
#include <stdio.h>

static MusterCheckpointRecord *
record_of (const char *directory)
{
  g_autoptr (GError) error = NULL;
  MusterCheckpointRecord *record = muster_checkpoint_record_read (NULL, directory, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return record;
}

static char *
latest_in (const char *directory)
{
  g_autofree char *prefix = muster_latest_checkpoint (NULL, directory, NULL);
  return prefix != NULL ? g_path_get_basename (prefix) : NULL;
}

MUSTER_TEST (Tiers, save_in_the_fast_one_alone_unless_the_durable_one_is_due)
{
  g_auto (Tiers) f = tiers_set_up ();
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (tiers_begin (&f, NULL, -1, &error));

  tiers_save_all (&f, 10, 10, FAST);
  MUSTER_EXPECT_EQ (tiers_w_in (f.fast, 10), 10);
  MUSTER_EXPECT_EQ (tiers_w_in (f.run, 10), -1);

  tiers_save_all (&f, 20, 20, BOTH);
  MUSTER_EXPECT_EQ (tiers_w_in (f.fast, 20), 20);
  MUSTER_EXPECT_EQ (tiers_w_in (f.run, 20), 20);
  g_autofree char *latest = latest_in (f.run);
  MUSTER_EXPECT_STREQ (latest, "model.ckpt-20");
}

MUSTER_TEST (Tiers, copy_what_was_saved_not_what_the_model_is_by_then)
{
  g_auto (Tiers) f = tiers_set_up ();
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (tiers_begin (&f, NULL, -1, &error));
  g_autofree char *prefix = tiers_save (&f, 10, 10, BOTH, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  tiers_set_w (&f, 11);

  MUSTER_EXPECT_TRUE (muster_saver_sync_copies (f.saver, tiers_soon (), NULL, &error));

  MUSTER_EXPECT_EQ (tiers_w_in (f.run, 10), 10);
  g_autoptr (MusterCheckpointRecord) fast = record_of (f.fast), run = record_of (f.run);
  const MusterSideCheckpoint *one = muster_checkpoint_record_find (run, "model.ckpt-10");
  MUSTER_ASSERT_TRUE (one != NULL);
  MUSTER_EXPECT_TRUE (one->verified);
  MUSTER_EXPECT_STREQ (one->run, fast->run);
  MUSTER_EXPECT_STREQ (run->run, fast->run);
  MUSTER_EXPECT_STREQ (fast->durable_dir, f.run);
  MUSTER_EXPECT_NULL (run->durable_dir);
}

/* Keeps the best in the durable tier. */
static Tiers
set_up_with_metric (void)
{
  Tiers f = tiers_set_up ();
  g_autoptr (GError) error = NULL;
  const MusterTier tier = {.directory = f.fast, .save_steps = 10};
  const MusterSaverOptions options = {.storage = MUSTER_STORAGE (f.storage),
                                      .fast = &tier,
                                      .n_fast = 1,
                                      .keep_best = 1,
                                      .metric = "loss:min"};
  g_clear_object (&f.saver);
  f.saver = muster_saver_new (f.meta_graph, &options, &error);
  MUSTER_EXPECT_TRUE (tiers_begin (&f, NULL, -1, &error));
  return f;
}

static double
loss_of (const char *directory, const char *name)
{
  g_autoptr (MusterCheckpointRecord) record = record_of (directory);
  return muster_side_checkpoint_metric (muster_checkpoint_record_find (record, name), "loss");
}

MUSTER_TEST (Tiers, copy_the_value_of_the_metric)
{
  g_auto (Tiers) f = set_up_with_metric ();
  muster_saver_set_metric (f.saver, 0.25);
  tiers_save_all (&f, 10, 10, BOTH);

  g_autoptr (MusterCheckpointRecord) fast = record_of (f.fast), run = record_of (f.run);
  const MusterSideCheckpoint *one = muster_checkpoint_record_find (fast, "model.ckpt-10"),
                             *copy = muster_checkpoint_record_find (run, "model.ckpt-10");
  MUSTER_EXPECT_EQ (muster_side_checkpoint_metric (one, "loss"), 0.25);
  MUSTER_EXPECT_EQ (muster_side_checkpoint_metric (copy, "loss"), 0.25);
  MUSTER_EXPECT_EQ (muster_checkpoint_record_rules (run, NULL)->best, 1);
  MUSTER_EXPECT_EQ (muster_checkpoint_record_rules (fast, NULL)->best, 0);
}

/* The last save of a job is of a step that a fast tier may have already. */
MUSTER_TEST (Tiers, each_have_the_value_of_a_step_that_is_saved_twice)
{
  g_auto (Tiers) f = set_up_with_metric ();
  g_autoptr (GError) error = NULL;
  muster_saver_set_metric (f.saver, 0.25);
  g_autofree char *fast = tiers_save (&f, 10, 10, FAST, &error);
  g_autofree char *last = tiers_save (&f, 10, 10, 0, &error);
  g_autofree char *next = tiers_save (&f, 20, 20, 0, &error);
  MUSTER_EXPECT_NO_ERROR (error);

  MUSTER_EXPECT_EQ (loss_of (f.fast, "model.ckpt-10"), 0.25);
  MUSTER_EXPECT_EQ (loss_of (f.run, "model.ckpt-10"), 0.25);
  MUSTER_EXPECT_TRUE (isnan (loss_of (f.run, "model.ckpt-20")));
}

MUSTER_TEST (Tiers, keep_a_value_for_the_step_whose_save_has_failed)
{
  g_auto (Tiers) f = set_up_with_metric ();
  g_autoptr (GError) failure = NULL, error = NULL;
  muster_saver_set_metric (f.saver, 0.25);
  muster_faulty_storage_set (f.storage, f.run, MUSTER_FAULT_BROKEN);
  g_autofree char *none = tiers_save (&f, 10, 10, 0, &failure);
  MUSTER_EXPECT_NULL (none);
  muster_faulty_storage_set (f.storage, NULL, MUSTER_FAULT_NONE);
  g_autofree char *again = tiers_save (&f, 10, 10, 0, &error);
  MUSTER_EXPECT_NO_ERROR (error);

  MUSTER_EXPECT_EQ (loss_of (f.run, "model.ckpt-10"), 0.25);
}

/* A save without a number has no step, and a value that is set while it runs is the next save's. */
MUSTER_TEST (Tiers, lose_no_value_to_a_save_without_a_number)
{
  g_autoptr (MusterSaveLog) log = muster_save_log_new (muster_system_clock ());
  g_autoptr (MusterSaveTicket) best = muster_save_ticket_new (log, "run/best", -1, 0, TRUE);
  muster_save_log_set_metric (log, 0.25);
  muster_save_ticket_forget_metric (best);
  g_autoptr (MusterSaveTicket) other = muster_save_ticket_new (log, "run/other", -1, 0, TRUE);
  MUSTER_EXPECT_EQ (other->metric, 0.25);
  muster_save_log_set_metric (log, 0.5);
  muster_save_ticket_rename (other, "run/model.ckpt-10", 10);
  g_autoptr (MusterSaveTicket) next =
      muster_save_ticket_new (log, "run/model.ckpt-20", 20, 0, TRUE);
  MUSTER_EXPECT_EQ (next->metric, 0.5);
}

/* Another session may have another model at the same step. */
MUSTER_TEST (Tiers, forget_the_value_of_a_model_that_is_gone)
{
  g_auto (Tiers) f = set_up_with_metric ();
  g_autoptr (GError) error = NULL;
  muster_saver_set_metric (f.saver, 0.25);
  g_autofree char *fast = tiers_save (&f, 10, 10, FAST, &error);
  muster_saver_set_metric (f.saver, NAN);
  g_autofree char *last = tiers_save (&f, 10, 10, 0, &error);
  MUSTER_EXPECT_NO_ERROR (error);

  MUSTER_EXPECT_TRUE (isnan (loss_of (f.run, "model.ckpt-10")));
}

/* A directory that was durable before is a fast tier now. */
MUSTER_TEST (Tiers, keep_no_best_in_a_fast_one)
{
  g_auto (Tiers) f = tiers_set_up ();
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (tiers_begin (&f, NULL, -1, &error));
  g_autoptr (MusterCheckpointRecord) before = record_of (f.fast);
  const MusterKeepRules rules = {
      .newest = 1, .best = 2, .every_steps = 5, .metric = (char *)"loss"};
  muster_checkpoint_record_set_rules (before, NULL, &rules);
  muster_checkpoint_record_write (NULL, f.fast, before, &error);
  MUSTER_EXPECT_NO_ERROR (error);

  tiers_save_all (&f, 10, 10, FAST);

  g_autoptr (MusterCheckpointRecord) fast = record_of (f.fast);
  MUSTER_EXPECT_EQ (muster_checkpoint_record_rules (fast, NULL)->best, 0);
  MUSTER_EXPECT_EQ (muster_checkpoint_record_rules (fast, NULL)->every_steps, 0);
}

MUSTER_TEST (Tiers, report_each_copy_once)
{
  g_auto (Tiers) f = tiers_set_up ();
  g_autoptr (GError) error = NULL;
  g_auto (MusterTierCopied) copied = {0}, none = {0};
  MUSTER_EXPECT_TRUE (tiers_begin (&f, NULL, -1, &error));

  tiers_save_all (&f, 10, 10, BOTH);

  MUSTER_ASSERT_TRUE (muster_saver_take_copied (f.saver, &copied));
  MUSTER_EXPECT_EQ (copied.tier, 1u);
  MUSTER_EXPECT_EQ (copied.step, 10);
  MUSTER_EXPECT_GT (copied.bytes, 0u);
  MUSTER_EXPECT_TRUE (g_str_has_prefix (copied.prefix, f.run));
  MUSTER_EXPECT_FALSE (muster_saver_take_copied (f.saver, &none));
}

MUSTER_TEST (Tiers, keep_as_many_as_each_is_told)
{
  g_auto (Tiers) f = tiers_set_up ();
  g_autoptr (GError) error = NULL;
  f.keep = 2;
  tiers_start (&f);
  MUSTER_EXPECT_TRUE (tiers_begin (&f, NULL, -1, &error));

  for (gint64 step = 10; step <= 40; step += 10)
    tiers_save_all (&f, step, step, BOTH);

  MUSTER_EXPECT_EQ (tiers_w_in (f.fast, 20), -1);
  MUSTER_EXPECT_EQ (tiers_w_in (f.fast, 30), 30);
  MUSTER_EXPECT_EQ (tiers_w_in (f.run, 10), 10);
}

MUSTER_TEST (Tiers, restore_the_newest_whatever_tier_it_is_in)
{
  g_auto (Tiers) f = tiers_set_up ();
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (tiers_begin (&f, NULL, -1, &error));
  tiers_save_all (&f, 10, 10, BOTH);
  tiers_save_all (&f, 20, 20, FAST);

  MUSTER_EXPECT_EQ (tiers_resume (&f, NULL), 20);
  tiers_save_all (&f, 30, 30, 0); /* in the durable tier alone */
  MUSTER_EXPECT_EQ (tiers_w_in (f.fast, 30), -1);
  MUSTER_EXPECT_EQ (tiers_resume (&f, NULL), 30);
}

MUSTER_TEST (Tiers, lose_no_more_than_the_last_step_of_the_durable_one)
{
  g_auto (Tiers) f = tiers_set_up ();
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (tiers_begin (&f, NULL, -1, &error));
  tiers_save_all (&f, 10, 10, BOTH);
  tiers_save_all (&f, 20, 20, FAST);
  g_autofree char *gone = g_strconcat (f.fast, ".gone", NULL);
  MUSTER_EXPECT_EQ (rename (f.fast, gone), 0); /* as a reboot clears memory */

  MUSTER_EXPECT_EQ (tiers_resume (&f, NULL), 10);
  tiers_save_all (&f, 21, 20, FAST);
  MUSTER_EXPECT_EQ (tiers_resume (&f, NULL), 21);
}

MUSTER_TEST (Tiers, copy_a_restored_checkpoint_down)
{
  g_auto (Tiers) f = tiers_set_up ();
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (tiers_begin (&f, NULL, -1, &error));
  tiers_save_all (&f, 10, 10, FAST);
  MUSTER_EXPECT_EQ (tiers_resume (&f, NULL), 10);
  g_autofree char *prefix = g_build_filename (f.fast, "model.ckpt-10", NULL);

  muster_saver_copy_down (f.saver, f.run, prefix);
  MUSTER_EXPECT_TRUE (muster_saver_sync_copies (f.saver, tiers_soon (), NULL, &error));

  MUSTER_EXPECT_EQ (tiers_w_in (f.run, 10), 10);
  g_autoptr (MusterCheckpointRecord) run = record_of (f.run);
  const MusterSideCheckpoint *one = muster_checkpoint_record_find (run, "model.ckpt-10");
  MUSTER_ASSERT_TRUE (one != NULL);
  MUSTER_EXPECT_STREQ (one->run, run->resumed_run);
}

MUSTER_TEST (Tiers, refuse_settings_that_contradict_each_other)
{
  g_auto (Tiers) f = tiers_set_up ();
  const MusterTier bad[] = {{.directory = "x", .save_steps = 1, .save_us = 1},
                            {.directory = "x", .save_steps = -1},
                            {.directory = "x", .max_to_keep = -2},
                            {.directory = ""},
                            {.directory = NULL}};
  const MusterTier twice[] = {{.directory = "x"}, {.directory = "./x/"}};
  for (gsize i = 0; i < G_N_ELEMENTS (bad); i++) {
    g_autoptr (GError) error = NULL;
    const MusterSaverOptions options = {.fast = &bad[i], .n_fast = 1};
    MUSTER_EXPECT_NULL (muster_saver_new (f.meta_graph, &options, &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  }
  g_autoptr (GError) error = NULL, same = NULL;
  const MusterSaverOptions options = {.fast = twice, .n_fast = 2};
  MUSTER_EXPECT_NULL (muster_saver_new (f.meta_graph, &options, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_FALSE (
      muster_saver_begin_run (f.saver, f.fast, NULL, -1, MUSTER_WAIT_FOREVER, NULL, &same));
  MUSTER_EXPECT_ERROR (same, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

/* One directory as two tiers: the retention of the fast one would remove the durable one's. */
MUSTER_TEST (Tiers, refuse_one_directory_by_two_names)
{
  g_auto (Tiers) f = tiers_set_up ();
  g_autoptr (GError) error = NULL;
  g_autofree char *link = g_build_filename (muster_test_tmpdir (), "link", NULL);
  g_autofree char *through_it = g_build_filename (link, "deeper", "run", NULL);
  g_autofree char *run = g_build_filename (f.run, "deeper", "run", NULL);
  const MusterTier tier = {.directory = through_it, .save_steps = 10};
  const MusterSaverOptions options = {.fast = &tier, .n_fast = 1};
  MUSTER_ASSERT_EQ (g_mkdir (f.run, 0755), 0);
  MUSTER_ASSERT_EQ (symlink (f.run, link), 0);
  g_autoptr (MusterSaver) saver = muster_saver_new (f.meta_graph, &options, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_FALSE (muster_saver_check_tiers (saver, run, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

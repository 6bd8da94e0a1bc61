// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/state/checkpoint_record_private.h"
#include "checkpoint/state/checkpoint_state.h"
#include "tests/gtest_shim.h"
#include "tests/session/fixture.h"

#include <glib/gstdio.h>
#include <string.h>

#define RESTORED    "create, run save/restore_all, run gate, run local_init, run ready"
#define INITIALISED "create, run init, run gate, run local_init, run ready"

static MusterPrepareOptions
from_directory (MusterSmallJob *job)
{
  return (MusterPrepareOptions){
      .init_op = "init", .saver = job->saver, .checkpoint_dir = muster_test_tmpdir ()};
}

static void
write_checkpoint (gpointer user_data G_GNUC_UNUSED)
{
  g_autofree char *prefix = muster_small_job_write_checkpoint (muster_test_tmpdir (), 7);
}

static void
damage (const char *prefix)
{
  g_autofree char *path = g_strconcat (prefix, ".data-00000-of-00001", NULL);
  g_autofree char *bytes = NULL;
  gsize size;

  g_file_get_contents (path, &bytes, &size, NULL);
  bytes[size / 2] ^= 0x40;
  g_file_set_contents (path, bytes, (gssize)size, NULL);
}

static void
write_state (const char *text)
{
  g_autofree char *path = g_build_filename (muster_test_tmpdir (), "checkpoint", NULL);

  g_file_set_contents (path, text, -1, NULL);
}

/* B002.11, DIFF.1: also without a saver, before any session */
MUSTER_TEST (Restore, refuses_two_places_before_it_makes_a_session)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autoptr (MusterSession) session = muster_small_job_prepare (
      &job,
      (MusterPrepareOptions){.init_op = "init", .checkpoint_dir = "a", .checkpoint_filename = "b"});
  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_ASSERT_TRUE (job.error != NULL);
  MUSTER_EXPECT_STREQ (job.error->message,
                       "Can not provide both checkpoint_dir and checkpoint_filename_with_path.");
  muster_small_job_diary_is (&job, "");
}

/* B002.12 */
MUSTER_TEST (Restore, takes_an_empty_place_for_none)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autofree char *prefix = muster_small_job_write_checkpoint (muster_test_tmpdir (), 3);

  g_autoptr (MusterSession) session = muster_small_job_prepare (
      &job, (MusterPrepareOptions){
                .saver = job.saver, .checkpoint_dir = "", .checkpoint_filename = prefix});

  MUSTER_EXPECT_NO_ERROR (job.error);
  muster_small_job_diary_is (&job, RESTORED);
}

/* B002.13 */
MUSTER_TEST (Restore, does_nothing_without_a_saver_or_a_place)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autofree char *prefix = muster_small_job_write_checkpoint (muster_test_tmpdir (), 3);

  g_autoptr (MusterSession) session = muster_small_job_prepare (
      &job, (MusterPrepareOptions){.init_op = "init",
                                   .checkpoint_dir = muster_test_tmpdir (),
                                   .wait_for_checkpoint = TRUE});

  muster_small_job_diary_is (&job, INITIALISED);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (job.clock), 0);
}

/* B002.16, B002.31, B002.35 */
MUSTER_TEST (Restore, restores_the_latest_of_a_directory_instead_of_initialising)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autofree char *older = muster_small_job_write_checkpoint (muster_test_tmpdir (), 3);
  g_autofree char *latest = muster_small_job_write_checkpoint (muster_test_tmpdir (), 4);

  g_autoptr (MusterSession) session = muster_small_job_prepare (&job, from_directory (&job));

  MUSTER_EXPECT_NO_ERROR (job.error);
  muster_small_job_diary_is (&job, RESTORED);
  MUSTER_EXPECT_STREQ (job.report.restored_from, latest);
  g_auto (GStrv) kept = muster_saver_last_checkpoints (job.saver);
  MUSTER_ASSERT_EQ (g_strv_length (kept), 2u);
  MUSTER_EXPECT_STREQ (kept[0], older);
  MUSTER_EXPECT_STREQ (kept[1], latest);
}

/* B002.16: a failing restore leaves the saver's list as it was */
MUSTER_TEST (Restore, leaves_the_list_alone_when_restoring_fails)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autofree char *prefix = muster_small_job_write_checkpoint (muster_test_tmpdir (), 3);
  muster_fake_master_fail (job.master, "save/restore_all", 1, 1, MUSTER_ERROR_INTERNAL, "boom");

  g_autoptr (MusterSession) session = muster_small_job_prepare (&job, from_directory (&job));

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL);
  g_auto (GStrv) kept = muster_saver_last_checkpoints (job.saver);
  MUSTER_EXPECT_EQ (g_strv_length (kept), 0u);
  muster_small_job_diary_is (&job, "create, run save/restore_all, close");
}

/* B002.17 */
MUSTER_TEST (Restore, initialises_at_once_when_it_need_not_wait)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autoptr (MusterSession) session = muster_small_job_prepare (&job, from_directory (&job));
  MUSTER_EXPECT_NO_ERROR (job.error);
  muster_small_job_diary_is (&job, INITIALISED);
  MUSTER_EXPECT_EQ (muster_fake_clock_n_waits (job.clock), 0u);
}

/* B002.14 */
MUSTER_TEST (Restore, restores_a_named_checkpoint_without_waiting_or_listing_it)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autofree char *prefix = muster_small_job_write_checkpoint (muster_test_tmpdir (), 3);

  g_autoptr (MusterSession) session = muster_small_job_prepare (
      &job, (MusterPrepareOptions){
                .saver = job.saver, .checkpoint_filename = prefix, .wait_for_checkpoint = TRUE});

  MUSTER_EXPECT_NO_ERROR (job.error);
  muster_small_job_diary_is (&job, RESTORED);
  g_auto (GStrv) kept = muster_saver_last_checkpoints (job.saver);
  MUSTER_EXPECT_EQ (g_strv_length (kept), 0u);
}

/* TensorFlow's words say that init ops did not make the model ready; none has run. */
MUSTER_TEST (Restore, names_the_checkpoint_whose_saver_leaves_variables_out)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autofree char *prefix = muster_small_job_write_checkpoint (muster_test_tmpdir (), 7);
  g_autofree char *many = g_strnfill (10000, 'x');
  muster_fake_master_op_reports (job.master, "gate", many, NULL);

  g_autoptr (MusterSession) session = muster_small_job_prepare (
      &job, (MusterPrepareOptions){.saver = job.saver, .checkpoint_filename = prefix});

  MUSTER_EXPECT_NULL (session);
  MUSTER_ASSERT_TRUE (job.error != NULL);
  g_autofree char *says = g_strdup_printf ("the saver that restored '%s' leaves variables out: use "
                                           "a saver of all variables",
                                           prefix);
  MUSTER_EXPECT_TRUE (strstr (job.error->message, says) != NULL);
  MUSTER_EXPECT_LT (strlen (job.error->message), 5000u);
}

/* B002.15, SAV.61 */
MUSTER_TEST (Restore, fails_for_a_named_checkpoint_that_is_not_there)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autoptr (MusterSession) session = muster_small_job_prepare (
      &job, (MusterPrepareOptions){.init_op = "init",
                                   .saver = job.saver,
                                   .checkpoint_filename = "/nowhere/model-1",
                                   .wait_for_checkpoint = TRUE});
  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND);
  MUSTER_ASSERT_TRUE (job.error != NULL);
  MUSTER_EXPECT_TRUE (strstr (job.error->message,
                              "The passed save_path is not a valid checkpoint: /nowhere/model-1"));
  muster_small_job_diary_is (&job, "create, close");
}

/* B002.18, B002.21 */
MUSTER_TEST (Restore, waits_for_a_checkpoint_in_one_session)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  MusterPrepareOptions options = from_directory (&job);
  options.wait_for_checkpoint = TRUE;
  muster_fake_clock_at (job.clock, 3601 * MUSTER_SECOND, write_checkpoint, NULL);

  g_autoptr (MusterSession) session = muster_small_job_prepare (&job, options);

  MUSTER_EXPECT_NO_ERROR (job.error);
  muster_small_job_diary_is (&job, RESTORED);
  MUSTER_EXPECT_GE (muster_fake_clock_elapsed_us (job.clock), 3601 * MUSTER_SECOND);
  MUSTER_EXPECT_LE (muster_fake_clock_elapsed_us (job.clock), 3631 * MUSTER_SECOND);
}

static char *
data_of (const char *prefix)
{
  return g_strconcat (prefix, ".data-00000-of-00001", NULL);
}

/* Its index has come before its data, as by a copy that is under way. */
static void
take_data_away (gpointer user_data G_GNUC_UNUSED)
{
  g_autofree char *prefix = muster_small_job_write_checkpoint (muster_test_tmpdir (), 7);
  g_autofree char *data = data_of (prefix);
  g_autofree char *away = g_strconcat (data, ".away", NULL);
  MUSTER_EXPECT_EQ (g_rename (data, away), 0);
}

static void
bring_half_of_the_data (gpointer user_data G_GNUC_UNUSED)
{
  g_autofree char *prefix = g_build_filename (muster_test_tmpdir (), "model.ckpt-7", NULL);
  g_autofree char *data = data_of (prefix);
  MUSTER_EXPECT_TRUE (g_file_set_contents (data, "x", 1, NULL));
}

static void
bring_the_data (gpointer user_data G_GNUC_UNUSED)
{
  g_autofree char *prefix = g_build_filename (muster_test_tmpdir (), "model.ckpt-7", NULL);
  g_autofree char *data = data_of (prefix);
  g_autofree char *away = g_strconcat (data, ".away", NULL);
  MUSTER_EXPECT_EQ (g_rename (away, data), 0);
}

MUSTER_TEST (Restore, waits_on_for_a_checkpoint_without_all_of_its_data)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  MusterPrepareOptions options = from_directory (&job);
  options.wait_for_checkpoint = TRUE;
  take_data_away (NULL);
  muster_fake_clock_at (job.clock, 100 * MUSTER_SECOND, bring_half_of_the_data, NULL);
  muster_fake_clock_at (job.clock, 200 * MUSTER_SECOND, bring_the_data, NULL);

  g_autoptr (MusterSession) session = muster_small_job_prepare (&job, options);

  MUSTER_EXPECT_NO_ERROR (job.error);
  muster_small_job_diary_is (&job, RESTORED);
  MUSTER_EXPECT_GE (muster_fake_clock_elapsed_us (job.clock), 200 * MUSTER_SECOND);
}

/* What can be restored isn't waited for. */
MUSTER_TEST (Restore, takes_the_one_before_instead_of_waiting)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autofree char *older = muster_small_job_write_checkpoint (muster_test_tmpdir (), 3);
  MusterPrepareOptions options = from_directory (&job);
  options.wait_for_checkpoint = TRUE;
  take_data_away (NULL);

  g_autoptr (MusterSession) session = muster_small_job_prepare (&job, options);

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_STREQ (job.report.restored_from, older);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (job.clock), 0);
}

/* A directory with a checkpoint isn't that of a model without variables. */
MUSTER_TEST (Restore, initialises_nothing_where_an_empty_saver_finds_a_checkpoint)
{
  static const guint8 no_nodes[] = {2 << 3 | 2, 0}; /* MetaGraphDef.graph_def, empty */
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autoptr (GBytes) bytes = g_bytes_new_static (no_nodes, sizeof no_nodes);
  g_autoptr (MusterMetaGraph) empty = muster_meta_graph_new (bytes, NULL);
  const MusterSaverOptions options = {.allow_empty = TRUE};
  g_clear_object (&job.saver);
  job.saver = muster_saver_new (empty, &options, NULL);
  g_autofree char *prefix = muster_small_job_write_checkpoint (muster_test_tmpdir (), 7);

  g_autoptr (MusterSession) session = muster_small_job_prepare (&job, from_directory (&job));

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_ASSERT_TRUE (job.error != NULL);
  MUSTER_EXPECT_TRUE (strstr (job.error->message, prefix) != NULL);
  muster_small_job_diary_is (&job, "create, close");
}

MUSTER_TEST (Restore, makes_no_session_for_a_place_with_a_scheme)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  const MusterPrepareOptions places[] = {
      {.init_op = "init", .saver = job.saver, .checkpoint_dir = "hdfs://bucket/run"},
      {.init_op = "init", .saver = job.saver, .checkpoint_filename = "gs://bucket/model.ckpt-1"},
      {.init_op = "init", .checkpoint_dir = "hdfs://bucket/run"}};
  for (gsize i = 0; i < G_N_ELEMENTS (places); i++) {
    g_clear_error (&job.error);
    g_autoptr (MusterSession) session = muster_small_job_prepare (&job, places[i]);
    MUSTER_EXPECT_NULL (session);
    MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  }
  muster_small_job_diary_is (&job, "");
}

/* B002.18, B002.19, DIFF.3: by elapsed time, the last pause cut to the limit */
MUSTER_TEST (Restore, initialises_when_no_checkpoint_has_come_by_the_limit)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  MusterPrepareOptions options = from_directory (&job);
  options.wait_for_checkpoint = TRUE;
  options.max_wait_us = 2 * MUSTER_SECOND;

  g_autoptr (MusterSession) session = muster_small_job_prepare (&job, options);

  MUSTER_EXPECT_NO_ERROR (job.error);
  muster_small_job_diary_is (&job, INITIALISED);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (job.clock), 2 * MUSTER_SECOND);
}

/* B002.18: 7200 s unless said otherwise */
MUSTER_TEST (Restore, waits_two_hours_for_a_checkpoint_by_default)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  MusterPrepareOptions options = from_directory (&job);
  options.wait_for_checkpoint = TRUE;

  g_autoptr (MusterSession) session = muster_small_job_prepare (&job, options);

  MUSTER_EXPECT_TRUE (session != NULL);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (job.clock), 7200 * MUSTER_SECOND);
}

/* B002.19: one look and no sleep */
MUSTER_TEST (Restore, polls_once_with_a_limit_below_0)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  MusterPrepareOptions options = from_directory (&job);
  options.wait_for_checkpoint = TRUE;
  options.max_wait_us = -1;

  g_autoptr (MusterSession) session = muster_small_job_prepare (&job, options);

  MUSTER_EXPECT_NO_ERROR (job.error);
  muster_small_job_diary_is (&job, INITIALISED);
  MUSTER_EXPECT_EQ (muster_fake_clock_n_waits (job.clock), 0u);
}

/* B002.20 */
MUSTER_TEST (Restore, waits_without_end_when_that_is_asked_for)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  MusterPrepareOptions options = from_directory (&job);
  options.wait_for_checkpoint = TRUE;
  options.max_wait_us = MUSTER_WAIT_FOREVER;
  muster_fake_clock_at (job.clock, 100000 * MUSTER_SECOND, write_checkpoint, NULL);

  g_autoptr (MusterSession) session = muster_small_job_prepare (&job, options);

  MUSTER_EXPECT_NO_ERROR (job.error);
  muster_small_job_diary_is (&job, RESTORED);
}

MUSTER_TEST (Restore, is_cancelled_while_it_waits_for_a_checkpoint)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  MusterPrepareOptions options = from_directory (&job);
  options.wait_for_checkpoint = TRUE;
  muster_fake_clock_cancel_at (job.clock, 95 * MUSTER_SECOND, cancellable);

  g_autoptr (MusterSession) session = muster_session_manager_prepare_session (
      job.manager, MUSTER_MASTER (job.master), &options, NULL, cancellable, &job.error);

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (job.clock), 95 * MUSTER_SECOND);
  muster_small_job_diary_is (&job, "create, close");
}

/* B002.25 */
MUSTER_TEST (Restore, reads_no_state_of_another_name)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autofree char *prefix = muster_small_job_write_checkpoint (muster_test_tmpdir (), 7);
  g_autofree char *state = g_build_filename (muster_test_tmpdir (), "checkpoint", NULL);
  g_autofree char *other = g_build_filename (muster_test_tmpdir (), "latest", NULL);
  MUSTER_ASSERT_EQ (g_rename (state, other), 0);

  g_autoptr (MusterSession) session = muster_small_job_prepare (&job, from_directory (&job));

  MUSTER_EXPECT_NO_ERROR (job.error);
  muster_small_job_diary_is (&job, INITIALISED);
}

/* One deadline over everything, also over the wait for a checkpoint. */
MUSTER_TEST (Restore, ends_at_the_deadline_while_it_waits_for_a_checkpoint)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  MusterPrepareOptions options = from_directory (&job);
  options.wait_for_checkpoint = TRUE;
  options.timeout_us = 60 * MUSTER_SECOND;

  g_autoptr (MusterSession) session = muster_small_job_prepare (&job, options);

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_ASSERT_TRUE (job.error != NULL);
  MUSTER_EXPECT_TRUE (strstr (job.error->message, "out of time in 'restore'"));
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (job.clock), 60 * MUSTER_SECOND);
  muster_small_job_diary_is (&job, "create, close");
}

/* B002.22, DIFF.14 */
MUSTER_TEST (Restore, never_trains_from_scratch_over_a_state_it_cannot_read)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  write_state ("model_checkpoint_path: \"model.ck");

  g_autoptr (MusterSession) session = muster_small_job_prepare (&job, from_directory (&job));

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
  muster_small_job_diary_is (&job, "create, close");
}

/* B002.23 */
MUSTER_TEST (Restore, refuses_a_state_without_a_path)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  write_state ("");

  g_autoptr (MusterSession) session = muster_small_job_prepare (&job, from_directory (&job));

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
}

/* B002.24, DIFF.15 */
MUSTER_TEST (Restore, fails_when_every_checkpoint_named_is_gone)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  write_state ("model_checkpoint_path: \"model.ckpt-9\"\n");

  g_autoptr (MusterSession) session = muster_small_job_prepare (&job, from_directory (&job));

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND);
}

/* B002.24, DIFF.15: what is named and not whole isn't there yet */
MUSTER_TEST (Restore, waits_for_a_checkpoint_that_is_named_but_not_there_yet)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  MusterPrepareOptions options = from_directory (&job);
  options.wait_for_checkpoint = TRUE;
  write_state ("model_checkpoint_path: \"model.ckpt-7\"\n");
  muster_fake_clock_at (job.clock, 60 * MUSTER_SECOND, write_checkpoint, NULL);

  g_autoptr (MusterSession) session = muster_small_job_prepare (&job, options);

  MUSTER_EXPECT_NO_ERROR (job.error);
  muster_small_job_diary_is (&job, RESTORED);
}

/* DIFF.15 */
MUSTER_TEST (Restore, falls_back_to_the_newest_whole_checkpoint_and_says_so)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autofree char *whole = muster_small_job_write_checkpoint (muster_test_tmpdir (), 3);
  g_autofree char *torn = muster_small_job_write_checkpoint (muster_test_tmpdir (), 4);
  damage (torn);

  g_autoptr (MusterSession) session = muster_small_job_prepare (&job, from_directory (&job));

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_STREQ (job.report.restored_from, whole);
  MUSTER_ASSERT_TRUE (job.report.passed_over != NULL);
  MUSTER_EXPECT_TRUE (strstr (job.report.passed_over, "model.ckpt-4"));
}

/* DIFF.15, DIFF.16: an absolute path that is gone is looked for beside the state */
MUSTER_TEST (Restore, finds_checkpoints_of_a_directory_that_was_moved)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autofree char *prefix = muster_small_job_write_checkpoint (muster_test_tmpdir (), 3);
  write_state ("model_checkpoint_path: \"/somewhere/else/model.ckpt-3\"\n");

  g_autoptr (MusterSession) session = muster_small_job_prepare (&job, from_directory (&job));

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_STREQ (job.report.restored_from, prefix);
}

/* DIFF.15: what becomes of the torn one is told, and its files stay. */
MUSTER_TEST (Restore, quarantines_a_damaged_checkpoint)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autofree char *whole = muster_small_job_write_checkpoint (muster_test_tmpdir (), 3);
  g_autofree char *torn = muster_small_job_write_checkpoint (muster_test_tmpdir (), 4);
  g_autofree char *quarantined = g_strconcat (torn, ".bad", NULL);
  g_autofree char *told =
      g_strdup_printf ("set aside as %s; no variable was read from it", quarantined);
  damage (torn);

  g_autoptr (MusterSession) session = muster_small_job_prepare (&job, from_directory (&job));

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_STREQ (job.report.restored_from, whole);
  MUSTER_ASSERT_TRUE (job.report.passed_over != NULL);
  MUSTER_EXPECT_TRUE (strstr (job.report.passed_over, "is damaged: "));
  MUSTER_EXPECT_TRUE (g_str_has_suffix (job.report.passed_over, told));
  MUSTER_EXPECT_TRUE (muster_checkpoint_exists (muster_local_storage (), quarantined));
  muster_small_job_diary_is (&job, RESTORED);
}

/* B002.22, DIFF.14 */
MUSTER_TEST (Restore, goes_by_the_files_when_asked)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  const MusterRestoreOptions how = {.fall_back_to_files = TRUE};
  MusterPrepareOptions options = from_directory (&job);
  g_autofree char *prefix = muster_small_job_write_checkpoint (muster_test_tmpdir (), 3);
  options.restore = &how;
  write_state ("model_checkpoint_path: \"model.ck");

  g_autoptr (MusterSession) session = muster_small_job_prepare (&job, options);

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_STREQ (job.report.restored_from, prefix);
  MUSTER_EXPECT_TRUE (job.report.restore_warning != NULL);
}

static char *
open_life (void)
{
  g_autoptr (MusterCheckpointRecord) record =
      muster_checkpoint_record_read (muster_local_storage (), muster_test_tmpdir (), NULL);
  return record != NULL ? g_strdup (record->life) : NULL;
}

/* A verb that fails has said why: that is no death of the checkpoint's. */
MUSTER_TEST (Restore, clears_the_crash_loop_when_the_operation_fails_later)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  const MusterRestoreOptions how = {.count_deaths = TRUE};
  MusterPrepareOptions options = from_directory (&job);
  g_autofree char *prefix = muster_small_job_write_checkpoint (muster_test_tmpdir (), 3);
  options.restore = &how;
  muster_fake_master_fail (job.master, "ready", 1, 1, MUSTER_ERROR_INTERNAL, "boom");

  g_autoptr (MusterSession) failed = muster_small_job_prepare (&job, options);
  MUSTER_EXPECT_NULL (failed);
  g_autofree char *after_failure = open_life ();
  MUSTER_EXPECT_NULL (after_failure);

  g_autoptr (MusterSession) session = muster_small_job_prepare (&job, options);
  MUSTER_EXPECT_NO_ERROR (job.error);
  g_autofree char *life = open_life ();
  MUSTER_EXPECT_STREQ (life, "model.ckpt-3");
}

static void
name_latest (gpointer user_data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterCheckpointState) state = muster_checkpoint_state_new ();
  state->latest = g_strdup (user_data);
  muster_checkpoint_state_write_named (NULL, muster_test_tmpdir (), "other", state, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

/* SAV.46: a saver with a state file of its own waits for that one */
MUSTER_TEST (Restore, waits_for_what_the_savers_own_state_file_names)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  const MusterSaverOptions options = {.latest_filename = "other",
                                      .clock = MUSTER_CLOCK (job.clock)};
  g_autofree char *own = muster_small_job_write_checkpoint (muster_test_tmpdir (), 3);
  g_autofree char *anothers = muster_small_job_write_checkpoint (muster_test_tmpdir (), 4);
  g_clear_object (&job.saver);
  job.saver = muster_saver_new (job.meta_graph, &options, NULL);
  muster_small_job_name_model (&job, (MusterSessionManagerOptions){0});
  muster_fake_clock_at (job.clock, 100 * MUSTER_SECOND, name_latest, own);

  g_autoptr (MusterSession) session = muster_small_job_prepare (
      &job, (MusterPrepareOptions){.saver = job.saver,
                                   .checkpoint_dir = muster_test_tmpdir (),
                                   .wait_for_checkpoint = TRUE});

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_STREQ (job.report.restored_from, own);
  MUSTER_EXPECT_GE (muster_fake_clock_elapsed_us (job.clock), 100 * MUSTER_SECOND);
}

// SPDX-License-Identifier: Apache-2.0
/* The rules of TensorFlow's async checkpoints, where a training session saves: what a save holds,
 * when it is taken, what is reported, and how it ends. */
#include "checkpoint/format/bundle_reader.h"
#include "saver/async/save_metrics.h"
#include "tests/doubles/notebook.h"
#include "tests/train/background_fixture.h"

/* Steps between two saves: none after the first. */
#define NO_MORE (1000 * 1000 * 1000)

/* --- looking --- */

/* The names in a checkpoint, with spaces between them. */
static char *
names_in (Job *job, gint64 step)
{
  g_autofree char *name = g_strdup_printf ("model.ckpt-%" G_GINT64_FORMAT, step);
  g_autofree char *prefix = g_build_filename (job->directory, name, NULL);
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, prefix, NULL);
  g_autoptr (GString) names = g_string_new (NULL);

  for (gsize i = 0; reader != NULL && i < muster_bundle_reader_n_entries (reader); i++)
    g_string_append_printf (names, "%s%s", i > 0 ? " " : "",
                            muster_bundle_reader_entry (reader, i)->name);
  return g_strdup (names->str);
}

/* The threads of this process that write checkpoints. */
static guint
n_save_threads (void)
{
  g_autoptr (GDir) threads = g_dir_open ("/proc/self/task", 0, NULL);
  const char *id;
  guint n = 0;
  while ((id = g_dir_read_name (threads)) != NULL) {
    g_autofree char *path = g_build_filename ("/proc/self/task", id, "comm", NULL);
    g_autofree char *name = NULL;
    if (g_file_get_contents (path, &name, NULL, NULL) && g_str_has_prefix (name, "muster-save"))
      n++;
  }
  return n;
}

/* The kernel lists a thread for a moment after it was joined, and on a busy machine the session
 * ends before a thread that has nothing left to do. */
static void
expect_save_threads (guint n)
{
  const gint64 until_us = g_get_monotonic_time () + LIMIT_US;
  while (n_save_threads () != n && g_get_monotonic_time () < until_us)
    g_thread_yield ();
  MUSTER_EXPECT_EQ (n_save_threads (), n);
}

static MusterNotebook *
add_notebook (Job *job, MusterNotebook *notebook, const char *name)
{
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (muster_saver_add_saveable (job->saver, name, MUSTER_SAVEABLE (notebook),
                                                 MUSTER_SAVEABLE_OPTIONAL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  return notebook;
}

/* A session with a hook of its own, which can be asked for its failures. */
static MusterHook *
open_with_hook (Job *job, gint64 save_steps, GError **error)
{
  g_autoptr (MusterSaverObserver) observer = muster_saver_observer_new ();
  g_signal_connect (observer, "saved", G_CALLBACK (note_saved), job->saved);
  const MusterCheckpointSaverOptions options = {.checkpoint_dir = job->directory,
                                                .save_steps = save_steps,
                                                .saver = job->saver,
                                                .saver_observer = observer};
  MusterHook *hook = muster_checkpoint_saver_hook_new (&options, error);
  const MusterPrepareOptions prepare = {.saver = job->saver, .checkpoint_dir = job->directory};
  const MusterMonitoredSessionOptions with = {.scaffold = job->scaffold,
                                              .master = job->master,
                                              .prepare = &prepare,
                                              .hooks = &hook,
                                              .n_hooks = 1};
  job->session = hook != NULL ? muster_monitored_session_new (&with, NULL, NULL, error) : NULL;
  return hook;
}

/* --- numbers --- */

/* B001.1 to B001.8: what was held, written, saved and failed is known when a save is reported, and
 * one that blocks counts nothing of it. */
MUSTER_TEST (BackgroundRules, count_what_each_save_took)
{
  const MusterSaveMetrics before = muster_save_metrics_process ();
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterHook) hook = open_with_hook (&job, NO_MORE, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_ASSERT_TRUE (train_until_saved (&job, 0, &error));

  const MusterSaveMetrics one = muster_save_metrics_process ();
  MUSTER_EXPECT_EQ (one.save_blocked_us.count - before.save_blocked_us.count, 1u);
  MUSTER_EXPECT_EQ (one.async_write_us.count - before.async_write_us.count, 1u);
  MUSTER_EXPECT_EQ (one.n_durable - before.n_durable, 1u);
  MUSTER_EXPECT_TRUE (one.progress_saved_us > before.progress_saved_us);
  MUSTER_EXPECT_TRUE (finish (&job, &error)); /* saves, and blocks */
  MUSTER_ASSERT_NO_ERROR (error);
  const MusterSaveMetrics end = muster_save_metrics_process ();
  MUSTER_EXPECT_EQ (end.async_write_us.count, one.async_write_us.count);
  g_autofree char *text = muster_save_metrics_text (&end);
  MUSTER_EXPECT_TRUE (strstr (text, "api=\"async_checkpoint\"") != NULL);
}

/* B001.3, B001.4, B001.5: a failed write took its time; it is no progress. */
MUSTER_TEST (BackgroundRules, count_a_failed_write_as_no_progress)
{
  const MusterSaveMetrics before = muster_save_metrics_process ();
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL;
  muster_gate_storage_fail (job.gates, 1, MUSTER_ERROR_INTERNAL, "the disk is gone");
  g_autoptr (MusterHook) hook = open_with_hook (&job, NO_MORE, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  const gint64 until_us = g_get_monotonic_time () + LIMIT_US;
  while (muster_checkpoint_saver_hook_n_failures (hook) == 0 && g_get_monotonic_time () < until_us)
    MUSTER_ASSERT_TRUE (train (&job, 1, &error));

  const MusterSaveMetrics after = muster_save_metrics_process ();
  MUSTER_EXPECT_EQ (after.async_write_us.count - before.async_write_us.count, 1u);
  MUSTER_EXPECT_EQ (after.n_failed - before.n_failed, 1u);
  MUSTER_EXPECT_EQ (after.n_durable, before.n_durable);
  MUSTER_EXPECT_EQ (after.progress_saved_us, before.progress_saved_us);
}

/* --- what is saved --- */

/* B001.10, B001.11, B001.14: everything once, slots of the optimizer with it, and nothing of the
 * saver's own. */
MUSTER_TEST (BackgroundRules, save_all_variables_and_slots_once)
{
  g_auto (Job) job = set_up_model ("tests/fixtures/digits.meta");
  g_autoptr (MusterNotebook) notebook = muster_notebook_new (7);
  g_autoptr (GError) error = NULL;
  (void)add_notebook (&job, notebook, "notes");
  MUSTER_ASSERT_TRUE (open_job (&job, NO_MORE, &error));
  MUSTER_ASSERT_TRUE (finish (&job, &error));

  g_autofree char *names = names_in (&job, 0);

  MUSTER_EXPECT_STREQ (names,
                       "beta1_power beta2_power global_step hidden/bias hidden/bias/Adam "
                       "hidden/bias/Adam_1 hidden/kernel hidden/kernel/Adam hidden/kernel/Adam_1 "
                       "notes/n output/bias output/bias/Adam output/bias/Adam_1 output/kernel "
                       "output/kernel/Adam output/kernel/Adam_1");
}

/* B001.12, B001.33, B001.34: what can't be copied is left out, never written live. */
MUSTER_TEST (BackgroundRules, leave_out_what_can_not_be_copied)
{
  g_auto (Job) job = set_up ();
  g_autoptr (MusterNotebook) stuck = muster_notebook_new (7);
  g_autoptr (MusterNotebook) other = muster_notebook_new (9);
  g_autoptr (GError) error = NULL;
  stuck->fails_to_copy = MUSTER_ERROR_UNIMPLEMENTED;
  (void)add_notebook (&job, stuck, "stuck");
  (void)add_notebook (&job, other, "other");
  MUSTER_ASSERT_TRUE (open_job (&job, NO_MORE, &error));
  MUSTER_ASSERT_TRUE (train_until_saved (&job, 0, &error));

  g_autofree char *names = names_in (&job, 0);

  MUSTER_EXPECT_STREQ (names, "b global_step other/n w");
}

/* B001.15, B001.16: the list is made at each save. */
MUSTER_TEST (BackgroundRules, save_what_was_added_since_the_save_before)
{
  g_auto (Job) job = set_up ();
  g_autoptr (MusterNotebook) late = muster_notebook_new (7);
  g_autoptr (GError) error = NULL;
  MUSTER_ASSERT_TRUE (open_job (&job, 3, &error));
  MUSTER_ASSERT_TRUE (train_until_saved (&job, 0, &error));
  (void)add_notebook (&job, late, "late");
  g_string_truncate (job.saved, 0);

  const gint64 until_us = g_get_monotonic_time () + LIMIT_US;
  while (late->n_copied == 0 && g_get_monotonic_time () < until_us)
    MUSTER_ASSERT_TRUE (train (&job, 1, &error));
  MUSTER_ASSERT_TRUE (finish (&job, &error));

  g_autofree char *first = names_in (&job, 0);
  g_autofree char *last = names_in (&job, latest_step (&job));
  MUSTER_EXPECT_STREQ (first, "b global_step w");
  MUSTER_EXPECT_STREQ (last, "b global_step late/n w");
}

static void
note_thread (gpointer data)
{
  *(GThread **)data = g_thread_self ();
}

/* B001.13, B001.32, B001.80 to B001.82: a store elsewhere is known by its verb, and asked once for
 * each save, where training runs, and never again when that is written. */
MUSTER_TEST (BackgroundRules, retrieve_a_store_elsewhere_once_on_the_training_thread)
{
  g_auto (Job) job = set_up ();
  g_autoptr (MusterNotebook) far = muster_far_notebook_new (7);
  g_autoptr (GError) error = NULL;
  GThread *copied_on = NULL;
  far->copying = note_thread;
  far->copying_data = &copied_on;
  (void)add_notebook (&job, far, "far");
  MUSTER_ASSERT_TRUE (open_job (&job, NO_MORE, &error));
  MUSTER_ASSERT_TRUE (train_until_saved (&job, 0, &error));

  MUSTER_EXPECT_EQ (far->n_retrieved, 1u);
  MUSTER_EXPECT_EQ (far->n_copied, 1u); /* B001.32: also for the first */
  MUSTER_EXPECT_TRUE (copied_on == g_thread_self ());
}

/* B001.31, B001.83: a save that fails while it is staged leaves nothing, is the caller's to hear of
 * at once, and the next one starts over. */
MUSTER_TEST (BackgroundRules, begin_nothing_where_the_staging_fails)
{
  g_auto (Job) job = set_up ();
  g_autoptr (MusterNotebook) far = muster_far_notebook_new (7);
  g_autoptr (GError) error = NULL;
  far->fails_to_copy = MUSTER_ERROR_INTERNAL;
  (void)add_notebook (&job, far, "far");
  g_autoptr (MusterHook) hook = open_with_hook (&job, 3, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  g_autoptr (GError) last = muster_checkpoint_saver_hook_last_failure (hook);
  MUSTER_EXPECT_EQ (muster_checkpoint_saver_hook_n_failures (hook), 1u);
  MUSTER_EXPECT_TRUE (last != NULL && strstr (last->message, "the pages stick") != NULL);
  expect_save_threads (0);
  far->fails_to_copy = 0;
  MUSTER_EXPECT_TRUE (train (&job, 4, &error));
  MUSTER_EXPECT_TRUE (finish (&job, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_checkpoint_saver_hook_n_failures (hook), 1u);
  MUSTER_EXPECT_EQ (latest_step (&job), 4); /* B001.47: 0 is a gap */
}

/* B001.21: an object that isn't kept alive, and is gone, is named. */
MUSTER_TEST (BackgroundRules, name_an_object_that_is_gone)
{
  g_auto (Job) job = set_up ();
  MusterNotebook *notebook = muster_notebook_new (7);
  g_autoptr (GError) error = NULL;
  MUSTER_ASSERT_TRUE (muster_saver_add_saveable (job.saver, "notes", MUSTER_SAVEABLE (notebook),
                                                 MUSTER_SAVEABLE_WEAK, &error));
  g_object_unref (notebook);

  MUSTER_EXPECT_FALSE (open_job (&job, NO_MORE, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_TRUE (error != NULL && strstr (error->message, "notes") != NULL);
}

/* --- who saves --- */

/* B001.20, B001.25: what can't save is refused, and what can does nothing before a session. */
MUSTER_TEST (BackgroundRules, make_nothing_before_the_first_session)
{
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL;
  const MusterCheckpointSaverOptions options = {
      .checkpoint_dir = job.directory, .save_steps = 5, .saver = job.saver};
  g_autoptr (MusterHook) hook = muster_checkpoint_saver_hook_new (&options, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (g_file_test (job.directory, G_FILE_TEST_EXISTS));
  expect_save_threads (0);
}

/* B001.22, B001.24: the saver that was given makes all saves, and nothing keeps it afterwards. */
MUSTER_TEST (BackgroundRules, keep_the_saver_for_the_session_and_no_longer)
{
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL;
  gpointer saver = job.saver;
  g_object_add_weak_pointer (G_OBJECT (saver), &saver);
  MUSTER_ASSERT_TRUE (open_job (&job, 3, &error));
  MUSTER_EXPECT_TRUE (train (&job, 4, &error));
  MUSTER_EXPECT_TRUE (finish (&job, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  g_auto (GStrv) kept = muster_saver_last_checkpoints (job.saver);
  g_auto (GStrv) reported = g_strsplit (g_strstrip (job.saved->str), " ", -1);
  MUSTER_EXPECT_EQ (g_strv_length (kept), g_strv_length (reported));

  g_clear_object (&job.session);
  MUSTER_EXPECT_TRUE (saver != NULL);
  g_clear_object (&job.saver);

  MUSTER_EXPECT_NULL (saver);
}

/* B001.30, B001.50, B001.53, B001.55, B001.73: one thread writes all of a session's saves, from its
 * first on; it ends with the session. */
MUSTER_TEST (BackgroundRules, have_one_thread_that_ends_with_the_session)
{
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL;
  MUSTER_ASSERT_TRUE (open_job (&job, 2, &error));
  for (int i = 0; i < 10; i++) {
    const gsize n_saved = job.saved->len;
    while (job.saved->len == n_saved)
      MUSTER_ASSERT_TRUE (train (&job, 1, &error));
    expect_save_threads (1);
  }

  MUSTER_EXPECT_TRUE (finish (&job, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  expect_save_threads (0);
  g_clear_object (&job.session);
  MUSTER_ASSERT_TRUE (open_job (&job, NO_MORE, &error)); /* restored: there is nothing to save */
  expect_save_threads (0);                               /* B001.62 */
  MUSTER_EXPECT_TRUE (finish (&job, &error));
  MUSTER_ASSERT_NO_ERROR (error);
}

/* B001.44: options are the save's from the start; what the caller does with them later is his. */
MUSTER_TEST (BackgroundRules, copy_the_options)
{
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL;
  char directory[4096];
  g_strlcpy (directory, job.directory, sizeof directory);
  const MusterCheckpointSaverOptions options = {
      .checkpoint_dir = directory, .save_steps = 5, .saver = job.saver};
  MusterHook *hook = muster_checkpoint_saver_hook_new (&options, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  memset (directory, 'x', sizeof directory - 1);
  const MusterMonitoredSessionOptions with = {
      .scaffold = job.scaffold, .master = job.master, .hooks = &hook, .n_hooks = 1};

  job.session = muster_monitored_session_new (&with, NULL, NULL, &error);
  g_object_unref (hook);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (finish (&job, &error));
  MUSTER_EXPECT_EQ (latest_step (&job), 0);
}

/* B001.75: two of them end in any order, and both have saved. */
MUSTER_TEST (BackgroundRules, save_to_two_directories)
{
  g_auto (Job) job = set_up ();
  g_autofree char *other = g_build_filename (muster_test_tmpdir (), "other", NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSaver) second =
      muster_saver_new (muster_scaffold_meta_graph (job.scaffold), NULL, &error);
  const MusterCheckpointSaverOptions options[] = {
      {.checkpoint_dir = job.directory, .save_steps = 5, .saver = job.saver},
      {.checkpoint_dir = other, .save_steps = 7, .saver = second}};
  MusterHook *hooks[] = {muster_checkpoint_saver_hook_new (&options[0], &error),
                         muster_checkpoint_saver_hook_new (&options[1], &error)};
  const MusterMonitoredSessionOptions with = {
      .scaffold = job.scaffold, .master = job.master, .hooks = hooks, .n_hooks = 2};

  job.session = muster_monitored_session_new (&with, NULL, NULL, &error);
  g_object_unref (hooks[0]);
  g_object_unref (hooks[1]);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (train (&job, 9, &error));
  MUSTER_EXPECT_TRUE (finish (&job, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  g_autofree char *latest = muster_latest_checkpoint (NULL, other, NULL);
  MUSTER_EXPECT_EQ (latest_step (&job), 9);
  MUSTER_EXPECT_TRUE (latest != NULL && muster_checkpoint_step (latest) == 9);
}

/* --- errors, and what follows them --- */

static void
expect_files (MusterSaverObserver *observer G_GNUC_UNUSED, const MusterSaved *saved, gpointer data)
{
  g_autofree char *index = g_strconcat (saved->prefix, ".index", NULL);

  MUSTER_EXPECT_TRUE (g_file_test (index, G_FILE_TEST_EXISTS));
  g_string_append_c (data, '.');
}

/* B001.48: who is called finds the files. */
MUSTER_TEST (BackgroundRules, call_back_when_the_files_exist)
{
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSaverObserver) observer = muster_saver_observer_new ();
  g_signal_connect (observer, "saved", G_CALLBACK (expect_files), job.saved);
  const MusterCheckpointSaverOptions options = {.checkpoint_dir = job.directory,
                                                .save_steps = 3,
                                                .saver = job.saver,
                                                .saver_observer = observer};
  MusterHook *hook = muster_checkpoint_saver_hook_new (&options, &error);
  const MusterMonitoredSessionOptions with = {
      .scaffold = job.scaffold, .master = job.master, .hooks = &hook, .n_hooks = 1};
  job.session = muster_monitored_session_new (&with, NULL, NULL, &error);
  g_object_unref (hook);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (train (&job, 4, &error));
  MUSTER_EXPECT_TRUE (finish (&job, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_GE (job.saved->len, 2u);
}

/* B001.51, B001.52, B001.57, B001.64, B001.70: the last save in flight fails: the end waits for it,
 * reports it, and saves what is newer. */
MUSTER_TEST (BackgroundRules, report_the_last_failure_at_the_end)
{
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL;
  muster_gate_storage_fail (job.gates, 1, MUSTER_ERROR_INTERNAL, "the disk is gone");
  muster_gate_storage_close_gate (job.gates, MUSTER_GATE_BEGIN);
  g_autoptr (MusterHook) hook = open_with_hook (&job, NO_MORE, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (train (&job, 2, &error));
  MUSTER_EXPECT_EQ (muster_checkpoint_saver_hook_n_failures (hook), 0u);
  muster_gate_storage_open_gate (job.gates, MUSTER_GATE_BEGIN);

  MUSTER_EXPECT_TRUE (finish (&job, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_checkpoint_saver_hook_n_failures (hook), 1u);
  MUSTER_EXPECT_EQ (latest_step (&job), 2);
}

/* B001.70: a job whose last save has failed has failed. */
MUSTER_TEST (BackgroundRules, fail_the_run_whose_last_save_fails)
{
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL;
  muster_gate_storage_fail (job.gates, 2, MUSTER_ERROR_INTERNAL, "the disk is gone");
  MUSTER_ASSERT_TRUE (open_job (&job, NO_MORE, &error));
  MUSTER_EXPECT_TRUE (train (&job, 2, &error));

  MUSTER_EXPECT_FALSE (finish (&job, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL);
  MUSTER_EXPECT_EQ (latest_step (&job), -1);
}

/* --- restoring --- */

static gpointer
open_gate_soon (gpointer gates)
{
  g_usleep (100 * 1000);
  muster_gate_storage_open_gate (gates, MUSTER_GATE_PUBLISH);
  return NULL;
}

/* B001.60, B001.61, B001.63, B001.66: a session that is made anew waits for the save in flight, and
 * restores it into the model's own variables. */
MUSTER_TEST (BackgroundRules, restore_what_was_in_flight_when_the_session_was_lost)
{
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL;
  serve (&job);
  MUSTER_ASSERT_TRUE (open_job (&job, 3, &error));
  MUSTER_ASSERT_TRUE (train_until_saved (&job, 0, &error));
  muster_gate_storage_close_gate (job.gates, MUSTER_GATE_PUBLISH);
  const gint64 until_us = g_get_monotonic_time () + LIMIT_US;
  MUSTER_ASSERT_TRUE (train (&job, 3, &error));
  MUSTER_ASSERT_TRUE (muster_gate_storage_wait_for_arrival (job.gates, MUSTER_GATE_PUBLISH));
  const gint64 lost_at = muster_monitored_session_global_step (job.session);
  g_autoptr (GThread) opener = g_thread_new ("opener", open_gate_soon, job.gates);
  MUSTER_ASSERT_TRUE (muster_master_reset (job.master, NULL, MUSTER_WAIT_FOREVER, NULL, &error));

  MUSTER_EXPECT_TRUE (train (&job, 1, &error));

  g_thread_join (g_steal_pointer (&opener));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (g_get_monotonic_time () < until_us);
  MUSTER_EXPECT_EQ (muster_monitored_session_n_recoveries (job.session), 1u);
  MUSTER_EXPECT_GE (latest_step (&job), 1);
  MUSTER_EXPECT_TRUE (muster_monitored_session_global_step (job.session) <= lost_at + 1);
  MUSTER_EXPECT_GE (muster_monitored_session_global_step (job.session), latest_step (&job));
}

/* B001.62, B001.65: a restore needs no save before it, and numbers go on from there. */
MUSTER_TEST (BackgroundRules, number_on_from_what_was_restored)
{
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL;
  MUSTER_ASSERT_TRUE (open_job (&job, NO_MORE, &error));
  MUSTER_EXPECT_TRUE (train (&job, 5, &error));
  MUSTER_ASSERT_TRUE (finish (&job, &error));
  g_clear_object (&job.session);
  g_string_truncate (job.saved, 0);

  MUSTER_ASSERT_TRUE (open_job (&job, NO_MORE, &error));
  MUSTER_EXPECT_TRUE (train (&job, 2, &error));
  MUSTER_ASSERT_TRUE (finish (&job, &error));

  MUSTER_EXPECT_STREQ (job.saved->str, " 7");
}

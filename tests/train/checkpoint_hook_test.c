// SPDX-License-Identifier: Apache-2.0
/* The hooks that write files, on the engine. */
#include "checkpoint/state/checkpoint_record_private.h"
#include "checkpoint/state/checkpoint_state.h"
#include "engine/session/local_master.h"
#include "graph/graph_builder.h"
#include "graph/meta_graph/meta_graph.h"
#include "saver/builder/saver_builder.h"
#include "tests/doubles/fake_clock.h"
#include "tests/doubles/narrow_storage.h"
#include "tests/gtest_shim.h"
#include "tests/train/events.h"
#include "train/hooks/hooks.h"
#include "train/monitored/monitored_session.h"

#include <math.h>

typedef struct {
  MusterScaffold *scaffold;
  MusterMaster *master;
  MusterSessionManager *manager;
  GPtrArray *hooks;
  MusterMonitoredSession *session;
  char *directory;
  const char *filename; /* (nullable) to restore, in the place of the directory's latest */
} Job;

static Job
set_up (void)
{
  Job job = {0};
  g_autoptr (GError) error = NULL;
  job.scaffold = muster_scaffold_load ("tests/fixtures/linreg.meta", &error);
  g_assert_no_error (error);
  job.master = muster_local_master_new ();
  MusterSessionManagerOptions options = {.local_init_op =
                                             muster_scaffold_local_init_op (job.scaffold),
                                         .ready_op = muster_scaffold_ready_op (job.scaffold)};
  job.manager = muster_session_manager_new (muster_scaffold_graph (job.scaffold), &options, &error);
  g_assert_no_error (error);
  job.hooks = g_ptr_array_new_with_free_func (g_object_unref);
  job.directory = g_build_filename (muster_test_tmpdir (), "run", NULL);
  return job;
}

static void
tear_down (Job *job)
{
  g_clear_object (&job->session);
  g_clear_pointer (&job->hooks, g_ptr_array_unref);
  g_clear_object (&job->manager);
  g_clear_object (&job->master);
  g_clear_pointer (&job->scaffold, muster_scaffold_unref);
  g_clear_pointer (&job->directory, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Job, tear_down)

static gboolean
open_job (Job *job, GError **error)
{
  g_autoptr (MusterSaver) saver =
      muster_saver_new (muster_scaffold_meta_graph (job->scaffold), NULL, error);
  MusterPrepareOptions prepare = {.saver = saver,
                                  .checkpoint_dir = job->filename != NULL ? NULL : job->directory,
                                  .checkpoint_filename = job->filename};
  MusterMonitoredSessionOptions options = {.scaffold = job->scaffold,
                                           .master = job->master,
                                           .manager = job->manager,
                                           .prepare = &prepare,
                                           .hooks = (MusterHook *const *)job->hooks->pdata,
                                           .n_hooks = job->hooks->len};

  if (saver != NULL)
    job->session = muster_monitored_session_new (&options, NULL, NULL, error);
  return job->session != NULL;
}

static gboolean
run (Job *job, int n, gboolean with_hooks, GError **error)
{
  const char *targets[] = {muster_scaffold_train_op (job->scaffold)};
  const gint64 dims[] = {1};
  const float one = 1;
  g_autoptr (MusterTensor) x =
      muster_tensor_new_from_data (MUSTER_FLOAT, 1, dims, &one, sizeof one, NULL);
  const MusterFeed feeds[] = {{"x:0", x}, {"y:0", x}};
  MusterStep step = {.feeds = feeds, .n_feeds = 2, .targets = targets, .n_targets = 1};
  gboolean is_well = TRUE;

  for (int i = 0; i < n && is_well; i++)
    is_well = with_hooks ? muster_monitored_session_run (job->session, &step, NULL, NULL, error)
                         : muster_monitored_session_run_without_hooks (job->session, &step, NULL,
                                                                       NULL, error);
  return is_well;
}

static gboolean
train (Job *job, int n, GError **error)
{
  return run (job, n, TRUE, error);
}

static gboolean
train_without_hooks (Job *job, int n, GError **error)
{
  return run (job, n, FALSE, error);
}

/* "0 2 4" */
static char *
steps_kept (Job *job)
{
  g_autoptr (MusterCheckpointState) state =
      muster_checkpoint_state_read (muster_local_storage (), job->directory, NULL);
  g_autoptr (GString) steps = g_string_new (NULL);

  for (guint i = 0; state != NULL && i < state->all->len; i++)
    g_string_append_printf (steps, "%s%" G_GINT64_FORMAT, i > 0 ? " " : "",
                            muster_checkpoint_step (state->all->pdata[i]));
  return g_strdup (steps->str);
}

static MusterHook *
saver_hook (Job *job, MusterCheckpointSaverOptions options)
{
  g_autoptr (GError) error = NULL;
  options.checkpoint_dir = job->directory;
  options.save_blocking = TRUE; /* in the background: background_save_test.c */
  MusterHook *hook = muster_checkpoint_saver_hook_new (&options, &error);
  g_assert_no_error (error);
  g_ptr_array_add (job->hooks, hook);
  return hook;
}

/* --- the metric --- */

/* Trains n steps with a saver that keeps two, and the best by this metric. */
static gboolean
train_by_metric (Job *job, const char *metric, gboolean is_blocking, int n, GError **error)
{
  const MusterSaverOptions rules = {.max_to_keep = 9, .keep_best = 1, .metric = metric};
  g_autoptr (MusterSaver) saver =
      muster_saver_new (muster_scaffold_meta_graph (job->scaffold), &rules, error);
  const MusterCheckpointSaverOptions options = {.checkpoint_dir = job->directory,
                                                .saver = saver,
                                                .save_steps = 1,
                                                .save_blocking = is_blocking};
  g_ptr_array_add (job->hooks, muster_checkpoint_saver_hook_new (&options, error));
  return open_job (job, error) && train (job, n, error) &&
         muster_monitored_session_finish (job->session, NULL, MUSTER_WAIT_FOREVER, error);
}

/* NAN: none */
static double
recorded_metric (Job *job, int step, const char *metric)
{
  g_autofree char *name = g_strdup_printf ("model.ckpt-%d", step);
  g_autoptr (MusterCheckpointRecord) record =
      muster_checkpoint_record_read (NULL, job->directory, NULL);
  return muster_side_checkpoint_metric (muster_checkpoint_record_find (record, name), metric);
}

MUSTER_TEST (CheckpointSaver, records_the_metric_of_the_step_before_each_save)
{
  for (int is_blocking = 0; is_blocking < 2; is_blocking++) {
    g_auto (Job) job = set_up ();
    g_autoptr (GError) error = NULL;
    g_free (job.directory);
    job.directory = g_strdup_printf ("%s/run-%d", muster_test_tmpdir (), is_blocking);

    MUSTER_EXPECT_TRUE (train_by_metric (&job, "loss:0:min", is_blocking, 3, &error));

    MUSTER_EXPECT_NO_ERROR (error);
    MUSTER_EXPECT_TRUE (isnan (recorded_metric (&job, 0, "loss"))); /* no step before it */
    const double last = recorded_metric (&job, 3, "loss");
    MUSTER_EXPECT_TRUE (last > 0);
    if (is_blocking)
      MUSTER_EXPECT_TRUE (last < recorded_metric (&job, 1, "loss"));
  }
}

MUSTER_TEST (CheckpointSaver, has_no_value_for_a_metric_that_is_not_in_the_graph)
{
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (train_by_metric (&job, "eval/accuracy:max", TRUE, 2, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (isnan (recorded_metric (&job, 2, "eval/accuracy")));
}

MUSTER_TEST (CheckpointSaver, refuses_a_metric_that_is_no_number)
{
  static const char *const metrics[] = {"init:max", "loss:7:max"};
  for (gsize i = 0; i < G_N_ELEMENTS (metrics); i++) {
    g_auto (Job) job = set_up ();
    g_autoptr (GError) error = NULL;

    MUSTER_EXPECT_FALSE (train_by_metric (&job, metrics[i], TRUE, 2, &error));

    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  }
}

/* MON.70 */
MUSTER_TEST (CheckpointSaver, wants_exactly_one_of_seconds_and_steps)
{
  const MusterCheckpointSaverOptions wrong[] = {
      {.checkpoint_dir = "d"},
      {.checkpoint_dir = "d", .save_steps = 1, .save_us = 1},
      {.save_steps = 1}};
  for (gsize i = 0; i < G_N_ELEMENTS (wrong); i++) {
    g_autoptr (GError) error = NULL;
    MUSTER_EXPECT_NULL (muster_checkpoint_saver_hook_new (&wrong[i], &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  }
}

/* MON.71, MON.72, MON.74 */
MUSTER_TEST (CheckpointSaver, saves_at_the_start_every_so_often_and_at_the_end)
{
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL;
  const char *durable = NULL;
  MusterHook *hook = saver_hook (&job, (MusterCheckpointSaverOptions){.save_steps = 2});
  MUSTER_ASSERT_TRUE (open_job (&job, &error));

  MUSTER_EXPECT_TRUE (train (&job, 5, &error));
  g_autofree char *before = steps_kept (&job);
  MUSTER_EXPECT_TRUE (
      muster_monitored_session_finish (job.session, NULL, MUSTER_WAIT_FOREVER, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  g_autofree char *after = steps_kept (&job);
  MUSTER_EXPECT_STREQ (before, "0 2 4");
  MUSTER_EXPECT_STREQ (after, "0 2 4 5");
  MUSTER_EXPECT_EQ (muster_checkpoint_saver_hook_durable (hook, &durable), 5);
  MUSTER_EXPECT_EQ (muster_checkpoint_step (durable), 5);
}

/* MON.19, and DMON.16: what was just restored isn't saved again */
MUSTER_TEST (CheckpointSaver, goes_on_where_it_was_and_saves_no_step_twice)
{
  g_autofree char *index = NULL;
  gint64 then_us = 0;
  for (int life = 0; life < 2; life++) {
    g_auto (Job) job = set_up ();
    g_autoptr (GError) error = NULL;
    MusterStorageInfo info;
    saver_hook (&job, (MusterCheckpointSaverOptions){.save_steps = 3});
    MUSTER_ASSERT_TRUE (open_job (&job, &error));
    if (life == 1) {
      MUSTER_ASSERT_TRUE (muster_storage_stat (muster_local_storage (), index, &info, NULL));
      MUSTER_EXPECT_EQ (info.mtime_us, then_us);
    }
    MUSTER_EXPECT_TRUE (train (&job, 3, &error));
    MUSTER_EXPECT_EQ (muster_monitored_session_global_step (job.session), life == 0 ? 3 : 6);
    MUSTER_EXPECT_TRUE (
        muster_monitored_session_finish (job.session, NULL, MUSTER_WAIT_FOREVER, &error));
    MUSTER_ASSERT_NO_ERROR (error);
    g_autofree char *kept = steps_kept (&job);
    MUSTER_EXPECT_STREQ (kept, life == 0 ? "0 3" : "0 3 6");
    g_free (index);
    index = g_build_filename (job.directory, "model.ckpt-3.index", NULL);
    MUSTER_ASSERT_TRUE (muster_storage_stat (muster_local_storage (), index, &info, NULL));
    then_us = info.mtime_us;
  }
}

/* MON.73: what looks due by the step before a run that advances it by five is read again, and saved
 * under the step that it really is */
MUSTER_TEST (CheckpointSaver, reckons_with_runs_of_several_steps)
{
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL;
  saver_hook (&job, (MusterCheckpointSaverOptions){.save_steps = 10, .steps_per_run = 5});
  MUSTER_ASSERT_TRUE (open_job (&job, &error));

  for (int run = 0; run < 5; run++) {
    MUSTER_ASSERT_TRUE (train_without_hooks (&job, 4, &error));
    MUSTER_EXPECT_TRUE (train (&job, 1, &error));
  }

  g_autofree char *kept = steps_kept (&job);
  MUSTER_EXPECT_STREQ (kept, "0 10 20");
}

/* MON.75 */
MUSTER_TEST (CheckpointSaver, needs_a_saver_and_takes_the_one_that_it_is_given)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  g_autoptr (MusterTensor) zero = muster_tensor_new_int64 (0);
  g_autoptr (GError) error = NULL, none = NULL;
  muster_graph_builder_variable (builder, "global_step", zero);
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (builder, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterMetaGraph) meta_graph = muster_meta_graph_new_for_graph (graph);

  for (int how = 0; how < 3; how++) { /* none; the scaffold's; its own */
    g_auto (Job) job = set_up ();
    g_autoptr (MusterMetaGraph) model =
        how > 0 ? muster_saver_default (meta_graph, &error) : muster_meta_graph_ref (meta_graph);
    MUSTER_ASSERT_NO_ERROR (error);
    muster_scaffold_unref (job.scaffold);
    job.scaffold = muster_scaffold_new (model, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    g_autoptr (MusterSaver) own =
        how == 2 ? muster_saver_new (muster_scaffold_meta_graph (job.scaffold), NULL, &error)
                 : NULL;
    saver_hook (&job, (MusterCheckpointSaverOptions){.save_steps = 1, .saver = own});
    MusterMonitoredSessionOptions options = {.scaffold = job.scaffold,
                                             .master = job.master,
                                             .hooks = (MusterHook *const *)job.hooks->pdata,
                                             .n_hooks = 1};
    job.session = muster_monitored_session_new (&options, NULL, NULL, how == 0 ? &none : &error);
    g_autofree char *kept = steps_kept (&job);
    MUSTER_EXPECT_EQ (job.session != NULL, how > 0);
    MUSTER_EXPECT_STREQ (kept, how > 0 ? "0" : "");
  }

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_ERROR (none, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

/* MON.71, and MON.76 for the record of each save */
MUSTER_TEST (CheckpointSaver, writes_the_graphs_down)
{
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL;
  g_autofree char *text = g_build_filename (job.directory, "graph.pbtxt", NULL);
  g_autofree char *contents = NULL;
  g_autoptr (MusterEventWriter) writer =
      muster_event_writer_new (muster_test_tmpdir (), NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  saver_hook (&job, (MusterCheckpointSaverOptions){.save_steps = 1, .writer = writer});
  MUSTER_ASSERT_TRUE (open_job (&job, &error));

  MUSTER_EXPECT_TRUE (train (&job, 1, &error));
  MUSTER_EXPECT_TRUE (muster_event_writer_flush (writer, &error));

  g_autofree char *events = events_read (muster_event_writer_path (writer));
  MUSTER_EXPECT_STREQ (events, "0 version\n0 graph\n0 meta\n0 log 3\n1 log 3\n");
  MUSTER_ASSERT_TRUE (g_file_get_contents (text, &contents, NULL, &error));
  MUSTER_EXPECT_TRUE (strstr (contents, "name: \"global_step\"") != NULL);
}

/* DMON.4: two that save to one directory */
MUSTER_TEST (CheckpointSaver, is_alone_in_its_directory)
{
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL;
  saver_hook (&job, (MusterCheckpointSaverOptions){.save_steps = 1});
  saver_hook (&job, (MusterCheckpointSaverOptions){.save_steps = 10});

  MUSTER_EXPECT_FALSE (open_job (&job, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_TRUE (strstr (error->message, "saves checkpoints to '") != NULL);
  MUSTER_EXPECT_FALSE (g_file_test (job.directory, G_FILE_TEST_EXISTS));
}

/* MON.13 */
MUSTER_TEST (MonitoredSession, restores_the_very_checkpoint_that_it_is_given)
{
  g_autofree char *prefix = NULL;
  for (int life = 0; life < 2; life++) {
    g_auto (Job) job = set_up ();
    g_autoptr (GError) error = NULL;
    if (life == 0)
      saver_hook (&job, (MusterCheckpointSaverOptions){.save_steps = 1});
    job.filename = prefix;
    MUSTER_ASSERT_TRUE (open_job (&job, &error));
    MUSTER_EXPECT_TRUE (train (&job, 3, &error));
    MUSTER_EXPECT_EQ (muster_monitored_session_global_step (job.session), life == 0 ? 3 : 5);
    g_free (prefix);
    prefix = g_build_filename (job.directory, "model.ckpt-2", NULL);
  }
}

typedef struct {
  int begin, before, after, end;
  gboolean stops;
} Listened;

static void
on_begin (MusterSaverObserver *observer G_GNUC_UNUSED, gpointer data)
{
  ((Listened *)data)->begin++;
}

static void
on_before (MusterSaverObserver *observer G_GNUC_UNUSED, MusterSession *session G_GNUC_UNUSED,
           gint64 step G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
           GCancellable *cancellable G_GNUC_UNUSED, gpointer data)
{
  ((Listened *)data)->before++;
}

static gboolean
on_after (MusterSaverObserver *observer G_GNUC_UNUSED, MusterSession *session G_GNUC_UNUSED,
          gint64 step, const char *prefix, gint64 deadline_us G_GNUC_UNUSED,
          GCancellable *cancellable G_GNUC_UNUSED, gpointer data)
{
  Listened *listened = data;
  listened->after++;
  MUSTER_EXPECT_EQ (muster_checkpoint_step (prefix), step);
  return listened->stops;
}

static void
on_end (MusterSaverObserver *observer G_GNUC_UNUSED, MusterSession *session G_GNUC_UNUSED,
        gint64 step G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
        GCancellable *cancellable G_GNUC_UNUSED, gpointer data)
{
  ((Listened *)data)->end++;
}

static void
listen (MusterSaverObserver *observer, Listened *listened)
{
  g_signal_connect (observer, "begin", G_CALLBACK (on_begin), listened);
  g_signal_connect (observer, "before-save", G_CALLBACK (on_before), listened);
  g_signal_connect (observer, "after-save", G_CALLBACK (on_after), listened);
  g_signal_connect (observer, "end", G_CALLBACK (on_end), listened);
}

/* MON.76, MON.77, MON.78 */
MUSTER_TEST (CheckpointSaver, notifies_its_listeners)
{
  Listened first = {.stops = TRUE}, second = {0};
  g_autoptr (MusterSaverObserver) observer = muster_saver_observer_new ();
  listen (observer, &first);
  listen (observer, &second);
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL;
  saver_hook (&job, (MusterCheckpointSaverOptions){.save_steps = 1, .saver_observer = observer});
  MUSTER_ASSERT_TRUE (open_job (&job, &error));
  MUSTER_EXPECT_FALSE (muster_monitored_session_should_stop (job.session)); /* not by the first */

  MUSTER_EXPECT_TRUE (train (&job, 1, &error));
  MUSTER_EXPECT_TRUE (muster_monitored_session_should_stop (job.session));
  MUSTER_EXPECT_TRUE (
      muster_monitored_session_finish (job.session, NULL, MUSTER_WAIT_FOREVER, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (first.begin, 1);
  MUSTER_EXPECT_EQ (second.before, 2);
  MUSTER_EXPECT_EQ (second.after, 2);
  MUSTER_EXPECT_EQ (second.end, 1);
}

static void
on_saved (MusterSaverObserver *observer G_GNUC_UNUSED, const MusterSaved *saved, gpointer data)
{
  g_string_append_printf (data, " %" G_GINT64_FORMAT " %s", saved->step,
                          saved->skipped ? "skipped" : "saved");
  MUSTER_EXPECT_EQ (saved->prefix == NULL, saved->skipped);
}

/* A save that is skipped is a failure only where nobody hears of it. */
MUSTER_TEST (CheckpointSaver, reports_saves_and_skipped_ones)
{
  for (int is_heard = 0; is_heard < 2; is_heard++) {
    g_auto (Job) job = set_up ();
    g_autoptr (GError) error = NULL;
    g_autoptr (GString) told = g_string_new (NULL);
    g_autoptr (MusterNarrowStorage) disk = muster_narrow_storage_new ();
    const MusterSaverOptions narrow = {.storage = MUSTER_STORAGE (disk),
                                       .when_full = MUSTER_WHEN_FULL_SKIP};
    g_autoptr (MusterSaver) saver =
        muster_saver_new (muster_scaffold_meta_graph (job.scaffold), &narrow, &error);
    g_autoptr (MusterSaverObserver) observer = muster_saver_observer_new ();
    if (is_heard)
      g_signal_connect (observer, "saved", G_CALLBACK (on_saved), told);
    MusterHook *hook =
        saver_hook (&job, (MusterCheckpointSaverOptions){
                              .saver = saver, .save_steps = 1, .saver_observer = observer});
    MUSTER_ASSERT_TRUE (open_job (&job, &error));
    muster_narrow_storage_set_free (disk, 0);

    MUSTER_EXPECT_TRUE (train (&job, 1, &error));

    MUSTER_EXPECT_EQ (muster_checkpoint_saver_hook_n_failures (hook), is_heard ? 0u : 1u);
    MUSTER_EXPECT_EQ (
        muster_monitored_session_finish (job.session, NULL, MUSTER_WAIT_FOREVER, &error), is_heard);
    if (is_heard) /* again at the end: nothing durable is that new */
      MUSTER_EXPECT_STREQ (told->str, " 0 saved 1 skipped 1 skipped");
    g_autofree char *remove = g_strdup_printf ("rm -r '%s'", job.directory);
    MUSTER_ASSERT_EQ (system (remove), 0);
  }
}

/* A full disk, or a directory that went away, is put up with; training that ends unsaved isn't. */
MUSTER_TEST (CheckpointSaver, goes_on_after_a_save_that_failed_and_counts_it)
{
  for (guint most = 0; most <= 2; most += 2) {
    g_auto (Job) job = set_up ();
    g_autoptr (GError) error = NULL, at_end = NULL;
    MusterHook *hook = saver_hook (
        &job, (MusterCheckpointSaverOptions){.save_steps = 1, .most_failures_in_a_row = most});
    MUSTER_ASSERT_TRUE (open_job (&job, &error));
    g_autofree char *moved = g_strconcat (job.directory, "-away", NULL);
    MUSTER_ASSERT_TRUE (
        muster_storage_rename (muster_local_storage (), job.directory, moved, NULL));
    MUSTER_ASSERT_TRUE (g_file_set_contents (job.directory, "in the way", -1, NULL));

    gboolean went_on = train (&job, 3, &error);

    MUSTER_EXPECT_EQ (went_on, most == 0);
    g_autoptr (GError) last = muster_checkpoint_saver_hook_last_failure (hook);
    MUSTER_EXPECT_EQ (muster_checkpoint_saver_hook_n_failures (hook), most == 0 ? 3u : 2u);
    MUSTER_EXPECT_TRUE (last != NULL);
    MUSTER_EXPECT_FALSE (
        muster_monitored_session_finish (job.session, error, MUSTER_WAIT_FOREVER, &at_end));
    MUSTER_EXPECT_TRUE (at_end != NULL);
    MUSTER_ASSERT_TRUE (muster_storage_remove (muster_local_storage (), job.directory, NULL));
    MUSTER_ASSERT_TRUE (
        muster_storage_rename (muster_local_storage (), moved, job.directory, NULL));
    g_autofree char *remove = g_strdup_printf ("rm -r '%s'", job.directory);
    MUSTER_ASSERT_EQ (system (remove), 0);
  }
}

static void
note_failed (MusterSaverObserver *observer G_GNUC_UNUSED, gint64 step, const GError *why,
             guint n_in_a_row, guint n_left_out, gpointer user_data)
{
  MUSTER_EXPECT_TRUE (why != NULL);
  g_string_append_printf (user_data, "%" G_GINT64_FORMAT " (%u, %u) ", step, n_in_a_row,
                          n_left_out);
}

/* As a disk does that fails at each step. */
MUSTER_TEST (CheckpointSaver, reports_saves_that_fail_from_time_to_time)
{
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL;
  g_autoptr (GString) told = g_string_new (NULL);
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_autoptr (MusterSaverObserver) observer = muster_saver_observer_new ();
  const MusterSaverOptions by_clock = {.clock = MUSTER_CLOCK (clock)};
  g_autoptr (MusterSaver) saver =
      muster_saver_new (muster_scaffold_meta_graph (job.scaffold), &by_clock, &error);
  g_signal_connect (observer, "save-failed", G_CALLBACK (note_failed), told);
  saver_hook (&job, (MusterCheckpointSaverOptions){.save_steps = 1,
                                                   .save_blocking = TRUE,
                                                   .saver = saver,
                                                   .saver_observer = observer});
  MUSTER_ASSERT_TRUE (open_job (&job, &error));
  g_autofree char *remove = g_strdup_printf ("rm -r '%s'", job.directory);
  MUSTER_ASSERT_EQ (system (remove), 0);
  MUSTER_ASSERT_TRUE (g_file_set_contents (job.directory, "in the way", -1, NULL));

  MUSTER_EXPECT_TRUE (train (&job, 5, &error));
  MUSTER_EXPECT_STREQ (told->str, "1 (1, 0) ");
  muster_fake_clock_pass (clock, 10 * MUSTER_SECOND);
  MUSTER_EXPECT_TRUE (train (&job, 5, &error));
  MUSTER_EXPECT_STREQ (told->str, "1 (1, 0) 6 (6, 4) ");

  (void)muster_monitored_session_finish (job.session, NULL, MUSTER_WAIT_FOREVER, NULL);
  MUSTER_ASSERT_TRUE (muster_storage_remove (muster_local_storage (), job.directory, NULL));
}

// SPDX-License-Identifier: Apache-2.0
/* How monitored sessions are made and ended, and what hooks see of a run. */
#include "graph/graph_builder.h"
#include "graph/meta_graph/meta_graph.h"
#include "tests/gtest_shim.h"
#include "tests/train/monitored_diary.h"
#include "train/hooks/hooks.h"
#include "train/monitored_training.h"

/* --- what it is made with --- */

/* MON.21: a chief, with a manager of its own */
MUSTER_TEST (MonitoredSession, needs_a_scaffold_and_a_master_alone)
{
  SET_UP (f);
  float loss = -1;
  f.options = (MusterMonitoredSessionOptions){
      .scaffold = f.scaffold, .master = MUSTER_MASTER (f.master), .clock = MUSTER_CLOCK (f.clock)};
  muster_fake_master_op_reports (f.master, "muster/ready/all/missing", NULL);
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));
  static const char *const fetches[] = {"loss:0"};
  MusterStep step = {.fetches = fetches, .n_fetches = 1};
  g_autoptr (MusterTensor) value = NULL;

  MUSTER_EXPECT_TRUE (muster_monitored_session_run (f.session, &step, &value, NULL, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  loss = *(const float *)muster_tensor_data (value);
  MUSTER_EXPECT_EQ (loss, 0);
}

/* MON.5: as with TensorFlow's empty init op */
MUSTER_TEST (MonitoredSession, of_a_chief_takes_a_model_without_variables)
{
  SET_UP (f);
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  muster_graph_builder_node (builder, "NoOp", "train");
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (builder, &error);
  g_autoptr (MusterMetaGraph) meta_graph = muster_meta_graph_new_for_graph (graph);
  g_autoptr (MusterScaffold) scaffold = muster_scaffold_new (meta_graph, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  f.options.scaffold = scaffold;

  MUSTER_EXPECT_TRUE (monitored_open (&f, &error));

  MUSTER_ASSERT_NO_ERROR (error);
}

typedef struct {
  MusterScaffold *scaffold;
  int n_calls;
} InitCalled;

static gboolean
note_init (MusterScaffold *scaffold, MusterSession *session, gint64 deadline_us G_GNUC_UNUSED,
           GCancellable *cancellable G_GNUC_UNUSED, gpointer user_data,
           GError **error G_GNUC_UNUSED)
{
  InitCalled *called = user_data;
  called->scaffold = session != NULL ? scaffold : NULL;
  called->n_calls++;
  return TRUE;
}

/* MON.7, MON.10, MON.12: in each session that is made */
MUSTER_TEST (MonitoredSession, of_a_chief_initialises_as_its_scaffold_says)
{
  SET_UP (f);
  InitCalled called = {0};
  g_autoptr (MusterTensor) one = muster_tensor_new_float (1);
  const MusterFeed feed = {"v:0", one};
  const MusterScaffoldOptions with = {.init_feeds = &feed,
                                      .n_init_feeds = 1,
                                      .init_func = note_init,
                                      .init_func_data = &called,
                                      .copy_from = f.scaffold};
  g_autoptr (MusterScaffold) scaffold =
      muster_scaffold_new_with (muster_scaffold_meta_graph (f.scaffold), &with, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  f.options.scaffold = scaffold;
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));
  muster_fake_master_fail (f.master, "train", 1, 1, MUSTER_ERROR_ABORTED, "gone");

  MUSTER_EXPECT_TRUE (monitored_train (&f, NULL, &error));

  MUSTER_EXPECT_TRUE (muster_fake_master_fed (f.master, "v") == one ||
                      muster_fake_master_fed (f.master, "v:0") == one);
  MUSTER_EXPECT_EQ (called.n_calls, 2);
  MUSTER_EXPECT_TRUE (called.scaffold == scaffold);
}

static void
count_changes (const char *message G_GNUC_UNUSED, const MusterReadiness *readiness G_GNUC_UNUSED,
               GPtrArray *reasons G_GNUC_UNUSED, gpointer user_data)
{
  ++*(int *)user_data;
}

static void
prepare_elsewhere (gpointer user_data)
{
  muster_fake_master_set_variable (user_data, "v");
}

/* MON.11, MON.12: what is asked of the one manager holds after a recovery too */
MUSTER_TEST (MonitoredSession, makes_every_session_with_one_manager)
{
  SET_UP (f);
  int n_changes = 0;
  MusterSessionManagerOptions options = {.ready_op = "v", .clock = MUSTER_CLOCK (f.clock)};
  g_autoptr (MusterSessionManager) manager =
      muster_session_manager_new (muster_scaffold_graph (f.scaffold), &options, &error);
  muster_session_manager_set_progress (manager, count_changes, &n_changes, NULL);
  muster_fake_master_op_reports (f.master, "v", "v", NULL);
  f.options.manager = manager;
  f.options.is_worker = TRUE;
  muster_fake_clock_at (f.clock, 10 * MUSTER_SECOND, prepare_elsewhere, f.master);
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));
  int n_first = n_changes;
  muster_fake_master_restart (f.master);
  muster_fake_clock_at (f.clock, 20 * MUSTER_SECOND, prepare_elsewhere, f.master);

  MUSTER_EXPECT_TRUE (monitored_train (&f, NULL, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_GT (n_first, 0);
  MUSTER_EXPECT_GT (n_changes, n_first);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (f.master, "muster/init"), 0u);
}

static void
prepare_all (gpointer user_data)
{
  muster_fake_master_set_variable (user_data, "v");
}

/* DMON.2: the ceiling between a waiting worker's looks */
MUSTER_TEST (MonitoredSession, of_a_worker_polls_as_often_as_it_is_asked)
{
  gint64 waited_us[2];
  for (int quick = 0; quick <= 1; quick++) {
    SET_UP (f);
    const MusterScaffoldOptions with = {.ready_op = "v", .copy_from = f.scaffold};
    g_autoptr (MusterScaffold) scaffold =
        muster_scaffold_new_with (muster_scaffold_meta_graph (f.scaffold), &with, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    MusterMonitoredTrainingOptions options = {.scaffold = scaffold,
                                              .master = MUSTER_MASTER (f.master),
                                              .is_worker = TRUE,
                                              .manager.recovery_wait_us =
                                                  quick ? 2 * MUSTER_SECOND : 0,
                                              .manager.clock = MUSTER_CLOCK (f.clock)};
    muster_fake_master_op_reports (f.master, "v", "v", NULL);
    muster_fake_master_set_cost (f.master, "v", MUSTER_SECOND);
    muster_fake_clock_at (f.clock, 62 * MUSTER_SECOND, prepare_all, f.master);

    f.session = muster_monitored_training_session_new (&options, NULL, NULL, &error);

    MUSTER_ASSERT_NO_ERROR (error);
    waited_us[quick] = muster_fake_clock_elapsed_us (f.clock);
  }
  MUSTER_EXPECT_LE (waited_us[1], 66 * MUSTER_SECOND);
  MUSTER_EXPECT_GT (waited_us[0], waited_us[1]);
}

/* --- what a run sees --- */

#define MUSTER_TYPE_PROBE_HOOK (muster_probe_hook_get_type ())
G_DECLARE_FINAL_TYPE (MusterProbeHook, muster_probe_hook, MUSTER, PROBE_HOOK, MusterHook)

struct _MusterProbeHook {
  MusterHook parent;
  MusterRunContext *before, *after;
  const MusterStep *step;
  MusterSession *session;
  gint64 now[2];
};

G_DEFINE_FINAL_TYPE (MusterProbeHook, muster_probe_hook, MUSTER_TYPE_HOOK)

static gboolean
probe_before (MusterHook *hook, MusterRunContext *context, GError **error G_GNUC_UNUSED)
{
  g_autoptr (MusterTensor) one = muster_tensor_new_float (1);
  MUSTER_PROBE_HOOK (hook)->before = context;
  MUSTER_PROBE_HOOK (hook)->step = muster_run_context_step (context);
  MUSTER_PROBE_HOOK (hook)->session = muster_run_context_session (context);
  muster_run_context_feed (context, "fed by a hook:0", one);
  (void)muster_run_context_fetch (context, "global_step:0");
  return TRUE;
}

static gboolean
probe_after (MusterHook *hook, MusterRunContext *context, GError **error)
{
  MusterProbeHook *self = MUSTER_PROBE_HOOK (hook);
  self->after = context;
  self->now[0] = muster_run_context_step_now (context, error);
  self->now[1] = muster_run_context_step_now (context, error);
  return TRUE;
}

static void
muster_probe_hook_class_init (MusterProbeHookClass *klass)
{
  MUSTER_HOOK_CLASS (klass)->before_run = probe_before;
  MUSTER_HOOK_CLASS (klass)->after_run = probe_after;
}

static void
muster_probe_hook_init (MusterProbeHook *self G_GNUC_UNUSED)
{
}

/* MON.24, MON.26 */
MUSTER_TEST (MonitoredSession, shows_hooks_what_the_caller_asked_and_leaves_that_alone)
{
  SET_UP (f);
  static const char *const fetches[] = {"loss:0"}, *const targets[] = {"train"};
  g_autoptr (MusterTensor) one = muster_tensor_new_float (1);
  MusterFeed feeds[] = {{"v:0", one}};
  MusterStep step = {.feeds = feeds,
                     .n_feeds = 1,
                     .fetches = fetches,
                     .n_fetches = 1,
                     .targets = targets,
                     .n_targets = 1};
  g_autoptr (MusterTensor) value = NULL;
  MusterProbeHook *hook = g_object_new (MUSTER_TYPE_PROBE_HOOK, NULL);
  monitored_add (&f, MUSTER_HOOK (hook));
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));

  MUSTER_EXPECT_TRUE (muster_monitored_session_run (f.session, &step, &value, NULL, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (hook->before != NULL && hook->before == hook->after);
  MUSTER_EXPECT_TRUE (hook->step == &step);
  MUSTER_EXPECT_TRUE (hook->session == muster_monitored_session_session (f.session));
  MUSTER_EXPECT_EQ (step.n_feeds, 1u);
  MUSTER_EXPECT_STREQ (feeds[0].name, "v:0");
}

/* A step that several hooks want to know after the run is asked for once. */
MUSTER_TEST (MonitoredSession, asks_for_the_step_after_a_run_once)
{
  SET_UP (f);
  MusterProbeHook *hook = g_object_new (MUSTER_TYPE_PROBE_HOOK, NULL);
  monitored_add (&f, MUSTER_HOOK (hook));
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));
  guint n_before = muster_fake_master_n_calls (f.master, "global_step");

  MUSTER_EXPECT_TRUE (monitored_train (&f, NULL, &error));

  MUSTER_EXPECT_EQ (hook->now[0], 1);
  MUSTER_EXPECT_EQ (hook->now[1], 1);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (f.master, "global_step"), n_before + 2);
}

/* --- ends --- */

/* MON.37 */
MUSTER_TEST (MonitoredSession, ends_well_though_the_session_does_not_close)
{
  const MusterError kinds[] = {MUSTER_ERROR_ABORTED, MUSTER_ERROR_INTERNAL};
  for (gsize i = 0; i < G_N_ELEMENTS (kinds); i++) {
    SET_UP (f);
    muster_fake_master_fail (f.master, "close", 1, 1, kinds[i], "no");
    MUSTER_ASSERT_TRUE (monitored_open (&f, &error));

    MUSTER_EXPECT_TRUE (
        muster_monitored_session_finish (f.session, NULL, MUSTER_WAIT_FOREVER, &error));
  }
}

/* What is done for a run that has failed isn't training. */
MUSTER_TEST (MonitoredSession, does_not_count_a_failed_step_as_training)
{
  for (guint fails = 0; fails < 2; fails++) {
    SET_UP (f);
    g_autoptr (GError) failure = g_error_new (MUSTER_ERROR, MUSTER_ERROR_INTERNAL, "NaN");
    MusterGoodput goodput = MUSTER_GOODPUT_INIT;
    MUSTER_TRACE ("fails: %u", fails);
    MUSTER_ASSERT_TRUE (monitored_open (&f, &error));
    MUSTER_EXPECT_TRUE (monitored_train (&f, NULL, &error));
    muster_monitored_session_goodput (f.session, &goodput);
    const MusterGoodput before = goodput;
    muster_fake_clock_pass (f.clock, 4 * MUSTER_SECOND);

    (void)muster_monitored_session_finish (f.session, fails ? failure : NULL, MUSTER_WAIT_FOREVER,
                                           NULL);

    muster_monitored_session_goodput (f.session, &goodput);
    MUSTER_EXPECT_EQ (goodput.spent_us[MUSTER_TIME_TRAINING],
                      before.spent_us[MUSTER_TIME_TRAINING] + (fails ? 0 : 4 * MUSTER_SECOND));
    MUSTER_EXPECT_EQ (goodput.spent_us[MUSTER_TIME_WAITING],
                      before.spent_us[MUSTER_TIME_WAITING] + (fails ? 4 * MUSTER_SECOND : 0));
  }
}

/* MON.46: whatever state it is in */
MUSTER_TEST (MonitoredSession, can_always_be_asked_whether_to_stop)
{
  SET_UP (f);
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));
  muster_fake_master_fail (f.master, "create", 2, G_MAXUINT, MUSTER_ERROR_INTERNAL, "broken");
  g_autoptr (GError) lost = g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_ABORTED, "lost");
  muster_coordinator_request_stop (muster_monitored_session_coordinator (f.session), lost, NULL);

  MUSTER_EXPECT_FALSE (muster_monitored_session_should_stop (f.session)); /* the run finds out */
  MUSTER_EXPECT_FALSE (monitored_train (&f, NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL);
  MUSTER_EXPECT_FALSE (
      muster_monitored_session_finish (f.session, error, MUSTER_WAIT_FOREVER, NULL));
  MUSTER_EXPECT_TRUE (muster_monitored_session_should_stop (f.session));
}

static gboolean
stop_here (MusterMonitoredSession *session G_GNUC_UNUSED, MusterSession *raw G_GNUC_UNUSED,
           gint64 deadline_us G_GNUC_UNUSED, GCancellable *cancellable G_GNUC_UNUSED,
           gpointer user_data, GError **error G_GNUC_UNUSED)
{
  ++*(int *)user_data;
  return FALSE;
}

/* MON.49, MON.51: the compiler holds a step function to its arguments */
MUSTER_TEST (MonitoredSession, is_stopped_by_a_step_function)
{
  SET_UP (f);
  int n_calls = 0;
  add (&f, "a", diary);
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));
  g_string_truncate (diary, 0);

  MUSTER_EXPECT_TRUE (muster_monitored_session_run_step_function (f.session, stop_here, &n_calls,
                                                                  MUSTER_WAIT_FOREVER, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (n_calls, 1);
  MUSTER_EXPECT_STREQ (diary->str, ""); /* no run, no hooks */
  MUSTER_EXPECT_TRUE (muster_monitored_session_should_stop (f.session));
  MUSTER_EXPECT_TRUE (
      muster_monitored_session_finish (f.session, NULL, MUSTER_WAIT_FOREVER, &error));
  MUSTER_EXPECT_STREQ (diary->str, "a.end");
}

/* It would be one that has long passed: nothing would be waited for. */
MUSTER_TEST (MonitoredSession, takes_no_duration_for_a_deadline)
{
  SET_UP (f);
  g_autoptr (GError) refused = NULL;
  int n_calls = 0;
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));

  MUSTER_EXPECT_FALSE (muster_monitored_session_run_step_function (f.session, stop_here, &n_calls,
                                                                   MUSTER_SECOND, &refused));
  MUSTER_EXPECT_ERROR (refused, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_EQ (n_calls, 0);
  g_clear_error (&refused);
  MUSTER_EXPECT_FALSE (muster_monitored_session_finish (f.session, NULL, MUSTER_SECOND, &refused));
  MUSTER_EXPECT_ERROR (refused, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);

  MUSTER_EXPECT_TRUE (
      muster_monitored_session_finish (f.session, NULL, MUSTER_WAIT_FOREVER, &error));
  MUSTER_ASSERT_NO_ERROR (error);
}

/* DMON.8: it can be told what ended the input */
MUSTER_TEST (MonitoredSession, says_what_ended_its_input)
{
  for (int by_hook = 0; by_hook <= 1; by_hook++) {
    SET_UP (f);
    g_autoptr (GError) end = NULL;
    MusterHook *a = add (&f, "a", diary);
    if (by_hook)
      diary_hook_fail (a, "before", 1, 1, MUSTER_ERROR_OUT_OF_RANGE);
    else
      muster_fake_master_fail (f.master, "train", 1, 1, MUSTER_ERROR_OUT_OF_RANGE, "queue q ended");
    MUSTER_ASSERT_TRUE (monitored_open (&f, &error));
    MUSTER_EXPECT_NULL (muster_monitored_session_end_of_input (f.session));

    MUSTER_EXPECT_FALSE (monitored_train (&f, NULL, &end));
    MUSTER_EXPECT_TRUE (
        muster_monitored_session_finish (f.session, end, MUSTER_WAIT_FOREVER, &error));

    const char *why = muster_monitored_session_end_of_input (f.session);
    MUSTER_ASSERT_TRUE (why != NULL);
    MUSTER_EXPECT_TRUE (strstr (why, by_hook ? "MusterDiaryHook, before a run" : "queue q ended") !=
                        NULL);
  }
}

/* DMON.8: a hook's slip isn't taken for the end of the input */
MUSTER_TEST (MonitoredSession, fails_where_a_hook_runs_out_of_range_after_a_run)
{
  SET_UP (f);
  g_autoptr (GError) slip = NULL;
  diary_hook_fail (add (&f, "a", diary), "after", 1, 1, MUSTER_ERROR_OUT_OF_RANGE);
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));

  MUSTER_EXPECT_FALSE (monitored_train (&f, NULL, &slip));
  MUSTER_EXPECT_FALSE (
      muster_monitored_session_finish (f.session, slip, MUSTER_WAIT_FOREVER, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_OUT_OF_RANGE);
  MUSTER_EXPECT_NULL (muster_monitored_session_end_of_input (f.session));
}

/* --- hooks that can't live together --- */

static gboolean
feed_nothing (MusterTensor **feeds G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
              GCancellable *cancellable G_GNUC_UNUSED, gpointer user_data G_GNUC_UNUSED,
              GError **error G_GNUC_UNUSED)
{
  return TRUE;
}

/* MON.25, at the start already where the hooks say what they feed */
MUSTER_TEST (MonitoredSession, refuses_two_hooks_of_one_feed_at_the_start)
{
  SET_UP (f);
  static const char *const a[] = {"v", NULL}, *const b[] = {"global_step:0", "v:0", NULL};
  monitored_add (&f, muster_feed_func_hook_new (a, feed_nothing, NULL, NULL));
  monitored_add (&f, muster_feed_func_hook_new (b, feed_nothing, NULL, NULL));

  MUSTER_EXPECT_FALSE (monitored_open (&f, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_STREQ (error->message, "conflicting hooks: both MusterFeedFuncHook and "
                                       "MusterFeedFuncHook are one that feeds v:0; remove one");
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (f.master, "create"), 0u);
}

static gboolean
open_with_two_profilers (const char *first, const char *second, GError **failure)
{
  SET_UP (f);
  g_autofree char *a = g_build_filename (muster_test_tmpdir (), first, NULL);
  g_autofree char *b = g_build_filename (muster_test_tmpdir (), second, NULL);
  monitored_add (&f, muster_profiler_hook_new (2, 0, a, NULL, NULL, &error));
  monitored_add (&f, muster_profiler_hook_new (2, 0, b, NULL, NULL, &error));
  return monitored_open (&f, failure);
}

MUSTER_TEST (MonitoredSession, refuses_two_hooks_of_one_directory_at_the_start)
{
  g_autoptr (GError) error = NULL, same = NULL;
  MUSTER_EXPECT_TRUE (open_with_two_profilers ("a", "b", &error));
  MUSTER_EXPECT_FALSE (open_with_two_profilers ("a", "b/../a/", &same));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_ERROR (same, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_TRUE (strstr (same->message, "writes timelines to '") != NULL);
}

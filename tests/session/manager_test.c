// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_builder.h"
#include "tests/gtest_shim.h"
#include "tests/session/fixture.h"

/* B002.2 */
MUSTER_TEST (SessionManager, refuses_a_gate_without_a_local_init_op)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autoptr (MusterSessionManager) manager = muster_small_job_manager (&job, NULL, NULL, "gate:0");
  MUSTER_EXPECT_NULL (manager);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_ASSERT_TRUE (job.error != NULL);
  MUSTER_EXPECT_TRUE (strstr (job.error->message, "If you pass a ready_for_local_init_op you must "
                                                  "also pass a local_init_op"));
  MUSTER_EXPECT_TRUE (strstr (job.error->message, "[gate:0]"));
}

static MusterGraph *
graph_of_ops (void)
{
  static const char *const names[] = {"init", "ready", "gate", "local"};
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  for (gsize i = 0; i < G_N_ELEMENTS (names); i++)
    muster_graph_builder_node (builder, "NoOp", names[i]);
  return muster_graph_builder_end (builder, NULL);
}

/* A session was created, and the model claimed, before a step failed with NOT_FOUND. */
MUSTER_TEST (SessionManager, refuses_an_op_that_the_graph_lacks)
{
  static const char *const ops[] = {"local", "no", NULL};
  const struct {
    MusterSessionManagerOptions options;
    const char *says;
  } wrong[] = {{{.ready_op = "no:0"}, "ready_op 'no:0' isn't in the graph"},
               {{.local_init_op = "no"}, "local_init_op 'no' isn't in the graph"},
               {{.local_init_ops = ops}, "local_init_op 'no' isn't in the graph"},
               {{.local_init_op = "local", .ready_for_local_init_op = "no"},
                "ready_for_local_init_op 'no' isn't in the graph"}};
  g_autoptr (MusterGraph) graph = graph_of_ops ();
  for (gsize i = 0; i < G_N_ELEMENTS (wrong); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterSessionManager) manager =
        muster_session_manager_new (graph, &wrong[i].options, &error);
    MUSTER_TRACE ("%s", wrong[i].says);
    MUSTER_EXPECT_NULL (manager);
    MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, wrong[i].says);
  }
}

MUSTER_TEST (SessionManager, prepares_nothing_with_an_init_op_that_the_graph_lacks)
{
  static const char *const ops[] = {"init", "no", NULL};
  const MusterPrepareOptions wrong[] = {{.init_op = "no"}, {.init_ops = ops}};
  const MusterSessionManagerOptions options = {
      .ready_op = "ready:0", .ready_for_local_init_op = "gate", .local_init_op = "local"};
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autoptr (MusterGraph) graph = graph_of_ops ();
  g_autoptr (MusterSessionManager) manager =
      muster_session_manager_new (graph, &options, &job.error);
  MUSTER_ASSERT_NO_ERROR (job.error);
  for (gsize i = 0; i < G_N_ELEMENTS (wrong); i++) {
    g_autoptr (GError) error = NULL;
    MUSTER_EXPECT_NULL (muster_session_manager_prepare_session (manager, MUSTER_MASTER (job.master),
                                                                &wrong[i], NULL, NULL, &error));
    MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                        "init_op 'no' isn't in the graph");
    MUSTER_EXPECT_TRUE (muster_small_job_diary_is (&job, ""));
  }
}

/* B002.3, B002.60: then local init always runs */
MUSTER_TEST (SessionManager, accepts_a_local_init_op_without_a_gate)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autoptr (MusterSessionManager) manager =
      muster_small_job_manager (&job, "local_init", NULL, NULL);

  MUSTER_EXPECT_TRUE (manager != NULL);
}

/* B002.4, B002.47, B002.48, DIFF.3: and 0 is the default, so that nothing spins */
MUSTER_TEST (SessionManager, refuses_a_negative_recovery_wait)
{
  MusterSessionManagerOptions options = {.recovery_wait_us = -1};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSessionManager) manager = muster_session_manager_new (NULL, &options, &error);
  MUSTER_EXPECT_NULL (manager);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

/* B002.6 */
MUSTER_TEST (SessionManager, touches_nothing_when_it_is_made)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  MUSTER_EXPECT_TRUE (muster_small_job_diary_is (&job, ""));
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (job.clock), 0);
}

/* B002.1 */
MUSTER_TEST (SessionManager, makes_do_with_nothing)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_clear_object (&job.manager);
  job.manager = muster_session_manager_new (NULL, NULL, &job.error);
  MUSTER_ASSERT_NO_ERROR (job.error);

  g_autoptr (MusterSession) session = muster_session_manager_wait_for_session (
      job.manager, MUSTER_MASTER (job.master), 0, NULL, NULL, &job.error);

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_TRUE (session != NULL);
  muster_small_job_diary_is (&job, "create");
}

typedef struct {
  MusterSmallJob *job;
  gint64 last_us;
  gint64 longest_us;
} Pauses;

static gboolean
note_pause (MusterFakeMaster *master G_GNUC_UNUSED, const MusterStep *step G_GNUC_UNUSED,
            MusterTensor **value, gpointer user_data, GError **error G_GNUC_UNUSED)
{
  Pauses *pauses = user_data;
  gint64 now_us = muster_fake_clock_elapsed_us (pauses->job->clock);
  const char *names[] = {"v", NULL};
  pauses->longest_us = MAX (pauses->longest_us, now_us - pauses->last_us);
  pauses->last_us = now_us;
  *value = muster_tensor_new_strv (names);
  return TRUE;
}

/* B002.1, B002.47: the longest pause between two looks is the recovery wait, 30 s unless given */
MUSTER_TEST (SessionManager, polls_at_least_once_in_a_recovery_wait)
{
  const gint64 waits_us[] = {0, 5 * MUSTER_SECOND};
  for (gsize i = 0; i < G_N_ELEMENTS (waits_us); i++) {
    g_auto (MusterSmallJob) job = muster_small_job_new ();
    Pauses pauses = {.job = &job};
    MusterSessionManagerOptions options = {
        .ready_op = "moody", .recovery_wait_us = waits_us[i], .clock = MUSTER_CLOCK (job.clock)};
    gint64 most_us = waits_us[i] ? waits_us[i] : 30 * MUSTER_SECOND;
    MUSTER_TRACE ("a recovery wait of %d s", (int)(waits_us[i] / MUSTER_SECOND));
    g_clear_object (&job.manager);
    job.manager = muster_session_manager_new (NULL, &options, NULL);
    muster_fake_clock_set_random (job.clock, 0.999);
    muster_fake_master_op_calls (job.master, "moody", note_pause, &pauses);
    g_autoptr (MusterSession) session = muster_small_job_wait (&job, 7200 * MUSTER_SECOND, NULL);
    MUSTER_EXPECT_NULL (session);
    MUSTER_EXPECT_LE (pauses.longest_us, most_us);
    MUSTER_EXPECT_GT (pauses.longest_us, most_us / 2);
  }
}

/* B002.5 */
MUSTER_TEST (SessionManager, takes_lists_of_ops)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  const char *const inits[] = {"init_v", "init_w", NULL};
  const char *const local_inits[] = {"local_a", "local_b", NULL};
  MusterSessionManagerOptions options = {.local_init_ops = local_inits,
                                         .ready_op = "ready",
                                         .ready_for_local_init_op = "gate",
                                         .clock = MUSTER_CLOCK (job.clock)};
  muster_fake_master_op_sets (job.master, "init_v", "v", NULL);
  muster_fake_master_op_sets (job.master, "init_w", "w", NULL);
  muster_fake_master_op_sets (job.master, "local_a", "local", NULL);
  muster_fake_master_op_sets (job.master, "local_b", NULL);
  g_clear_object (&job.manager);
  job.manager = muster_session_manager_new (NULL, &options, &job.error);
  MUSTER_ASSERT_NO_ERROR (job.error);

  g_autoptr (MusterSession) session =
      muster_small_job_prepare (&job, (MusterPrepareOptions){.init_ops = inits});

  MUSTER_EXPECT_NO_ERROR (job.error);
  muster_small_job_diary_is (&job,
                             "create, run init_v, run init_w, run gate, run local_a, run local_b, "
                             "run ready");
}

/* B002.70: a list has no name; a local init op is printed as it is */
MUSTER_TEST (SessionManager, has_no_name_for_a_list_of_init_ops)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  const char *const inits[] = {"init", "init", NULL};
  const char *const local_inits[] = {"local_init", "local_init", NULL};
  MusterSessionManagerOptions options = {
      .local_init_ops = local_inits, .ready_op = "never", .clock = MUSTER_CLOCK (job.clock)};
  muster_fake_master_op_reports (job.master, "never", "x", NULL);
  g_clear_object (&job.manager);
  job.manager = muster_session_manager_new (NULL, &options, NULL);

  g_autoptr (MusterSession) session =
      muster_small_job_prepare (&job, (MusterPrepareOptions){.init_ops = inits});

  MUSTER_EXPECT_NULL (session);
  MUSTER_ASSERT_TRUE (job.error != NULL);
  MUSTER_EXPECT_STREQ (
      job.error->message,
      "Init operations did not make model ready.  Init op: <no name for list>, init fn: None, "
      "local_init_op: [local_init, local_init], error: Variables not initialized: x");
}

MUSTER_TEST (SessionManager, refuses_an_op_and_a_list)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  const char *const ops[] = {"a", NULL};
  MusterSessionManagerOptions options = {.local_init_op = "b", .local_init_ops = ops};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSessionManager) manager = muster_session_manager_new (NULL, &options, &error);
  g_autoptr (MusterSession) session =
      muster_small_job_prepare (&job, (MusterPrepareOptions){.init_op = "b", .init_ops = ops});

  MUSTER_EXPECT_TRUE (!manager && !session);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  muster_small_job_diary_is (&job, "");
}

MUSTER_TEST (SessionManager, refuses_a_cluster_without_addresses)
{
  const char *const wrong[] = {"ps:0", "ps:0=", "=host:1", "ps:0=host", "ps:0=host:x"};
  for (gsize i = 0; i < G_N_ELEMENTS (wrong); i++) {
    const char *const cluster[] = {"worker:0=host:1", wrong[i], NULL};
    MusterSessionManagerOptions options = {.cluster = cluster};
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterSessionManager) manager = muster_session_manager_new (NULL, &options, &error);
    MUSTER_TRACE ("%s", wrong[i]);
    MUSTER_EXPECT_NULL (manager);
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  }
}

/* B002.8: graph and config go into every session, which is the caller's */
MUSTER_TEST (SessionManager, gives_every_session_its_graph_and_config)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  MusterGraph *graph = muster_meta_graph_graph (job.meta_graph);
  g_autoptr (GBytes) config = g_bytes_new_static ("\x08\x01", 2);
  MusterSessionManagerOptions options = {.config = config, .clock = MUSTER_CLOCK (job.clock)};
  g_autoptr (MusterSessionManager) manager = muster_session_manager_new (graph, &options, NULL);
  MusterPrepareOptions init = {.init_op = "init"};
  MusterMaster *master = MUSTER_MASTER (job.master);
  MusterSession *sessions[] = {
      muster_session_manager_prepare_session (manager, master, &init, NULL, NULL, NULL),
      muster_session_manager_recover_session (manager, master, NULL, NULL, NULL, NULL, NULL),
      muster_session_manager_wait_for_session (manager, master, 0, NULL, NULL, NULL)};
  g_clear_object (&manager);
  for (gsize i = 0; i < G_N_ELEMENTS (sessions); i++) {
    MUSTER_ASSERT_TRUE (sessions[i] != NULL);
    MUSTER_EXPECT_TRUE (muster_session_graph (sessions[i]) == graph);
    MUSTER_EXPECT_TRUE (
        muster_session_run_op (sessions[i], "init", MUSTER_WAIT_FOREVER, NULL, NULL));
    g_object_unref (sessions[i]);
  }
  MUSTER_EXPECT_TRUE (muster_fake_master_options_of (job.master, "create") == config);
}

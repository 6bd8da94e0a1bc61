// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "engine/session/local_master.h"
#include "graph/graph_builder.h"
#include "master/background.h"
#include "tests/deadline.h"
#include "tests/doubles/main_loop.h"
#include "tests/gtest_shim.h"

#include <string.h>

/* The engine's operations in the background: x + 2, a variable, and a queue that stays empty. */

typedef struct {
  MusterMaster *master;
  MusterGraph *graph;
  MusterSession *session;
  MusterMainLoop loop;
  GError *error;
} Job;

static void
add_queue (MusterGraphBuilder *b)
{
  const MusterDType types[] = {MUSTER_FLOAT};

  muster_graph_builder_node (b, "FIFOQueueV2", "queue");
  muster_graph_builder_attr_types (b, "component_types", types, 1);
  muster_graph_builder_node (b, "QueueDequeueV2", "take");
  muster_graph_builder_input (b, "queue");
  muster_graph_builder_attr_types (b, "component_types", types, 1);
}

static MusterGraph *
build (void)
{
  MusterGraphBuilder *b = muster_graph_builder_new ();
  g_autoptr (MusterTensor) two = muster_tensor_new_float (2);

  muster_graph_builder_constant (b, "two", two);
  muster_graph_builder_placeholder (b, "x", MUSTER_FLOAT, 0, NULL);
  muster_graph_builder_node (b, "AddV2", "sum");
  muster_graph_builder_input (b, "x");
  muster_graph_builder_input (b, "two");
  muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
  muster_graph_builder_variable (b, "v", two);
  add_queue (b);
  MusterGraph *graph = muster_graph_builder_end (b, NULL);
  muster_graph_builder_free (b);
  return graph;
}

static Job
job_new (void)
{
  Job job = {.master = muster_local_master_new (), .graph = build ()};

  job.session =
      muster_master_create_session (job.master, job.graph, NULL, test_deadline (), NULL, NULL);
  job.loop = muster_main_loop_new ();
  return job;
}

static void
job_clear (Job *job)
{
  muster_main_loop_clear (&job->loop);
  g_clear_object (&job->session);
  g_clear_object (&job->master);
  g_clear_pointer (&job->graph, muster_graph_unref);
  g_clear_error (&job->error);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Job, job_clear)

static GAsyncResult *
wait_for (Job *job)
{
  muster_main_loop_until (&job->loop, job->loop.n_back + 1);
  return job->loop.result;
}

#define BACK(job) muster_main_loop_back, &(job).loop

static float
float_of (MusterTensor *tensor)
{
  float value = -1;
  if (tensor != NULL)
    memcpy (&value, muster_tensor_data (tensor), sizeof value);
  return value;
}

MUSTER_TEST (background, a_step_runs_on_a_copy_of_its_arguments)
{
  g_auto (Job) job = job_new ();
  g_autoptr (MusterTensor) one = muster_tensor_new_float (1);
  char x[] = "x:0", sum[] = "sum:0";
  MusterFeed feed = {x, one};
  const char *fetches[] = {sum, "two:0"};
  MusterStep step = {.feeds = &feed, .n_feeds = 1, .fetches = fetches, .n_fetches = 2};
  MusterTensor *fetched[2] = {NULL, NULL};
  GBytes *metadata = (GBytes *)&job;

  muster_session_run_async (job.session, &step, NULL, BACK (job));
  memset (x, '?', sizeof x);
  memset (sum, '?', sizeof sum);
  feed = (MusterFeed){NULL, NULL};
  fetches[1] = NULL;
  step = (MusterStep){0};
  MUSTER_EXPECT_EQ (job.loop.n_back, 0u);
  MUSTER_EXPECT_TRUE (
      muster_session_run_finish (job.session, wait_for (&job), fetched, &metadata, &job.error));

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_TRUE (job.loop.in_context);
  MUSTER_EXPECT_EQ (float_of (fetched[0]), 3.f);
  MUSTER_EXPECT_EQ (float_of (fetched[1]), 2.f);
  MUSTER_EXPECT_NULL (metadata);
  for (int i = 0; i < 2; i++)
    g_clear_pointer (&fetched[i], muster_tensor_unref);
}

MUSTER_TEST (background, a_step_that_is_cancelled_ends)
{
  g_auto (Job) job = job_new ();
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();

  muster_session_fetch_async (job.session, "take:0", MUSTER_WAIT_FOREVER, cancellable, BACK (job));
  g_cancellable_cancel (cancellable);
  MUSTER_EXPECT_NULL (muster_session_fetch_finish (job.session, wait_for (&job), &job.error));
  MUSTER_EXPECT_ERROR (job.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

/* So that nothing is lost that was made, such as a session. */
MUSTER_TEST (background, a_result_from_before_the_cancellation_counts)
{
  g_auto (Job) job = job_new ();
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();

  muster_session_fetch_async (job.session, "two:0", test_deadline (), cancellable, BACK (job));
  GAsyncResult *result = wait_for (&job);
  g_cancellable_cancel (cancellable);
  g_autoptr (MusterTensor) fetched = muster_session_fetch_finish (job.session, result, &job.error);
  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_EQ (float_of (fetched), 2.f);
}

MUSTER_TEST (background, a_step_ends_at_its_deadline)
{
  g_auto (Job) job = job_new ();

  muster_session_fetch_async (job.session, "take:0", test_deadline_in (MUSTER_MILLISECOND), NULL,
                              BACK (job));
  MUSTER_EXPECT_NULL (muster_session_fetch_finish (job.session, wait_for (&job), &job.error));
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
}

/* The call keeps the session, and the result leads back to it. */
MUSTER_TEST (background, the_last_reference_may_be_dropped_during_the_call)
{
  g_auto (Job) job = job_new ();
  g_autoptr (MusterTensor) fetched = NULL;
  gpointer seen = job.session;

  g_object_add_weak_pointer (G_OBJECT (job.session), &seen);
  muster_session_fetch_async (job.session, "two:0", test_deadline (), NULL, BACK (job));
  g_clear_object (&job.session);
  g_clear_object (&job.master);
  GAsyncResult *result = wait_for (&job);
  MusterSession *session = MUSTER_SESSION (g_async_result_get_source_object (result));
  fetched = muster_session_fetch_finish (session, result, &job.error);

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_EQ (float_of (fetched), 2.f);
  MUSTER_EXPECT_TRUE (seen == session);
  g_clear_object (&job.loop.result);
  g_clear_object (&session);
  /* The call's thread may be about to let go of it. */
  gint64 patience = test_deadline ();
  while (g_atomic_pointer_get (&seen) != NULL && g_get_monotonic_time () < patience)
    g_thread_yield ();
  MUSTER_EXPECT_NULL (g_atomic_pointer_get (&seen));
}

static void
expect_refused (Job *job, const char *text)
{
  MUSTER_EXPECT_ERROR (job->error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_STREQ (job->error->message, text);
  g_clear_error (&job->error);
}

MUSTER_TEST (background, a_result_is_of_one_call_and_finished_once)
{
  g_auto (Job) job = job_new ();
  g_autoptr (MusterSession) other = muster_master_create_session (
      job.master, job.graph, NULL, test_deadline (), NULL, &job.error);

  muster_session_run_op_async (job.session, "v/Assign", test_deadline (), NULL, BACK (job));
  GAsyncResult *result = wait_for (&job);
  MUSTER_EXPECT_FALSE (muster_session_close_finish (job.session, result, &job.error));
  expect_refused (&job, "the result belongs to a different call");
  MUSTER_EXPECT_FALSE (muster_session_run_op_finish (other, result, &job.error));
  expect_refused (&job, "the result belongs to another object");
  MUSTER_EXPECT_FALSE (muster_session_run_op_finish (job.session, NULL, &job.error));
  expect_refused (&job, "muster_session_run_op_finish: 'result' is NULL");
  MUSTER_EXPECT_FALSE (muster_session_run_op_finish (NULL, result, &job.error));
  expect_refused (&job, "muster_session_run_op_finish: 'self' is NULL");
  MUSTER_EXPECT_TRUE (muster_session_run_op_finish (job.session, result, &job.error));
  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_FALSE (muster_session_run_op_finish (job.session, result, &job.error));
  expect_refused (&job, "the result was already finished");
}

/* What a blocking call refuses is refused by finish. */
MUSTER_TEST (background, null_is_refused_by_finish)
{
  g_auto (Job) job = job_new ();
  const MusterStep step = {.n_feeds = 1};

  muster_session_fetch_async (job.session, NULL, test_deadline (), NULL, BACK (job));
  MUSTER_EXPECT_NULL (muster_session_fetch_finish (job.session, wait_for (&job), &job.error));
  expect_refused (&job, "muster_session_fetch: 'tensor' is NULL");
  muster_session_run_async (job.session, &step, NULL, BACK (job));
  MUSTER_EXPECT_FALSE (
      muster_session_run_finish (job.session, wait_for (&job), NULL, NULL, &job.error));
  expect_refused (&job, "muster_session_run: the step's 'feeds' is NULL");
}

MUSTER_TEST (background, a_registered_step_runs)
{
  g_auto (Job) job = job_new ();
  g_autoptr (MusterTensor) five = muster_tensor_new_float (5);
  const MusterFeed feed = {"x:0", five};
  const char *fetches[] = {"sum:0"};
  const MusterStep step = {.feeds = &feed, .n_feeds = 1, .fetches = fetches, .n_fetches = 1};
  g_autoptr (MusterTensor) fetched = NULL;

  muster_session_make_callable_async (job.session, &step, test_deadline (), NULL, BACK (job));
  gint64 callable = muster_session_make_callable_finish (job.session, wait_for (&job), &job.error);
  MUSTER_ASSERT_NO_ERROR (job.error);
  muster_session_run_callable_async (job.session, callable, &five, 1, 1, test_deadline (), NULL,
                                     BACK (job));
  MUSTER_EXPECT_TRUE (muster_session_run_callable_finish (job.session, wait_for (&job), &fetched,
                                                          NULL, &job.error));
  MUSTER_EXPECT_EQ (float_of (fetched), 7.f);
  muster_session_release_callable_async (job.session, callable, test_deadline (), NULL, BACK (job));
  MUSTER_EXPECT_TRUE (
      muster_session_release_callable_finish (job.session, wait_for (&job), &job.error));
  MUSTER_EXPECT_NO_ERROR (job.error);
}

MUSTER_TEST (background, a_step_runs_in_parts)
{
  g_auto (Job) job = job_new ();
  g_autoptr (MusterTensor) five = muster_tensor_new_float (5);
  const MusterFeed feed = {"x:0", five};
  const char *fetches[] = {"sum:0"};
  const MusterStep step = {.feeds = &feed, .n_feeds = 1, .fetches = fetches, .n_fetches = 1};
  g_autoptr (MusterTensor) fetched = NULL;

  muster_session_set_up_partial_run_async (job.session, &step, test_deadline (), NULL, BACK (job));
  g_autofree char *handle =
      muster_session_set_up_partial_run_finish (job.session, wait_for (&job), &job.error);
  MUSTER_ASSERT_NO_ERROR (job.error);
  muster_session_run_part_async (job.session, handle, &step, NULL, BACK (job));
  MUSTER_EXPECT_TRUE (
      muster_session_run_part_finish (job.session, wait_for (&job), &fetched, NULL, &job.error));
  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_EQ (float_of (fetched), 7.f);
}

/* The builder may be changed meanwhile. */
MUSTER_TEST (background, a_built_step_runs_as_it_was)
{
  g_auto (Job) job = job_new ();
  g_autoptr (MusterStepBuilder) builder = muster_step_builder_new ();
  g_autoptr (MusterTensor) one = muster_tensor_new_float (1);
  g_autoptr (MusterTensor) nine = muster_tensor_new_float (9);

  muster_step_builder_feed (builder, "x", one);
  muster_step_builder_fetch (builder, "sum");
  muster_step_builder_target (builder, "v/Assign");
  muster_step_builder_run_async (builder, job.session, 30 * MUSTER_SECOND, NULL, BACK (job));
  muster_step_builder_feed (builder, "x", nine);
  muster_step_builder_fetch (builder, "nothing");
  g_autoptr (GPtrArray) fetched =
      muster_step_builder_run_finish (builder, wait_for (&job), &job.error);

  MUSTER_ASSERT_NO_ERROR (job.error);
  MUSTER_EXPECT_EQ (fetched->len, 1u);
  MUSTER_EXPECT_EQ (float_of (fetched->pdata[0]), 3.f);
}

MUSTER_TEST (background, a_graph_grows_and_a_session_closes)
{
  g_auto (Job) job = job_new ();
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new_extension ();
  g_autoptr (MusterTensor) four = muster_tensor_new_float (4), fetched = NULL;

  muster_graph_builder_constant (b, "four", four);
  g_autoptr (MusterGraph) more = muster_graph_builder_end (b, &job.error);
  muster_session_extend_async (job.session, more, test_deadline (), NULL, BACK (job));
  MUSTER_EXPECT_TRUE (muster_session_extend_finish (job.session, wait_for (&job), &job.error));
  muster_session_fetch_async (job.session, "four", test_deadline (), NULL, BACK (job));
  fetched = muster_session_fetch_finish (job.session, wait_for (&job), &job.error);
  MUSTER_EXPECT_EQ (float_of (fetched), 4.f);
  muster_session_close_async (job.session, test_deadline (), NULL, BACK (job));
  MUSTER_EXPECT_TRUE (muster_session_close_finish (job.session, wait_for (&job), &job.error));
  MUSTER_EXPECT_NO_ERROR (job.error);
}

MUSTER_TEST (background, a_master_creates_sessions_lists_devices_and_is_reset)
{
  g_auto (Job) job = job_new ();

  muster_master_create_session_async (job.master, job.graph, NULL, test_deadline (), NULL,
                                      BACK (job));
  g_autoptr (MusterSession) session =
      muster_master_create_session_finish (job.master, wait_for (&job), &job.error);
  MUSTER_ASSERT_NO_ERROR (job.error);
  muster_session_run_op_async (session, "v/Assign", test_deadline (), NULL, BACK (job));
  MUSTER_EXPECT_TRUE (muster_session_run_op_finish (session, wait_for (&job), &job.error));
  muster_master_list_devices_async (job.master, test_deadline (), NULL, BACK (job));
  g_autoptr (GPtrArray) devices =
      muster_master_list_devices_finish (job.master, wait_for (&job), &job.error);
  MUSTER_ASSERT_NO_ERROR (job.error);
  MUSTER_EXPECT_STREQ (((MusterDevice *)devices->pdata[0])->type, "CPU");
  const char *containers[] = {NULL};
  muster_master_reset_async (job.master, containers, test_deadline (), NULL, BACK (job));
  MUSTER_EXPECT_TRUE (muster_master_reset_finish (job.master, wait_for (&job), &job.error));
  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_FALSE (muster_session_run_op (session, "v/Assign", test_deadline (), NULL, NULL));
}

/* What nobody fetches is freed with the result. */
MUSTER_TEST (background, what_nobody_finishes_is_freed)
{
  g_auto (Job) job = job_new ();
  gpointer seen = job.session;

  g_object_add_weak_pointer (G_OBJECT (job.session), &seen);
  muster_session_fetch_async (job.session, "two:0", test_deadline (), NULL, BACK (job));
  (void)wait_for (&job);
  muster_session_fetch_async (job.session, "two:0", test_deadline (), NULL, NULL, NULL);
  g_clear_object (&job.loop.result);
  g_clear_object (&job.session);
  gint64 patience = test_deadline ();
  while (g_atomic_pointer_get (&seen) != NULL && g_get_monotonic_time () < patience)
    g_main_context_iteration (job.loop.context, FALSE);
  MUSTER_EXPECT_NULL (g_atomic_pointer_get (&seen));
}

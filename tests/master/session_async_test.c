// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "engine/session/local_master.h"
#include "graph/graph_builder.h"
#include "master/master.h"
#include "tests/deadline.h"
#include "tests/doubles/main_loop.h"
#include "tests/gtest_shim.h"

#include <string.h>

/* Steps of the engine in the background: x + 2, a variable, and a queue that stays empty. */

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

static void
start_fetch (Job *job, const char *tensor, gint64 deadline_us, GCancellable *cancellable)
{
  const MusterStep step = {.fetches = &tensor, .n_fetches = 1, .deadline_us = deadline_us};
  muster_session_run_async (job->session, &step, cancellable, BACK (*job));
}

static gboolean
finish (Job *job, MusterSession *session, GAsyncResult *result, MusterTensor **fetched)
{
  return muster_session_run_finish (session, result, fetched, NULL, &job->error);
}

static float
float_of (MusterTensor *tensor)
{
  float value = -1;
  if (tensor != NULL)
    memcpy (&value, muster_tensor_data (tensor), sizeof value);
  return value;
}

MUSTER_TEST (SessionAsync, a_step_runs_on_a_copy_of_its_arguments)
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

MUSTER_TEST (SessionAsync, a_step_that_is_cancelled_ends)
{
  g_auto (Job) job = job_new ();
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  start_fetch (&job, "take:0", MUSTER_WAIT_FOREVER, cancellable);
  g_cancellable_cancel (cancellable);
  MUSTER_EXPECT_FALSE (finish (&job, job.session, wait_for (&job), NULL));
  MUSTER_EXPECT_ERROR (job.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

/* So that nothing is lost that was made, such as a session. */
MUSTER_TEST (SessionAsync, a_result_from_before_the_cancellation_counts)
{
  g_auto (Job) job = job_new ();
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  start_fetch (&job, "two:0", test_deadline (), cancellable);
  GAsyncResult *result = wait_for (&job);
  g_cancellable_cancel (cancellable);
  g_autoptr (MusterTensor) fetched = NULL;
  MUSTER_EXPECT_TRUE (finish (&job, job.session, result, &fetched));
  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_EQ (float_of (fetched), 2.f);
}

MUSTER_TEST (SessionAsync, a_step_ends_at_its_deadline)
{
  g_auto (Job) job = job_new ();
  start_fetch (&job, "take:0", test_deadline_in (MUSTER_MILLISECOND), NULL);
  MUSTER_EXPECT_FALSE (finish (&job, job.session, wait_for (&job), NULL));
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
}

/* The call keeps the session, and the result leads back to it. */
MUSTER_TEST (SessionAsync, the_last_reference_may_be_dropped_during_the_call)
{
  g_auto (Job) job = job_new ();
  g_autoptr (MusterTensor) fetched = NULL;
  gpointer seen = job.session;
  g_object_add_weak_pointer (G_OBJECT (job.session), &seen);
  start_fetch (&job, "two:0", test_deadline (), NULL);
  g_clear_object (&job.session);
  g_clear_object (&job.master);
  GAsyncResult *result = wait_for (&job);
  MusterSession *session = MUSTER_SESSION (g_async_result_get_source_object (result));
  MUSTER_EXPECT_TRUE (finish (&job, session, result, &fetched));

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

MUSTER_TEST (SessionAsync, a_result_is_of_one_call_and_finished_once)
{
  g_auto (Job) job = job_new ();
  g_autoptr (MusterSession) other = muster_master_create_session (
      job.master, job.graph, NULL, test_deadline (), NULL, &job.error);
  g_autoptr (GTask) task = g_task_new (job.session, NULL, NULL, NULL);
  start_fetch (&job, "two:0", test_deadline (), NULL);
  GAsyncResult *result = wait_for (&job);
  MUSTER_EXPECT_FALSE (finish (&job, job.session, G_ASYNC_RESULT (task), NULL));
  expect_refused (&job, "the result belongs to a different call");
  MUSTER_EXPECT_FALSE (finish (&job, other, result, NULL));
  expect_refused (&job, "the result belongs to another object");
  MUSTER_EXPECT_FALSE (finish (&job, job.session, NULL, NULL));
  expect_refused (&job, "muster_session_run_finish: 'result' is NULL");
  MUSTER_EXPECT_FALSE (finish (&job, NULL, result, NULL));
  expect_refused (&job, "muster_session_run_finish: 'self' is NULL");
  MUSTER_EXPECT_TRUE (finish (&job, job.session, result, NULL));
  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_FALSE (finish (&job, job.session, result, NULL));
  expect_refused (&job, "the result was already finished");
}

/* What a blocking call refuses is refused by finish. */
MUSTER_TEST (SessionAsync, null_is_refused_by_finish)
{
  g_auto (Job) job = job_new ();
  const MusterStep step = {.n_feeds = 1};
  muster_session_run_async (job.session, NULL, NULL, BACK (job));
  MUSTER_EXPECT_FALSE (finish (&job, job.session, wait_for (&job), NULL));
  expect_refused (&job, "muster_session_run: 'step' is NULL");
  muster_session_run_async (job.session, &step, NULL, BACK (job));
  MUSTER_EXPECT_FALSE (finish (&job, job.session, wait_for (&job), NULL));
  expect_refused (&job, "muster_session_run: the step's 'feeds' is NULL");
}

/* What nobody fetches is freed with the result. */
MUSTER_TEST (SessionAsync, what_nobody_finishes_is_freed)
{
  g_auto (Job) job = job_new ();
  gpointer seen = job.session;
  g_object_add_weak_pointer (G_OBJECT (job.session), &seen);
  start_fetch (&job, "two:0", test_deadline (), NULL);
  (void)wait_for (&job);
  {
    const char *two = "two:0";
    const MusterStep step = {.fetches = &two, .n_fetches = 1, .deadline_us = test_deadline ()};
    muster_session_run_async (job.session, &step, NULL, NULL, NULL);
  }
  g_clear_object (&job.loop.result);
  g_clear_object (&job.session);
  gint64 patience = test_deadline ();
  while (g_atomic_pointer_get (&seen) != NULL && g_get_monotonic_time () < patience)
    g_main_context_iteration (job.loop.context, FALSE);
  MUSTER_EXPECT_NULL (g_atomic_pointer_get (&seen));
}

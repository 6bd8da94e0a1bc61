// SPDX-License-Identifier: Apache-2.0
#include "engine/session/local_master.h"
#include "graph/graph_builder.h"
#include "tests/gtest_shim.h"

/* A step that points at nothing, on the engine. */

static MusterSession *
open_session (void)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  g_autoptr (MusterTensor) two = muster_tensor_new_float (2);
  muster_graph_builder_constant (builder, "two", two);
  muster_graph_builder_placeholder (builder, "x", MUSTER_FLOAT, 0, NULL);
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (builder, NULL);
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  return muster_master_create_session (master, graph, NULL, MUSTER_WAIT_FOREVER, NULL, NULL);
}

static void
expect_refused (const MusterStep *step, MusterTensor **fetched, const char *named)
{
  g_autoptr (MusterSession) session = open_session ();
  g_autoptr (GError) error = NULL;
  MUSTER_ASSERT_NOT_NULL (session);
  MUSTER_EXPECT_FALSE (muster_session_run (session, step, fetched, NULL, NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_TRACE ("%s", error->message);
  MUSTER_EXPECT_TRUE (g_strrstr (error->message, named) != NULL);
}

MUSTER_TEST (step, what_is_fetched_needs_a_place)
{
  const char *fetches[] = {"two:0"};
  expect_refused (&(MusterStep){.fetches = fetches, .n_fetches = 1}, NULL,
                  "muster_session_run: 'fetched' is NULL");
}

MUSTER_TEST (step, nothing_fetched_needs_none)
{
  g_autoptr (MusterSession) session = open_session ();
  const char *targets[] = {"two"};
  const MusterStep step = {.targets = targets, .n_targets = 1};
  MUSTER_EXPECT_TRUE (muster_session_run (session, &step, NULL, NULL, NULL, NULL));
}

MUSTER_TEST (step, an_array_that_is_missing_is_named)
{
  MusterTensor *fetched[2] = {NULL};
  expect_refused (&(MusterStep){.n_feeds = 1}, fetched, "'feeds' is NULL");
  expect_refused (&(MusterStep){.n_fetches = 1}, fetched, "'fetches' is NULL");
  expect_refused (&(MusterStep){.n_targets = 1}, fetched, "'targets' is NULL");
}

MUSTER_TEST (step, an_element_that_is_missing_is_named)
{
  g_autoptr (MusterTensor) value = muster_tensor_new_float (1);
  MusterTensor *fetched[2] = {NULL};
  const char *names[] = {"two:0", NULL};
  const MusterFeed unnamed[] = {{NULL, value}}, empty[] = {{"x:0", NULL}};
  expect_refused (&(MusterStep){.fetches = names, .n_fetches = 2}, fetched, "'fetches[1]' is NULL");
  expect_refused (&(MusterStep){.targets = names, .n_targets = 2}, fetched, "'targets[1]' is NULL");
  expect_refused (&(MusterStep){.feeds = unnamed, .n_feeds = 1}, fetched, "'feeds[0]' is NULL");
  expect_refused (&(MusterStep){.feeds = empty, .n_feeds = 1}, fetched, "'feeds[0]' is NULL");
}

MUSTER_TEST (step, a_callable_needs_a_place_for_what_it_fetches)
{
  g_autoptr (MusterSession) session = open_session ();
  g_autoptr (GError) error = NULL;
  const char *fetches[] = {"two:0"};
  const MusterStep step = {.fetches = fetches, .n_fetches = 1};
  const gint64 callable =
      muster_session_make_callable (session, &step, MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (muster_session_run_callable (session, callable, NULL, 0, MUSTER_WAIT_FOREVER,
                                                    NULL, NULL, NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

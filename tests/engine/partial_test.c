// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/fixture.h"

/* x + y, the sum times z, a variable that grows by the sum. */
static MusterSession *
open_sums (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  muster_graph_builder_placeholder (b, "x", MUSTER_FLOAT, 0, NULL);
  muster_graph_builder_placeholder (b, "y", MUSTER_FLOAT, 0, NULL);
  muster_graph_builder_placeholder (b, "z", MUSTER_FLOAT, 0, NULL);
  add_binary (b, "AddV2", "sum", "x", "y");
  add_binary (b, "Mul", "product", "sum", "z");
  add_variable (b, "v", 1);
  add_binary (b, "AssignAdd", "grow", "v", "sum");
  MusterSession *session = open_session (NULL, b);
  MUSTER_EXPECT_TRUE (
      muster_session_run_op (session, "v/Assign", MUSTER_WAIT_FOREVER, NULL, &error));
  return session;
}

static char *
set_up (MusterSession *session, const char *target, GError **error)
{
  const MusterFeed feeds[] = {{"x", NULL}, {"y", NULL}, {"z", NULL}};
  const char *const fetches[] = {"sum", "product"};
  const MusterStep step = {.feeds = feeds,
                           .n_feeds = 3,
                           .fetches = fetches,
                           .n_fetches = 2,
                           .targets = &target,
                           .n_targets = target != NULL};
  return muster_session_set_up_partial_run (session, &step, test_deadline (), NULL, error);
}

/* Feeds value under each letter of names, and fetches one tensor unless NULL. */
static float
run_part (MusterSession *session, const char *handle, const char *names, float value,
          const char *fetch, GError **error)
{
  g_autoptr (MusterTensor) tensor = muster_tensor_new_float (value);
  g_autoptr (MusterTensor) got = NULL;
  MusterFeed feeds[4];
  char texts[4][2];
  MusterStep part = {.feeds = feeds,
                     .fetches = &fetch,
                     .n_fetches = fetch != NULL,
                     .deadline_us = test_deadline ()};
  for (; names[part.n_feeds] != '\0'; part.n_feeds++) {
    texts[part.n_feeds][0] = names[part.n_feeds];
    texts[part.n_feeds][1] = '\0';
    feeds[part.n_feeds] = (MusterFeed){texts[part.n_feeds], tensor};
  }
  return muster_session_run_part (session, handle, &part, &got, NULL, NULL, error) ? float_of (got)
                                                                                   : -1;
}

MUSTER_TEST (Partial, runs_each_node_once_as_soon_as_it_can)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = open_sums ();
  g_autofree char *handle = set_up (session, "grow", &error);
  MUSTER_ASSERT_NO_ERROR (error);

  (void)run_part (session, handle, "x", 2, NULL, &error);
  MUSTER_EXPECT_EQ (fetch_float (session, "v"), 1.0f);
  MUSTER_EXPECT_EQ (run_part (session, handle, "y", 3, "sum", &error), 5.0f);
  MUSTER_EXPECT_EQ (fetch_float (session, "v"), 6.0f);
  MUSTER_EXPECT_EQ (run_part (session, handle, "z", 10, "product", &error), 50.0f);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (fetch_float (session, "v"), 6.0f);
}

MUSTER_TEST (Partial, is_over_once_all_was_fed_and_fetched)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = open_sums ();
  g_autofree char *handle = set_up (session, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (run_part (session, handle, "xyz", 2, "product", &error), 8.0f);
  MUSTER_EXPECT_EQ (run_part (session, handle, "", 0, "sum", &error), 4.0f);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_EQ (run_part (session, handle, "", 0, "sum", &error), -1.0f);

  EXPECT_SAYS (error, MUSTER_ERROR_INVALID_ARGUMENT, "Must run PartialRunSetup before");
}

MUSTER_TEST (Partial, waits_for_a_feed_that_nobody_needs)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = open_sums ();
  const MusterFeed feeds[] = {{"x", NULL}, {"y", NULL}, {"z", NULL}};
  const char *fetch = "sum";
  const MusterStep step = {.feeds = feeds, .n_feeds = 3, .fetches = &fetch, .n_fetches = 1};
  g_autofree char *handle =
      muster_session_set_up_partial_run (session, &step, test_deadline (), NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_EQ (run_part (session, handle, "xy", 2, "sum", &error), 4.0f);
  (void)run_part (session, handle, "z", 2, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  (void)run_part (session, handle, "", 0, NULL, &error);

  EXPECT_SAYS (error, MUSTER_ERROR_INVALID_ARGUMENT, "Must run PartialRunSetup before");
}

MUSTER_TEST (Partial, goes_on_after_a_part_that_asked_too_much)
{
  const struct {
    const char *names;
    const char *fetch;
    const char *text;
  } cases[] = {
      {"z", "product", "Fetch x:0 can't be computed from the feeds that have been fed so far."},
      {"q", NULL, "The feed q was not specified in partial_run_setup."},
      {"", "v", "The fetch v was not specified in partial_run_setup."},
      {"x", NULL, "The feed x has already been fed."},
  };
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = open_sums ();
  g_autofree char *handle = set_up (session, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    if (i == 1)
      (void)run_part (session, handle, "x", 2, NULL, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    (void)run_part (session, handle, cases[i].names, 1, cases[i].fetch, &error);
    EXPECT_SAYS (error, MUSTER_ERROR_INVALID_ARGUMENT, cases[i].text);
    g_clear_error (&error);
  }
  MUSTER_EXPECT_EQ (run_part (session, handle, "y", 3, "sum", &error), 5.0f);
  MUSTER_ASSERT_NO_ERROR (error);
}

MUSTER_TEST (Partial, refuses_a_feed_that_a_part_brings_twice)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = open_sums ();
  g_autofree char *handle = set_up (session, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  (void)run_part (session, handle, "xx", 2, NULL, &error);

  EXPECT_SAYS (error, MUSTER_ERROR_INVALID_ARGUMENT, "The feed x has already been fed.");
}

MUSTER_TEST (Partial, ends_with_its_session)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = open_sums ();
  g_autofree char *handle = set_up (session, NULL, &error);
  (void)run_part (session, handle, "x", 2, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (muster_session_close (session, test_deadline (), NULL, &error));

  (void)run_part (session, handle, "y", 3, "sum", &error);

  EXPECT_SAYS (error, MUSTER_ERROR_ABORTED, "is not found");
}

MUSTER_TEST (Partial, is_refused_where_too_many_are_open)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = open_sums ();
  for (int i = 0; i < 1000; i++)
    g_free (set_up (session, NULL, &error));
  MUSTER_ASSERT_NO_ERROR (error);

  g_autofree char *handle = set_up (session, NULL, &error);

  MUSTER_EXPECT_NULL (handle);
  EXPECT_SAYS (error, MUSTER_ERROR_RESOURCE_EXHAUSTED, "1000 partial runs");
}

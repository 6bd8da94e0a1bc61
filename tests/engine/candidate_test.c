// SPDX-License-Identifier: Apache-2.0
/* Candidate samplers beyond what they draw, which is kernels_golden_test's. */
#include "tests/engine/fixture.h"

#define N_DRAWN 2

/* A sampler "sampler" over the classes 0 and 1 as true ones. */
static void
add_sampler (MusterGraphBuilder *b, const char *op, gint64 range, gboolean unique)
{
  const gint64 classes[] = {0, 1};
  g_autoptr (MusterTensor) tensor = muster_tensor_new_from_data (MUSTER_INT64, 2, (gint64[]){1, 2},
                                                                 classes, sizeof classes, NULL);
  muster_graph_builder_constant (b, "classes", tensor);
  muster_graph_builder_node (b, op, "sampler");
  muster_graph_builder_input (b, "classes");
  muster_graph_builder_attr_int (b, "num_true", 2);
  muster_graph_builder_attr_int (b, "num_sampled", N_DRAWN);
  muster_graph_builder_attr_int (b, "range_max", range);
  muster_graph_builder_attr_bool (b, "unique", unique);
  muster_graph_builder_attr_int (b, "seed", 1);
}

/* How often class 0 is expected, of N_DRAWN. */
static float
fetch_expected (MusterSession *session)
{
  return fetch_float (session, "sampler:1");
}

/* It has seen 0 and 1 once more after each step. */
MUSTER_TEST (LearnedSampler, learns_in_its_own_session_alone)
{
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new (),
                                 again = muster_graph_builder_new ();
  add_sampler (b, "LearnedUnigramCandidateSampler", 4, FALSE);
  add_sampler (again, "LearnedUnigramCandidateSampler", 4, FALSE);
  g_autoptr (MusterSession) first = open_session (master, b), second = open_session (master, again);
  MUSTER_EXPECT_NEAR (fetch_expected (first), N_DRAWN * 1 / 4., 1e-6);
  MUSTER_EXPECT_NEAR (fetch_expected (first), N_DRAWN * 2 / 6., 1e-6);
  MUSTER_EXPECT_NEAR (fetch_expected (second), N_DRAWN * 1 / 4., 1e-6);
  MUSTER_EXPECT_NEAR (fetch_expected (first), N_DRAWN * 3 / 8., 1e-6);
}

#define N_THREADS 4
#define N_ROUNDS  50

static gpointer
learn (gpointer session)
{
  for (int i = 0; i < N_ROUNDS; i++)
    (void)fetch_expected (session);
  return NULL;
}

MUSTER_TEST (LearnedSampler, learns_from_many_threads)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  GThread *threads[N_THREADS];
  const int n = N_THREADS * N_ROUNDS;
  add_sampler (b, "LearnedUnigramCandidateSampler", 4, FALSE);
  g_autoptr (MusterSession) session = open_session (NULL, b);
  for (int i = 0; i < N_THREADS; i++)
    threads[i] = g_thread_new ("learn", learn, session);
  for (int i = 0; i < N_THREADS; i++)
    g_thread_join (threads[i]);
  MUSTER_EXPECT_NEAR (fetch_expected (session), N_DRAWN * (1. + n) / (4 + 2 * n), 1e-6);
}

static MusterTensor *
draw_from_file (const char *content, gint64 range, gboolean unique, gint64 deadline_us,
                GError **error)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  g_autofree char *path = g_build_filename (muster_test_tmpdir (), "vocabulary", NULL);
  if (!g_file_set_contents (path, content, -1, error))
    return NULL;
  add_sampler (b, "FixedUnigramCandidateSampler", range, unique);
  muster_graph_builder_attr_string (b, "vocab_file", path);
  g_autoptr (MusterSession) session = open_session (NULL, b);
  const char *fetch = "sampler:1";
  const MusterStep step = {.fetches = &fetch, .n_fetches = 1, .deadline_us = deadline_us};
  MusterTensor *fetched = NULL;
  return muster_session_run (session, &step, &fetched, NULL, NULL, error) ? fetched : NULL;
}

static void
expect_weights (const char *content, float first)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) expected = draw_from_file (content, 2, FALSE, test_deadline (), &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_NEAR (float_of (expected), N_DRAWN * first, 1e-6);
}

/* Each of these was tried on TensorFlow. */
MUSTER_TEST (FixedSampler, takes_the_last_column_of_each_line_of_its_file)
{
  expect_weights ("a,3\nb,1\n", .75f);
  expect_weights ("\na,3\n\nb,1", .75f);
  expect_weights ("a,3\r\nb,1\r\n", .75f);
  expect_weights ("3\nx,y, 1 \n", .75f);
  expect_weights ("1e-99\n1", 0);
}

static void
expect_refused (const char *content, const char *words)
{
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_NULL (draw_from_file (content, 2, FALSE, test_deadline (), &error));
  EXPECT_SAYS (error, MUSTER_ERROR_INVALID_ARGUMENT, words);
}

MUSTER_TEST (FixedSampler, refuses_a_file_that_does_not_fit)
{
  expect_refused ("3\nx,\n", "Wrong vocabulary format at line: x,");
  expect_refused ("3\n1z\n", "Wrong vocabulary format at line: 1z");
  expect_refused ("", "range is 2 must be equal to weights size  0");
  expect_refused ("a,3\n", "range is 2 must be equal to weights size  1");
  expect_refused ("1\n1\n1\n", "range is 2 must be equal to weights size  of at least 3");
}

/* TensorFlow would try two thousand million times, and die. */
MUSTER_TEST (FixedSampler, refuses_to_draw_more_than_can_be_drawn)
{
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_NULL (draw_from_file ("1\n0\n0\n", 3, TRUE, test_deadline (), &error));
  EXPECT_SAYS (error, MUSTER_ERROR_INVALID_ARGUMENT, "Sampler's range is too small.");
}

/* The second is drawn when two random numbers are nought. */
MUSTER_TEST (FixedSampler, stops_at_the_deadline)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GString) content = g_string_new ("1\n");
  const gint64 deadline_us = test_deadline_in (MUSTER_SECOND / 100);
  for (int i = 0; i < 1000; i++)
    g_string_append (content, i == 0 ? "2e-38\n" : "0\n");
  MUSTER_EXPECT_NULL (draw_from_file (content->str, 1001, TRUE, deadline_us, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
}

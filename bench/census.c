// SPDX-License-Identifier: Apache-2.0
#include "bench/bench.h"

#include <glib/gstdio.h>

/* TensorFlow's Python client, unmodified, on muster and on TensorFlow's own server. */

/* One line of tensorflow_census.py. Returns the ratio, 0 after the last line. */
static double
print_program (BenchChild *client)
{
  g_autofree char *line = bench_child_line (client);
  g_auto (GStrv) parts = g_strsplit (line, "\t", -1);
  if (g_strv_length (parts) != 3)
    return 0;
  double ours = g_ascii_strtod (parts[1], NULL), theirs = g_ascii_strtod (parts[2], NULL);
  g_autofree char *what = g_strdup_printf ("a step of %s", parts[0]);
  bench_print (&(BenchRow){
      .what = what, .muster = ours, .other = theirs, .name = "TensorFlow", .bound_ratio = 1});
  return ours / theirs;
}

void
bench_census (void)
{
  g_autoptr (BenchChild) server = bench_child_new_mode ("--serve-muster");
  g_autofree char *address = bench_child_line (server);
  g_autoptr (BenchChild) tensorflow = bench_tensorflow_child ("tensorflow_server.py", NULL);
  if (tensorflow == NULL)
    return;
  g_autofree char *their_address = bench_child_line (tensorflow);
  g_autoptr (BenchChild) client = bench_tensorflow_child (
      "tensorflow_census.py", (const char *const[]){address, their_address, NULL});
  g_autoptr (GArray) ratios = g_array_new (FALSE, FALSE, sizeof (double));
  for (double ratio = print_program (client); ratio > 0; ratio = print_program (client))
    g_array_append_val (ratios, ratio);
  bench_print (&(BenchRow){.what = "the same, the median of the ratios",
                           .unit = BENCH_SHARE,
                           .muster = bench_median (ratios),
                           .bound = 0.5});
}

/* Its SessionManager on a server: a chief's prepare_session, then a worker's wait_for_session. */
static void
start (const char *path, const char *ready_op, const char *address, double *prepare_s,
       double *join_s)
{
  g_autoptr (BenchChild) client = bench_tensorflow_child (
      "tensorflow_start.py", (const char *const[]){path, ready_op, address, NULL});
  g_autofree char *prepared = bench_child_line (client);
  g_autofree char *joined = bench_child_line (client);
  *prepare_s = g_ascii_strtod (prepared, NULL);
  *join_s = g_ascii_strtod (joined, NULL);
}

static void
prepare (guint n_variables, double bound_ratio)
{
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterGraph) model = bench_model (n_variables, &ready_op);
  g_autofree char *path = bench_model_file (muster_graph_bytes (model));
  g_autoptr (BenchChild) server = bench_child_new_mode ("--serve-muster");
  g_autofree char *address = bench_child_line (server);
  g_autoptr (BenchChild) tensorflow = bench_tensorflow_child ("tensorflow_server.py", NULL);
  g_autofree char *their_address = bench_child_line (tensorflow);
  double prepare_s, join_s, their_prepare_s, their_join_s;
  start (path, ready_op, address, &prepare_s, &join_s);
  start (path, ready_op, their_address, &their_prepare_s, &their_join_s);
  (void)g_remove (path); /* a temporary file: nothing hangs on it */

  g_autofree char *preparing = g_strdup_printf ("Python prepares %u variables", n_variables);
  g_autofree char *joining = g_strdup_printf ("Python waits for %u variables", n_variables);
  bench_print (&(BenchRow){.what = preparing,
                           .muster = prepare_s,
                           .other = their_prepare_s,
                           .name = "TensorFlow",
                           .bound_ratio = bound_ratio});
  bench_print (&(BenchRow){.what = joining,
                           .muster = join_s,
                           .other = their_join_s,
                           .name = "TensorFlow",
                           .bound_ratio = bound_ratio});
}

void
bench_census_prepare (void)
{
  g_autofree char *python = bench_tensorflow_python ();
  if (python == NULL)
    return;
  prepare (10, 0);
  prepare (1000, 0);
  prepare (10000, 0.1);
}

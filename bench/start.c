// SPDX-License-Identifier: Apache-2.0
#include "bench/bench.h"

#include "session/manager.h"

#include <glib/gstdio.h>

#define N_VARIABLES 10000
#define N_STARTS    5

/* The graph as another process would have it: nothing of it is shared but the bytes. */
static MusterGraph *
copy_of (MusterGraph *graph)
{
  GBytes *bytes = muster_graph_bytes (graph);
  g_autoptr (GBytes) copy = g_bytes_new (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes));
  return muster_graph_new (copy);
}

/* A chief's prepare_session and a worker's wait_for_session on a server that knows nothing yet. */
static void
start_once (MusterGraph *model, const char *ready_op, double *prepare_s, double *join_s)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (BenchChild) server = bench_child_new_mode ("--serve-muster");
  g_autofree char *address = bench_child_line (server);
  g_autoptr (MusterGraph) graph = copy_of (model);
  g_autoptr (MusterMaster) master = bench_remote (address);
  g_autoptr (MusterSessionManager) chief = bench_manager (graph, ready_op);
  double started = bench_now_s ();
  g_autoptr (MusterSession) session = muster_session_manager_prepare_session (
      chief, master, &(MusterPrepareOptions){.init_op = "init"}, NULL, NULL, &error);
  bench_check (error, "preparing a session");
  *prepare_s = bench_now_s () - started;

  g_autoptr (MusterGraph) same = copy_of (model);
  g_autoptr (MusterMaster) again = bench_remote (address);
  g_autoptr (MusterSessionManager) worker = bench_manager (same, ready_op);
  started = bench_now_s ();
  g_autoptr (MusterSession) joined = muster_session_manager_wait_for_session (
      worker, again, 60 * MUSTER_SECOND, NULL, NULL, &error);
  bench_check (error, "joining");
  *join_s = bench_now_s () - started;
}

/* Their two numbers, once: they take most of a minute. */
static void
start_tensorflow (MusterGraph *model, const char *ready_op, double *prepare_s, double *join_s)
{
  g_autofree char *path = bench_model_file (muster_graph_bytes (model));
  g_autoptr (BenchChild) tensorflow =
      bench_tensorflow_child ("tensorflow_start.py", (const char *const[]){path, ready_op, NULL});
  if (tensorflow != NULL) {
    g_autofree char *prepared = bench_child_line (tensorflow);
    g_autofree char *joined = bench_child_line (tensorflow);
    *prepare_s = g_ascii_strtod (prepared, NULL);
    *join_s = g_ascii_strtod (joined, NULL);
  }
  (void)g_remove (path); /* a temporary file: nothing hangs on it */
}

void
bench_prepare (void)
{
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterGraph) model = bench_model (N_VARIABLES, &ready_op);
  g_autoptr (GArray) prepares = g_array_new (FALSE, FALSE, sizeof (double));
  g_autoptr (GArray) joins = g_array_new (FALSE, FALSE, sizeof (double));
  for (int i = 0; i < N_STARTS; i++) {
    double prepare_s, join_s;
    start_once (model, ready_op, &prepare_s, &join_s);
    g_array_append_val (prepares, prepare_s);
    g_array_append_val (joins, join_s);
  }
  double their_prepare_s = 0, their_join_s = 0;
  start_tensorflow (model, ready_op, &their_prepare_s, &their_join_s);
  bench_print (&(BenchRow){.what = "prepare 10,000 variables",
                           .muster = bench_median (prepares),
                           .other = their_prepare_s,
                           .name = their_prepare_s > 0 ? "TensorFlow" : NULL,
                           .bound = 0.1});
  bench_print (&(BenchRow){.what = "a worker joins them",
                           .muster = bench_median (joins),
                           .other = their_join_s,
                           .name = their_join_s > 0 ? "TensorFlow" : NULL,
                           .bound = 0.015});
}

/* --- the command --- */

/* Of a server that has nothing but gRPC and one method. */
static double
start_bare (void)
{
  const double started = bench_now_s ();
  g_autoptr (BenchChild) server = bench_child_new_mode ("--serve-echo");
  g_free (bench_child_line (server));
  return bench_now_s () - started;
}

void
bench_serve (void)
{
  g_autoptr (GArray) bare_starts = g_array_new (FALSE, FALSE, sizeof (double));
  g_autoptr (GArray) starts = g_array_new (FALSE, FALSE, sizeof (double));
  g_autoptr (GArray) sizes = g_array_new (FALSE, FALSE, sizeof (double));
  for (int i = 0; i < 4 * N_STARTS; i++) {
    double started = bench_now_s ();
    g_autofree char *address = NULL;
    g_autoptr (BenchChild) server = bench_serve_command (NULL, &address);
    double taken = bench_now_s () - started;
    double size = bench_resident_bytes (bench_child_pid (server));
    const double bare = start_bare ();
    g_array_append_val (starts, taken);
    g_array_append_val (bare_starts, bare);
    g_array_append_val (sizes, size);
  }
  bench_print (&(BenchRow){.what = "muster serve, until it serves",
                           .muster = bench_median (starts),
                           .other = bench_median (bare_starts),
                           .name = "a bare gRPC server",
                           .bound_ratio = 1.3});
  bench_print (&(BenchRow){.what = "muster serve, idle",
                           .unit = BENCH_BYTES,
                           .muster = bench_median (sizes),
                           .bound = 30e6});
}

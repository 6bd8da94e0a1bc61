// SPDX-License-Identifier: Apache-2.0
/* How a step grows with its tensors and with the threads that run it at once. For variables see
 * scale.c, for connections clients.c. */
#include "bench/bench.h"

#include "engine/session/local_master.h"

/* --- tensors --- */

static void
measure_tensors (void)
{
  static const struct {
    const char *name;
    gint64 n_bytes;
    guint n_rounds;
  } sizes[] = {{"1 KiB", G_GINT64_CONSTANT (1) << 10, 2000},
               {"1 MiB", G_GINT64_CONSTANT (1) << 20, 200},
               {"64 MiB", G_GINT64_CONSTANT (64) << 20, 15},
               {"1 GiB", G_GINT64_CONSTANT (1) << 30, 5}};
  g_autofree char *address = NULL;
  g_autoptr (BenchChild) server = bench_serve_command (NULL, &address);
  g_autoptr (MusterMaster) master = bench_remote (address);
  g_autoptr (MusterGraph) graph = bench_negation ();
  g_autoptr (MusterSession) session = bench_create_session (master, graph);
  double before = 0;
  for (gsize i = 0; i < G_N_ELEMENTS (sizes); i++) {
    g_autoptr (MusterTensor) x = bench_ones (sizes[i].n_bytes / (gint64)sizeof (float));
    g_autoptr (GArray) seconds = g_array_new (FALSE, FALSE, sizeof (double));
    for (guint round = 0; round <= sizes[i].n_rounds; round++) {
      const double took = bench_negate (session, x);
      if (round > 0) /* memory is new to the first */
        g_array_append_val (seconds, took);
    }
    const double median = bench_median (seconds);
    g_autofree char *what = g_strdup_printf ("%s fed, negated and fetched", sizes[i].name);
    const double times = i > 0 ? (double)sizes[i].n_bytes / (double)sizes[i - 1].n_bytes : 0;
    bench_print (&(BenchRow){.what = what,
                             .muster = median,
                             .other = times * before,
                             .name = i > 0 ? "as many of the row before" : NULL,
                             .bound_ratio = 1});
    before = median;
  }
}

/* --- threads --- */

#define N_STEPS  20000 /* of each thread, in a round */
#define N_ROUNDS 9

typedef struct {
  MusterSession *session;
  MusterTensor *x;
} Worker;

static gpointer
work (gpointer data)
{
  const Worker *self = data;
  for (int i = 0; i < N_STEPS; i++)
    (void)bench_negate (self->session, self->x);
  return NULL;
}

/* The median of a step's seconds, all threads together. */
static double
measure_threads_at (Worker *worker, guint n)
{
  GThread *threads[8];
  g_autoptr (GArray) seconds = g_array_new (FALSE, FALSE, sizeof (double));
  for (int round = 0; round < N_ROUNDS; round++) {
    const double started = bench_now_s ();
    for (guint i = 0; i < n; i++)
      threads[i] = g_thread_new ("steps", work, worker);
    for (guint i = 0; i < n; i++)
      g_thread_join (threads[i]);
    const double each = (bench_now_s () - started) / (N_STEPS * n);
    g_array_append_val (seconds, each);
  }
  return bench_median (seconds);
}

static void
measure_threads (void)
{
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterGraph) graph = bench_negation ();
  g_autoptr (MusterSession) session = bench_create_session (master, graph);
  g_autoptr (MusterTensor) x = bench_ones (4);
  Worker worker = {session, x};
  double alone = 0;
  for (guint n = 1; n <= 8; n *= 2) {
    const double each = measure_threads_at (&worker, n);
    g_autofree char *what =
        g_strdup_printf ("a step of this process, %u thread%s at once", n, n == 1 ? "" : "s");
    bench_print (&(BenchRow){.what = what,
                             .muster = each,
                             .other = alone,
                             .name = n > 1 ? "one thread" : NULL,
                             .bound_ratio = 1});
    if (n == 1)
      alone = each;
  }
}

void
bench_growth (void)
{
  measure_tensors ();
  measure_threads ();
}

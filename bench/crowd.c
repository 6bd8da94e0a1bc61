// SPDX-License-Identifier: Apache-2.0
/* What very many watchers cost one server. */
#include "bench/bench.h"

#define N_VARIABLES 100
#define IDLE_S      5.0
/* For what the server lets go of after the last of them has come. */
#define SETTLE_S 1.0

typedef struct {
  const char *name; /* "10,000 watchers, 100 connections" */
  guint n_connections;
  guint n_watchers;
  double bytes_each; /* the bound */
} Crowd;

static void
print_crowd (const Crowd *crowd, const char *what, BenchUnit unit, double value, double bound)
{
  g_autofree char *text = g_strdup_printf ("%s: %s", crowd->name, what);
  bench_print (&(BenchRow){.what = text, .unit = unit, .muster = value, .bound = bound});
}

/* Everything is measured before anything is printed: a printed line is work, too. */
static void
measure (const Crowd *crowd, const char *const *options, const char *ca)
{
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterGraph) model = bench_model (N_VARIABLES, &ready_op);
  g_autofree char *address = NULL;
  g_autoptr (BenchChild) server = bench_serve_command (options, &address);
  int pid = bench_child_pid (server);
  bench_need_files (pid, crowd->n_connections + 200);

  BenchCrowdOptions asked = {address, ca, 1, 1, model, ready_op};
  g_autoptr (BenchCrowd) first =
      bench_crowd_new (&asked); /* what is there once, for one as for all */
  bench_crowd_watch (first);
  double empty = bench_resident_bytes (pid);
  asked.n_connections = crowd->n_connections;
  asked.n_watchers = crowd->n_watchers;
  double started_s = bench_now_s ();
  g_autoptr (BenchCrowd) all = bench_crowd_new (&asked);
  bench_crowd_watch (all);
  double gathered_s = bench_now_s () - started_s;
  bench_sleep_s (SETTLE_S);
  double full = bench_resident_bytes (pid);

  double before_s = bench_cpu_s (pid);
  bench_sleep_s (IDLE_S);
  double idle = (bench_cpu_s (pid) - before_s) / IDLE_S;

  BenchCrowdOptions chief_asks = asked;
  chief_asks.n_connections = chief_asks.n_watchers = 1;
  g_autoptr (MusterMaster) master = bench_remote (address);
  g_autoptr (MusterSession) chief = bench_create_session (master, model);
  bench_init (chief);
  double ready_s = bench_now_s ();
  double told_s = bench_crowd_until_ready (all) - ready_s;

  print_crowd (crowd, "made", BENCH_SECONDS, gathered_s, 0);
  print_crowd (crowd, "all told", BENCH_SECONDS, told_s, 1);
  print_crowd (crowd, "each", BENCH_BYTES, (full - empty) / crowd->n_watchers, crowd->bytes_each);
  print_crowd (crowd, "idle", BENCH_SHARE, idle, 0.01);
}

void
bench_crowd (void)
{
  measure (&(Crowd){"10,000 watchers, 100 connections", 100, 10000, 20e3}, NULL, NULL);
}

void
bench_crowd_apart (void)
{
  measure (&(Crowd){"5,000 watchers, 5,000 connections", 5000, 5000, 40e3}, NULL, NULL);
}

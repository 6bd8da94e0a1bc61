// SPDX-License-Identifier: Apache-2.0
#include "bench/bench.h"

#include <errno.h>
#include <sched.h>
#include <unistd.h>

#define N_ROUNDS      40
#define CALLS_A_ROUND 200

/* What a step takes, from one client to one master. */
typedef struct {
  BenchCallers *echo;     /* (nullable): an empty call instead */
  int pid;                /* whose processor time is counted as well; 0: nobody's */
  gboolean is_client_too; /* and this process's */
  double cpu_s;           /* that, in all rounds */
  MusterSession *session; /* (owned) (nullable) */
  MusterTensor *x;        /* (owned) (nullable) */
  GArray *seconds;        /* (owned) one for each round */
} Way;

static void
add_once (Way *self)
{
  g_autoptr (GError) error = NULL;
  const MusterFeed feed = {"x:0", self->x};
  const char *fetch = "sum:0";
  g_autoptr (MusterTensor) sum = NULL;
  const MusterStep step = {.feeds = &feed,
                           .n_feeds = 1,
                           .fetches = &fetch,
                           .n_fetches = 1,
                           .deadline_us = MUSTER_WAIT_FOREVER};
  muster_session_run (self->session, &step, &sum, NULL, NULL, &error);
  bench_check (error, "running an addition");
}

static void
way_init (Way *self, const char *address)
{
  g_autoptr (MusterMaster) master = bench_remote (address);
  g_autoptr (MusterGraph) graph = bench_addition ();
  self->x = muster_tensor_new_float (40);
  self->session = bench_create_session (master, graph);
}

static void
way_clear (Way *self)
{
  g_clear_object (&self->session);
  g_clear_pointer (&self->x, muster_tensor_unref);
  g_clear_pointer (&self->seconds, g_array_unref);
}

static double
cpu_of (const Way *self)
{
  double cpu_s = self->pid != 0 ? bench_cpu_s (self->pid) : 0;
  return self->is_client_too ? cpu_s + bench_cpu_s (getpid ()) : cpu_s;
}

/* Turn by turn, so that what else the machine does falls on all alike. */
static void
measure (Way *ways, gsize n)
{
  for (gsize i = 0; i < n; i++)
    ways[i].seconds = g_array_new (FALSE, FALSE, sizeof (double));
  for (int round = -2; round < N_ROUNDS; round++)
    for (gsize i = 0; i < n; i++) {
      double cpu_s = cpu_of (&ways[i]), started = bench_now_s ();
      for (int call = 0; call < CALLS_A_ROUND; call++)
        if (ways[i].echo != NULL)
          bench_callers_run (ways[i].echo, 1);
        else
          add_once (&ways[i]);
      double each = (bench_now_s () - started) / CALLS_A_ROUND;
      if (round < 0) /* the first two warm up */
        continue;
      g_array_append_val (ways[i].seconds, each);
      ways[i].cpu_s += cpu_of (&ways[i]) - cpu_s;
    }
}

static void
run_on (int core)
{
  cpu_set_t set;
  CPU_ZERO (&set);
  for (int i = 0; i < CPU_SETSIZE; i++)
    if (core < 0 || i == core)
      CPU_SET (i, &set);
  if (sched_setaffinity (0, sizeof set, &set) != 0)
    bench_fail ("core %d: %s", core, g_strerror (errno));
}

/* The servers are all on one core, as in "step": what it costs to wake an idle one isn't the
 * gateway's. */
static void
gateway_placed (const char *placement, int client, int servers)
{
  run_on (servers); /* the children inherit it */
  g_autoptr (BenchChild) echo_server = bench_child_new_mode ("--serve-echo");
  g_autoptr (BenchChild) tensorflow = bench_tensorflow_child ("tensorflow_server.py", NULL);
  g_autoptr (BenchChild) ours = tensorflow == NULL ? bench_child_new_mode ("--serve-muster") : NULL;
  g_autofree char *echo_address = bench_child_line (echo_server);
  g_autofree char *master = bench_child_line (tensorflow != NULL ? tensorflow : ours);
  g_autofree char *option = g_strconcat ("--master=", master, NULL);
  g_autofree char *gateway_address = NULL;
  g_autoptr (BenchChild) gateway =
      bench_serve_command ((const char *const[]){option, NULL}, &gateway_address);
  run_on (client);

  g_autoptr (BenchCallers) echo = bench_echo_new (echo_address, 1);
  Way ways[] = {{.echo = echo, .pid = bench_child_pid (echo_server), .is_client_too = TRUE},
                {0},
                {.pid = bench_child_pid (gateway)}};
  way_init (&ways[1], master);
  way_init (&ways[2], gateway_address);
  measure (ways, G_N_ELEMENTS (ways));
  double echoed = bench_median (ways[0].seconds);
  double direct = bench_median (ways[1].seconds);
  double through = bench_median (ways[2].seconds);
  g_autofree char *what = g_strdup_printf ("a gateway's share of a RunStep, %s", placement);
  g_autofree char *whole = g_strdup_printf ("RunStep through a gateway, %s", placement);
  bench_print (&(BenchRow){.what = whole,
                           .muster = through,
                           .other = direct,
                           .name = tensorflow != NULL ? "TensorFlow itself" : "muster itself"});
  bench_print (&(BenchRow){.what = what,
                           .muster = through - direct,
                           .other = echoed,
                           .name = "an empty call",
                           .bound_ratio = 1.5});
  g_autofree char *busy = g_strdup_printf ("a gateway's processor time for it, %s", placement);
  const double n_calls = (double)N_ROUNDS * CALLS_A_ROUND;
  bench_print (&(BenchRow){.what = busy,
                           .muster = ways[2].cpu_s / n_calls,
                           .other = ways[0].cpu_s / n_calls,
                           .name = "both ends of one",
                           .bound_ratio = 1.5});
  for (gsize i = 0; i < G_N_ELEMENTS (ways); i++)
    way_clear (&ways[i]);
}

void
bench_gateway (void)
{
  gateway_placed ("one core", 0, 0);
  if (g_get_num_processors () > 1)
    gateway_placed ("two cores", 0, 1);
  run_on (-1);
}

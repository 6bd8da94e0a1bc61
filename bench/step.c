// SPDX-License-Identifier: Apache-2.0
#include "bench/bench.h"

#include "engine/session/local_master.h"
#include "server/server.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_ROUNDS      40
#define CALLS_A_ROUND 250
#define LOCAL_A_ROUND 20000

int
bench_serve_muster (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterServer) server = muster_server_new (master, NULL);
  int port = muster_server_listen (server, "127.0.0.1:0", &error);
  bench_check (error, "serving");
  muster_server_start (server);
  printf ("127.0.0.1:%d\n", port);
  fflush (stdout);
  return getchar () == EOF ? 0 : 1;
}

/* Something to be timed many times over. */
typedef struct {
  void (*run) (gpointer data);
  gpointer data;
  GArray *seconds; /* (owned) one for each round */
} Subject;

static void
echo_once (gpointer data)
{
  bench_callers_run (data, 1);
}

/* One addition. */
typedef struct {
  MusterSession *session; /* (owned) */
  MusterTensor *x;        /* (owned) */
} Addition;

static void
add_once (gpointer data)
{
  Addition *self = data;
  g_autoptr (GError) error = NULL;
  const MusterFeed feed = {"x:0", self->x};
  const char *fetch = "sum:0";
  MusterTensor *sum = NULL;
  MusterStep step = {.feeds = &feed,
                     .n_feeds = 1,
                     .fetches = &fetch,
                     .n_fetches = 1,
                     .deadline_us = MUSTER_WAIT_FOREVER};
  muster_session_run (self->session, &step, &sum, NULL, NULL, &error);
  bench_check (error, "running an addition");
  muster_tensor_unref (sum);
}

static void
addition_init (Addition *self, MusterMaster *master)
{
  g_autoptr (MusterGraph) graph = bench_addition ();
  self->x = muster_tensor_new_float (40);
  self->session = bench_create_session (master, graph);
}

static void
addition_clear (Addition *self)
{
  g_clear_object (&self->session);
  g_clear_pointer (&self->x, muster_tensor_unref);
}

/* Turn by turn, so that what else the machine does falls on all alike. */
static void
measure (Subject *subjects, gsize n, int n_rounds, int n_calls)
{
  for (gsize i = 0; i < n; i++)
    subjects[i].seconds = g_array_new (FALSE, FALSE, sizeof (double));
  for (int round = -2; round < n_rounds; round++)
    for (gsize i = 0; i < n; i++) {
      double started = bench_now_s ();
      for (int call = 0; call < n_calls; call++)
        subjects[i].run (subjects[i].data);
      double each = (bench_now_s () - started) / n_calls;
      if (round >= 0) /* the first two warm up */
        g_array_append_val (subjects[i].seconds, each);
    }
}

static double
median_of (Subject *subject)
{
  double median = bench_median (subject->seconds);
  g_clear_pointer (&subject->seconds, g_array_unref);
  return median;
}

/* Where the client and the servers run. Left to itself the scheduler puts one server beside the
 * client and another on the other core, and keeps it so; waking an idle core costs as much as the
 * call. So each placement is measured for all alike. */
typedef struct {
  const char *name;
  int client, servers; /* cores */
  double bound_ratio;  /* of an empty call */
} Placement;

static void
run_on (int core)
{
  cpu_set_t set;
  CPU_ZERO (&set);
  CPU_SET (core, &set);
  if (sched_setaffinity (0, sizeof set, &set) != 0)
    bench_fail ("core %d: %s", core, g_strerror (errno));
}

static void
run_anywhere (void)
{
  cpu_set_t set;
  CPU_ZERO (&set);
  for (int core = 0; core < CPU_SETSIZE; core++)
    CPU_SET (core, &set);
  (void)sched_setaffinity (0, sizeof set, &set); /* the kernel takes those that there are */
}

static void
print_steps (const Placement *placement, double added, double echoed, double theirs)
{
  g_autofree char *what = g_strdup_printf ("RunStep of an addition, %s", placement->name);
  bench_print (&(BenchRow){.what = what,
                           .muster = added,
                           .other = echoed,
                           .name = "an empty call",
                           .bound_ratio = placement->bound_ratio});
  if (theirs > 0)
    bench_print (&(BenchRow){.what = what,
                             .muster = added,
                             .other = theirs,
                             .name = "TensorFlow",
                             .bound_ratio = 1.0 / 3});
}

static void
step_placed (const Placement *placement)
{
  run_on (placement->servers); /* the children inherit it */
  g_autoptr (BenchChild) echo_server = bench_child_new_mode ("--serve-echo");
  g_autoptr (BenchChild) server = bench_child_new_mode ("--serve-muster");
  g_autoptr (BenchChild) tensorflow = bench_tensorflow_child ("tensorflow_server.py", NULL);
  run_on (placement->client);
  g_autofree char *echo_address = bench_child_line (echo_server);
  g_autofree char *address = bench_child_line (server);
  g_autofree char *tf_address = tensorflow != NULL ? bench_child_line (tensorflow) : NULL;

  g_autoptr (BenchCallers) echo = bench_echo_new (echo_address, 1);
  g_autoptr (MusterMaster) ours = bench_remote (address);
  g_autoptr (MusterMaster) theirs = tensorflow != NULL ? bench_remote (tf_address) : NULL;
  Addition here = {0}, there = {0};
  addition_init (&here, ours);
  if (theirs != NULL)
    addition_init (&there, theirs);
  Subject subjects[] = {{echo_once, echo, NULL}, {add_once, &here, NULL}, {add_once, &there, NULL}};
  measure (subjects, theirs != NULL ? 3 : 2, N_ROUNDS, CALLS_A_ROUND);
  double echoed = median_of (&subjects[0]), added = median_of (&subjects[1]);
  print_steps (placement, added, echoed, theirs != NULL ? median_of (&subjects[2]) : 0);
  addition_clear (&here);
  addition_clear (&there);
}

void
bench_step_remote (void)
{
  step_placed (&(Placement){"one core", 0, 0, 1.25});
  if (g_get_num_processors () > 1)
    step_placed (&(Placement){"two cores", 0, 1, 1.1});
  run_anywhere ();
}

/* --- the same, with what the server logs --- */

/* A server whose log goes nowhere: what remains is what it costs to make it. */
static BenchChild *
serve_logging (const char *level, MusterMaster **master)
{
  g_autofree char *command = g_strdup_printf (
      "exec cli/muster serve --listen=127.0.0.1:0 --log-level=%s --log-format=text 2>/dev/null",
      level);
  BenchChild *server = bench_child_new ((const char *const[]){"sh", "-c", command, NULL});
  g_autofree char *line = bench_child_line (server);
  const char *scheme_end = strstr (line, "://");
  if (scheme_end == NULL)
    bench_fail ("'muster serve' printed '%s'", line);
  *master = bench_remote (scheme_end + strlen ("://"));
  return server;
}

void
bench_step_logged (void)
{
  static const char *const levels[] = {"warning", "info", "debug"};
  BenchChild *servers[G_N_ELEMENTS (levels)];
  MusterMaster *masters[G_N_ELEMENTS (levels)];
  Addition additions[G_N_ELEMENTS (levels)] = {{0}};
  Subject subjects[G_N_ELEMENTS (levels)];
  double seconds[G_N_ELEMENTS (levels)];
  run_on (0);
  for (gsize i = 0; i < G_N_ELEMENTS (levels); i++) {
    servers[i] = serve_logging (levels[i], &masters[i]);
    addition_init (&additions[i], masters[i]);
    subjects[i] = (Subject){add_once, &additions[i], NULL};
  }
  measure (subjects, G_N_ELEMENTS (levels), N_ROUNDS, CALLS_A_ROUND);
  for (gsize i = 0; i < G_N_ELEMENTS (levels); i++) {
    g_autofree char *what = g_strdup_printf ("RunStep, the server logs at %s", levels[i]);
    seconds[i] = median_of (&subjects[i]);
    bench_print (&(BenchRow){.what = what,
                             .muster = seconds[i],
                             .other = i > 0 ? seconds[0] : 0,
                             .name = "at warning",
                             .bound_ratio = i == 1 ? 1.05 : 0});
    addition_clear (&additions[i]);
    g_object_unref (masters[i]);
    bench_child_free (servers[i]);
  }
  run_anywhere ();
}

void
bench_step_local (void)
{
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  Addition here = {0};
  addition_init (&here, master);
  Subject subject = {add_once, &here, NULL};
  measure (&subject, 1, N_ROUNDS, LOCAL_A_ROUND);
  addition_clear (&here);

  g_autoptr (BenchChild) tensorflow = bench_tensorflow_child ("tensorflow_step.py", NULL);
  g_autofree char *theirs = tensorflow != NULL ? bench_child_line (tensorflow) : NULL;
  bench_print (&(BenchRow){.what = "the same in this process",
                           .muster = median_of (&subject),
                           .other = theirs != NULL ? g_ascii_strtod (theirs, NULL) : 0,
                           .name = theirs != NULL ? "Python" : NULL,
                           .bound = 3e-6});
}

// SPDX-License-Identifier: Apache-2.0
/* What waiting costs TensorFlow's server, which can't push. */
#include "bench/bench.h"

#define N_VARIABLES 100
#define N_WATCHERS  500
#define N_POLLERS   64
#define SETTLE_S    3.0
#define WINDOW_S    10.0

/* A gateway and those who watch it. */
typedef struct {
  BenchRelay *relay;   /* (owned) between the gateway and TensorFlow: counts */
  BenchChild *gateway; /* (owned) */
  BenchCrowd *crowd;   /* (owned) */
} Front;

static void
front_init (Front *self, const char *tensorflow, MusterGraph *model, const char *ready_op, guint n)
{
  g_autofree char *address = NULL;
  self->relay = bench_relay_new (tensorflow);
  g_autofree char *master =
      g_strconcat ("--master=grpc://", bench_relay_address (self->relay), NULL);
  self->gateway = bench_serve_command ((const char *const[]){master, NULL}, &address);
  self->crowd = bench_crowd_new (&(BenchCrowdOptions){.address = address,
                                                      .n_connections = n,
                                                      .n_watchers = n,
                                                      .model = model,
                                                      .ready_op = ready_op});
}

static void
front_clear (Front *self)
{
  g_clear_pointer (&self->crowd, bench_crowd_free);
  g_clear_pointer (&self->gateway, bench_child_free);
  g_clear_pointer (&self->relay, bench_relay_free);
}

/* Both gateways on one server, in the same seconds: what slows one down slows the other down. */
static void
compare_fronts (const char *tensorflow, MusterGraph *model, const char *ready_op)
{
  Front one = {0}, many = {0};
  front_init (&many, tensorflow, model, ready_op, N_WATCHERS);
  front_init (&one, tensorflow, model, ready_op, 1);
  bench_crowd_watch (many.crowd);
  bench_crowd_watch (one.crowd);
  bench_sleep_s (SETTLE_S);
  gint64 n_one = bench_relay_n_steps (one.relay), n_many = bench_relay_n_steps (many.relay);
  bench_sleep_s (WINDOW_S);
  n_one = bench_relay_n_steps (one.relay) - n_one;
  n_many = bench_relay_n_steps (many.relay) - n_many;
  bench_print (&(BenchRow){.what = "polls in 10 s for 500 watchers of a gateway",
                           .unit = BENCH_COUNT,
                           .muster = (double)n_many,
                           .other = (double)n_one,
                           .name = "one",
                           .bound_ratio = 1.1});
  front_clear (&one);
  front_clear (&many);
}

typedef struct {
  MusterSessionManager *manager; /* (not owned) */
  MusterMaster *master;          /* (not owned) */
  GCancellable *end;             /* (not owned) */
} Poller;

static gpointer
poll_thread (gpointer data)
{
  Poller *self = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = muster_session_manager_wait_for_session (
      self->manager, self->master, MUSTER_WAIT_FOREVER, NULL, self->end, &error);
  if (!g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    bench_fail ("polling ended early: %s", error != NULL ? error->message : "a model was ready");
  return NULL;
}

static void
load_by_pollers (const char *address, int pid, MusterGraph *model, const char *ready_op)
{
  g_autoptr (MusterMaster) master = bench_remote (address);
  g_autoptr (MusterSessionManager) manager = bench_manager (model, ready_op);
  g_autoptr (GCancellable) end = g_cancellable_new ();
  Poller poller = {manager, master, end};
  GThread *threads[N_POLLERS];
  for (int i = 0; i < N_POLLERS; i++)
    threads[i] = g_thread_new ("poller", poll_thread, &poller);
  bench_sleep_s (2 * SETTLE_S); /* their sessions have to be made first */
  double before_s = bench_cpu_s (pid);
  bench_sleep_s (WINDOW_S);
  double share = (bench_cpu_s (pid) - before_s) / WINDOW_S;
  g_cancellable_cancel (end);
  for (int i = 0; i < N_POLLERS; i++)
    g_thread_join (threads[i]);
  bench_print (&(BenchRow){.what = "64 pollers: TensorFlow's server, of one core",
                           .unit = BENCH_SHARE,
                           .muster = share,
                           .bound = 0.25});
}

void
bench_pollers (void)
{
  g_autoptr (BenchChild) tensorflow = bench_tensorflow_child ("tensorflow_server.py", NULL);
  if (tensorflow == NULL)
    return;
  g_autofree char *address = bench_child_line (tensorflow);
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterGraph) model = bench_model (N_VARIABLES, &ready_op);
  load_by_pollers (address, bench_child_pid (tensorflow), model, ready_op);
  compare_fronts (address, model, ready_op);
}

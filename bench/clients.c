// SPDX-License-Identifier: Apache-2.0
/* What a step costs when many clients run steps of one session at once, each on a connection of its
 * own: beside as many that make empty calls. */
#include "bench/bench.h"

#include "rpc/messages/run_step_private.h"

#define RUN_STEP     "/tensorflow.MasterService/RunStep"
#define N_ROUNDS     15
#define CALLS        4000 /* a round */
#define MOST_CLIENTS 1000

enum { EMPTY, STEP, N_PLACES };

/* Of one addition. */
static GBytes *
request_of (MusterSession *session)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) x = muster_tensor_new_float (40);
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  const MusterFeed feed = {"x:0", x};
  const char *fetch = "sum:0";
  const MusterStepRequest request = {.session_handle = muster_session_handle (session),
                                     .step = {.feeds = &feed,
                                              .n_feeds = 1,
                                              .fetches = &fetch,
                                              .n_fetches = 1,
                                              .deadline_us = MUSTER_WAIT_FOREVER}};
  muster_step_request_encode_run (&request, &rope, &error);
  bench_check (error, "encoding a step");
  return muster_rope_flatten (&rope);
}

typedef struct {
  char *address; /* (owned) */
  BenchChild *child;
  MusterSession *session; /* (owned) (nullable) for an empty call */
  GBytes *request;        /* (owned) (nullable) */
} Place;

static void
place_open (Place *self, BenchChild *child, gboolean has_steps)
{
  g_autoptr (MusterGraph) graph = bench_addition ();
  *self = (Place){.child = child, .address = bench_child_line (child)};
  bench_need_files (bench_child_pid (child), MOST_CLIENTS + 100);
  if (!has_steps)
    return;
  g_autoptr (MusterMaster) master = bench_remote (self->address);
  self->session = bench_create_session (master, graph);
  self->request = request_of (self->session);
}

static void
place_clear (Place *self)
{
  g_clear_object (&self->session);
  g_clear_pointer (&self->request, g_bytes_unref);
  g_clear_pointer (&self->address, g_free);
  g_clear_pointer (&self->child, bench_child_free);
}

static BenchCallers *
callers_of (const Place *place, guint n)
{
  BenchCallers *callers = place->request != NULL
                              ? bench_callers_new (place->address, RUN_STEP, place->request, n)
                              : bench_echo_new (place->address, n);
  bench_callers_run (callers, MAX (n * 2, CALLS / 4)); /* all are connected */
  return callers;
}

/* Turn by turn; medians of the seconds for each call. */
static void
measure (const Place *places, guint n, double *seconds)
{
  BenchCallers *callers[N_PLACES];
  GArray *rounds[N_PLACES];
  for (gsize i = 0; i < N_PLACES; i++) {
    callers[i] = callers_of (&places[i], n);
    rounds[i] = g_array_new (FALSE, FALSE, sizeof (double));
  }
  for (int round = 0; round < N_ROUNDS; round++)
    for (gsize i = 0; i < N_PLACES; i++) {
      const double started = bench_now_s ();
      bench_callers_run (callers[i], CALLS);
      const double each = (bench_now_s () - started) / CALLS;
      g_array_append_val (rounds[i], each);
    }
  for (gsize i = 0; i < N_PLACES; i++) {
    seconds[i] = bench_median (rounds[i]);
    g_array_unref (rounds[i]);
    bench_callers_free (callers[i]);
  }
}

static void
print_step (guint n, double seconds, double other, const char *name, double bound)
{
  g_autofree char *what = g_strdup_printf ("a step, %u client%s at once", n, n == 1 ? "" : "s");
  bench_print (&(BenchRow){
      .what = what, .muster = seconds, .other = other, .name = name, .bound_ratio = bound});
}

void
bench_clients (void)
{
  static const guint numbers[] = {1, 16, 64, 256, MOST_CLIENTS};
  Place places[N_PLACES];
  double alone = 0;
  place_open (&places[EMPTY], bench_child_new_mode ("--serve-echo"), FALSE);
  place_open (&places[STEP], bench_child_new_mode ("--serve-muster"), TRUE);
  for (gsize i = 0; i < G_N_ELEMENTS (numbers); i++) {
    double seconds[N_PLACES];
    measure (places, numbers[i], seconds);
    print_step (numbers[i], seconds[STEP], seconds[EMPTY], "an empty call", 1 / 0.85);
    if (i == 0)
      alone = seconds[STEP];
    else
      print_step (numbers[i], seconds[STEP], alone, "one client", 1);
  }
  for (gsize i = 0; i < N_PLACES; i++)
    place_clear (&places[i]);
}

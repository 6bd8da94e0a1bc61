// SPDX-License-Identifier: Apache-2.0
/* How many sessions a worker that polls for long leaves on the server. */
#include "bench/bench.h"

#define N_POLLS     10000
#define N_VARIABLES 100

/* A clock on which a pause takes no time: after N_POLLS of them it ends the wait, and asks how many
 * sessions the server holds at that moment. */
#define MUSTER_TYPE_BENCH_HASTY_CLOCK (muster_bench_hasty_clock_get_type ())
G_DECLARE_FINAL_TYPE (MusterBenchHastyClock, muster_bench_hasty_clock, MUSTER, BENCH_HASTY_CLOCK,
                      GObject)

struct _MusterBenchHastyClock {
  GObject parent;
  gint64 ahead_us;     /* of the machine's clock */
  const char *address; /* of the server that is asked */
  GCancellable *end;   /* (not owned) */
  guint n_pauses;
  gint64 sessions;
};

static void hasty_clock_iface_init (MusterClockInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterBenchHastyClock, muster_bench_hasty_clock, G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_CLOCK, hasty_clock_iface_init))

static gint64
hasty_now_us (MusterClock *clock)
{
  return g_get_monotonic_time () + MUSTER_BENCH_HASTY_CLOCK (clock)->ahead_us;
}

static gint64
hasty_wall_us (MusterClock *clock)
{
  return g_get_real_time () + MUSTER_BENCH_HASTY_CLOCK (clock)->ahead_us;
}

static gboolean
hasty_wait_until (MusterClock *clock, gint64 wake_us, GCancellable *cancellable, GError **error)
{
  MusterBenchHastyClock *self = MUSTER_BENCH_HASTY_CLOCK (clock);
  self->ahead_us += MAX (wake_us - hasty_now_us (clock), 0);
  if (++self->n_pauses == N_POLLS) {
    self->sessions = bench_status (self->address).sessions;
    g_cancellable_cancel (self->end);
  }
  return !g_cancellable_set_error_if_cancelled (cancellable, error);
}

static double
hasty_random (MusterClock *clock G_GNUC_UNUSED)
{
  return g_random_double ();
}

static void
hasty_clock_iface_init (MusterClockInterface *iface)
{
  iface->now_us = hasty_now_us;
  iface->wall_us = hasty_wall_us;
  iface->wait_until = hasty_wait_until;
  iface->random = hasty_random;
}

static void
muster_bench_hasty_clock_class_init (MusterBenchHastyClockClass *klass G_GNUC_UNUSED)
{
}

static void
muster_bench_hasty_clock_init (MusterBenchHastyClock *self G_GNUC_UNUSED)
{
}

void
bench_sessions (void)
{
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterGraph) model = bench_model (N_VARIABLES, &ready_op);
  g_autofree char *address = NULL;
  g_autoptr (BenchChild) server = bench_serve_command (NULL, &address);
  g_autoptr (BenchRelay) relay = bench_relay_new (address);
  g_autoptr (MusterMaster) master = bench_remote (bench_relay_address (relay));
  g_autoptr (GCancellable) end = g_cancellable_new ();
  g_autoptr (MusterBenchHastyClock) clock = g_object_new (MUSTER_TYPE_BENCH_HASTY_CLOCK, NULL);
  clock->address = address;
  clock->end = end;

  g_autoptr (GError) error = NULL;
  g_auto (MusterSessionReport) report = {0};
  MusterSessionManagerOptions options = {.ready_op = ready_op, .clock = MUSTER_CLOCK (clock)};
  g_autoptr (MusterSessionManager) manager = muster_session_manager_new (model, &options, &error);
  bench_check (error, "making a session manager");
  g_autoptr (MusterSession) session = muster_session_manager_wait_for_session (
      manager, master, MUSTER_WAIT_FOREVER, &report, end, &error);
  if (!g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    bench_fail ("polling ended early: %s", error != NULL ? error->message : "a model was ready");
  if (report.polls < N_POLLS || bench_relay_n_steps (relay) < N_POLLS)
    bench_fail ("only %u polls were made", report.polls);
  bench_print (&(BenchRow){.what = "sessions on the server after 10,000 polls",
                           .unit = BENCH_COUNT,
                           .muster = (double)clock->sessions,
                           .bound = 1});
}

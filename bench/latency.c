// SPDX-License-Identifier: Apache-2.0
/* From the end of a chief's init to those who wait for it. */
#include "bench/bench.h"

#include <glib/gstdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#define N_WAITERS      64
#define N_ROUNDS       10
#define N_VARIABLES    100
#define MANY_VARIABLES 10000

/* How long they have waited after their first look: a poller's pace has found itself. */
#define SETTLE_S 2.0
/* For 64 sessions of TensorFlow's SessionManager, which tells nobody how far it has come. */
#define GATHER_S 6.0

typedef struct {
  MusterSessionManager *manager; /* (not owned) */
  MusterMaster *master;          /* (not owned) */
  MusterSession *session;        /* (owned) what it waited for */
  double back_s;                 /* when it was back */
} Waiter;

static gpointer
wait_thread (gpointer data)
{
  Waiter *self = data;
  g_autoptr (GError) error = NULL;
  self->session = muster_session_manager_wait_for_session (self->manager, self->master,
                                                           120 * MUSTER_SECOND, NULL, NULL, &error);
  self->back_s = bench_now_s ();
  bench_check (error, "waiting for a session");
  return NULL;
}

/* The server of a round, muster's or TensorFlow's, and what is waited for. */
typedef struct {
  const char *address;
  MusterGraph *model;
  const char *ready_op;
} Place;

/* The manager's progress, on a waiter's thread: it has looked, and heard why not. */
static void
on_progress (const char *message G_GNUC_UNUSED, const MusterReadiness *readiness,
             GPtrArray *reasons G_GNUC_UNUSED, gpointer data)
{
  gint *n_polled = data;
  if (readiness != NULL && readiness->why_not_ready != NULL)
    g_atomic_int_inc (n_polled);
}

/* Not always the same way through a pause between two looks. */
static void
settle (void)
{
  bench_sleep_s (SETTLE_S + 0.3 * muster_clock_random (muster_system_clock ()));
}

/* From the end of init, in seconds. */
typedef struct {
  double median_s, last_s;
} Release;

static Release
release_of (const Waiter *waiters, double ended_s)
{
  g_autoptr (GArray) backs = g_array_new (FALSE, FALSE, sizeof (double));
  for (int i = 0; i < N_WAITERS; i++) {
    /* Some are back before the chief hears that its init has ended. */
    double back_s = MAX (waiters[i].back_s - ended_s, 1e-6);
    g_array_append_val (backs, back_s);
  }
  Release release = {.median_s = bench_median (backs)}; /* sorted by now */
  release.last_s = g_array_index (backs, double, N_WAITERS - 1);
  return release;
}

/* A chief's session over a model that has no values, whatever was there before. */
static MusterSession *
start_chief (MusterMaster *master, MusterGraph *model)
{
  g_autoptr (GError) error = NULL;
  muster_master_reset (master, NULL, MUSTER_WAIT_FOREVER, NULL, &error);
  bench_check (error, "resetting a server");
  return bench_create_session (master, model);
}

/* Threads of one program, which share its master, as threads do; each has a session of its own. */
static Release
release_once (const Place *place)
{
  g_autoptr (MusterMaster) master = bench_remote (place->address);
  g_autoptr (MusterSession) chief = start_chief (master, place->model);
  g_autoptr (MusterSessionManager) manager = bench_manager (place->model, place->ready_op);
  gint n_polled = 0;
  muster_session_manager_set_progress (manager, on_progress, &n_polled, NULL);
  g_autoptr (MusterMaster) shared = bench_remote (place->address);
  Waiter waiters[N_WAITERS];
  GThread *threads[N_WAITERS];
  for (int i = 0; i < N_WAITERS; i++) {
    waiters[i] = (Waiter){manager, shared, NULL, 0};
    threads[i] = g_thread_new ("waiter", wait_thread, &waiters[i]);
  }
  while (g_atomic_int_get (&n_polled) < N_WAITERS)
    bench_sleep_s (20e-3);
  settle ();

  bench_init (chief);
  double ended_s = bench_now_s ();
  for (int i = 0; i < N_WAITERS; i++)
    g_thread_join (threads[i]);
  for (int i = 0; i < N_WAITERS; i++)
    g_object_unref (waiters[i].session);
  return release_of (waiters, ended_s);
}

static Release
median_release (const Place *place, int n_rounds)
{
  g_autoptr (GArray) medians = g_array_new (FALSE, FALSE, sizeof (double));
  g_autoptr (GArray) lasts = g_array_new (FALSE, FALSE, sizeof (double));
  for (int i = 0; i < n_rounds; i++) {
    Release release = release_once (place);
    g_array_append_val (medians, release.median_s);
    g_array_append_val (lasts, release.last_s);
  }
  return (Release){bench_median (medians), bench_median (lasts)};
}

static Release
release_on_muster (guint n_variables, int n_rounds)
{
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterGraph) model = bench_model (n_variables, &ready_op);
  g_autofree char *address = NULL;
  g_autoptr (BenchChild) server = bench_serve_command (NULL, &address);
  return median_release (&(Place){address, model, ready_op}, n_rounds);
}

void
bench_waiters (void)
{
  bench_print (&(BenchRow){.what = "64 waiters go on, 10,000 variables: the last",
                           .muster = release_on_muster (MANY_VARIABLES, N_ROUNDS / 2).last_s,
                           .bound = 10e-3});
}

/* Their SessionManager in as many threads, on the same server: its pause is half a minute, so one
 * round has to do. */
static Release
release_theirs (const Place *place)
{
  g_autofree char *path = bench_model_file (muster_graph_bytes (place->model));
  g_autoptr (MusterMaster) master = bench_remote (place->address);
  g_autoptr (MusterSession) chief = start_chief (master, place->model);
  g_autofree char *n_waiters = g_strdup_printf ("%d", N_WAITERS);
  g_autoptr (BenchChild) tensorflow = bench_tensorflow_child (
      "tensorflow_wait.py",
      (const char *const[]){place->address, path, place->ready_op, n_waiters, NULL});
  g_autofree char *started = bench_child_line (tensorflow);
  bench_sleep_s (GATHER_S);
  settle ();

  bench_init (chief);
  double ended_s = bench_now_s ();
  Waiter waiters[N_WAITERS] = {0};
  for (int i = 0; i < N_WAITERS; i++) {
    g_autofree char *back = bench_child_line (tensorflow);
    waiters[i].back_s = g_ascii_strtod (back, NULL);
  }
  (void)g_remove (path); /* a temporary file: nothing hangs on it */
  return release_of (waiters, ended_s);
}

static void
latency_on_tensorflow (void)
{
  g_autoptr (BenchChild) server = bench_tensorflow_child ("tensorflow_server.py", NULL);
  if (server == NULL)
    return;
  g_autofree char *address = bench_child_line (server);
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterGraph) model = bench_model (N_VARIABLES, &ready_op);
  const Place place = {address, model, ready_op};
  Release ours = median_release (&place, N_ROUNDS);
  Release theirs = release_theirs (&place);
  bench_print (&(BenchRow){.what = "at TensorFlow's server: the median waiter",
                           .muster = ours.median_s,
                           .other = theirs.median_s,
                           .name = "TensorFlow, once",
                           .bound = 0.1});
  bench_print (&(BenchRow){.what = "at TensorFlow's server: the last",
                           .muster = ours.last_s,
                           .other = theirs.last_s,
                           .name = "TensorFlow, once",
                           .bound = 0.3});
}

/* --- processes --- */

static GSubprocess *
start_waiting (const char *address, const char *path)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *model = g_strconcat ("--meta-graph=", path, NULL);
  g_autofree char *master = g_strconcat ("--master=grpc://", address, NULL);
  GSubprocess *process =
      g_subprocess_new (G_SUBPROCESS_FLAGS_STDOUT_SILENCE | G_SUBPROCESS_FLAGS_STDERR_SILENCE,
                        &error, "cli/muster", "wait", model, master, "--timeout=2m", NULL);
  bench_check (error, "muster wait");
  return process;
}

/* What the processes that have ended have used of the processor. */
static double
ended_cpu_s (void)
{
  struct rusage usage;
  (void)getrusage (RUSAGE_CHILDREN, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

/* What running commands have used of it, with their threads that have ended: of which
 * ended_cpu_s () knows nothing yet. */
static double
commands_cpu_s (GSubprocess **commands)
{
  double sum = 0;
  for (int i = 0; i < N_WAITERS; i++) {
    const pid_t pid = atoi (g_subprocess_get_identifier (commands[i]));
    clockid_t clock;
    struct timespec used;
    if (clock_getcpuclockid (pid, &clock) != 0 || clock_gettime (clock, &used) != 0)
      bench_fail ("no clock of the process %d", (int)pid);
    sum += (double)used.tv_sec + (double)used.tv_nsec * 1e-9;
  }
  return sum;
}

/* From the end of init until the last of as many commands has ended; what each of them has used of
 * the processor for that goes to *cpu_s. */
static double
commands_once (const char *address, const char *path, MusterGraph *graph, gboolean pushes,
               double *cpu_s)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) master = bench_remote (address);
  g_autoptr (MusterSession) chief = start_chief (master, graph);
  GSubprocess *commands[N_WAITERS];
  for (int i = 0; i < N_WAITERS; i++)
    commands[i] = start_waiting (address, path);
  while (pushes && bench_status (address).watchers < N_WAITERS)
    bench_sleep_s (20e-3);
  if (!pushes)
    bench_sleep_s (GATHER_S);
  settle ();

  const double used_s = ended_cpu_s () + commands_cpu_s (commands);
  bench_init (chief);
  const double ended_s = bench_now_s ();
  for (int i = 0; i < N_WAITERS; i++) {
    g_subprocess_wait_check (commands[i], NULL, &error);
    bench_check (error, "muster wait");
    g_object_unref (commands[i]);
  }
  const double took_s = bench_now_s () - ended_s;
  *cpu_s = (ended_cpu_s () - used_s) / N_WAITERS;
  return took_s;
}

static void
measure_commands (const char *what, const char *address, gboolean pushes, double bound)
{
  g_autoptr (MusterMetaGraph) model = bench_saved_model (N_VARIABLES, 4);
  g_autofree char *path = bench_model_file (muster_meta_graph_bytes (model));
  g_autoptr (GArray) seconds = g_array_new (FALSE, FALSE, sizeof (double));
  g_autoptr (GArray) used = g_array_new (FALSE, FALSE, sizeof (double));
  for (int i = 0; i < N_ROUNDS / 2; i++) {
    double cpu_s;
    const double took =
        commands_once (address, path, muster_meta_graph_graph (model), pushes, &cpu_s);
    g_array_append_val (seconds, took);
    g_array_append_val (used, cpu_s);
  }
  (void)g_remove (path); /* a temporary file: nothing hangs on it */
  bench_print (&(BenchRow){.what = what, .muster = bench_median (seconds), .bound = bound});
  bench_print (
      &(BenchRow){.what = "  processor time of each for it", .muster = bench_median (used)});
}

void
bench_wait_commands (void)
{
  g_autofree char *ours = NULL;
  g_autoptr (BenchChild) server = bench_serve_command (NULL, &ours);
  measure_commands ("64 'muster wait', until the last has ended", ours, TRUE, 0.07);
  g_autoptr (BenchChild) tensorflow = bench_tensorflow_child ("tensorflow_server.py", NULL);
  g_autofree char *theirs = tensorflow != NULL ? bench_child_line (tensorflow) : NULL;
  if (theirs != NULL)
    measure_commands ("the same at TensorFlow's server", theirs, FALSE, 0.25);
}

void
bench_latency (void)
{
  bench_print (&(BenchRow){.what = "64 waiters go on, 100 variables: the last",
                           .muster = release_on_muster (N_VARIABLES, N_ROUNDS).last_s,
                           .bound = 10e-3});
  latency_on_tensorflow ();
}

// SPDX-License-Identifier: Apache-2.0
#include "bench/bench.h"

#include "base/unpack.h"
#include "session/session_manager.h"
#include "wire/proto/muster.pb-c.h"
#include "wire/rpc_client.h"

#include <glib/gstdio.h>
#include <stdio.h>

#define N_VARIABLES 10000
#define N_WAITERS   64
#define N_STARTS    5

static MusterSessionManager *
manager_new (MusterGraph *graph, const char *ready_op)
{
  g_autoptr (GError) error = NULL;
  MusterSessionManagerOptions options = {.ready_op = ready_op};
  MusterSessionManager *manager = muster_session_manager_new (graph, &options, &error);
  bench_check (error, "making a session manager");
  return manager;
}

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
  g_autoptr (MusterSessionManager) chief = manager_new (graph, ready_op);
  double started = bench_now_s ();
  g_autoptr (MusterSession) session = muster_session_manager_prepare_session (
      chief, master, &(MusterPrepareOptions){.init_op = "init"}, NULL, NULL, &error);
  bench_check (error, "preparing a session");
  *prepare_s = bench_now_s () - started;

  g_autoptr (MusterGraph) same = copy_of (model);
  g_autoptr (MusterMaster) again = bench_remote (address);
  g_autoptr (MusterSessionManager) worker = manager_new (same, ready_op);
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
  g_autoptr (GError) error = NULL;
  g_autofree char *path = NULL;
  int fd = g_file_open_tmp ("muster-bench-XXXXXX", &path, &error);
  bench_check (error, "writing the model for TensorFlow");
  GBytes *bytes = muster_graph_bytes (model);
  g_file_set_contents (path, g_bytes_get_data (bytes, NULL), (gssize)g_bytes_get_size (bytes),
                       &error);
  bench_check (error, "writing the model for TensorFlow");
  g_close (fd, NULL);
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
                           .bound_ratio = 1.0 / 60});
  bench_print (&(BenchRow){.what = "a worker joins them",
                           .muster = bench_median (joins),
                           .other = their_join_s,
                           .name = their_join_s > 0 ? "TensorFlow" : NULL,
                           .bound = 0.15});
}

/* --- many wait --- */

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

static gint32
n_watchers (MusterRpcClient *client)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_auto (MusterRope) nothing = MUSTER_ROPE_INIT;
  MusterRpcOptions options = {.deadline_us = MUSTER_WAIT_FOREVER};
  g_autoptr (GBytes) response =
      muster_rpc_client_call (client, "/muster.Readiness/About", &nothing, &options, NULL, &error);
  bench_check (error, "asking how many wait");
  const Muster__AboutResponse *about =
      muster_unpack (&muster__about_response__descriptor, g_bytes_get_data (response, NULL),
                     g_bytes_get_size (response), arena, "AboutResponse", &error);
  bench_check (error, "asking how many wait");
  return about->watchers;
}

static void
until_all_wait (const char *address)
{
  g_autoptr (MusterRpcClient) client = muster_rpc_client_new (address, NULL);
  MusterClock *clock = muster_system_clock ();
  while (n_watchers (client) < N_WAITERS)
    muster_clock_wait_until (clock, muster_clock_now_us (clock) + 20 * MUSTER_MILLISECOND, NULL,
                             NULL);
  /* The last of them has been counted; let it hear its first turn too. */
  muster_clock_wait_until (clock, muster_clock_now_us (clock) + 500 * MUSTER_MILLISECOND, NULL,
                           NULL);
}

/* From the end of the chief's init to the last waiter back: threads of one program, which share its
 * master, as threads do. */
static double
release_once (MusterGraph *model, const char *ready_op)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (BenchChild) server = bench_child_new_mode ("--serve-muster");
  g_autofree char *address = bench_child_line (server);
  g_autoptr (MusterMaster) master = bench_remote (address);
  g_autoptr (MusterSession) chief =
      muster_master_create_session (master, model, NULL, MUSTER_WAIT_FOREVER, NULL, &error);
  bench_check (error, "creating the chief's session");
  g_autoptr (MusterSessionManager) manager = manager_new (model, ready_op);
  g_autoptr (MusterMaster) shared = bench_remote (address);
  Waiter waiters[N_WAITERS];
  GThread *threads[N_WAITERS];
  for (int i = 0; i < N_WAITERS; i++) {
    waiters[i] = (Waiter){manager, shared, NULL, 0};
    threads[i] = g_thread_new ("waiter", wait_thread, &waiters[i]);
  }
  until_all_wait (address);

  muster_session_run_op (chief, "init", MUSTER_WAIT_FOREVER, NULL, &error);
  double ended_s = bench_now_s ();
  bench_check (error, "initialising");
  double last_s = 0;
  for (int i = 0; i < N_WAITERS; i++) {
    g_thread_join (threads[i]);
    last_s = MAX (last_s, waiters[i].back_s);
  }
  for (int i = 0; i < N_WAITERS; i++)
    g_object_unref (waiters[i].session);
  return MAX (last_s - ended_s, 1e-6);
}

void
bench_waiters (void)
{
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterGraph) model = bench_model (N_VARIABLES, &ready_op);
  g_autoptr (GArray) releases = g_array_new (FALSE, FALSE, sizeof (double));
  for (int i = 0; i < N_STARTS; i++) {
    double released = release_once (model, ready_op);
    g_array_append_val (releases, released);
  }
  bench_print (&(BenchRow){
      .what = "64 waiters go on after init", .muster = bench_median (releases), .bound = 10e-3});
}

/* --- the command --- */

static double
resident_bytes (int pid)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = g_strdup_printf ("/proc/%d/status", pid);
  g_autofree char *text = NULL;
  g_file_get_contents (path, &text, NULL, &error);
  bench_check (error, "reading the server's memory");
  const char *line = strstr (text, "VmRSS:");
  return line != NULL ? g_ascii_strtod (line + strlen ("VmRSS:"), NULL) * 1024 : 0;
}

void
bench_serve (void)
{
  const char *const argv[] = {"cli/muster", "serve", "--listen=127.0.0.1:0", NULL};
  if (!g_file_test (argv[0], G_FILE_TEST_IS_EXECUTABLE))
    bench_fail ("'%s' isn't here: run this with 'bazel run //bench'", argv[0]);
  g_autoptr (GArray) starts = g_array_new (FALSE, FALSE, sizeof (double));
  g_autoptr (GArray) sizes = g_array_new (FALSE, FALSE, sizeof (double));
  for (int i = 0; i < 2 * N_STARTS; i++) {
    double started = bench_now_s ();
    g_autoptr (BenchChild) server = bench_child_new (argv);
    g_autofree char *line = bench_child_line (server);
    double taken = bench_now_s () - started;
    if (!g_str_has_prefix (line, "serving grpc://"))
      bench_fail ("'muster serve' printed '%s'", line);
    double size = resident_bytes (bench_child_pid (server));
    g_array_append_val (starts, taken);
    g_array_append_val (sizes, size);
  }
  bench_print (&(BenchRow){
      .what = "muster serve, until it serves", .muster = bench_median (starts), .bound = 50e-3});
  bench_print (&(BenchRow){.what = "muster serve, idle",
                           .unit = BENCH_BYTES,
                           .muster = bench_median (sizes),
                           .bound = 30e6});
}

// SPDX-License-Identifier: Apache-2.0
/* What very many clients cost that wait for a server which isn't there, and how they come when it
 * is: threads of one process, each with a master and a wait of its own, and processes of "muster
 * wait". */
#include "bench/bench.h"

#include <stdio.h>
#include <unistd.h>

#define N_CLIENTS   1000
#define N_VARIABLES 100
#define WAITED_S    60.0
#define WINDOW_S    20.0
#define LIMIT_S     120.0
#define BOUND       0.1

/* --- the clients' process --- */

typedef struct {
  const char *address;
  MusterGraph *model;
  const char *ready_op;
} Clients;

static gpointer
wait_for_server (gpointer data)
{
  const Clients *clients = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) master = bench_remote (clients->address);
  g_autoptr (MusterSessionManager) manager = bench_manager (clients->model, clients->ready_op);
  g_autoptr (MusterSession) session = muster_session_manager_wait_for_session (
      manager, master, 3600 * MUSTER_SECOND, NULL, NULL, &error);
  bench_check (error, "waiting for a server");
  return NULL;
}

int
bench_wait_crowd (const char *address)
{
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterGraph) model = bench_model (N_VARIABLES, &ready_op);
  Clients clients = {address, model, ready_op};
  g_autoptr (GPtrArray) threads = g_ptr_array_new ();
  for (int i = 0; i < N_CLIENTS; i++)
    g_ptr_array_add (threads, g_thread_new ("client", wait_for_server, &clients));
  printf ("waiting\n");
  fflush (stdout);
  for (guint i = 0; i < threads->len; i++)
    g_thread_join (threads->pdata[i]);
  return 0;
}

/* --- and what they take --- */

/* From the server's listening until it has so many sessions. */
static double
time_sessions (const char *address, gint64 n)
{
  double listening_s = bench_now_s ();
  while (bench_status (address).sessions < n)
    if (bench_now_s () > listening_s + LIMIT_S)
      bench_fail ("not all clients have found their server in %g s", LIMIT_S);
    else
      bench_sleep_s (0.005);
  return bench_now_s () - listening_s;
}

static void
print (const char *who, double share, double all_s)
{
  g_autofree char *waited = g_strdup_printf ("%s have waited for 60 s: of a core", who);
  g_autofree char *came = g_strdup_printf ("%s: all in a session after the server's start", who);
  bench_print (&(BenchRow){.what = waited, .unit = BENCH_SHARE, .muster = share, .bound = BOUND});
  bench_print (&(BenchRow){.what = came, .muster = all_s});
}

static void
measure_threads (void)
{
  g_autofree char *address = bench_free_address ();
  g_autofree char *listen = g_strconcat ("--listen=", address, NULL);
  g_autofree char *bound = NULL;
  g_autoptr (BenchChild) clients = bench_child_new_mode_with ("--wait-crowd", address);
  g_free (bench_child_line (clients));
  bench_sleep_s (WAITED_S);
  double before_s = bench_cpu_s (bench_child_pid (clients)), began_s = bench_now_s ();
  bench_sleep_s (WINDOW_S);
  double share = (bench_cpu_s (bench_child_pid (clients)) - before_s) / (bench_now_s () - began_s);
  g_autoptr (BenchChild) server = bench_serve_command_at (listen, NULL, &bound);
  print ("1,000 clients", share, time_sessions (address, N_CLIENTS));
}

static GPtrArray *
start_processes (const char *address)
{
  g_autofree char *master = g_strconcat ("--master=grpc://", address, NULL);
  const char *const argv[] = {"cli/muster", "wait",   "--meta-graph=tests/fixtures/digits.meta",
                              master,       "--json", NULL};
  GPtrArray *all = g_ptr_array_new_with_free_func ((GDestroyNotify)bench_child_free);
  bench_need_files ((int)getpid (), 2 * N_CLIENTS + 200); /* two pipes each */
  for (int i = 0; i < N_CLIENTS; i++)
    g_ptr_array_add (all, bench_child_new (argv));
  return all;
}

static double
sum_cpu_s (GPtrArray *processes)
{
  double total_s = 0;
  for (guint i = 0; i < processes->len; i++)
    total_s += bench_fine_cpu_s (bench_child_pid (processes->pdata[i]));
  return total_s;
}

static void
measure_processes (void)
{
  g_autofree char *address = bench_free_address ();
  g_autofree char *listen = g_strconcat ("--listen=", address, NULL);
  g_autofree char *bound = NULL;
  g_autoptr (GPtrArray) processes = start_processes (address);
  bench_sleep_s (WAITED_S);
  double before_s = sum_cpu_s (processes), began_s = bench_now_s ();
  bench_sleep_s (WINDOW_S);
  double share = (sum_cpu_s (processes) - before_s) / (bench_now_s () - began_s);
  g_autoptr (BenchChild) server = bench_serve_command_at (listen, NULL, &bound);
  print ("1,000 processes", share, time_sessions (address, N_CLIENTS));
}

void
bench_recovery_crowd (void)
{
  measure_threads ();
  measure_processes ();
}

// SPDX-License-Identifier: Apache-2.0
/* What very many clients cost that wait for a server which isn't there, and how they come when it
 * is: as many processes of "muster wait". */
#include "bench/bench.h"

#include <unistd.h>

#define N_CLIENTS 1000
/* Each takes some 30 ms of a core to start, and so many start at a time. */
#define AT_A_TIME 20
#define WAITED_S  60.0
#define WINDOW_S  20.0

/* What the threads of a process have run for, to the nanosecond: it is a tick or two. */
static double
ran_s (int pid)
{
  g_autofree char *path = g_strdup_printf ("/proc/%d/task", pid);
  g_autoptr (GDir) tasks = g_dir_open (path, 0, NULL);
  double total_s = 0;
  const char *task;
  while (tasks != NULL && (task = g_dir_read_name (tasks)) != NULL) {
    g_autofree char *file = g_build_filename (path, task, "schedstat", NULL);
    g_autofree char *text = NULL;
    if (g_file_get_contents (file, &text, NULL, NULL)) /* it may have ended */
      total_s += g_ascii_strtod (text, NULL) * 1e-9;
  }
  return total_s;
}

static double
all_ran_s (BenchChild *const *clients)
{
  double total_s = 0;
  for (int i = 0; i < N_CLIENTS; i++)
    total_s += ran_s (bench_child_pid (clients[i]));
  return total_s;
}

static void
start_all (BenchChild **clients, const char *address)
{
  g_autofree char *master = g_strconcat ("--master=grpc://", address, NULL);
  const char *const argv[] = {
      "cli/muster", "wait", "--meta-graph=tests/fixtures/digits.meta", master, "--timeout=1h",
      "--json",     NULL};
  for (int i = 0; i < N_CLIENTS; i++) {
    clients[i] = bench_child_new (argv);
    if (i >= AT_A_TIME) /* it says that it waits */
      g_free (bench_child_line (clients[i - AT_A_TIME]));
  }
  for (int i = N_CLIENTS - AT_A_TIME; i < N_CLIENTS; i++)
    g_free (bench_child_line (clients[i]));
}

/* From the server's listening until it has so many sessions. */
static double
time_sessions (const char *address, gint64 n)
{
  double listening_s = bench_now_s ();
  while (bench_status (address).sessions < n && bench_now_s () < listening_s + WAITED_S)
    bench_sleep_s (0.005);
  return bench_now_s () - listening_s;
}

void
bench_recovery_crowd (void)
{
  g_autofree BenchChild **clients = g_new (BenchChild *, N_CLIENTS);
  g_autofree char *address = bench_free_address ();
  g_autofree char *listen = g_strconcat ("--listen=", address, NULL);
  g_autofree char *bound = NULL;
  bench_need_files ((int)getpid (), 3 * N_CLIENTS);
  start_all (clients, address);
  bench_sleep_s (WAITED_S);
  double before_s = all_ran_s (clients), began_s = bench_now_s ();
  bench_sleep_s (WINDOW_S);
  double share = (all_ran_s (clients) - before_s) / (bench_now_s () - began_s);
  bench_print (&(BenchRow){.what = "1,000 clients wait for 60 s: of a core",
                           .unit = BENCH_SHARE,
                           .muster = share,
                           .bound = 0.1});
  g_autoptr (BenchChild) server = bench_serve_command_at (listen, NULL, &bound);
  double all_s = time_sessions (address, N_CLIENTS);
  bench_print (&(BenchRow){.what = "1,000 clients: from the server's start, all in a session",
                           .muster = all_s});
  for (int i = 0; i < N_CLIENTS; i++)
    bench_child_free (clients[i]);
}

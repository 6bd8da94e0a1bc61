// SPDX-License-Identifier: Apache-2.0
/* What very many watchers cost one server. */
#include "bench/bench.h"

#include "master/remote/remote_master.h"
#include "rpc/credentials.h"

#include <glib/gstdio.h>

#define N_VARIABLES 100
#define IDLE_S      5.0
/* For what the server lets go of after the last of them has come. */
#define SETTLE_S 1.0

typedef struct {
  const char *name; /* "10,000 watchers, 100 connections" */
  guint n_connections;
  guint n_watchers;
  double report_s, bytes_each; /* the bounds; 0: none */
  const char *const *options;  /* (nullable) of "muster serve" */
  const char *certificate;     /* (nullable) the server's, a file: TLS */
} Crowd;

typedef struct {
  double gather_s;   /* until all watched */
  double bytes_each; /* of the server's memory */
  double idle;       /* the share of a core that it took while nothing changed */
  double report_s;   /* from readiness to the last */
} Cost;

static MusterSession *
chief_of (const Crowd *crowd, const char *address, MusterGraph *model)
{
  g_autoptr (GError) error = NULL;
  MusterRpcSecurity security = {.ca_file = crowd->certificate};
  g_autoptr (MusterRpcCredentials) credentials =
      crowd->certificate != NULL ? muster_rpc_credentials_new (&security, &error) : NULL;
  bench_check (error, "reading the certificate");
  g_autofree char *target =
      g_strconcat (crowd->certificate != NULL ? "grpcs://" : "grpc://", address, NULL);
  g_autoptr (MusterMaster) master = muster_remote_master_new_secured (target, credentials, &error);
  bench_check (error, target);
  return bench_create_session (master, model);
}

static Cost
measure_at (const Crowd *crowd, const BenchCrowdOptions *options, int pid)
{
  g_autoptr (MusterSession) chief = chief_of (crowd, options->address, options->model);
  BenchCrowdOptions alone = *options;
  alone.n_connections = alone.n_watchers = 1;
  g_autoptr (BenchCrowd) first = bench_crowd_new (&alone); /* brings in what is there once */
  bench_crowd_watch (first);

  Cost cost;
  double empty = bench_resident_bytes (pid), started_s = bench_now_s ();
  g_autoptr (BenchCrowd) all = bench_crowd_new (options);
  bench_crowd_watch (all);
  cost.gather_s = bench_now_s () - started_s;
  bench_sleep_s (SETTLE_S);
  cost.bytes_each = (bench_resident_bytes (pid) - empty) / crowd->n_watchers;

  double before_s = bench_cpu_s (pid);
  bench_sleep_s (IDLE_S);
  cost.idle = (bench_cpu_s (pid) - before_s) / IDLE_S;

  bench_init (chief);
  double ready_s = bench_now_s ();
  cost.report_s = bench_crowd_until_ready (all) - ready_s;
  return cost;
}

static void
print_part (const Crowd *crowd, const char *part, BenchUnit unit, double value, double bound)
{
  g_autofree char *what = g_strdup_printf ("%s: %s", crowd->name, part);
  bench_print (&(BenchRow){.what = what, .unit = unit, .muster = value, .bound = bound});
}

static void
measure (const Crowd *crowd)
{
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterGraph) model = bench_model (N_VARIABLES, &ready_op);
  g_autofree char *address = NULL;
  g_autofree char *ca = NULL;
  g_autoptr (GError) error = NULL;
  if (crowd->certificate != NULL)
    g_file_get_contents (crowd->certificate, &ca, NULL, &error);
  bench_check (error, "reading the certificate");
  g_autoptr (BenchChild) server = bench_serve_command (crowd->options, &address);
  int pid = bench_child_pid (server);
  bench_need_files (pid, crowd->n_connections + 200);

  BenchCrowdOptions options = {address,           ca,    crowd->n_connections,
                               crowd->n_watchers, model, ready_op};
  Cost cost = measure_at (crowd, &options, pid);
  print_part (crowd, "until all watch", BENCH_SECONDS, cost.gather_s, 0);
  print_part (crowd, "all told", BENCH_SECONDS, cost.report_s, crowd->report_s);
  print_part (crowd, "memory for each", BENCH_BYTES, cost.bytes_each, crowd->bytes_each);
  print_part (crowd, "of a core, at rest", BENCH_SHARE, cost.idle, 0.01);
}

void
bench_crowd (void)
{
  measure (&(Crowd){.name = "10,000 watch on 100 connections",
                    .n_connections = 100,
                    .n_watchers = 10000,
                    .report_s = 1,
                    .bytes_each = 20e3});
}

void
bench_crowd_apart (void)
{
  measure (&(Crowd){.name = "5,000 watch on 5,000 connections",
                    .n_connections = 5000,
                    .n_watchers = 5000,
                    .bytes_each = 40e3});
}

/* For this run: a certificate that signs itself. */
static void
make_certificate (const char *certificate, const char *key)
{
  const char *const command[] = {"openssl",
                                 "req",
                                 "-x509",
                                 "-newkey",
                                 "ec",
                                 "-pkeyopt",
                                 "ec_paramgen_curve:P-256",
                                 "-nodes",
                                 "-days",
                                 "2",
                                 "-subj",
                                 "/CN=bench",
                                 "-addext",
                                 "subjectAltName=IP:127.0.0.1",
                                 "-keyout",
                                 key,
                                 "-out",
                                 certificate,
                                 NULL};
  g_autoptr (GError) error = NULL;
  g_autofree char *said = NULL;
  int status = 0;
  g_spawn_sync (NULL, (char **)command, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, &said, &status,
                &error);
  bench_check (error, "making a certificate");
  if (!g_spawn_check_wait_status (status, NULL))
    bench_fail ("making a certificate: %s", said);
}

void
bench_crowd_tls (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *folder = bench_make_folder ();
  g_autofree char *certificate = g_build_filename (folder, "server.pem", NULL);
  g_autofree char *key = g_build_filename (folder, "server.key", NULL);
  make_certificate (certificate, key);
  g_autofree char *with_certificate = g_strconcat ("--tls-cert=", certificate, NULL);
  g_autofree char *with_key = g_strconcat ("--tls-key=", key, NULL);
  measure (&(Crowd){.name = "5,000 watch on 5,000 with TLS",
                    .n_connections = 5000,
                    .n_watchers = 5000,
                    .bytes_each = 120e3,
                    .options = (const char *const[]){with_certificate, with_key, NULL},
                    .certificate = certificate});
  (void)g_remove (certificate); /* temporary: nothing hangs on them */
  (void)g_remove (key);
  (void)g_rmdir (folder);
}

// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/commands.h"

#include "cli/common/cli.h"
#include "cli/output/notify.h"
#include "engine/session/local_master.h"
#include "rpc/server/open_files.h"
#include "server/server.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#define GRACE (2 * MUSTER_SECOND)
/* The minimum interval of status reports to the service manager. */
#define REPORT_INTERVAL_US MUSTER_SECOND

static const char summary[] =
    "Serves a master in this process: sessions and variables for a chief and its workers, with\n"
    "TensorFlow's MasterService as the protocol; readiness is pushed to waiting clients. Prints\n"
    "'serving grpc://HOST:PORT' when it serves (grpcs:// with TLS; also 'health grpc://HOST:PORT'\n"
    "for --health-listen and 'http http://HOST:PORT' for --http). Stops at SIGINT or SIGTERM.\n"
    "Variables are kept in memory only: save before you stop it.\n\n"
    "It listens on this machine only, except with a certificate or --insecure. A program that\n"
    "supports neither TLS nor tokens, such as TensorFlow, connects to a secured master through a\n"
    "local gateway: run `muster serve --master=grpcs://HOST:PORT --master-token-file=FILE` beside\n"
    "the program, and use grpc://localhost:2222 as its master.";

typedef struct {
  char *listen, *health_listen, *http, *target;              /* (owned) (nullable) */
  char *tls_cert, *tls_key, *tls_ca, *token;                 /* (owned) (nullable) files */
  char *master_cert, *master_key, *master_ca, *master_token; /* (owned) (nullable) files */
  char *idle_session, *chief_lease;                          /* (owned) (nullable) times */
  gint64 max_sessions, max_graph_bytes, max_steps, max_watchers, max_request_bytes, max_op_bytes;
  gboolean insecure;
  int port, health_port, http_port; /* the ports in use */
} Serve;

static void
serve_clear (Serve *self)
{
  char **texts[] = {
      &self->listen,       &self->health_listen, &self->http,      &self->target,
      &self->tls_cert,     &self->tls_key,       &self->tls_ca,    &self->token,
      &self->master_cert,  &self->master_key,    &self->master_ca, &self->master_token,
      &self->idle_session, &self->chief_lease,
  };
  for (gsize i = 0; i < G_N_ELEMENTS (texts); i++)
    g_free (*texts[i]);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Serve, serve_clear)

/* --- the command line --- */

static gboolean
parse (Serve *self, int argc, char **argv, GError **error)
{
  g_auto (MusterCliOptions) none = {0};
  const GOptionEntry entries[] = {
      {"listen", 0, 0, G_OPTION_ARG_STRING, &self->listen,
       "listen address (default: localhost:2222; port 0 selects a free port)", "HOST:PORT"},
      {"health-listen", 0, 0, G_OPTION_ARG_STRING, &self->health_listen,
       "listen address for gRPC health only (default: none; --listen also serves health)",
       "HOST:PORT"},
      {"http", 0, 0, G_OPTION_ARG_STRING, &self->http,
       "listen address for GET /healthz, /readyz and /metrics in OpenMetrics (default: none)",
       "HOST:PORT"},
      {"master", 0, 0, G_OPTION_ARG_STRING, &self->target,
       "master to serve: local, tensorflow[:PATH] for TensorFlow's own runtime, or "
       "grpc[s]://HOST:PORT for a gateway to another master (default: local)",
       "TARGET"},
      {"tls-cert", 0, 0, G_OPTION_ARG_FILENAME, &self->tls_cert,
       "server certificate in PEM form, which enables TLS (default: none, plain text)", "FILE"},
      {"tls-key", 0, 0, G_OPTION_ARG_FILENAME, &self->tls_key,
       "key of the certificate (default: none)", "FILE"},
      {"tls-ca", 0, 0, G_OPTION_ARG_FILENAME, &self->tls_ca,
       "CA certificate that client certificates are required to be signed by (default: none)",
       "FILE"},
      {"token-file", 0, 0, G_OPTION_ARG_FILENAME, &self->token,
       "file with the token that clients must send (default: none; health needs no token)", "FILE"},
      {"insecure", 0, 0, G_OPTION_ARG_NONE, &self->insecure,
       "accept connections from other machines without TLS", NULL},
      {"master-tls-ca", 0, 0, G_OPTION_ARG_FILENAME, &self->master_ca,
       "CA certificate for the master's certificate (default: the system's CA certificates)",
       "FILE"},
      {"master-tls-cert", 0, 0, G_OPTION_ARG_FILENAME, &self->master_cert,
       "client certificate for the master (default: none)", "FILE"},
      {"master-tls-key", 0, 0, G_OPTION_ARG_FILENAME, &self->master_key,
       "key of the client certificate (default: none)", "FILE"},
      {"master-token-file", 0, 0, G_OPTION_ARG_FILENAME, &self->master_token,
       "file with the token to send to the master (default: none)", "FILE"},
      {"max-sessions", 0, 0, G_OPTION_ARG_INT64, &self->max_sessions,
       "maximum number of sessions (default: 20000)", "N"},
      {"max-graph-bytes", 0, 0, G_OPTION_ARG_INT64, &self->max_graph_bytes,
       "maximum size of a graph (default: 1 GiB)", "N"},
      {"max-steps", 0, 0, G_OPTION_ARG_INT64, &self->max_steps,
       "maximum number of steps at once (default: 1000)", "N"},
      {"max-watchers", 0, 0, G_OPTION_ARG_INT64, &self->max_watchers,
       "maximum number of waiting clients (default: 50000)", "N"},
      {"max-request-bytes", 0, 0, G_OPTION_ARG_INT64, &self->max_request_bytes,
       "maximum size of a request (default: 2 GiB)", "N"},
      {"max-op-bytes", 0, 0, G_OPTION_ARG_INT64, &self->max_op_bytes,
       "maximum memory that one operation allocates (default: half of the machine's memory)", "N"},
      {"idle-session", 0, 0, G_OPTION_ARG_STRING, &self->idle_session,
       "time after which idle sessions are closed (default: never; sessions of muster's clients "
       "are closed when the client is gone)",
       "TIME"},
      {"chief-lease", 0, 0, G_OPTION_ARG_STRING, &self->chief_lease,
       "time without renewal after which a chief loses its lease (default: 15s)", "TIME"},
      {NULL}};
  return muster_cli_parse (argc, argv, "", summary, entries, 0, &none, NULL, error);
}

/* 0 if the option is absent: the default. */
static gboolean
check_limit (const char *flag, gint64 given, gint64 most, GError **error)
{
  if (given >= 0 && given <= most)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "%s=%" G_GINT64_FORMAT " is out of range (use 1 to %" G_GINT64_FORMAT, flag,
                      given, most);
}

static gboolean
read_limits (const Serve *self, MusterServerLimits *limits, GError **error)
{
  if (!check_limit ("--max-sessions", self->max_sessions, G_MAXINT, error) ||
      !check_limit ("--max-graph-bytes", self->max_graph_bytes, G_MAXINT64, error) ||
      !check_limit ("--max-steps", self->max_steps, G_MAXINT, error) ||
      !check_limit ("--max-watchers", self->max_watchers, G_MAXINT, error) ||
      !check_limit ("--max-request-bytes", self->max_request_bytes, G_MAXINT32, error))
    return FALSE;
  *limits = (MusterServerLimits){
      .sessions = (guint)self->max_sessions,
      .graph_bytes = (gsize)self->max_graph_bytes,
      .steps = (guint)self->max_steps,
      .watchers = (guint)self->max_watchers,
      .request_bytes = (gsize)self->max_request_bytes,
  };
  return TRUE;
}

/* Reads a time, which must be above 0; "forever" is stored as 0, as if absent. */
static gboolean
read_time (const char *flag, const char *text, gint64 *time_us, GError **error)
{
  if (text == NULL)
    return TRUE;
  if (!muster_cli_duration (text, time_us, error)) {
    g_prefix_error (error, "%s: ", flag);
    return FALSE;
  }
  if (*time_us >= MUSTER_SECOND)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "invalid %s '%s' (use 1s or more)",
                      flag, text);
}

static MusterMaster *
make_master (const Serve *self, GError **error)
{
  const MusterRpcSecurity files = {
      .certificate_file = self->master_cert,
      .key_file = self->master_key,
      .ca_file = self->master_ca,
      .token_file = self->master_token,
  };
  const MusterLocalMasterOptions options = {.max_op_bytes = (guint64)self->max_op_bytes};
  const char *target = self->target != NULL ? self->target : "local";
  if (!check_limit ("--max-op-bytes", self->max_op_bytes, G_MAXINT64, error))
    return NULL;
  if (self->max_op_bytes != 0 && !g_str_equal (target, "local")) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "--max-op-bytes has no effect on '%s': it limits operations that run in this "
                 "process; remove it, or use --master=local",
                 target);
    return NULL;
  }
  g_autoptr (MusterMaster) master = muster_cli_master_at (target, &files, error);
  if (master == NULL || self->max_op_bytes == 0)
    return g_steal_pointer (&master);
  return muster_local_master_new_with_options (&options);
}

/* No client is served yet, and a child that is starting ends with this process. */
static void
end_at_once (int number G_GNUC_UNUSED)
{
  _exit (MUSTER_EXIT_DONE);
}

/* While TensorFlow's runtime starts, a signal ends the process by a handler, since the default
 * action does nothing in a container's first process. */
static gboolean
await_master (MusterMaster *master, const sigset_t *ends, GError **error)
{
  if (!muster_master_is_remote (master))
    return TRUE;
  const struct sigaction at_once = {.sa_handler = end_at_once};
  sigaction (SIGINT, &at_once, NULL);
  sigaction (SIGTERM, &at_once, NULL);
  pthread_sigmask (SIG_UNBLOCK, ends, NULL);
  g_autoptr (MusterMaster) remote = muster_master_remote (master, MUSTER_WAIT_FOREVER, NULL, error);
  pthread_sigmask (SIG_BLOCK, ends, NULL);
  return remote != NULL;
}

static MusterServer *
make_server (const Serve *self, const sigset_t *ends, GError **error)
{
  const MusterRpcSecurity files = {
      .certificate_file = self->tls_cert,
      .key_file = self->tls_key,
      .ca_file = self->tls_ca,
      .token_file = self->token,
  };
  MusterServerOptions options = {.insecure = self->insecure};
  g_autoptr (GError) failed = NULL;
  g_autoptr (MusterRpcCredentials) credentials = muster_cli_read_credentials (&files, &failed);
  if (failed != NULL) {
    g_propagate_error (error, g_steal_pointer (&failed));
    return NULL;
  }
  if (!read_limits (self, &options.limits, error) ||
      !read_time ("--idle-session", self->idle_session, &options.idle_session_us, error) ||
      !read_time ("--chief-lease", self->chief_lease, &options.chief_lease_us, error))
    return NULL;
  options.credentials = credentials;
  g_autoptr (MusterMaster) master = make_master (self, error);
  if (master == NULL || !await_master (master, ends, error))
    return NULL;
  return muster_server_new (master, &options);
}

/* --- the ports --- */

static gboolean
take_ports (Serve *self, MusterServer *server, GError **error)
{
  if (self->listen == NULL)
    self->listen = g_strdup ("localhost:2222");
  self->port = muster_server_listen (server, self->listen, error);
  if (self->port == 0)
    return FALSE;
  if (self->health_listen != NULL) {
    self->health_port = muster_server_listen_health (server, self->health_listen, error);
    if (self->health_port == 0)
      return FALSE;
  }
  if (self->http == NULL)
    return TRUE;
  self->http_port = muster_server_listen_http (server, self->http, error);
  return self->http_port != 0;
}

/* Appends a line for a port, with the host of HOST:PORT. */
static void
append_port (GString *text, const char *what, const char *scheme, const char *address, int port)
{
  const char *colon = strrchr (address, ':');
  int n = colon != NULL ? (int)(colon - address) : (int)strlen (address);
  g_string_append_printf (text, "%s %s://%.*s:%d\n", what, scheme, n, address, port);
}

/* Written with one write: a reader of only the first line may be gone before a second one. */
static void
say_ports (const Serve *self)
{
  g_autoptr (GString) text = g_string_new (NULL);
  append_port (text, "serving", self->tls_cert != NULL ? "grpcs" : "grpc", self->listen,
               self->port);
  if (self->health_listen != NULL)
    append_port (text, "health", "grpc", self->health_listen, self->health_port);
  if (self->http != NULL)
    append_port (text, "http", "http", self->http, self->http_port);
  fwrite (text->str, 1, text->len, stdout);
  fflush (stdout);
}

/* --- waiting for the end --- */

static char *
status_of (MusterServer *server)
{
  MusterServerCounts counts;
  muster_server_count (server, &counts);
  return g_strdup_printf ("serving: %u sessions, %u waiting, %u of %u models ready",
                          counts.sessions, counts.watchers, counts.ready, counts.models);
}

/* Waits for one of the signals, at most until until_us. */
static gboolean
wait_for_end (const sigset_t *ends, gint64 until_us)
{
  gint64 left_us =
      muster_deadline_remaining (until_us, muster_clock_now_us (muster_system_clock ()));
  const struct timespec left = {
      .tv_sec = left_us / MUSTER_SECOND,
      .tv_nsec = left_us % MUSTER_SECOND * 1000,
  };
  return sigtimedwait (ends, NULL, &left) > 0;
}

/* Reports to the service manager until a signal comes. The watchdog is notified only while the
 * server answers. */
static void
report_until_end (MusterServer *server, const sigset_t *ends)
{
  MusterClock *clock = muster_system_clock ();
  gint64 beat_us = muster_notify_watchdog_us () / 2;
  gint64 interval_us = beat_us > 0 ? MIN (beat_us, REPORT_INTERVAL_US) : REPORT_INTERVAL_US;
  gint64 now_us = muster_clock_now_us (clock);
  gint64 next_beat_us = beat_us > 0 ? now_us : MUSTER_WAIT_FOREVER;
  gint64 next_report_us = now_us + REPORT_INTERVAL_US;
  g_autofree char *told = status_of (server);
  muster_notify ("READY=1\nSTATUS=%s", told);
  do {
    now_us = muster_clock_now_us (clock);
    if (now_us >= next_beat_us) {
      next_beat_us = now_us + beat_us;
      if (muster_server_check (server, beat_us, NULL))
        muster_notify ("WATCHDOG=1");
    }
    g_autofree char *status = status_of (server);
    if (now_us >= next_report_us && strcmp (status, told) != 0) {
      next_report_us = now_us + REPORT_INTERVAL_US;
      muster_notify_status (status);
      g_free (told);
      told = g_steal_pointer (&status);
    }
  } while (!wait_for_end (ends, now_us + interval_us));
  muster_notify ("STOPPING=1\nSTATUS=stopping");
}

static void
serve_until_end (MusterServer *server, const sigset_t *ends)
{
  int signal;
  if (g_getenv ("NOTIFY_SOCKET") != NULL)
    report_until_end (server, ends);
  else
    sigwait (ends, &signal);
}

int
muster_cli_serve (int argc, char **argv)
{
  g_auto (Serve) self = {0};
  g_autoptr (GError) error = NULL;
  if (!parse (&self, argc, argv, &error))
    return muster_cli_fail (error);

  /* Before any thread is created: all inherit the mask, and only sigwait receives these signals. */
  sigset_t ends;
  sigemptyset (&ends);
  sigaddset (&ends, SIGINT);
  sigaddset (&ends, SIGTERM);
  pthread_sigmask (SIG_BLOCK, &ends, NULL);

  muster_open_files_raise ();
  g_autoptr (MusterServer) server = make_server (&self, &ends, &error);
  if (server == NULL)
    return muster_cli_fail (error);
  if (!take_ports (&self, server, &error)) {
    muster_cli_fail (error);
    return MUSTER_EXIT_BAD_INPUT;
  }
  muster_server_start (server);
  say_ports (&self);
  serve_until_end (server, &ends);
  muster_server_stop (server, GRACE);
  return MUSTER_EXIT_DONE;
}

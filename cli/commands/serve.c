// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/commands.h"

#include "base/log_private.h"
#include "base/safe_text_private.h"
#include "base/version.h"
#include "cli/commands/serve_files.h"
#include "cli/commands/serve_listen.h"
#include "cli/commands/serve_options.h"
#include "cli/common/cli.h"
#include "cli/output/log.h"
#include "cli/output/notify.h"
#include "rpc/address_private.h"
#include "rpc/client/reach_probe_private.h"
#include "rpc/server/open_files_private.h"
#include "server/server.h"
#include "session/cluster/cluster_spec_private.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

/* The time for steps to end, once the chiefs have saved. */
#define STEPS_END_US  (2 * MUSTER_SECOND)
#define DRAIN_POLL_US (10 * MUSTER_MILLISECOND)
#define CHIEF_POLL_US (100 * MUSTER_MILLISECOND)
/* How long the chief's machine may take to answer, and how often it may fail to. */
#define CHIEF_ANSWER_US   MUSTER_SECOND
#define CHIEF_MOST_SILENT 5
/* The server of a task before, which was killed or stops, holds the gateway for a moment. */
#define GATEWAY_LIMIT_US (5 * MUSTER_SECOND)
/* The minimum interval of status reports to the service manager. */
#define REPORT_INTERVAL_US MUSTER_SECOND
/* The interval of looks at the files of certificates and tokens. */
#define LOOK_INTERVAL_US (2 * MUSTER_SECOND)

/* Of what graphs print: in ten seconds, and bytes of each. */
#define MOST_PRINTS   100
#define LONGEST_PRINT 4096

/* The ports in use; 0: not asked for. */
typedef struct {
  GString *lines; /* (owned) of --listen */
  int health, http;
} Ports;

static void
ports_clear (Ports *self)
{
  g_string_free (self->lines, TRUE);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Ports, ports_clear)

/* No client is served yet, and a child that is starting ends with this process. */
static void
end_at_once (int number G_GNUC_UNUSED)
{
  _exit (MUSTER_EXIT_DONE);
}

/* Where a signal isn't blocked, it ends the process by a handler, since the default action does
 * nothing in a container's first process. */
static void
take_signals (void)
{
  const struct sigaction at_once = {.sa_handler = end_at_once};
  sigaction (SIGINT, &at_once, NULL);
  sigaction (SIGTERM, &at_once, NULL);
}

/* A signal ends the process while TensorFlow's runtime starts. */
static gboolean
await_master (MusterMaster *master, GError **error)
{
  if (!muster_master_is_remote (master))
    return TRUE;
  muster_serve_set_signals_end (TRUE);
  g_autoptr (MusterMaster) remote = muster_master_remote (master, MUSTER_WAIT_FOREVER, NULL, error);
  muster_serve_set_signals_end (FALSE);
  return remote != NULL;
}

/* *master (transfer full) is what it serves. */
static MusterServer *
make_server (MusterServeOptions *options, MusterMaster **master, GError **error)
{
  MusterServerOptions server;
  if (!muster_serve_options_server (options, &server, error))
    return NULL;
  *master = muster_serve_options_master (options, error);
  return *master != NULL ? muster_server_new (*master, &server) : NULL;
}

/* --- the ports --- */

static gboolean
take_ports (Ports *self, const MusterServeOptions *options, MusterServer *server, GError **error)
{
  const gint64 patience_us = options->cluster != NULL ? GATEWAY_LIMIT_US : 0;
  if (!muster_serve_listen (server, options->addresses, options->tls_cert != NULL, patience_us,
                            self->lines, error))
    return FALSE;
  if (options->health_listen != NULL) {
    self->health = muster_server_listen_health (server, options->health_listen, error);
    if (self->health == 0)
      return FALSE;
  }
  if (options->http == NULL)
    return TRUE;
  self->http = muster_server_listen_http (server, options->http, error);
  return self->http != 0;
}

/* Written with one write: a reader of only the first line may be gone before a second one. */
static void
say_ports (const Ports *self, const MusterServeOptions *options)
{
  g_autoptr (GString) text = g_string_new (self->lines->str);
  if (self->health != 0)
    muster_serve_append_port (text, "health", "grpc", options->health_listen, self->health);
  if (self->http != 0)
    muster_serve_append_port (text, "http", options->tls_cert != NULL ? "https" : "http",
                              options->http, self->http);
  fwrite (text->str, 1, text->len, stdout);
  (void)muster_cli_flush (stdout);
}

/* --- the log --- */

/* The options in effect, of the command line and the file, as a shell would take them. They name
 * files with secrets, and hold none. (transfer full) */
static char *
configuration_of (const MusterServeOptions *options)
{
  GString *text = g_string_new (NULL);
  for (char **word = options->given + 1; *word != NULL; word++) {
    g_autofree char *quoted =
        strpbrk (*word, " \t\n\"'\\$`*?") != NULL ? g_shell_quote (*word) : g_strdup (*word);
    g_string_append_printf (text, "%s%s", text->len > 0 ? " " : "", quoted);
  }
  return g_string_free (text, FALSE);
}

static void
log_start (const Ports *self, const MusterServeOptions *options)
{
  g_autofree char *configuration = configuration_of (options);
  g_autoptr (GString) at = g_string_new (self->lines->str + strlen ("serving "));
  g_string_replace (at, "\nserving ", ", ", 0);
  g_strchomp (at->str);
  const char *target = options->target != NULL ? options->target : "local";
  muster_log (G_LOG_LEVEL_INFO, "start", "MUSTER_VERSION", MUSTER_VERSION, "MUSTER_PID",
              MUSTER_LOG_INT ((int)getpid ()), "MUSTER_MASTER", target, "MUSTER_ADDRESS", at->str,
              "MUSTER_CONFIGURATION", configuration, "MESSAGE",
              "muster " MUSTER_VERSION " serves %s at %s", target, at->str);
}

/* --- waiting for the end --- */

static char *
status_of (MusterServer *server)
{
  MusterServerCounts counts;
  muster_server_count (server, &counts);
  return g_strdup_printf ("serving: %u session%s, %u waiting, %u of %u model%s ready",
                          counts.sessions, counts.sessions == 1 ? "" : "s", counts.watchers,
                          counts.ready, counts.models, counts.models == 1 ? "" : "s");
}

/* Waits for one of the signals, at most until until_us. Returns its number, or -1. */
static int
wait_for_signal (const sigset_t *signals, gint64 until_us)
{
  gint64 left_us =
      muster_deadline_remaining (until_us, muster_clock_now_us (muster_system_clock ()));
  const struct timespec left = {
      .tv_sec = left_us / MUSTER_SECOND,
      .tv_nsec = left_us % MUSTER_SECOND * 1000,
  };
  return sigtimedwait (signals, NULL, &left);
}

/* The reports to the service manager. */
typedef struct {
  MusterServer *server; /* (not owned) */
  gint64 beat_us;       /* between two notices to the watchdog; 0: there is none */
  gint64 interval_us;
  gint64 next_beat_us, next_report_us;
  char *told; /* (owned) */
} Reports;

static void
reports_begin (Reports *self, MusterServer *server)
{
  gint64 beat_us = muster_notify_watchdog_us () / 2;
  gint64 now_us = muster_clock_now_us (muster_system_clock ());
  *self = (Reports){
      .server = server,
      .beat_us = beat_us,
      .interval_us = beat_us > 0 ? MIN (beat_us, REPORT_INTERVAL_US) : REPORT_INTERVAL_US,
      .next_beat_us = beat_us > 0 ? now_us : MUSTER_WAIT_FOREVER,
      .next_report_us = now_us + REPORT_INTERVAL_US,
      .told = status_of (server),
  };
  muster_notify ("READY=1\nSTATUS=%s", self->told);
}

/* The watchdog is notified only while the server answers. */
static void
report (Reports *self, gint64 now_us)
{
  if (now_us >= self->next_beat_us) {
    self->next_beat_us = now_us + self->beat_us;
    if (muster_server_check (self->server, self->beat_us, NULL))
      muster_notify ("WATCHDOG=1");
  }
  g_autofree char *status = status_of (self->server);
  if (now_us < self->next_report_us || strcmp (status, self->told) == 0)
    return;
  self->next_report_us = now_us + REPORT_INTERVAL_US;
  muster_notify_status (status);
  g_free (self->told);
  self->told = g_steal_pointer (&status);
}

/* Serves until a signal ends it. SIGHUP reads certificates and tokens again; those that changed are
 * read without it, too. */
static void
serve_until_end (MusterServer *server, const MusterServeOptions *options, const sigset_t *signals)
{
  const gboolean is_managed = g_getenv ("NOTIFY_SOCKET") != NULL;
  const gboolean has_files = options->credentials != NULL || options->master_credentials != NULL;
  Reports reports = {0};
  int number = 0;
  if (is_managed)
    reports_begin (&reports, server);
  do {
    gint64 now_us = muster_clock_now_us (muster_system_clock ());
    gint64 interval_us = is_managed ? reports.interval_us : LOOK_INTERVAL_US;
    if (is_managed)
      report (&reports, now_us);
    number = is_managed || has_files ? wait_for_signal (signals, now_us + interval_us)
                                     : sigwaitinfo (signals, NULL);
    if (number == SIGHUP)
      muster_serve_options_reload (options);
    else
      muster_serve_options_refresh (options);
  } while (number <= 0 || number == SIGHUP);
  g_free (reports.told);
}

/* --- the end --- */

/* Another signal ends the process at once. */
static void
let_signals_end (const sigset_t *signals)
{
  const struct sigaction ignored = {.sa_handler = SIG_IGN};
  sigaction (SIGHUP, &ignored, NULL);
  pthread_sigmask (SIG_UNBLOCK, signals, NULL);
}

/* Waits until the chiefs have saved, at most until end_us. */
static void
drain (MusterServer *server, gint64 grace_us, gint64 end_us)
{
  MusterClock *clock = muster_system_clock ();
  const gint64 left_us = muster_deadline_remaining (end_us, muster_clock_now_us (clock));
  g_autofree char *told = NULL;
  muster_log (G_LOG_LEVEL_INFO, "drain", "MUSTER_SECONDS", MUSTER_LOG_SECONDS (grace_us), "MESSAGE",
              "draining: no new sessions; chiefs save");
  muster_server_drain (server, MAX (left_us, 1));
  for (;;) {
    g_autofree char *awaited = NULL;
    gint64 now_us = muster_clock_now_us (clock);
    if (muster_server_is_drained (server, &awaited) || now_us >= end_us)
      return;
    if (g_strcmp0 (awaited, told) != 0) {
      muster_notify ("STATUS=draining: waiting for the chief of %s to save", awaited);
      muster_log (G_LOG_LEVEL_INFO, "drain", "MESSAGE", "waiting for the chief of %s to save",
                  awaited);
    }
    g_free (told);
    told = g_steal_pointer (&awaited);
    (void)muster_clock_wait_until (clock, now_us + DRAIN_POLL_US, NULL, NULL);
  }
}

/* A parameter server stops last: a chief whose server stops, too, may be saving its variables. A
 * chief that goes on trains in the meantime. */
static void
await_chief (const MusterServeOptions *options, gint64 end_us)
{
  MusterClock *clock = muster_system_clock ();
  const MusterClusterTask *chief =
      options->cluster != NULL && muster_cluster_spec_trainer (options->cluster) < 0
          ? muster_cluster_spec_chief_task (options->cluster)
          : NULL;
  gint64 now_us = muster_clock_now_us (clock);
  guint n_silent = 0;
  gboolean is_told = FALSE;
  MusterReachProber prober;
  if (chief == NULL)
    return;
  muster_reach_prober_init (&prober, chief->address);
  while (now_us < end_us && n_silent < CHIEF_MOST_SILENT) {
    const int why = muster_reach_probe (&prober, MIN (end_us, now_us + CHIEF_ANSWER_US), NULL);
    if (why == ECONNREFUSED)
      break;
    n_silent = why == 0 ? 0 : n_silent + 1;
    if (!is_told)
      muster_log (G_LOG_LEVEL_MESSAGE, "drain", "MESSAGE",
                  "waiting for %s:%u at '%s' to stop: it may be saving", chief->job, chief->index,
                  chief->address);
    is_told = TRUE;
    now_us = muster_clock_now_us (clock);
    (void)muster_clock_wait_until (clock, MIN (now_us + CHIEF_POLL_US, end_us), NULL, NULL);
    now_us = muster_clock_now_us (clock);
  }
  muster_reach_prober_clear (&prober);
}

static void
stop (MusterServer *server, const MusterServeOptions *options, const sigset_t *signals)
{
  const gint64 grace_us = options->grace_us, reserve_us = MIN (grace_us / 10, STEPS_END_US);
  let_signals_end (signals);
  muster_notify ("STOPPING=1\nSTATUS=stopping");
  const gint64 end_us =
      muster_deadline_after (muster_clock_now_us (muster_system_clock ()), grace_us);
  drain (server, grace_us, end_us - reserve_us);
  await_chief (options, end_us - reserve_us);
  const gint64 left_us =
      muster_deadline_remaining (end_us, muster_clock_now_us (muster_system_clock ()));
  muster_server_stop (server, MIN (left_us, STEPS_END_US));
}

/* What graphs print (Print, PrintV2) is their clients' text: neither a line of the log, nor what
 * the ports are told by, nor anything that could block a step. */
static void
log_print (const char *text)
{
  static MusterLogLimit limit = {.most = MOST_PRINTS};
  char left_out[MUSTER_LOG_COUNT_SIZE];
  if (!muster_log_bounded (G_LOG_LEVEL_MESSAGE, &limit, left_out))
    return;
  g_autofree char *safe = muster_safe_text (text, -1, LONGEST_PRINT);
  muster_log (G_LOG_LEVEL_MESSAGE, "print", "MUSTER_LEFT_OUT", left_out, "MESSAGE",
              "a graph printed: %s", g_strchomp (safe));
}

/* Why the server doesn't start, where its log is read. */
static MusterExit
fail (const GError *error)
{
  if (!muster_cli_log_is_parsed ())
    return muster_cli_fail (error);
  muster_log (G_LOG_LEVEL_CRITICAL, "failed", "MESSAGE", "%s", error->message);
  return muster_cli_exit_of (error);
}

/* Refuses an address that two options name: the second can't listen on it. */
static gboolean
check_distinct (const MusterServeOptions *options, GError **error)
{
  const char *others[] = {options->health_listen, options->http};
  static const char *const names[] = {"health-listen", "http"};
  for (gsize i = 0; i < G_N_ELEMENTS (others); i++) {
    const gboolean is_taken =
        others[i] != NULL && !g_str_has_suffix (others[i], ":0") &&
        (g_strv_contains ((const char *const *)options->addresses, others[i]) ||
         (i > 0 && g_strcmp0 (others[i], others[0]) == 0));
    if (is_taken)
      return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                          "%s: '%s' is used by another option already; use another port",
                          muster_serve_options_name (options, names[i]), others[i]);
  }
  return TRUE;
}

/* Checks all that can be without taking a port, which a server that is running may hold. */
static MusterExit
check_config (MusterServeOptions *options)
{
  MusterServerOptions server;
  g_autoptr (MusterMaster) master = NULL;
  g_autofree char *host = NULL;
  guint16 port;
  g_autoptr (GError) error = NULL;
  const gboolean is_server = muster_serve_options_server (options, &server, &error);
  if (is_server && options->cluster == NULL) /* a task of a cluster has its port for itself */
    master = muster_serve_options_master (options, &error);
  if (error != NULL || !check_distinct (options, &error) ||
      !muster_serve_may_listen (&server, options->addresses, &error) ||
      (options->health_listen != NULL &&
       !muster_address_parse (options->health_listen, &host, &port, &error)) ||
      (options->http != NULL && !muster_server_may_listen (&server, options->http, &error)))
    return muster_cli_fail (error);
  muster_cli_say (stdout, "%s: valid\n",
                  options->config != NULL ? options->config : "the command line");
  return MUSTER_EXIT_DONE;
}

int
muster_cli_serve (int argc, char **argv)
{
  g_auto (MusterServeOptions) options = {0};
  g_auto (Ports) ports = {.lines = g_string_new (NULL)};
  g_autoptr (GError) error = NULL;
  take_signals ();
  if (!muster_serve_options_parse (&options, argc, argv, &error))
    return muster_cli_fail (error);
  if (options.check_config)
    return check_config (&options);
  muster_cli_output_only_tells ();

  /* Before any thread is created: all inherit the mask, and only sigwait receives these signals. */
  sigset_t signals;
  sigemptyset (&signals);
  sigaddset (&signals, SIGINT);
  sigaddset (&signals, SIGTERM);
  sigaddset (&signals, SIGHUP);
  pthread_sigmask (SIG_BLOCK, &signals, NULL);

  g_set_print_handler (log_print);
  g_set_printerr_handler (log_print);
  muster_open_files_raise ();
  g_autoptr (MusterMaster) master = NULL;
  g_autoptr (MusterServer) server = make_server (&options, &master, &error);
  if (server == NULL)
    return fail (error);
  /* A task's gateway listens before its runtime does, since without one commands go to the runtime.
   */
  if (options.cluster == NULL && !await_master (master, &error))
    return fail (error);
  if (!take_ports (&ports, &options, server, &error)) {
    fail (error);
    return MUSTER_EXIT_BAD_INPUT;
  }
  if (options.cluster != NULL && !await_master (master, &error))
    return fail (error);
  muster_server_start (server);
  muster_serve_files_warn (&options,
                           options.cluster != NULL || muster_serve_is_exposed (options.addresses));
  say_ports (&ports, &options);
  log_start (&ports, &options);
  serve_until_end (server, &options, &signals);
  stop (server, &options, &signals);
  return MUSTER_EXIT_DONE;
}

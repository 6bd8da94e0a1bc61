// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/serve_options.h"

#include "base/log.h"
#include "base/memory.h"
#include "cli/commands/serve_files.h"
#include "cli/commands/serve_listen.h"
#include "cli/common/cli.h"
#include "cli/common/memory_size.h"
#include "cli/output/log.h"
#include "engine/session/local_master.h"
#include "master/remote/target.h"
#include "tensorflow/tensorflow_master.h"

#include <string.h>

#define DEFAULT_MAX_MEMORY "80%"
/* --config and --check-config, the first of the table, are for the command line alone. */
#define N_UNFILED 2

#define DEFAULT_GRACE_US (30 * MUSTER_SECOND)

static const char summary[] =
    "Serves a master in this process: sessions and variables for a chief and its workers, with\n"
    "TensorFlow's MasterService as the protocol; readiness is pushed to waiting clients. Prints\n"
    "'serving grpc://HOST:PORT' when it serves (grpcs:// with TLS; also 'health grpc://HOST:PORT'\n"
    "for --health-listen and 'http http[s]://HOST:PORT' for --http). At SIGINT or SIGTERM it\n"
    "drains: chiefs that save checkpoints do so within --grace, then it stops. Variables are kept "
    "in\n"
    "memory only: what no chief has saved is lost.\n\n"
    "It listens on this machine only, except with a certificate or --insecure. A program that\n"
    "supports neither TLS nor tokens, such as TensorFlow, connects to a secured master through a\n"
    "local gateway: run `muster serve --master=grpcs://HOST:PORT --master-token-file=FILE` beside\n"
    "the program, and use grpc://localhost:2222 as its master.";

void
muster_serve_options_clear (MusterServeOptions *self)
{
  char **texts[] = {
      &self->listen,       &self->health_listen, &self->http,       &self->target,
      &self->tls_cert,     &self->tls_key,       &self->tls_ca,     &self->token,
      &self->master_cert,  &self->master_key,    &self->master_ca,  &self->master_token,
      &self->idle_session, &self->chief_lease,   &self->max_memory, &self->config,
      &self->grace,        &self->log_level,     &self->log_format,
  };
  for (gsize i = 0; i < G_N_ELEMENTS (texts); i++)
    g_clear_pointer (texts[i], g_free);
  g_clear_pointer (&self->addresses, g_strfreev);
  g_clear_pointer (&self->roles, g_strfreev);
  g_clear_pointer (&self->data_dirs, g_strfreev);
  g_clear_pointer (&self->allow_users, g_strfreev);
  g_clear_pointer (&self->users, g_array_unref);
  g_clear_pointer (&self->http_hosts, g_strfreev);
  g_clear_pointer (&self->expected, g_strfreev);
  g_clear_pointer (&self->file, muster_config_file_free);
  g_clear_pointer (&self->given, g_strfreev);
  g_clear_pointer (&self->credentials, muster_rpc_credentials_unref);
  g_clear_pointer (&self->master_credentials, muster_rpc_credentials_unref);
}

/* --- the command line --- */

/* The file of --config in a command line; with --help it isn't read. NULL if there is none. */
static const char *
find_config (char *const *argv)
{
  const char *found = NULL;
  for (; *argv != NULL && strcmp (*argv, "--") != 0; argv++) {
    if (strcmp (*argv, "--help") == 0 || strcmp (*argv, "-h") == 0)
      return NULL;
    if (g_str_has_prefix (*argv, "--config="))
      found = *argv + strlen ("--config=");
    else if (strcmp (*argv, "--config") == 0)
      found = argv[1];
  }
  return found;
}

/* The words of the command line, after those of the file. */
static gboolean
read_words (MusterServeOptions *self, const GOptionEntry *filed, char *const *argv, GError **error)
{
  const char *config = find_config (argv);
  if (config == NULL) {
    self->given = g_strdupv ((char **)argv);
    return TRUE;
  }
  self->file = muster_config_file_load (config, "serve", error);
  if (self->file != NULL)
    self->given = muster_config_file_merge (self->file, filed, argv, error);
  return self->given != NULL;
}

const char *
muster_serve_options_name (const MusterServeOptions *self, const char *name)
{
  const char *origin = self->file != NULL ? muster_config_file_origin (self->file, name) : NULL;
  if (origin != NULL)
    return origin;
  g_autofree char *flag = g_strconcat ("--", name, NULL);
  return g_intern_string (flag);
}

gboolean
muster_serve_options_parse (MusterServeOptions *self, int argc G_GNUC_UNUSED, char **argv,
                            GError **error)
{
  g_auto (MusterCliOptions) none = {0};
  const GOptionEntry entries[] = {
      {"config", 0, 0, G_OPTION_ARG_FILENAME, &self->config,
       "file with options, as NAME=VALUE below the line [serve]; the command line takes precedence "
       "(default: none)",
       "FILE"},
      {"check-config", 0, 0, G_OPTION_ARG_NONE, &self->check_config,
       "check the options and the files that they name, then exit", NULL},
      {"listen", 0, 0, G_OPTION_ARG_STRING, &self->listen,
       "listen address, HOST:PORT or unix:/PATH, or several with commas between (default: "
       "localhost:2222; port 0 selects a free port)",
       "ADDRESS"},
      {"allow-user", 0, 0, G_OPTION_ARG_STRING_ARRAY, &self->allow_users,
       "user of this machine that may connect to unix:/PATH; repeat it for several (default: only "
       "the user of this process)",
       "NAME"},
      {"health-listen", 0, 0, G_OPTION_ARG_STRING, &self->health_listen,
       "listen address for gRPC health only (default: none; --listen also serves health)",
       "HOST:PORT"},
      {"http", 0, 0, G_OPTION_ARG_STRING, &self->http,
       "listen address for the status page, /api/status, /metrics in OpenMetrics, /readyz and "
       "/healthz (default: none)",
       "HOST:PORT"},
      {"http-host", 0, 0, G_OPTION_ARG_STRING_ARRAY, &self->http_hosts,
       "another name by which HTTP clients may reach this server, repeatable (default: localhost, "
       "the host of --http, the machine's name and IP addresses)",
       "NAME"},
      {"master", 0, 0, G_OPTION_ARG_STRING, &self->target,
       "master to serve: local, tensorflow[:PATH] for TensorFlow's own runtime, or "
       "grpc[s]://HOST:PORT or unix:/PATH for a gateway to another master (default: local)",
       "TARGET"},
      {"data-dir", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &self->data_dirs,
       "directory that clients' operations may read and write; repeat it for several (default: "
       "every file that this process may open)",
       "DIR"},
      {"tls-cert", 0, 0, G_OPTION_ARG_FILENAME, &self->tls_cert,
       "server certificate in PEM form, which enables TLS (default: none, plain text)", "FILE"},
      {"tls-key", 0, 0, G_OPTION_ARG_FILENAME, &self->tls_key,
       "key of the certificate (default: none)", "FILE"},
      {"tls-ca", 0, 0, G_OPTION_ARG_FILENAME, &self->tls_ca,
       "CA certificate that client certificates are required to be signed by (default: none)",
       "FILE"},
      {"token-file", 0, 0, G_OPTION_ARG_FILENAME, &self->token,
       "file with tokens, of which clients must send one; lines are TOKEN, ROLE TOKEN or ROLE "
       "sha256:HEX (default: none; health needs no token)",
       "FILE"},
      {"role", 0, 0, G_OPTION_ARG_STRING_ARRAY, &self->roles,
       "role of a client certificate's name, or of '*' for all others: read, run or admin; may be "
       "repeated (default: admin for every certificate that --tls-ca signed)",
       "NAME=ROLE"},
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
      {"max-memory", 0, 0, G_OPTION_ARG_STRING, &self->max_memory,
       "maximum memory for tensors, graphs, tables and messages together, as 8GiB or 50% of the "
       "machine's memory or of the control group's limit (default: 80%)",
       "SIZE"},
      {"max-op-bytes", 0, 0, G_OPTION_ARG_INT64, &self->max_op_bytes,
       "maximum memory that one operation allocates (default: half of the machine's memory, "
       "or of the control group's limit)",
       "N"},
      {"idle-session", 0, 0, G_OPTION_ARG_STRING, &self->idle_session,
       "time after which idle sessions are closed (default: never; sessions of muster's clients "
       "are closed when the client is gone)",
       "TIME"},
      {"chief-lease", 0, 0, G_OPTION_ARG_STRING, &self->chief_lease,
       "time without renewal after which a chief loses its lease (default: 15s)", "TIME"},
      {"expect", 0, 0, G_OPTION_ARG_STRING_ARRAY, &self->expected,
       "model without which /readyz isn't ready; may be repeated (default: the models that chiefs "
       "have announced)",
       "MODEL"},
      {"grace", 0, 0, G_OPTION_ARG_STRING, &self->grace,
       "time to stop in after SIGTERM: chiefs save, then steps end (default: 30s)", "TIME"},
      {"log-level", 0, 0, G_OPTION_ARG_STRING, &self->log_level, MUSTER_LOG_LEVEL_HELP "info)",
       "LEVEL"},
      {"log-format", 0, 0, G_OPTION_ARG_STRING, &self->log_format, MUSTER_LOG_FORMAT_HELP,
       "FORMAT"},
      {NULL}};
  if (!read_words (self, entries + N_UNFILED, argv, error) ||
      !muster_cli_parse ((int)g_strv_length (self->given), self->given, "", summary, entries, 0,
                         &none, NULL, error) ||
      !muster_cli_log_set (self->log_level, self->log_format, MUSTER_LOG_OF_SERVICE, error))
    return FALSE;
  if (self->listen == NULL)
    self->listen = g_strdup ("localhost:2222");
  self->addresses = g_strsplit (self->listen, ",", -1);
  return TRUE;
}

/* --- the server --- */

/* Names without the refused characters. */
static gboolean
check_names (const MusterServeOptions *self, const char *name, char **given, const char *refused,
             const char *use, GError **error)
{
  for (; given != NULL && *given != NULL; given++)
    if (**given == '\0' || strpbrk (*given, refused) != NULL)
      return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "%s: invalid name '%s' (use %s)",
                          muster_serve_options_name (self, name), *given, use);
  return TRUE;
}

/* 0 if the option is absent: the default. */
static gboolean
check_limit (const MusterServeOptions *self, const char *name, gint64 given, gint64 most,
             GError **error)
{
  if (given >= 0 && given <= most)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "%s=%" G_GINT64_FORMAT " is out of range (use 1 to %" G_GINT64_FORMAT ")",
                      muster_serve_options_name (self, name), given, most);
}

static gboolean
read_memory (const MusterServeOptions *self, gsize *n_bytes, GError **error)
{
  const char *text = self->max_memory != NULL ? self->max_memory : DEFAULT_MAX_MEMORY;
  guint64 read;
  if (!muster_cli_memory_size (text, muster_memory_total (), &read, error)) {
    g_prefix_error (error, "%s: ", muster_serve_options_name (self, "max-memory"));
    return FALSE;
  }
  *n_bytes = (gsize)read;
  return TRUE;
}

static gboolean
read_limits (const MusterServeOptions *self, MusterServerLimits *limits, GError **error)
{
  gsize memory_bytes;
  if (!check_limit (self, "max-sessions", self->max_sessions, G_MAXINT, error) ||
      !check_limit (self, "max-graph-bytes", self->max_graph_bytes, G_MAXINT64, error) ||
      !check_limit (self, "max-steps", self->max_steps, G_MAXINT, error) ||
      !check_limit (self, "max-watchers", self->max_watchers, G_MAXINT, error) ||
      !check_limit (self, "max-request-bytes", self->max_request_bytes, G_MAXINT32, error) ||
      !read_memory (self, &memory_bytes, error))
    return FALSE;
  *limits = (MusterServerLimits){
      .sessions = (guint)self->max_sessions,
      .graph_bytes = (gsize)self->max_graph_bytes,
      .steps = (guint)self->max_steps,
      .watchers = (guint)self->max_watchers,
      .request_bytes = (gsize)self->max_request_bytes,
      .memory_bytes = memory_bytes,
  };
  return TRUE;
}

/* Reads a time, which must be above 0; "forever" is stored as 0, as if absent. */
static gboolean
read_time (const MusterServeOptions *self, const char *name, const char *text, gint64 *time_us,
           GError **error)
{
  if (text == NULL)
    return TRUE;
  if (!muster_cli_duration (text, time_us, error)) {
    g_prefix_error (error, "%s: ", muster_serve_options_name (self, name));
    return FALSE;
  }
  if (*time_us >= MUSTER_SECOND)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "%s: invalid time '%s' (use 1s or more)",
                      muster_serve_options_name (self, name), text);
}

static gboolean
read_grace (MusterServeOptions *self, GError **error)
{
  self->grace_us = DEFAULT_GRACE_US;
  if (self->grace == NULL || muster_cli_duration (self->grace, &self->grace_us, error))
    return TRUE;
  g_prefix_error (error, "%s: ", muster_serve_options_name (self, "grace"));
  return FALSE;
}

static gboolean
read_credentials (MusterServeOptions *self, GError **error)
{
  const MusterRpcSecurity files = {
      .certificate_file = self->tls_cert,
      .key_file = self->tls_key,
      .ca_file = self->tls_ca,
      .token_file = self->token,
      .serves = TRUE,
      .roles = (const char *const *)self->roles,
  };
  if (self->roles != NULL && self->tls_ca == NULL)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "%s gives roles to client certificates; set %s, the CA that signs them",
                        muster_serve_options_name (self, "role"),
                        muster_serve_options_name (self, "tls-ca"));
  return muster_cli_read_credentials (&files, &self->credentials, error);
}

gboolean
muster_serve_options_server (MusterServeOptions *self, MusterServerOptions *server, GError **error)
{
  MusterServerOptions options = {.insecure = self->insecure};
  self->users = muster_serve_users (self->allow_users, self->addresses, error);
  if (self->users == NULL ||
      !check_names (self, "expect", self->expected, "", "a model's name", error) ||
      !check_names (self, "http-host", self->http_hosts, "/: ", "a host name", error) ||
      !read_credentials (self, error) || !read_limits (self, &options.limits, error) ||
      !read_time (self, "idle-session", self->idle_session, &options.idle_session_us, error) ||
      !read_grace (self, error) ||
      !read_time (self, "chief-lease", self->chief_lease, &options.chief_lease_us, error))
    return FALSE;
  options.credentials = self->credentials;
  options.users = (const guint32 *)(gconstpointer)self->users->data;
  options.n_users = self->users->len;
  options.expected = (const char *const *)self->expected;
  options.http_hosts = (const char *const *)self->http_hosts;
  *server = options;
  return TRUE;
}

/* --- the master --- */

MusterMaster *
muster_serve_options_master (MusterServeOptions *self, GError **error)
{
  const MusterRpcSecurity files = {
      .certificate_file = self->master_cert,
      .key_file = self->master_key,
      .ca_file = self->master_ca,
      .token_file = self->master_token,
  };
  g_autoptr (MusterStorage) storage = NULL;
  const char *target = self->target != NULL ? self->target : "local";
  if (!check_limit (self, "max-op-bytes", self->max_op_bytes, G_MAXINT64, error) ||
      !muster_serve_files_storage (self, &storage, error))
    return NULL;
  const MusterLocalMasterOptions options = {.storage = storage,
                                            .max_op_bytes = (guint64)self->max_op_bytes};
  if (self->max_op_bytes != 0 && !g_str_equal (target, "local")) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "%s has no effect on '%s': it limits operations that run in this "
                 "process; remove it, or use --master=local",
                 muster_serve_options_name (self, "max-op-bytes"), target);
    return NULL;
  }
  g_autoptr (MusterMaster) master =
      muster_serve_files_are_of_child (self)
          ? muster_tensorflow_master_new_within (target, (const char *const *)self->data_dirs,
                                                 error)
          : muster_cli_master_at (target, &files, &self->master_credentials, error);
  if (master == NULL || (self->max_op_bytes == 0 && storage == NULL))
    return g_steal_pointer (&master);
  return muster_local_master_new_with_options (&options);
}

/* --- files that are read again --- */

void
muster_serve_options_refresh (const MusterServeOptions *self)
{
  muster_rpc_credentials_refresh (self->credentials);
  muster_rpc_credentials_refresh (self->master_credentials);
}

static void
reload (MusterRpcCredentials *credentials)
{
  g_autoptr (GError) error = NULL;
  if (credentials != NULL && !muster_rpc_credentials_reload (credentials, &error))
    muster_log (G_LOG_LEVEL_WARNING, "reload", "MESSAGE",
                "the certificates and tokens in use are kept: %s", error->message);
}

void
muster_serve_options_reload (const MusterServeOptions *self)
{
  muster_log (G_LOG_LEVEL_INFO, "reload", "MESSAGE", "reading certificates and tokens (SIGHUP)");
  reload (self->credentials);
  reload (self->master_credentials);
}

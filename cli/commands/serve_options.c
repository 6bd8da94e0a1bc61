// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/serve_options.h"

#include "base/log_private.h"
#include "cli/common/cli.h"
#include "cli/output/log.h"
#include "master/remote/target.h"

#include <string.h>

/* --config and --check-config, the first of the table, are for the command line alone. */
#define N_UNFILED 2

static const char summary[] =
    "Serves a master in this process: sessions and variables for a chief and its workers, with\n"
    "TensorFlow's MasterService as the protocol; readiness is pushed to waiting clients. Prints\n"
    "'serving grpc://HOST:PORT' when it is up (grpcs:// with TLS; also 'health grpc://HOST:PORT'\n"
    "for --health-listen and 'http http[s]://HOST:PORT' for --http). At SIGINT or SIGTERM it\n"
    "drains: chiefs that save checkpoints do so within --grace, then it stops. Variables are kept "
    "in\n"
    "memory only: what no chief has saved is lost.\n\n"
    "It listens on this machine only, except with a certificate or --insecure. A program that\n"
    "supports neither TLS nor tokens, such as TensorFlow, connects to a secured master through a\n"
    "local gateway: run `muster serve --master=grpcs://HOST:PORT --master-token-file=FILE` beside\n"
    "the program, and use grpc://localhost:2222 as its master.";

#define AT(field) MUSTER_CLI_AT (MusterServeOptions, field)

static const GOptionEntry entries[] = {
    {"config", 0, 0, G_OPTION_ARG_FILENAME, AT (config),
     "file with options, as NAME=VALUE below the line [serve]; the command line takes precedence "
     "(default: none)",
     "FILE"},
    {"check-config", 0, 0, G_OPTION_ARG_NONE, AT (check_config),
     "check the options and the files that they name, then exit", NULL},
    {"listen", 0, 0, G_OPTION_ARG_STRING, AT (listen),
     "listen address, HOST:PORT or unix:/PATH, or several, separated by commas (default: "
     "localhost:2222, or with --task the Unix socket where the task's commands look for it; port 0 "
     "selects a free port)",
     "ADDRESS"},
    {"allow-user", 0, 0, G_OPTION_ARG_STRING_ARRAY, AT (allow_users),
     "user of this machine that may connect to unix:/PATH; may be repeated (default: only "
     "the user of this process)",
     "NAME"},
    {"health-listen", 0, 0, G_OPTION_ARG_STRING, AT (health_listen),
     "listen address for gRPC health only (default: none; --listen also serves health)",
     "HOST:PORT"},
    {"http", 0, 0, G_OPTION_ARG_STRING, AT (http),
     "listen address for the status page, /api/status, /metrics in OpenMetrics, /readyz and "
     "/healthz (default: none)",
     "HOST:PORT"},
    {"http-host", 0, 0, G_OPTION_ARG_STRING_ARRAY, AT (http_hosts),
     "another name by which HTTP clients may reach this server; may be repeated (default: "
     "localhost, "
     "the host of --http, the machine's name and IP addresses)",
     "NAME"},
    {"master", 0, 0, G_OPTION_ARG_STRING, AT (target),
     "master to serve: local, tensorflow[:PATH] for TensorFlow's own runtime, or "
     "grpc[s]://HOST:PORT or unix:/PATH for a gateway to another master (default: local)",
     "TARGET"},
    {"task", 0, 0, G_OPTION_ARG_STRING, AT (task),
     "task of TF_CONFIG's cluster that --master=tensorflow runs as, such as ps:0, or "
     "worker:N=HOST:PORT for one that isn't in it; it accepts connections from the cluster's "
     "machines (default: none, this machine only)",
     "JOB:INDEX"},
    {"data-dir", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, AT (data_dirs),
     "directory that clients' operations may read and write; may be repeated (default: "
     "every file that this process may open)",
     "DIR"},
    {"tls-cert", 0, 0, G_OPTION_ARG_FILENAME, AT (tls_cert),
     "server certificate in PEM form, which enables TLS (default: none, plain text)", "FILE"},
    {"tls-key", 0, 0, G_OPTION_ARG_FILENAME, AT (tls_key), "key of the certificate (default: none)",
     "FILE"},
    {"tls-ca", 0, 0, G_OPTION_ARG_FILENAME, AT (tls_ca),
     "CA certificate that must have signed client certificates, which are then required (default: "
     "none)",
     "FILE"},
    {"token-file", 0, 0, G_OPTION_ARG_FILENAME, AT (token),
     "file with tokens, of which clients must send one; lines are TOKEN, ROLE TOKEN or ROLE "
     "sha256:HEX (default: none; health needs no token)",
     "FILE"},
    {"role", 0, 0, G_OPTION_ARG_STRING_ARRAY, AT (roles),
     "role of a client certificate's name, or of '*' for all others: read, run or admin; may be "
     "repeated (default: admin for every certificate that --tls-ca signed)",
     "NAME=ROLE"},
    {"insecure", 0, 0, G_OPTION_ARG_NONE, AT (insecure),
     "accept connections from other machines without TLS", NULL},
    {"master-tls-ca", 0, 0, G_OPTION_ARG_FILENAME, AT (master_ca),
     "CA certificate for the master's certificate (default: the system's CA certificates)", "FILE"},
    {"master-tls-cert", 0, 0, G_OPTION_ARG_FILENAME, AT (master_cert),
     "client certificate for the master (default: none)", "FILE"},
    {"master-tls-key", 0, 0, G_OPTION_ARG_FILENAME, AT (master_key),
     "key of the client certificate (default: none)", "FILE"},
    {"master-token-file", 0, 0, G_OPTION_ARG_FILENAME, AT (master_token),
     "file with the token to send to the master (default: none)", "FILE"},
    {NULL}};

/* behind the limits */
static const GOptionEntry more_entries[] = {
    {"max-memory", 0, 0, G_OPTION_ARG_STRING, AT (max_memory),
     "maximum memory for tensors, graphs, tables and messages together, such as 8GiB, or 50% of "
     "the "
     "machine's memory or of the control group's limit (default: 80%)",
     "SIZE"},
    {"checkpoint-memory", 0, 0, G_OPTION_ARG_STRING, AT (checkpoint_memory),
     "memory for the checkpoints of other machines, which use it with "
     "--fast-dir=grpc://HOST:PORT/NAME: such as 8GiB or 50% (default: none)",
     "SIZE"},
    {"idle-session", 0, 0, G_OPTION_ARG_STRING, AT (idle_session),
     "time after which idle sessions are closed (default: never; sessions of muster's clients "
     "are closed when the client is gone)",
     "TIME"},
    {"chief-lease", 0, 0, G_OPTION_ARG_STRING, AT (chief_lease),
     "time without renewal after which a chief loses its lease (default: 15s)", "TIME"},
    {"expect", 0, 0, G_OPTION_ARG_STRING_ARRAY, AT (expected),
     "model that must be ready for /readyz; may be repeated (default: the models that chiefs "
     "have announced)",
     "MODEL"},
    {"grace", 0, 0, G_OPTION_ARG_STRING, AT (grace),
     "time limit for stopping after SIGTERM: chiefs save, then steps end (default: 30s)", "TIME"},
    {"log-level", 0, 0, G_OPTION_ARG_STRING, AT (log_level), MUSTER_LOG_LEVEL_HELP "info)",
     "LEVEL"},
    {"log-format", 0, 0, G_OPTION_ARG_STRING, AT (log_format), MUSTER_LOG_FORMAT_HELP, "FORMAT"},
    {NULL}};
void
muster_serve_options_clear (MusterServeOptions *self)
{
  char **texts[] = {
      &self->listen,
      &self->health_listen,
      &self->http,
      &self->target,
      &self->tls_cert,
      &self->tls_key,
      &self->tls_ca,
      &self->token,
      &self->master_cert,
      &self->master_key,
      &self->master_ca,
      &self->master_token,
      &self->idle_session,
      &self->chief_lease,
      &self->max_memory,
      &self->config,
      &self->checkpoint_memory,
      &self->grace,
      &self->log_level,
      &self->log_format,
      &self->task,
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
  g_clear_pointer (&self->cluster, muster_cluster_spec_free);
  g_clear_pointer (&self->needed, g_strfreev);
  g_clear_pointer (&self->flags, muster_flags_free);
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
  muster_flags_set_file (self->flags, self->file);
  return self->given != NULL;
}

const char *
muster_serve_options_name (const MusterServeOptions *self, const char *name)
{
  return muster_flags_name (self->flags, name);
}

gboolean
muster_serve_options_parse (MusterServeOptions *self, int argc G_GNUC_UNUSED, char **argv,
                            GError **error)
{
  g_auto (MusterCliOptions) none = {0};
  self->flags = muster_flags_new ("serve");
  muster_flags_add (self->flags, entries, self);
  muster_flags_add_fields (self->flags, &muster_server_limits_fields, &self->limits);
  muster_flags_add (self->flags, more_entries, self);
  const GOptionEntry *all = muster_flags_entries (self->flags);
  if (!read_words (self, all + N_UNFILED, argv, error) ||
      !muster_cli_parse ((int)g_strv_length (self->given), self->given, "", summary, all, 0, &none,
                         NULL, error) ||
      !muster_cli_log_set (self->log_level, self->log_format, TRUE, error) ||
      !muster_flags_apply (self->flags, error) || !muster_serve_options_task (self, error))
    return FALSE;
  self->addresses = g_strsplit (self->listen, ",", -1);
  return TRUE;
}

// SPDX-License-Identifier: Apache-2.0
/* What the options of `muster serve` describe: the server, the master, and their credentials. */
#include "cli/commands/serve_options.h"

#include "base/log_private.h"
#include "base/memory_private.h"
#include "cli/commands/serve_files.h"
#include "cli/commands/serve_listen.h"
#include "cli/common/cli.h"
#include "cli/common/memory_size.h"
#include "engine/session/local_master.h"
#include "master/remote/near_master_private.h"
#include "master/remote/target.h"
#include "rpc/address_private.h"
#include "session/cluster/cluster_spec_private.h"
#include "tensorflow/tensorflow_master.h"

#include <glib/gstdio.h>
#include <string.h>

#define DEFAULT_LISTEN     "localhost:2222"
#define DEFAULT_MAX_MEMORY "80%"
#define DEFAULT_GRACE_US   (30 * MUSTER_SECOND)

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

static gboolean
read_memory (const MusterServeOptions *self, const char *name, const char *text, guint64 *n_bytes,
             GError **error)
{
  if (muster_cli_memory_size (text, muster_memory_total (), n_bytes, error))
    return TRUE;
  g_prefix_error (error, "%s: ", muster_serve_options_name (self, name));
  return FALSE;
}

static gboolean
read_limits (const MusterServeOptions *self, MusterServerLimits *limits, GError **error)
{
  guint64 memory_bytes;
  if (!read_memory (self, "max-memory",
                    self->max_memory != NULL ? self->max_memory : DEFAULT_MAX_MEMORY, &memory_bytes,
                    error))
    return FALSE;
  *limits = self->limits;
  limits->memory_bytes = memory_bytes;
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
      (self->checkpoint_memory != NULL &&
       !read_memory (self, "checkpoint-memory", self->checkpoint_memory, &options.file_bytes,
                     error)) ||
      !read_time (self, "idle-session", self->idle_session, &options.idle_session_us, error) ||
      !read_grace (self, error) ||
      !read_time (self, "chief-lease", self->chief_lease, &options.chief_lease_us, error))
    return FALSE;
  options.credentials = self->credentials;
  options.users = (const guint32 *)(gconstpointer)self->users->data;
  options.n_users = self->users->len;
  options.expected = (const char *const *)self->expected;
  options.needed = (const char *const *)self->needed;
  options.http_hosts = (const char *const *)self->http_hosts;
  *server = options;
  return TRUE;
}

/* --- a task of a cluster --- */

static gboolean
is_tensorflow (const char *target)
{
  return muster_master_is_offered (target) && !g_str_equal (target, "local");
}

/* Refuses the task's port for what this process listens on itself: addresses with commas between.
 */
static gboolean
check_apart (const MusterServeOptions *self, const char *name, const char *addresses, guint16 own,
             GError **error)
{
  g_auto (GStrv) each = g_strsplit (addresses != NULL ? addresses : "", ",", -1);
  for (char **at = each; *at != NULL; at++) {
    g_autofree char *host = NULL;
    guint16 port = 0;
    if (muster_address_unix_path (*at) == NULL && muster_address_parse (*at, &host, &port, NULL) &&
        port == own && port != 0)
      return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                          "%s: '%s' has the port of %s, which TensorFlow listens on; use another",
                          muster_serve_options_name (self, name), *at, self->task);
  }
  return TRUE;
}

/* Those that hold the variables of a task that trains: "ps:0=HOST:PORT" (transfer full). */
static char **
parameter_servers (const MusterClusterSpec *cluster)
{
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();
  if (muster_cluster_spec_trainer (cluster) < 0)
    return NULL;
  g_auto (GStrv) peers = muster_cluster_spec_peers (cluster);
  for (char **peer = peers; *peer != NULL; peer++)
    if (g_str_has_prefix (*peer, "ps:"))
      g_strv_builder_add (builder, *peer);
  return g_strv_builder_end (builder);
}

/* The socket that the task's commands look for, in a folder of this user's. */
static gboolean
listen_near (MusterServeOptions *self, GError **error)
{
  self->listen = muster_cluster_spec_gateway (self->cluster);
  if (self->listen == NULL)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "%s has no address in the cluster of TF_CONFIG; give it one, HOST:PORT",
                        self->task);
  g_autofree char *folder = g_path_get_dirname (muster_address_unix_path (self->listen));
  (void)g_mkdir (folder, 0700);
  return muster_near_master_may_use (self->listen) ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "can't listen in '%s': it isn't a folder that this user alone can write to; "
                      "remove it, or use --listen=ADDRESS",
                      folder);
}

gboolean
muster_serve_options_task (MusterServeOptions *self, GError **error)
{
  const char *target = self->target != NULL ? self->target : "local";
  g_autofree char *host = NULL;
  guint16 port = 0;
  if (self->task == NULL) {
    if (self->listen == NULL)
      self->listen = g_strdup (DEFAULT_LISTEN);
    return TRUE;
  }
  if (!is_tensorflow (target))
    return muster_fail (
        error, MUSTER_ERROR_INVALID_ARGUMENT,
        "%s has no effect on '%s': a task of a cluster is TensorFlow's runtime; use "
        "--master=tensorflow",
        muster_serve_options_name (self, "task"), target);
  self->cluster = muster_cluster_spec_new_for_task (g_getenv ("TF_CONFIG"), self->task, error);
  if (self->cluster == NULL)
    return FALSE;
  self->needed = parameter_servers (self->cluster);
  const MusterClusterTask *own = muster_cluster_spec_own (self->cluster);
  if (own != NULL && !muster_address_parse (own->address, &host, &port, error))
    return FALSE;
  if (self->listen == NULL && !listen_near (self, error))
    return FALSE;
  return check_apart (self, "listen", self->listen, port, error) &&
         check_apart (self, "health-listen", self->health_listen, port, error) &&
         check_apart (self, "http", self->http, port, error);
}

/* --- the master --- */

static gboolean
check_is_another (const MusterServeOptions *self, const char *target, GError **error)
{
  const char *address = muster_address_in_target (target, NULL);
  return !muster_serve_is_own (self->addresses, address != NULL ? address : target) ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "%s '%s' is where this server itself listens (%s); use another server's "
                      "address, or listen on another port",
                      muster_serve_options_name (self, "master"), target,
                      muster_serve_options_name (self, "listen"));
}

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
  if (!check_is_another (self, target, error) ||
      !muster_serve_files_storage (self, &storage, error))
    return NULL;
  const guint64 op_bytes = self->limits.op_bytes;
  if (op_bytes != 0 && !g_str_equal (target, "local")) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "%s has no effect on '%s': it limits operations that run in this "
                 "process; remove it, or use --master=local",
                 muster_serve_options_name (self, "max-op-bytes"), target);
    return NULL;
  }
  const char *const *directories = (const char *const *)self->data_dirs;
  g_autoptr (MusterMaster) master =
      self->cluster != NULL
          ? muster_tensorflow_master_new_task (target, self->cluster, directories, error)
      : muster_serve_files_are_of_child (self)
          ? muster_tensorflow_master_new_within (target, directories, error)
          : muster_cli_master_at (target, &files, &self->master_credentials, error);
  if (master == NULL || (op_bytes == 0 && storage == NULL))
    return g_steal_pointer (&master);
  return muster_local_master_new_with (storage, op_bytes);
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

// SPDX-License-Identifier: Apache-2.0
/* A command's master, its credentials and its session. */
#include "cli/common/cli.h"
#include "master/remote/target.h"
#include "rpc/address_private.h"
#include "rpc/client/diagnose.h"
#include "session/cluster/cluster_spec.h"

#define LONGEST_DIAGNOSIS_US (5 * MUSTER_SECOND) /* for a port that closed the connection */

gboolean
muster_cli_read_credentials (const MusterRpcSecurity *files, MusterRpcCredentials **credentials,
                             GError **error)
{
  MusterRpcCredentials *read = NULL;
  if (files->tls || files->ca_file != NULL || files->certificate_file != NULL ||
      files->key_file != NULL || files->token_file != NULL || files->roles != NULL) {
    read = muster_rpc_credentials_new (files, error);
    if (read == NULL)
      return FALSE;
  }
  *credentials = read;
  return TRUE;
}

static MusterRpcSecurity
security_of (const MusterCliOptions *options)
{
  return (MusterRpcSecurity){
      .ca_file = options->tls_ca,
      .certificate_file = options->tls_cert,
      .key_file = options->tls_key,
      .token_file = options->token_file,
      .tls = g_str_has_prefix (options->target, "grpcs://"),
  };
}

gboolean
muster_cli_credentials (const MusterCliOptions *options, MusterRpcCredentials **credentials,
                        GError **error)
{
  MusterRpcSecurity files = security_of (options);
  return muster_cli_read_credentials (&files, credentials, error);
}

MusterMaster *
muster_cli_master_at (const char *target, const MusterRpcSecurity *files,
                      MusterRpcCredentials **credentials, GError **error)
{
  MusterRpcSecurity security = *files;
  g_autoptr (MusterRpcCredentials) read = NULL;
  security.tls = security.tls || g_str_has_prefix (target, "grpcs://");
  if (!muster_cli_read_credentials (&security, &read, error))
    return NULL;
  MusterMaster *master = muster_master_new_secured (target, read, error);
  if (master != NULL && credentials != NULL)
    *credentials = g_steal_pointer (&read);
  return master;
}

/* Files of TLS and tokens beside a plain master are for the coordinator. */
static gboolean
is_for_coordinator (const MusterCliOptions *options)
{
  return options->coordinator != NULL && g_str_has_prefix (options->coordinator, "grpcs://") &&
         !g_str_has_prefix (options->target, "grpcs://");
}

static gboolean
set_coordinator (MusterMaster *master, const MusterCliOptions *options, GError **error)
{
  MusterRpcSecurity files = security_of (options);
  files.tls = FALSE; /* as its own target says */
  g_autoptr (MusterMaster) coordinator =
      muster_cli_master_at (options->coordinator, &files, NULL, error);
  if (coordinator != NULL && muster_master_set_coordinator (master, coordinator, error))
    return TRUE;
  g_prefix_error (error, "--coordinator: ");
  return FALSE;
}

MusterMaster *
muster_cli_master (const MusterCliOptions *options, GError **error)
{
  g_autoptr (MusterRpcCredentials) credentials = NULL;
  if (!is_for_coordinator (options) && !muster_cli_credentials (options, &credentials, error))
    return NULL;
  g_autoptr (MusterMaster) master =
      options->target_from_spec ? muster_cluster_spec_master (options->spec, credentials, error)
                                : muster_master_new_secured (options->target, credentials, error);
  if (master == NULL || options->coordinator == NULL)
    return g_steal_pointer (&master);
  return set_coordinator (master, options, error) ? g_steal_pointer (&master) : NULL;
}

/* gRPC reports only a closed connection if one side uses TLS and the other doesn't. A master that
 * didn't answer in time gave no answer. */
void
muster_cli_explain_no_answer (const MusterCliOptions *options, gint64 deadline_us, GError **error)
{
  g_auto (MusterDiagnosis) diagnosis = {0};
  gboolean tls;
  const char *target = options->target, *address = muster_address_in_target (target, &tls);
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  if (muster_error_is (*error, MUSTER_ERROR_DEADLINE_EXCEEDED)) {
    (*error)->code = MUSTER_ERROR_UNAVAILABLE;
    return;
  }
  if (address == NULL || !muster_error_is (*error, MUSTER_ERROR_UNAVAILABLE))
    return;
  const gint64 left_us = muster_deadline_remaining (deadline_us, now_us);
  muster_diagnose (address, tls, now_us + CLAMP (left_us, MUSTER_SECOND, LONGEST_DIAGNOSIS_US),
                   NULL, &diagnosis);
  if (diagnosis.stage != MUSTER_REACH_TLS_FAILED)
    return;
  g_clear_error (error);
  muster_fail (error, MUSTER_ERROR_UNAVAILABLE, "no answer from '%s': %s", target, diagnosis.text);
}

MusterSession *
muster_cli_create_session (MusterMaster *master, MusterGraph *graph,
                           const MusterCliOptions *options, gint64 deadline_us, GError **error)
{
  g_autoptr (GError) failure = NULL;
  MusterSession *session =
      muster_master_create_session (master, graph, options->config, deadline_us, NULL, &failure);
  if (session != NULL)
    return session;
  muster_cli_explain_no_answer (options, deadline_us, &failure);
  g_propagate_error (error, g_steal_pointer (&failure));
  return NULL;
}

MusterScaffold *
muster_cli_scaffold (const MusterCliOptions *options, GError **error)
{
  MusterScaffold *scaffold = muster_scaffold_load_with (
      options->meta_graph, (const char *const *)options->train_ops, error);
  const char *const *added = scaffold != NULL ? muster_scaffold_completed (scaffold) : NULL;
  for (; added != NULL && *added != NULL && !options->json && !options->quiet; added++)
    muster_cli_say (stderr, "%s: %s\n", options->model, *added);
  return scaffold;
}

/* What a step fetches and runs, and what it is fed with. (transfer full) */
static void
list_step (const MusterStep *step, char ***runs, char ***feeds)
{
  g_autoptr (GStrvBuilder) all = g_strv_builder_new ();
  g_autoptr (GStrvBuilder) fed = g_strv_builder_new ();
  for (gsize i = 0; i < step->n_fetches; i++)
    g_strv_builder_add (all, step->fetches[i]);
  for (gsize i = 0; i < step->n_targets; i++)
    g_strv_builder_add (all, step->targets[i]);
  for (gsize i = 0; i < step->n_feeds; i++)
    g_strv_builder_add (fed, step->feeds[i].name);
  *runs = g_strv_builder_end (all);
  *feeds = g_strv_builder_end (fed);
}

MusterSessionManager *
muster_cli_manager (MusterScaffold *scaffold, const MusterCliOptions *options,
                    const MusterStep *step, gint64 recovery_wait_us, GError **error)
{
  g_auto (GStrv) runs = NULL;
  g_auto (GStrv) feeds = NULL;
  if (step != NULL)
    list_step (step, &runs, &feeds);
  MusterSessionManagerOptions manager = {
      .local_init_op = muster_scaffold_local_init_op (scaffold),
      .ready_op = muster_scaffold_ready_op (scaffold),
      .ready_for_local_init_op = muster_scaffold_ready_for_local_init_op (scaffold),
      .recovery_wait_us = recovery_wait_us,
      .model = options->model,
      .task = options->task,
      .meta_graph = muster_scaffold_meta_graph (scaffold),
      .cluster = (const char *const *)options->addresses,
      .chief = options->chief,
      .config = options->config,
      .will_run = (const char *const *)runs,
      .will_feed = (const char *const *)feeds,
  };
  return muster_session_manager_new (muster_scaffold_graph (scaffold), &manager, error);
}

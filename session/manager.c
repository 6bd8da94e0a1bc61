// SPDX-License-Identifier: Apache-2.0
/* A session manager: its ops and options, checked once when it is created. Its operations are in
 * prepare.c and wait.c, over operation.c. */
#include "session/manager.h"

#include "base/fields_private.h"
#include "base/require_private.h"
#include "session/claim_by_private.h"
#include "session/session_private.h"

#define DEFAULT_RECOVERY_WAIT_US (30 * MUSTER_SECOND)

G_DEFINE_FINAL_TYPE (MusterSessionManager, muster_session_manager, G_TYPE_OBJECT)

/* Copies the ops, and their name for messages; *name stays NULL if there are none. */
static char **
copy_ops (const char *op, const char *const *ops, char **name)
{
  if (ops != NULL && *ops != NULL) {
    g_autofree char *list = g_strjoinv (", ", (char **)ops);
    *name = g_strdup_printf ("[%s]", list);
    return g_strdupv ((char **)ops);
  }
  if (op == NULL)
    return NULL;
  *name = g_strdup (op);
  return g_strdupv ((char *[]){(char *)op, NULL});
}

gboolean
muster_session_check_op (MusterGraph *graph, const char *what, const char *name, GError **error)
{
  g_autofree char *op = NULL;

  if (graph == NULL || name == NULL || !muster_graph_parse (graph, NULL))
    return TRUE;
  (void)muster_graph_split_input (name, &op);
  return muster_graph_has_node (graph, op) ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "%s '%s' isn't in the graph; name an operation of the graph that the session "
                      "is created with",
                      what, name);
}

gboolean
muster_session_check_ops (MusterGraph *graph, const char *what, const char *const *names,
                          GError **error)
{
  for (; names != NULL && *names != NULL; names++)
    if (!muster_session_check_op (graph, what, *names, error))
      return FALSE;
  return TRUE;
}

static gboolean
check_ops (MusterGraph *graph, const MusterSessionManagerOptions *options, GError **error)
{
  return muster_session_check_op (graph, "local_init_op", options->local_init_op, error) &&
         muster_session_check_ops (graph, "local_init_op", options->local_init_ops, error) &&
         muster_session_check_op (graph, "ready_op", options->ready_op, error) &&
         muster_session_check_op (graph, "ready_for_local_init_op",
                                  options->ready_for_local_init_op, error);
}

static gboolean
check_options (const MusterSessionManagerOptions *options, GError **error)
{
  if (options->local_init_op != NULL && options->local_init_ops != NULL) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "Give either local_init_op or local_init_ops, not both");
  }
  if (options->ready_for_local_init_op != NULL && options->local_init_op == NULL &&
      !(options->local_init_ops != NULL && *options->local_init_ops != NULL)) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "If you pass a ready_for_local_init_op you must also pass a local_init_op, "
                        "ready_for_local_init_op [%s]",
                        options->ready_for_local_init_op);
  }
  if (options->recovery_wait_us < 0) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "The recovery wait must be above 0, not %" G_GINT64_FORMAT " microseconds",
                        options->recovery_wait_us);
  }
  return muster_cluster_check (options->cluster, error);
}

/* Limits every pause to the recovery wait. */
static MusterRetryPolicy
policy_of (const MusterSessionManager *self, const MusterRetryPolicy *given,
           const MusterRetryPolicy *usual)
{
  MusterRetryPolicy policy = given != NULL ? *given : *usual;
  gint64 last_us = policy.last_pause_us > 0 ? policy.last_pause_us : MUSTER_SECOND;
  policy.last_pause_us = MIN (last_us, self->recovery_wait_us);
  return policy;
}

static void
take_options (MusterSessionManager *self, const MusterSessionManagerOptions *options)
{
  self->local_init_ops =
      copy_ops (options->local_init_op, options->local_init_ops, &self->local_init_name);
  self->ready_op = g_strdup (options->ready_op);
  self->ready_for_local_init_op = g_strdup (options->ready_for_local_init_op);
  self->recovery_wait_us =
      options->recovery_wait_us ? options->recovery_wait_us : DEFAULT_RECOVERY_WAIT_US;
  self->local_init_run_options = options->local_init_run_options != NULL
                                     ? g_bytes_ref (options->local_init_run_options)
                                     : NULL;
  self->config = options->config != NULL ? g_bytes_ref (options->config) : NULL;
  self->clock = g_object_ref (options->clock ? options->clock : muster_system_clock ());
  self->model = options->model != NULL && *options->model ? g_strdup (options->model) : NULL;
  self->task = g_strdup (options->task);
  self->meta_graph =
      options->meta_graph != NULL ? muster_meta_graph_ref (options->meta_graph) : NULL;
  if (self->meta_graph != NULL)
    self->variables = muster_meta_graph_variables (self->meta_graph, &self->n_variables);
  self->cluster = g_strdupv ((char **)options->cluster);
  self->chief = g_strdup (options->chief);
  self->will_run = g_strdupv ((char **)options->will_run);
  self->will_feed = g_strdupv ((char **)options->will_feed);
  self->waiting = policy_of (self, options->waiting, &muster_retry_waiting);
  self->preparing = policy_of (self, options->preparing, &muster_retry_preparing);
}

MusterSessionManager *
muster_session_manager_new (MusterGraph *graph, const MusterSessionManagerOptions *options,
                            GError **error)
{
  static const MusterSessionManagerOptions defaults;
  if (options == NULL)
    options = &defaults;
  if (!check_options (options, error) || !check_ops (graph, options, error))
    return NULL;

  MusterSessionManager *self = g_object_new (MUSTER_TYPE_SESSION_MANAGER, NULL);
  self->graph = graph != NULL ? muster_graph_ref (graph) : NULL;
  take_options (self, options);
  return self;
}

MusterSessionManager *
muster_session_manager_new_for_ops (MusterGraph *graph, const char *ready_op,
                                    const char *ready_for_local_init_op, const char *local_init_op,
                                    const char *model, const char *task, GError **error)
{
  muster_require (error, NULL, graph);

  MusterSessionManagerOptions options = {.ready_op = ready_op,
                                         .ready_for_local_init_op = ready_for_local_init_op,
                                         .local_init_op = local_init_op,
                                         .model = model,
                                         .task = task};
  return muster_session_manager_new (graph, &options, error);
}

MusterGraph *
muster_session_manager_graph (MusterSessionManager *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->graph;
}

void
muster_session_manager_set_progress (MusterSessionManager *self, MusterSessionProgress progress,
                                     gpointer user_data, GDestroyNotify destroy)
{
  g_return_if_fail (self != NULL);
  self->progress = progress;
  self->progress_data = user_data;
  g_clear_pointer (&self->progress_owner, g_bytes_unref);
  self->progress_owner = muster_data_owner (user_data, destroy);
}

void
muster_session_manager_set_claim_by (MusterSessionManager *self, gint64 claim_by_us)
{
  self->claim_by_us = claim_by_us;
}

static void
muster_session_manager_finalize (GObject *object)
{
  MusterSessionManager *self = MUSTER_SESSION_MANAGER (object);
  g_clear_pointer (&self->graph, muster_graph_unref);
  g_clear_pointer (&self->progress_owner, g_bytes_unref);
  g_strfreev (self->local_init_ops);
  g_free (self->local_init_name);
  g_free (self->ready_op);
  g_free (self->ready_for_local_init_op);
  g_clear_pointer (&self->local_init_run_options, g_bytes_unref);
  g_clear_pointer (&self->config, g_bytes_unref);
  g_object_unref (self->clock);
  g_free (self->model);
  g_free (self->task);
  g_clear_pointer (&self->meta_graph, muster_meta_graph_unref);
  g_strfreev (self->cluster);
  g_free (self->chief);
  g_strfreev (self->will_run);
  g_strfreev (self->will_feed);
  G_OBJECT_CLASS (muster_session_manager_parent_class)->finalize (object);
}

static void
muster_session_manager_class_init (MusterSessionManagerClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_session_manager_finalize;
}

static void
muster_session_manager_init (MusterSessionManager *self G_GNUC_UNUSED)
{
}

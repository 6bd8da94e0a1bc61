// SPDX-License-Identifier: Apache-2.0
#include "session/session_manager.h"

#include "session/session_private.h"

#define DEFAULT_RECOVERY_WAIT_US (30 * MUSTER_SECOND)

G_DEFINE_FINAL_TYPE (MusterSessionManager, muster_session_manager, G_TYPE_OBJECT)

static gboolean
check_options (const MusterSessionManagerOptions *options, GError **error)
{
  if (options->ready_for_local_init_op && !options->local_init_op) {
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                 "If you pass a ready_for_local_init_op you must also pass a local_init_op, "
                 "ready_for_local_init_op [%s]",
                 options->ready_for_local_init_op);
    return FALSE;
  }
  if (options->recovery_wait_us < 0) {
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                 "The recovery wait must be above 0, not %" G_GINT64_FORMAT " microseconds",
                 options->recovery_wait_us);
    return FALSE;
  }

  return TRUE;
}

MusterSessionManager *
muster_session_manager_new (MusterGraph *graph, const MusterSessionManagerOptions *options,
                            GError **error)
{
  static const MusterSessionManagerOptions defaults;

  if (!options)
    options = &defaults;
  if (!check_options (options, error))
    return NULL;

  MusterSessionManager *self = g_object_new (MUSTER_TYPE_SESSION_MANAGER, NULL);
  self->graph = graph ? muster_graph_ref (graph) : NULL;
  self->local_init_op = g_strdup (options->local_init_op);
  self->ready_op = g_strdup (options->ready_op);
  self->ready_for_local_init_op = g_strdup (options->ready_for_local_init_op);
  self->recovery_wait_us =
      options->recovery_wait_us ? options->recovery_wait_us : DEFAULT_RECOVERY_WAIT_US;
  self->local_init_run_options =
      options->local_init_run_options ? g_bytes_ref (options->local_init_run_options) : NULL;
  self->config = options->config ? g_bytes_ref (options->config) : NULL;
  self->clock = g_object_ref (options->clock ? options->clock : muster_system_clock ());

  return self;
}

void
muster_session_report_clear (MusterSessionReport *self)
{
  g_clear_pointer (&self->restored_from, g_free);
  g_clear_pointer (&self->passed_over, g_free);
  g_clear_pointer (&self->reason, g_free);
  g_clear_pointer (&self->phases, g_array_unref);
  *self = (MusterSessionReport){0};
}

static gboolean
has_init (const MusterSessionManager *self, const MusterPrepareOptions *options)
{
  return options->init_op || options->init_func || self->local_init_op;
}

static gboolean
refuse_without_init (GError **error)
{
  g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION,
                       "Model is not initialized and no init_op or init_fn or local_init_op was "
                       "given");

  return FALSE;
}

/* What can be refused before a session is made. */
static gboolean
check_prepare (const MusterSessionManager *self, const MusterPrepareOptions *options,
               GError **error)
{
  if (!muster_prepare_options_check (options, error))
    return FALSE;
  if (!muster_prepare_options_can_restore (options) && !has_init (self, options))
    return refuse_without_init (error);

  return TRUE;
}

static const char *
name_of (const char *op)
{
  return op ? op : "None";
}

static gboolean
finish_model (MusterVerb *verb, MusterSession *session, const MusterPrepareOptions *options,
              GError **error)
{
  const char *init_func = options->init_func ? "init_func" : "None";
  g_autofree char *why = NULL;

  if (!muster_verb_try_local_init (verb, session, &why, error))
    return FALSE;
  if (why) {
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION,
                 "Init operations did not make model ready for local_init.  "
                 "Init op: %s, init fn: %s, error: %s",
                 name_of (options->init_op), init_func, why);
    return FALSE;
  }
  if (!muster_verb_check_ready (verb, session, &why, error))
    return FALSE;
  if (why)
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION,
                 "Init operations did not make model ready.  "
                 "Init op: %s, init fn: %s, local_init_op: %s, error: %s",
                 name_of (options->init_op), init_func, name_of (verb->manager->local_init_op),
                 why);

  return why == NULL;
}

static gboolean
prepare (MusterVerb *verb, MusterSession *session, const MusterPrepareOptions *options,
         GError **error)
{
  if (!muster_verb_restore (verb, session, options, error))
    return FALSE;
  if (!verb->report.restored_from) {
    if (!has_init (verb->manager, options))
      return refuse_without_init (error);
    if (!muster_verb_init (verb, session, options, error))
      return FALSE;
  }

  return finish_model (verb, session, options, error);
}

/* Ends a verb: hands on session (transfer full) if there was no failure, else closes it. */
static MusterSession *
conclude (MusterVerb *verb, MusterSession *session, GError *failure, MusterSessionReport *report,
          GError **error)
{
  if (failure) {
    muster_verb_fail (verb, failure, error);
    if (session)
      muster_session_close_quietly (session);
    g_clear_object (&session);
  }
  if (!verb->report.reason)
    verb->report.reason = failure ? g_strdup (verb->why) : NULL;
  muster_verb_finish (verb, report);

  return session;
}

static gint64
timeout_of (const MusterPrepareOptions *options)
{
  return options->timeout_us == 0 ? MUSTER_WAIT_FOREVER : options->timeout_us;
}

MusterSession *
muster_session_manager_prepare_session (MusterSessionManager *self, MusterMaster *master,
                                        const MusterPrepareOptions *options,
                                        MusterSessionReport *report, GCancellable *cancellable,
                                        GError **error)
{
  static const MusterPrepareOptions defaults;
  MusterVerb verb;
  GError *failure = NULL;

  g_return_val_if_fail (MUSTER_IS_SESSION_MANAGER (self) && MUSTER_IS_MASTER (master), NULL);

  if (!options)
    options = &defaults;
  muster_verb_start (&verb, self, master, timeout_of (options), cancellable);
  MusterSession *session =
      check_prepare (self, options, &failure) ? muster_verb_create_session (&verb, &failure) : NULL;
  if (session)
    prepare (&verb, session, options, &failure);

  return conclude (&verb, session, failure, report, error);
}

static gboolean
recover (MusterVerb *verb, MusterSession *session, const MusterPrepareOptions *options,
         gboolean *recovered, GError **error)
{
  g_autofree char *why_gate = NULL;
  g_autofree char *why = NULL;
  MusterSessionReport *report = &verb->report;

  *recovered = FALSE;
  if (!muster_verb_restore (verb, session, options, error) ||
      !muster_verb_try_local_init (verb, session, &why_gate, error))
    return FALSE;
  if (!report->restored_from) {
    report->reason = g_strdup ("There was no checkpoint to restore");
    return TRUE;
  }
  if (!why_gate && !muster_verb_check_ready (verb, session, &why, error))
    return FALSE;
  if (why_gate)
    report->reason =
        g_strdup_printf ("Restoring model from %s did not make model ready for local init: %s",
                         report->restored_from, why_gate);
  else if (why)
    report->reason = g_strdup_printf ("Restoring model from %s did not make model ready: %s",
                                      report->restored_from, why);
  *recovered = report->reason == NULL;

  return TRUE;
}

MusterSession *
muster_session_manager_recover_session (MusterSessionManager *self, MusterMaster *master,
                                        const MusterPrepareOptions *options, gboolean *recovered,
                                        MusterSessionReport *report, GCancellable *cancellable,
                                        GError **error)
{
  static const MusterPrepareOptions defaults;
  MusterVerb verb;
  GError *failure = NULL;
  gboolean is_recovered = FALSE;

  g_return_val_if_fail (MUSTER_IS_SESSION_MANAGER (self) && MUSTER_IS_MASTER (master), NULL);

  if (!options)
    options = &defaults;
  muster_verb_start (&verb, self, master, timeout_of (options), cancellable);
  MusterSession *session = muster_prepare_options_check (options, &failure)
                               ? muster_verb_create_session (&verb, &failure)
                               : NULL;
  if (session && recover (&verb, session, options, &is_recovered, &failure) && recovered)
    *recovered = is_recovered;

  return conclude (&verb, session, failure, report, error);
}

MusterSession *
muster_session_manager_wait_for_session (MusterSessionManager *self, MusterMaster *master,
                                         gint64 timeout_us, MusterSessionReport *report,
                                         GCancellable *cancellable, GError **error)
{
  MusterVerb verb;
  GError *failure = NULL;

  g_return_val_if_fail (MUSTER_IS_SESSION_MANAGER (self) && MUSTER_IS_MASTER (master), NULL);

  muster_verb_start (&verb, self, master, timeout_us, cancellable);
  MusterSession *session = muster_verb_wait (&verb, &failure);

  return conclude (&verb, session, failure, report, error);
}

void
muster_session_manager_set_progress (MusterSessionManager *self, MusterSessionProgress progress,
                                     gpointer user_data)
{
  self->progress = progress;
  self->progress_data = user_data;
}

static void
muster_session_manager_finalize (GObject *object)
{
  MusterSessionManager *self = MUSTER_SESSION_MANAGER (object);

  g_clear_pointer (&self->graph, muster_graph_unref);
  g_free (self->local_init_op);
  g_free (self->ready_op);
  g_free (self->ready_for_local_init_op);
  g_clear_pointer (&self->local_init_run_options, g_bytes_unref);
  g_clear_pointer (&self->config, g_bytes_unref);
  g_object_unref (self->clock);
  G_OBJECT_CLASS (muster_session_manager_parent_class)->finalize (object);
}

static void
muster_session_manager_class_init (MusterSessionManagerClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_session_manager_finalize;
}

static void
muster_session_manager_init (G_GNUC_UNUSED MusterSessionManager *self)
{
}

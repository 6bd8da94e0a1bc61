// SPDX-License-Identifier: Apache-2.0
#include "ready/readiness.h"
#include "session/session_private.h"

static gboolean
muster_prepare_options_has_init_op (const MusterPrepareOptions *options)
{
  return options->init_op != NULL || (options->init_ops != NULL && *options->init_ops != NULL);
}

static char *
name_of_ops (const char *const *ops, gsize n)
{
  return n == 1 ? g_strdup (*ops) : g_strjoinv (", ", (char **)ops);
}

static gboolean
run_init_ops (MusterOperation *self, MusterSession *session, const MusterPrepareOptions *options,
              GError **error)
{
  gboolean is_one = options->init_op != NULL;
  const char *const *ops = is_one ? &options->init_op : options->init_ops;
  gsize n = is_one ? 1 : g_strv_length ((char **)ops);
  MusterStep step = {.feeds = options->init_feeds,
                     .n_feeds = options->n_init_feeds,
                     .targets = ops,
                     .n_targets = n,
                     .deadline_us = self->call_deadline_us};

  if (muster_session_run (session, &step, NULL, NULL, self->cancellable, error))
    return TRUE;
  g_autofree char *name = name_of_ops (ops, n);
  g_prefix_error (error, "Running init_op '%s': ", name);
  return FALSE;
}

static gboolean
run_init_func (MusterOperation *self, MusterSession *session, const MusterPrepareOptions *options,
               GError **error)
{
  g_autoptr (GError) failure = NULL;

  if (options->init_func (session, self->call_deadline_us, self->cancellable,
                          options->init_func_data, &failure))
    return TRUE;
  if (failure == NULL)
    muster_fail (&failure, MUSTER_ERROR_UNKNOWN, "it didn't say why");
  g_propagate_prefixed_error (error, g_steal_pointer (&failure), "The init function failed: ");
  return FALSE;
}

static gboolean
muster_operation_init (MusterOperation *self, MusterSession *session,
                       const MusterPrepareOptions *options, GError **error)
{
  muster_operation_phase (self, "init");
  if (muster_prepare_options_has_init_op (options) && !run_init_ops (self, session, options, error))
    return FALSE;
  return muster_operation_check_lease (self, error) &&
         (options->init_func == NULL || run_init_func (self, session, options, error));
}

gboolean
muster_operation_run_local_init (MusterOperation *self, MusterSession *session, GError **error)
{
  const MusterSessionManager *manager = self->manager;
  MusterStep step = {.targets = (const char *const *)manager->local_init_ops,
                     .n_targets = g_strv_length (manager->local_init_ops),
                     .options = manager->local_init_run_options,
                     .deadline_us = self->call_deadline_us};

  muster_operation_phase (self, "local init");
  g_info ("Running local_init_op.");
  if (!muster_session_run (session, &step, NULL, NULL, self->cancellable, error)) {
    g_prefix_error (error, "Running local_init_op '%s': ", manager->local_init_name);
    return FALSE;
  }
  g_info ("Done running local_init_op.");
  return TRUE;
}

static gboolean
probe (MusterOperation *self, MusterSession *session, const char *op, const char *what, char **why,
       GError **error)
{
  g_auto (MusterReadyOpResult) readiness = {0};

  if (op != NULL)
    self->report.polls++;
  if (!muster_ready_op_probe (session, op, self->call_deadline_us, self->cancellable, &readiness,
                              error)) {
    g_prefix_error (error, "%s: ", what);
    return FALSE;
  }
  *why = readiness.is_ready ? NULL : g_steal_pointer (&readiness.why_not);
  muster_operation_receive_reason (self, *why);
  return TRUE;
}

/* The gate, and if it is open local init; *why (transfer full) says why the gate isn't, else NULL.
 */
static gboolean
muster_operation_try_local_init (MusterOperation *self, MusterSession *session, char **why,
                                 GError **error)
{
  *why = NULL;
  if (self->manager->local_init_ops == NULL)
    return TRUE;

  muster_operation_phase (self, "local init");
  if (!probe (self, session, self->manager->ready_for_local_init_op,
              "Model not ready for local init", why, error))
    return FALSE;
  return *why != NULL || muster_operation_run_local_init (self, session, error);
}

static gboolean
muster_operation_check_ready (MusterOperation *self, MusterSession *session, char **why,
                              GError **error)
{
  *why = NULL;
  if (self->manager->ready_op == NULL)
    return TRUE;

  muster_operation_phase (self, "ready");
  return probe (self, session, self->manager->ready_op, "Model not ready", why, error);
}

static gboolean
has_init (const MusterSessionManager *manager, const MusterPrepareOptions *options)
{
  return muster_prepare_options_has_init_op (options) || options->init_func != NULL ||
         manager->local_init_ops != NULL;
}

static gboolean
refuse_without_init (GError **error)
{
  return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                      "Model is not initialized and no init_op or init_fn or local_init_op was "
                      "given");
}

/* What can be refused before a session is made. */
gboolean
muster_prepare_options_check (const MusterSessionManager *manager,
                              const MusterPrepareOptions *options, gboolean initialises,
                              GError **error)
{
  if (!muster_prepare_options_check_places (options, error))
    return FALSE;
  if (options->epoch < 0) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "The epoch must be 0 or above, not %" G_GINT64_FORMAT, options->epoch);
  }
  if (initialises && options->init_op != NULL && options->init_ops != NULL) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "Give either init_op or init_ops, not both");
  }
  if (initialises && !muster_prepare_options_can_restore (options) && !has_init (manager, options))
    return refuse_without_init (error);
  return TRUE;
}

/* B002.70 */
static const char *
name_of_init (const MusterPrepareOptions *options)
{
  if (options->init_ops != NULL)
    return "<no name for list>";
  return options->init_op != NULL ? options->init_op : "None";
}

static gboolean
refuse_shut_gate (const MusterPrepareOptions *options, const char *why, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                      "Init operations did not make model ready for local_init.  "
                      "Init op: %s, init fn: %s, error: %s",
                      name_of_init (options), options->init_func != NULL ? "init_func" : "None",
                      why);
}

static gboolean
refuse_unready (const MusterOperation *self, const MusterPrepareOptions *options, const char *why,
                GError **error)
{
  const char *local_init = self->manager->local_init_name;
  return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                      "Init operations did not make model ready.  "
                      "Init op: %s, init fn: %s, local_init_op: %s, error: %s",
                      name_of_init (options), options->init_func != NULL ? "init_func" : "None",
                      local_init != NULL ? local_init : "None", why);
}

static gboolean
finish_model (MusterOperation *self, MusterSession *session, const MusterPrepareOptions *options,
              GError **error)
{
  g_autofree char *why = NULL;

  if (!muster_operation_announce (self, MUSTER_CHIEF_LOCAL_INIT, NULL, error) ||
      !muster_operation_try_local_init (self, session, &why, error))
    return FALSE;
  if (why != NULL)
    return refuse_shut_gate (options, why, error);
  if (!muster_operation_check_ready (self, session, &why, error))
    return FALSE;
  if (why != NULL)
    return refuse_unready (self, options, why, error);
  return muster_operation_announce_prepared (self, error);
}

static gboolean
initialise (MusterOperation *self, MusterSession *session, const MusterPrepareOptions *options,
            GError **error)
{
  if (!has_init (self->manager, options))
    return refuse_without_init (error);
  if (!muster_prepare_options_has_init_op (options) && options->init_func == NULL)
    return TRUE;
  return muster_operation_may_initialise (self, options, error) &&
         muster_operation_announce (self, MUSTER_CHIEF_INITIALISING, NULL, error) &&
         muster_operation_init (self, session, options, error);
}

static gboolean
prepare (MusterOperation *self, MusterSession *session, const MusterPrepareOptions *options,
         GError **error)
{
  if (!muster_operation_restore (self, session, options, error))
    return FALSE;
  if (self->report.restored_from == NULL && !initialise (self, session, options, error))
    return FALSE;
  return finish_model (self, session, options, error);
}

/* *why (transfer full) says what keeps a restored model from being ready. */
static gboolean
finish_recovered (MusterOperation *self, MusterSession *session, const char *why_gate, char **why,
                  GError **error)
{
  const char *checkpoint = self->report.restored_from;
  g_autofree char *why_not = NULL;

  if (checkpoint == NULL) {
    *why = g_strdup ("There was no checkpoint to restore");
    return TRUE;
  }
  if (why_gate != NULL) {
    *why = g_strdup_printf ("Restoring model from %s did not make model ready for local init: %s",
                            checkpoint, why_gate);
    return TRUE;
  }
  if (!muster_operation_check_ready (self, session, &why_not, error))
    return FALSE;
  if (why_not != NULL)
    *why = g_strdup_printf ("Restoring model from %s did not make model ready: %s", checkpoint,
                            why_not);
  return TRUE;
}

static gboolean
recover (MusterOperation *self, MusterSession *session, const MusterPrepareOptions *options,
         GError **error)
{
  g_autofree char *why_gate = NULL;
  g_autofree char *why = NULL;

  if (!muster_operation_restore (self, session, options, error) ||
      !muster_operation_announce (self, MUSTER_CHIEF_LOCAL_INIT, NULL, error) ||
      !muster_operation_try_local_init (self, session, &why_gate, error) ||
      !finish_recovered (self, session, why_gate, &why, error) ||
      (why == NULL && !muster_operation_announce_prepared (self, error)))
    return FALSE;

  if (why != NULL) {
    g_info ("%s", why);
    self->report.outcome = MUSTER_OUTCOME_NOT_READY;
    self->report.reason = g_steal_pointer (&why);
  } else {
    g_info ("Restored model from %s", self->report.restored_from);
  }
  return TRUE;
}

typedef gboolean (*Work) (MusterOperation *self, MusterSession *session,
                          const MusterPrepareOptions *options, GError **error);

static gboolean
initialise_devices (MusterOperation *self, const MusterPrepareOptions *options, GError **error)
{
  GError *failure = NULL;

  if (options->device_func == NULL)
    return TRUE;
  muster_operation_phase (self, "devices");
  if (options->device_func (self->master, self->call_deadline_us, self->cancellable,
                            options->device_func_data, &failure))
    return TRUE;
  if (failure == NULL)
    muster_fail (&failure, MUSTER_ERROR_UNKNOWN, "it didn't say why");
  g_propagate_prefixed_error (error, failure, "Initialising the master's devices: ");
  return FALSE;
}

static gboolean
reset (MusterOperation *self, GError **error)
{
  muster_operation_phase (self, "reset");
  if (muster_master_reset (self->master, NULL, self->call_deadline_us, self->cancellable, error))
    return TRUE;
  g_prefix_error (error, "Resetting the master: ");
  return FALSE;
}

static gboolean
create_and_claim (MusterOperation *self, const MusterPrepareOptions *options,
                  MusterSession **session, GError **error)
{
  *session = muster_operation_create_session (self, error);
  return *session != NULL && muster_operation_claim (self, *session, options, error);
}

/* Only who holds the model may reset its master; that ends the session, so another is made. */
static gboolean
begin_session (MusterOperation *self, const MusterPrepareOptions *options, MusterSession **session,
               GError **error)
{
  if (!create_and_claim (self, options, session, error))
    return FALSE;
  if (!options->reset_master && !(options->reset_unclaimed && self->lease == NULL))
    return TRUE;
  if (options->quiesce_func != NULL) {
    muster_operation_phase (self, "rest");
    options->quiesce_func (*session, self->call_deadline_us, self->cancellable,
                           options->quiesce_func_data);
  }
  if (!reset (self, error))
    return FALSE;
  muster_operation_give_up_session (self, g_steal_pointer (session));
  return create_and_claim (self, options, session, error);
}

/* One session's life: made, claimed in and worked in; closed if that fails. *cost_us is what it
 * took to get it. */
static MusterSession *
attempt (MusterOperation *self, const MusterPrepareOptions *options, Work work, gint64 *cost_us,
         GError **error)
{
  gint64 started_us = muster_clock_now_us (self->clock);
  GError *failure = NULL;
  MusterSession *session = NULL;
  gboolean has_begun = initialise_devices (self, options, &failure) &&
                       begin_session (self, options, &session, &failure);

  *cost_us = muster_clock_now_us (self->clock) - started_us;
  if (has_begun && work (self, session, options, &failure)) {
    muster_operation_hand_lease_to (self, session);
    return session;
  }
  muster_operation_judge_failure (self, &failure);
  /* A life that ends here has said why; where that can't be noted, it can't be helped. */
  if (options->saver != NULL)
    (void)muster_saver_clear_crash_loop (options->saver, NULL);
  muster_operation_give_up_session (self, session);
  g_propagate_error (error, failure);
  return NULL;
}

static void
forget_attempt (MusterOperation *self)
{
  g_clear_pointer (&self->report.restored_from, g_free);
  g_clear_pointer (&self->report.passed_over, g_free);
  g_clear_pointer (&self->report.restore_warning, g_free);
}

static MusterSession *
work_in_session (MusterOperation *self, const MusterPrepareOptions *options, Work work,
                 GError **error)
{
  for (;;) {
    GError *failure = NULL;
    gint64 cost_us;
    gint64 started_us = muster_clock_now_us (self->clock);
    MusterSession *session = attempt (self, options, work, &cost_us, &failure);
    if (session != NULL)
      return session;
    if (!muster_operation_retry (self, failure, started_us, cost_us, error))
      return NULL;
    forget_attempt (self);
  }
}

MusterSession *
muster_operation_prepare (MusterOperation *self, const MusterPrepareOptions *options,
                          GError **error)
{
  return work_in_session (self, options, prepare, error);
}

MusterSession *
muster_operation_recover (MusterOperation *self, const MusterPrepareOptions *options,
                          GError **error)
{
  return work_in_session (self, options, recover, error);
}

// SPDX-License-Identifier: Apache-2.0
/* A monitored session: hooks around each run, and recovery. run_recovered () repeats an attempt
 * in another session while sessions are lost; muster_monitored_session_finish () ends the hooks,
 * the threads and the session. Sessions are created in monitored_make.c. */
#include "train/monitored/monitored_session.h"

#include "base/cancel_link_private.h"
#include "base/error.h"
#include "base/log_private.h"
#include "base/require_private.h"
#include "graph/graph_walk_private.h"
#include "master/step_check_private.h"
#include "session/claim_by_private.h"
#include "session/failed_private.h"
#include "train/completion/step_waits_private.h"
#include "train/monitored/monitored_session_private.h"
#include "train/monitored/queue_runner_private.h"
#include "train/monitored/scaffold_private.h"

#define DEFAULT_WAIT_US  (30 * 60 * MUSTER_SECOND)
#define DEFAULT_GRACE_US (120 * MUSTER_SECOND)
#define ASK_LEASE_US     (5 * MUSTER_SECOND)
#define POLL_US          (5 * MUSTER_SECOND)

static const MusterRetryPolicy default_recovery = {
    .budget = {[MUSTER_FAILURE_UNREACHABLE] = 10, [MUSTER_FAILURE_LOST_SESSION] = 10},
    .first_pause_us = 100 * MUSTER_MILLISECOND,
    .last_pause_us = 10 * MUSTER_SECOND};

G_DEFINE_FINAL_TYPE (MusterMonitoredSession, muster_monitored_session, G_TYPE_OBJECT)

/* --- creating --- */

static gboolean
wants_saver (const MusterMonitoredSessionOptions *options)
{
  const MusterPrepareOptions *prepare = options->prepare;
  return !options->is_worker && prepare != NULL && prepare->saver == NULL &&
         (prepare->checkpoint_dir != NULL || prepare->checkpoint_filename != NULL);
}

/* Sets the scaffold, and the chief's restore source if none was given (MON.10). */
static gboolean
take_scaffold (MusterMonitoredSession *self, const MusterMonitoredSessionOptions *options,
               GError **error)
{
  const MusterSaverOptions saving = {.clock = options->clock};
  if (!wants_saver (options)) {
    self->scaffold = muster_scaffold_ref (options->scaffold);
    return TRUE;
  }
  self->scaffold = muster_scaffold_with_saver (options->scaffold, error);
  if (self->scaffold != NULL)
    self->saver = muster_saver_new (muster_scaffold_meta_graph (self->scaffold), &saving, error);
  return self->saver != NULL;
}

/* For a model without variables, whose scaffold has no init op. */
static gboolean
initialise_nothing (MusterSession *session G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
                    GCancellable *cancellable G_GNUC_UNUSED, gpointer user_data G_GNUC_UNUSED,
                    GError **error G_GNUC_UNUSED)
{
  return TRUE;
}

/* Copies the options, which are needed to prepare the session again after a failure. */
static void
take_prepare (MusterMonitoredSession *self, const MusterPrepareOptions *options)
{
  MusterPrepareOptions own = options != NULL ? *options : (MusterPrepareOptions){0};
  if (own.saver == NULL)
    own.saver = self->saver;
  if (own.init_op == NULL && own.init_ops == NULL)
    own.init_op = muster_scaffold_init_op (self->scaffold);
  if (own.n_init_feeds == 0)
    own.init_feeds = muster_scaffold_init_feeds (self->scaffold, &own.n_init_feeds);
  if (own.init_func == NULL && muster_scaffold_has_init_func (self->scaffold)) {
    own.init_func = muster_scaffold_call_init_func;
    own.init_func_data = self->scaffold;
  }
  if (own.init_op == NULL && own.init_ops == NULL && own.init_func == NULL)
    own.init_func = initialise_nothing;
  self->prepare = g_boxed_copy (MUSTER_TYPE_PREPARE_OPTIONS, &own);
}

MusterSessionManagerOptions
muster_monitored_manager_options (MusterScaffold *scaffold,
                                  const MusterSessionManagerOptions *options)
{
  MusterSessionManagerOptions with = *options;
  with.local_init_op = muster_scaffold_local_init_op (scaffold);
  with.ready_op = muster_scaffold_ready_op (scaffold);
  with.ready_for_local_init_op = muster_scaffold_ready_for_local_init_op (scaffold);
  with.meta_graph = muster_scaffold_meta_graph (scaffold);
  return with;
}

/* Created once: all sessions come from the same manager (MON.12). */
static MusterSessionManager *
take_manager (MusterMonitoredSession *self, const MusterMonitoredSessionOptions *options,
              GError **error)
{
  const MusterSessionManagerOptions with = muster_monitored_manager_options (
      self->scaffold, &(MusterSessionManagerOptions){.clock = options->clock});
  if (options->manager != NULL)
    return g_object_ref (options->manager);
  return muster_session_manager_new (muster_scaffold_graph (self->scaffold), &with, error);
}

static void
take_options (MusterMonitoredSession *self, const MusterMonitoredSessionOptions *options)
{
  self->master = g_object_ref (options->master);
  self->is_worker = options->is_worker;
  self->never_recover = options->never_recover;
  take_prepare (self, options->prepare);
  self->max_wait_us = options->max_wait_us ? options->max_wait_us : DEFAULT_WAIT_US;
  self->step_timeout_us = options->step_timeout_us;
  self->stop_grace_us = options->stop_grace_us ? options->stop_grace_us : DEFAULT_GRACE_US;
  for (gsize i = 0; i < options->n_hooks; i++)
    g_ptr_array_add (self->hooks, g_object_ref (options->hooks[i]));
  self->recovery = options->recovery != NULL ? *options->recovery : default_recovery;
  self->retries.policy = &self->recovery;
  self->observer = options->observer != NULL ? g_object_ref (options->observer) : NULL;
  self->clock = g_object_ref (options->clock ? options->clock : muster_system_clock ());
  self->context =
      muster_run_context_new (muster_scaffold_global_step (self->scaffold), self->clock);
  self->meter = muster_goodput_meter_new (self->clock);
}

static gboolean
begin_hooks (MusterMonitoredSession *self, GError **error)
{
  for (guint i = 0; i < self->hooks->len; i++)
    muster_hook_measure (self->hooks->pdata[i], self->meter);
  for (guint i = 0; i < self->hooks->len; i++)
    if (!muster_hook_begin (self->hooks->pdata[i], self->scaffold, error))
      return FALSE;
  return muster_hooks_check (self->hooks, error);
}

MusterMonitoredSession *
muster_monitored_session_new (const MusterMonitoredSessionOptions *options,
                              MusterSessionReport *report, GCancellable *cancellable,
                              GError **error)
{
  muster_require (error, NULL, options);
  muster_require (error, NULL, options->scaffold, options->master);

  g_autoptr (MusterMonitoredSession) self = g_object_new (MUSTER_TYPE_MONITORED_SESSION, NULL);
  if (!take_scaffold (self, options, error))
    return NULL;
  take_options (self, options);
  self->cancellable = cancellable != NULL ? g_object_ref (cancellable) : NULL;
  self->queue_runners =
      muster_queue_runners_of (muster_scaffold_meta_graph (self->scaffold), error);
  self->manager = self->queue_runners != NULL ? take_manager (self, options, error) : NULL;
  return self->manager != NULL && begin_hooks (self, error) &&
                 muster_monitored_ensure (self, report, error)
             ? g_steal_pointer (&self)
             : NULL;
}

/* --- running --- */

/* A stop requested by a thread doesn't prevent further runs (MON.44); their own errors say what is
 * wrong. */
static gboolean
check_open (MusterMonitoredSession *self, GError **error)
{
  if (!g_atomic_int_get (&self->is_closed) && !g_atomic_int_get (&self->stop_requested))
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION, "%s",
                      g_atomic_int_get (&self->is_closed)
                          ? "Session is already closed."
                          : "Run called even after should_stop requested.");
}

/* The error that a thread reported is the cause if it is recoverable and the run's own isn't: for
 * example, a queue that was closed because its runner lost the master (MON.45). Takes failure. */
static GError *
cause_of (MusterMonitoredSession *self, GError *failure)
{
  GError *reported = muster_coordinator_error (self->coordinator);
  if (!muster_monitored_is_recoverable (self, failure) && reported != NULL &&
      muster_monitored_is_recoverable (self, reported)) {
    g_error_free (failure);
    return reported;
  }
  g_clear_error (&reported);
  return failure;
}

/* The chief's lease, or NULL; borrowed. */
static MusterLease *
lease_of (MusterMonitoredSession *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->session != NULL ? muster_session_manager_lease (self->session) : NULL;
}

/* A chief that was replaced finds its session gone, and must not recover and replace the new chief.
 * The master knows who holds the lease. Takes failure. */
static GError *
unless_replaced (MusterMonitoredSession *self, GError *failure)
{
  MusterLease *lease = lease_of (self);
  GError *replaced = NULL;
  if (lease == NULL || !muster_error_is (failure, MUSTER_ERROR_ABORTED))
    return failure;
  gint64 deadline_us = muster_deadline_after (muster_clock_now_us (self->clock), ASK_LEASE_US);
  if (muster_lease_announce_phase (lease, MUSTER_CHIEF_TRAINING, deadline_us,
                                   muster_monitored_cancellable (self), &replaced) ||
      !muster_error_is (replaced, MUSTER_ERROR_FAILED_PRECONDITION)) {
    g_clear_error (&replaced);
    return failure;
  }
  g_error_free (failure);
  return replaced;
}

/* A reset may make a step fail with any error: if the session is gone, the reset was the cause.
 * Takes failure. */
static GError *
unless_reset (MusterMonitoredSession *self, GError *failure)
{
  static const MusterStep nothing;
  MusterStep look = nothing;
  g_autoptr (GError) gone = NULL;
  if (muster_monitored_is_recoverable (self, failure) || self->session == NULL ||
      muster_session_is_here (self->session) || failure->domain != MUSTER_ERROR ||
      muster_error_is (failure, MUSTER_ERROR_OUT_OF_RANGE))
    return failure;
  look.deadline_us = muster_deadline_after (muster_clock_now_us (self->clock), POLL_US);
  if (muster_session_run (self->session, &look, NULL, NULL, muster_monitored_cancellable (self),
                          &gone) ||
      !muster_error_is (gone, MUSTER_ERROR_ABORTED))
    return failure;
  g_prefix_error (&gone, "%s; ", failure->message);
  g_error_free (failure);
  return g_steal_pointer (&gone);
}

/* Training has progressed: earlier failures no longer count. */
static void
note_progress (MusterMonitoredSession *self)
{
  gint64 step = muster_run_context_global_step (self->context);
  muster_goodput_meter_note_step (self->meter, step);
  if (muster_scaffold_global_step (self->scaffold) != NULL && step <= self->global_step)
    return;
  self->global_step = step;
  self->retries = (MusterRetries){.policy = &self->recovery};
}

/* Copies the step with the session's own time limit if that comes before its deadline; returns TRUE
 * in that case. */
static gboolean
limit_step (MusterMonitoredSession *self, const MusterStep *step, MusterStep *limited)
{
  gint64 limit_us =
      muster_deadline_after (muster_clock_now_us (self->clock), self->step_timeout_us);

  *limited = *step;
  if (self->step_timeout_us <= 0 || (step->deadline_us > 0 && step->deadline_us <= limit_us))
    return FALSE;
  limited->deadline_us = limit_us;
  return TRUE;
}

/* A run that took too long may have waited for a queue, while the master was there. */
static void
explain_wait (MusterMonitoredSession *self, const MusterStep *step, GError *late)
{
  MusterMetaGraph *meta_graph = muster_scaffold_meta_graph (self->scaffold);
  MusterGraph *graph = muster_meta_graph_graph (meta_graph);
  g_autofree guint8 *needed = g_malloc0 (muster_graph_n_nodes (graph) + 1);
  for (gsize i = 0; i < step->n_targets; i++)
    muster_graph_mark_needs (graph, step->targets[i], needed);
  for (gsize i = 0; i < step->n_fetches; i++)
    muster_graph_mark_needs (graph, step->fetches[i], needed);
  g_autofree char *why = muster_step_waits_for (meta_graph, needed);
  if (why == NULL)
    return;
  g_autofree char *message = late->message;
  late->message = g_strdup_printf ("%s; %s", message, why);
}

/* A run that exceeded the session's limit: the session is considered lost. */
static void
judge_failure (MusterMonitoredSession *self, const MusterStep *step, gboolean is_limited,
               GError **failure)
{
  GError *late = *failure;
  if (!muster_error_is (late, MUSTER_ERROR_DEADLINE_EXCEEDED))
    return;
  explain_wait (self, step, late);
  if (!is_limited)
    return;
  g_autofree char *limit = muster_format_duration (self->step_timeout_us);
  *failure = g_error_new (MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE, "a step timed out after %s: %s",
                          limit, late->message);
  g_error_free (late);
}

/* The step's time limit begins here, so that the hooks' waits before it don't count. error must not
 * be NULL. */
static gboolean
run_context (MusterMonitoredSession *self, const MusterStep *step, GError **error)
{
  MusterStep limited;
  const gboolean is_limited = limit_step (self, step, &limited);
  if (muster_run_context_run (self->context, limited.deadline_us, error))
    return TRUE;
  judge_failure (self, step, is_limited, error);
  return FALSE;
}

static gboolean
run_begun (MusterMonitoredSession *self, const MusterStep *step, MusterTensor **fetched,
           GBytes **metadata, GError **error)
{
  for (guint i = 0; i < self->hooks->len; i++)
    if (!muster_hook_before_run (self->hooks->pdata[i], self->context, error)) {
      if (muster_run_context_wants_stop (self->context))
        muster_monitored_session_request_stop (self);
      return FALSE;
    }
  if (!run_context (self, step, error))
    return FALSE;
  note_progress (self);
  for (guint i = 0; i < self->hooks->len; i++)
    if (!muster_hook_after_run (self->hooks->pdata[i], self->context, error)) {
      muster_monitored_note_mistake (self, *error);
      return FALSE;
    }
  if (muster_run_context_wants_stop (self->context))
    muster_monitored_session_request_stop (self);
  muster_run_context_hand_out (self->context, fetched, metadata);
  return TRUE;
}

/* error must not be NULL. */
static gboolean
run_hooked (MusterMonitoredSession *self, const MusterStep *step, MusterTensor **fetched,
            GBytes **metadata, GError **error)
{
  muster_run_context_begin (self->context, self->session, step,
                            muster_monitored_cancellable (self));
  const gboolean ran = run_begun (self, step, fetched, metadata, error);
  muster_run_context_end (self->context);
  return ran;
}

/* What ends a call beside the session's own cancellable: GLib's current one of the thread, which
 * doesn't end the session. */
typedef struct {
  MusterMonitoredSession *self;
  GCancellable *before; /* (not owned) (nullable) calling, of the call around this one */
  MusterCancelLink either;
} Call;

static Call
begin_call (MusterMonitoredSession *self)
{
  GCancellable *current = g_cancellable_get_current ();
  Call call = {.self = self, .before = self->calling};
  if (current != NULL) {
    call.either = muster_cancel_link (self->cancellable, current);
    self->calling = call.either.cancellable;
  }
  return call;
}

static void
end_call (Call *call)
{
  call->self->calling = call->before;
  muster_cancel_link_clear (&call->either);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Call, end_call)

/* One attempt of the operation. */
typedef gboolean (*Attempt) (MusterMonitoredSession *self, gpointer data, GError **error);

/* The session is lost: gives it up. Takes failure. */
static void
lose (MusterMonitoredSession *self, GError *failure)
{
  muster_monitored_drop (self);
  self->lost = failure;
}

/* FALSE with what has lost the session. A thread may have found that (MON.43). */
static gboolean
check_lost (MusterMonitoredSession *self, GError **error)
{
  GError *reported = self->session != NULL ? muster_coordinator_error (self->coordinator) : NULL;
  if (reported != NULL && muster_monitored_is_recoverable (self, reported))
    lose (self, reported);
  else
    g_clear_error (&reported);
  if (self->lost != NULL)
    g_propagate_error (error, g_error_copy (self->lost));
  return self->lost == NULL;
}

static gboolean
ensure_session (MusterMonitoredSession *self, GError **error)
{
  if (!self->recovers_when_told)
    (void)check_lost (self, NULL);
  else if (!check_lost (self, error))
    return FALSE;
  return muster_monitored_ensure (self, NULL, error);
}

/* Repeats the attempt until it succeeds or fails with an error other than a lost session. The
 * deadline applies to the whole call, except within a step function, whose runs don't recover by
 * themselves. 0: none. */
static gboolean
run_recovered (MusterMonitoredSession *self, Attempt attempt, gpointer data, gint64 deadline_us,
               GError **error)
{
  G_GNUC_UNUSED g_auto (Call) call = begin_call (self);

  if (!self->in_step_function)
    self->deadline_us = deadline_us == 0 ? MUSTER_WAIT_FOREVER : deadline_us;
  while (ensure_session (self, error)) {
    GError *failure = NULL;
    if (attempt (self, data, &failure))
      return TRUE;
    if (!self->in_step_function) /* else the whole function is run again */
      failure = unless_replaced (self, unless_reset (self, cause_of (self, failure)));
    if (self->in_step_function || !muster_monitored_is_recoverable (self, failure)) {
      g_propagate_error (error, failure);
      return FALSE;
    }
    lose (self, failure);
  }
  return FALSE;
}

void
muster_monitored_session_recover_when_told (MusterMonitoredSession *self)
{
  self->recovers_when_told = TRUE;
}

gboolean
muster_monitored_session_is_lost (const MusterMonitoredSession *self)
{
  return self->lost != NULL;
}

gboolean
muster_monitored_session_recover (MusterMonitoredSession *self, gint64 until_us, GError **error)
{
  G_GNUC_UNUSED g_auto (Call) call = begin_call (self);
  self->deadline_us = MUSTER_WAIT_FOREVER;
  self->until_us = until_us;
  muster_session_manager_set_claim_by (self->manager, until_us);
  const gboolean is_made = muster_monitored_ensure (self, NULL, error);
  muster_session_manager_set_claim_by (self->manager, 0);
  self->until_us = 0;
  return is_made;
}

typedef struct {
  const MusterStep *step;
  MusterTensor **fetched;
  GBytes **metadata;
} Run;

static gboolean
attempt_hooked (MusterMonitoredSession *self, gpointer data, GError **error)
{
  const Run *run = data;
  return run_hooked (self, run->step, run->fetched, run->metadata, error);
}

/* For the function of that name. */
static gboolean
run_step (MusterMonitoredSession *self, const char *function, Attempt attempt, Run run,
          GError **error)
{
  return muster_step_check (function, run.step, TRUE, error) && check_open (self, error) &&
         run_recovered (self, attempt, &run, run.step->deadline_us, error);
}

gboolean
muster_monitored_session_run (MusterMonitoredSession *self, const MusterStep *step,
                              MusterTensor **fetched, GBytes **metadata, GError **error)
{
  muster_require (error, FALSE, self, step);
  muster_require_array (error, FALSE, fetched, step->n_fetches);
  return run_step (self, G_STRFUNC, attempt_hooked, (Run){step, fetched, metadata}, error);
}

static gboolean
attempt_plain (MusterMonitoredSession *self, gpointer data, GError **error)
{
  const Run *run = data;
  MusterStep limited;
  const gboolean is_limited = limit_step (self, run->step, &limited);
  if (muster_session_run (self->session, &limited, run->fetched, run->metadata,
                          muster_monitored_cancellable (self), error))
    return TRUE;
  judge_failure (self, run->step, is_limited, error);
  return FALSE;
}

gboolean
muster_monitored_session_run_without_hooks (MusterMonitoredSession *self, const MusterStep *step,
                                            MusterTensor **fetched, GBytes **metadata,
                                            GError **error)
{
  muster_require (error, FALSE, self, step);
  muster_require_array (error, FALSE, fetched, step->n_fetches);
  return run_step (self, G_STRFUNC, attempt_plain, (Run){step, fetched, metadata}, error);
}

typedef struct {
  MusterStepFunction function;
  gpointer user_data;
  gint64 deadline_us;
} Function;

static gboolean
attempt_function (MusterMonitoredSession *self, gpointer data, GError **error)
{
  const Function *what = data;
  self->in_step_function = TRUE;
  gboolean is_done = what->function (self, self->session, what->deadline_us,
                                     muster_monitored_cancellable (self), what->user_data, error);
  self->in_step_function = FALSE;
  if (is_done || *error != NULL)
    return is_done;
  muster_monitored_session_request_stop (self); /* MON.49 */
  return TRUE;
}

gboolean
muster_monitored_session_run_step_function (MusterMonitoredSession *self,
                                            MusterStepFunction function, gpointer user_data,
                                            gint64 deadline_us, GError **error)
{
  muster_require (error, FALSE, self, function);
  if (!muster_deadline_check (deadline_us, error))
    return FALSE;

  Function what = {function, user_data, deadline_us};

  if (self->in_step_function)
    return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                        "muster_monitored_session_run_step_function: a step function can't run "
                        "another");
  return check_open (self, error) &&
         run_recovered (self, attempt_function, &what, deadline_us, error);
}

/* --- stopping --- */

void
muster_monitored_session_request_stop (MusterMonitoredSession *self)
{
  g_return_if_fail (self != NULL);
  g_atomic_int_set (&self->stop_requested, 1);
  g_mutex_lock (&self->lock);
  g_autoptr (MusterCoordinator) coordinator =
      self->coordinator != NULL ? g_object_ref (self->coordinator) : NULL;
  g_mutex_unlock (&self->lock);
  if (coordinator != NULL)
    muster_coordinator_request_stop (coordinator, NULL, NULL);
}

gboolean
muster_monitored_session_is_stopping (const MusterMonitoredSession *self)
{
  return g_atomic_int_get (&self->stop_requested) != 0;
}

gboolean
muster_monitored_session_should_stop (MusterMonitoredSession *self)
{
  g_return_val_if_fail (self != NULL, FALSE);

  if (g_atomic_int_get (&self->is_closed) || g_atomic_int_get (&self->stop_requested))
    return TRUE;
  g_mutex_lock (&self->lock);
  g_autoptr (MusterCoordinator) coordinator =
      self->coordinator != NULL ? g_object_ref (self->coordinator) : NULL;
  g_mutex_unlock (&self->lock);
  if (coordinator == NULL || !muster_coordinator_should_stop (coordinator))
    return FALSE;
  g_autoptr (GError) reported = muster_coordinator_error (coordinator);

  /* The next run recovers from it. */
  return !(reported != NULL && muster_monitored_is_recoverable (self, reported));
}

/* --- closing --- */

static gboolean
is_clean_end (const MusterMonitoredSession *self, const GError *failure)
{
  if (failure == NULL)
    return TRUE;
  return muster_error_is (failure, MUSTER_ERROR_OUT_OF_RANGE) &&
         !(self->hooks_mistake != NULL &&
           strcmp (self->hooks_mistake->message, failure->message) == 0);
}

/* Reports an end of the input that nobody asked for (DMON.8). */
static void
note_end_of_input (MusterMonitoredSession *self, const GError *failure)
{
  if (failure == NULL)
    return;
  self->end_of_input = g_strdup (failure->message);
  muster_log (G_LOG_LEVEL_INFO, "end-of-input", "MESSAGE",
              "training ends because its input has ended: %s", failure->message);
}

/* Calls all hooks; the first error is returned, the others are logged (DMON.11). */
static void
end_hooks (MusterMonitoredSession *self, gint64 deadline_us, GError **first)
{
  for (guint i = 0; i < self->hooks->len; i++) {
    g_autoptr (GError) failure = NULL;
    if (muster_hook_end (self->hooks->pdata[i], self->session, deadline_us,
                         muster_monitored_cancellable (self), &failure))
      continue;
    if (*first == NULL)
      *first = g_steal_pointer (&failure);
    else
      muster_log (G_LOG_LEVEL_INFO, "further-error", "MESSAGE", "further error: %s",
                  failure->message);
  }
}

static void
notify_hooks (MusterMonitoredSession *self, const GError *failure)
{
  for (guint i = 0; i < self->hooks->len; i++)
    muster_hook_on_error (self->hooks->pdata[i], failure);
}

/* A thread's reported error precedes all later failures, as in TensorFlow's `with`, unless it is a
 * lost session, which would have been recovered. Threads of sessions that were given up don't
 * count. Takes first (nullable). */
static GError *
blame_thread (MusterMonitoredSession *self, GError *first)
{
  GError *reported = self->session != NULL ? muster_coordinator_error (self->coordinator) : NULL;
  if (reported == NULL || muster_monitored_is_recoverable (self, reported)) {
    if (reported != NULL)
      muster_log (G_LOG_LEVEL_INFO, "further-error", "MESSAGE", "further error: %s",
                  reported->message);
    g_clear_error (&reported);
    return first;
  }
  if (first != NULL && strcmp (first->message, reported->message) != 0)
    muster_log (G_LOG_LEVEL_INFO, "further-error", "MESSAGE", "further error: %s", first->message);
  g_clear_error (&first);
  return reported;
}

static void
announce_failure (MusterMonitoredSession *self, const GError *failure)
{
  MusterLease *lease = lease_of (self);
  if (lease != NULL)
    muster_announce_failure (lease, failure, self->clock);
}

gboolean
muster_monitored_session_finish (MusterMonitoredSession *self, const GError *failure,
                                 gint64 deadline_us, GError **error)
{
  muster_require (error, FALSE, self);
  if (!muster_deadline_check (deadline_us, error))
    return FALSE;

  GError *first = NULL;
  const GError *ending = NULL;

  if (g_atomic_int_get (&self->is_closed)) {
    return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION, "Session is already closed.");
  }
  G_GNUC_UNUSED g_auto (Call) call = begin_call (self);
  if (!is_clean_end (self, failure)) {
    first = g_error_copy (failure);
  } else {
    note_end_of_input (self, failure);
    if (self->session != NULL)
      end_hooks (self, deadline_us, &first);
    ending = first; /* a save at the end, as it may be, says nothing of the model */
  }
  if (first == NULL)
    muster_goodput_meter_stop (self->meter);
  else
    muster_goodput_meter_lost (self->meter);
  if (self->coordinator != NULL) {
    muster_coordinator_request_stop (self->coordinator, NULL, NULL);
    first = blame_thread (self, first);
  }
  if (first != NULL && first != ending)
    announce_failure (self, first);
  if (first != NULL)
    notify_hooks (self, first);
  if (self->coordinator != NULL)
    muster_monitored_join (self, deadline_us, NULL); /* the error is known already */
  muster_monitored_close (self);
  muster_goodput_meter_stop (self->meter);
  g_atomic_int_set (&self->is_closed, 1);
  if (first == NULL)
    return TRUE;
  g_propagate_error (error, first);
  return FALSE;
}

/* --- accessors --- */

MusterSession *
muster_monitored_session_session (MusterMonitoredSession *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->session;
}

MusterCoordinator *
muster_monitored_session_coordinator (MusterMonitoredSession *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->coordinator;
}

gint64
muster_monitored_session_global_step (MusterMonitoredSession *self)
{
  g_return_val_if_fail (self != NULL, -1);
  return self->global_step;
}

const char *
muster_monitored_session_end_of_input (MusterMonitoredSession *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->end_of_input;
}

void
muster_monitored_session_goodput (MusterMonitoredSession *self, MusterGoodput *goodput)
{
  g_return_if_fail (self != NULL && goodput != NULL);
  muster_goodput_meter_read (self->meter, goodput);
}

guint
muster_monitored_session_n_recoveries (MusterMonitoredSession *self)
{
  g_return_val_if_fail (self != NULL, 0);
  return self->n_recoveries;
}

static void
muster_monitored_session_dispose (GObject *object)
{
  MusterMonitoredSession *self = MUSTER_MONITORED_SESSION (object);
  self->deadline_us =
      MUSTER_WAIT_FOREVER; /* the last run's deadline no longer applies; the grace does */
  if (self->session != NULL)
    muster_monitored_drop (self);
  G_OBJECT_CLASS (muster_monitored_session_parent_class)->dispose (object);
}

static void
muster_monitored_session_finalize (GObject *object)
{
  MusterMonitoredSession *self = MUSTER_MONITORED_SESSION (object);
  if (self->prepare != NULL)
    g_boxed_free (MUSTER_TYPE_PREPARE_OPTIONS, self->prepare);
  g_clear_pointer (&self->context, muster_run_context_unref);
  g_clear_object (&self->observer);
  g_clear_pointer (&self->meter, muster_goodput_meter_unref);
  g_clear_object (&self->coordinator);
  g_ptr_array_unref (self->hooks);
  g_clear_pointer (&self->queue_runners, g_ptr_array_unref);
  g_clear_error (&self->hooks_mistake);
  g_clear_error (&self->lost);
  g_free (self->end_of_input);
  g_clear_pointer (&self->scaffold, muster_scaffold_unref);
  g_clear_object (&self->saver);
  g_clear_object (&self->master);
  g_clear_object (&self->manager);
  g_clear_object (&self->clock);
  g_clear_object (&self->cancellable);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (muster_monitored_session_parent_class)->finalize (object);
}

static void
muster_monitored_session_class_init (MusterMonitoredSessionClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = muster_monitored_session_dispose;
  G_OBJECT_CLASS (klass)->finalize = muster_monitored_session_finalize;
}

static void
muster_monitored_session_init (MusterMonitoredSession *self)
{
  self->hooks = g_ptr_array_new_with_free_func (g_object_unref);
  self->global_step = -1;
  self->deadline_us = MUSTER_WAIT_FOREVER;
  g_mutex_init (&self->lock);
}

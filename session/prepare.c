// SPDX-License-Identifier: Apache-2.0
/* Prepare and recover. attempt () lists a chief's phases in each session: devices, claim, reset,
 * restore, init, local init, check, announce. Nothing on the master changes before the claim is
 * granted and the directory is taken. */
#include "base/log_private.h"
#include "base/require_private.h"
#include "base/safe_text_private.h"
#include "graph/after_restore_private.h"
#include "graph/graph_nodes_private.h"
#include "graph/graph_walk_private.h"
#include "master/lease.h"
#include "ready/countdown_private.h"
#include "ready/readiness_private.h"
#include "saver/run_private.h"
#include "session/failed_private.h"
#include "session/session_private.h"

#define LEASE_KEY     "muster-lease"
#define RESTORED_KEY  "muster-restored-from"
#define CONTINUED_KEY "muster-continued-step"

#define LONGEST_WHY 4096 /* maximum length of the variables' names in bytes */

/* Timeout for asking what a model's chief has announced. */
#define ASK_LIMIT_US MUSTER_SECOND

/* Options: checks before a session is created. */

static gboolean
check_places (const MusterPrepareOptions *options, GError **error)
{
  MusterStorage *storage = options->saver != NULL ? muster_saver_storage (options->saver) : NULL;
  if (!muster_is_given (options->checkpoint_dir) || !muster_is_given (options->checkpoint_filename))
    return (!muster_is_given (options->checkpoint_dir) ||
            muster_storage_check_path (storage, "checkpoint directory", options->checkpoint_dir,
                                       error)) &&
           (!muster_is_given (options->checkpoint_filename) ||
            muster_storage_check_path (storage, "checkpoint", options->checkpoint_filename, error));
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "Can not provide both checkpoint_dir and checkpoint_filename_with_path.");
}

static gboolean
has_init_op (const MusterPrepareOptions *options)
{
  return options->init_op != NULL || (options->init_ops != NULL && *options->init_ops != NULL);
}

static gboolean
has_init (const MusterSessionManager *manager, const MusterPrepareOptions *options)
{
  return has_init_op (options) || options->init_func != NULL || manager->local_init_ops != NULL;
}

static gboolean
refuse_without_init (GError **error)
{
  return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                      "Model is not initialized and no init_op or init_fn or local_init_op was "
                      "given");
}

static gboolean
check_options (const MusterSessionManager *manager, const MusterPrepareOptions *options,
               gboolean initialises, GError **error)
{
  if (!check_places (options, error))
    return FALSE;
  if (options->epoch < 0) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "The epoch must be 0 or above, not %" G_GINT64_FORMAT, options->epoch);
  }
  if (initialises && options->init_op != NULL && options->init_ops != NULL) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "Give either init_op or init_ops, not both");
  }
  if (initialises && !muster_operation_can_restore (options) && !has_init (manager, options))
    return refuse_without_init (error);
  return muster_session_check_op (manager->graph, "init_op", options->init_op, error) &&
         muster_session_check_ops (manager->graph, "init_op", options->init_ops, error);
}

/* Devices. */

static gboolean
initialise_devices (MusterOperation *self, GError **error)
{
  const MusterPrepareOptions *options = self->options;
  GError *failure = NULL;
  if (options->device_func == NULL)
    return TRUE;
  muster_operation_phase (self, "devices");
  if (options->device_func (self->master, self->call_deadline_us, self->cancellable,
                            options->device_func_data, &failure))
    return TRUE;
  if (failure == NULL)
    muster_fail (&failure, MUSTER_ERROR_UNKNOWN, "no reason given");
  g_propagate_prefixed_error (error, failure, "Initialising the master's devices: ");
  return FALSE;
}

/* Claim. */

MusterLease *
muster_session_manager_lease (MusterSession *session)
{
  g_return_val_if_fail (MUSTER_IS_SESSION (session), NULL);
  return g_object_get_data (G_OBJECT (session), LEASE_KEY);
}

const char *
muster_session_manager_restored_from (MusterSession *session)
{
  g_return_val_if_fail (MUSTER_IS_SESSION (session), NULL);
  return g_object_get_data (G_OBJECT (session), RESTORED_KEY);
}

gint64
muster_session_manager_continued_step (MusterSession *session)
{
  g_return_val_if_fail (MUSTER_IS_SESSION (session), -1);
  const gint64 *step = g_object_get_data (G_OBJECT (session), CONTINUED_KEY);
  return step != NULL ? *step : -1;
}

/* Ties the lease, and where the model comes from, to the session. */
static void
hand_on (MusterOperation *self)
{
  g_object_set_data_full (G_OBJECT (self->session), RESTORED_KEY,
                          g_strdup (self->report.restored_from), g_free);
  if (self->report.continued)
    g_object_set_data_full (
        G_OBJECT (self->session), CONTINUED_KEY,
        g_memdup2 (&self->report.continued_step, sizeof self->report.continued_step), g_free);
  if (self->lease != NULL)
    g_object_set_data_full (G_OBJECT (self->session), LEASE_KEY, g_steal_pointer (&self->lease),
                            g_object_unref);
}

/* Keeps the first attempt's result, which is the other chief's; later ones are this chief's own.
 * */
static void
keep_before (MusterOperation *self, MusterAnnouncement *before)
{
  if (before != NULL && self->claimed_epoch != 0 && before->epoch == self->claimed_epoch) {
    muster_announcement_free (before);
    return;
  }
  muster_announcement_free (self->before);
  self->before = before;
  g_clear_pointer (&self->report.goodput, g_free);
  if (before == NULL || before->goodput == NULL)
    return;
  self->report.goodput = muster_goodput_copy (before->goodput);
  self->report.goodput_at_us = muster_clock_now_us (self->clock) - before->goodput->age_us;
}

/* (transfer full) (nullable) the model's announcement as it stands: a watch's first message has it.
 */
static MusterAnnouncement *
ask_chief (MusterOperation *self)
{
  gint64 now_us = muster_clock_now_us (self->clock);
  gint64 deadline_us = MIN (self->call_deadline_us, muster_deadline_after (now_us, ASK_LIMIT_US));
  MusterWatchFor what = {.model = self->manager->model, .task = self->manager->task};
  g_autoptr (MusterWatch) watch = muster_session_watch (self->session, &what, deadline_us, NULL);
  g_auto (MusterReadiness) readiness = {0};

  if (watch == NULL || !muster_watch_next (watch, &readiness, self->cancellable, NULL))
    return NULL;
  return g_steal_pointer (&readiness.chief);
}

/* A refusal contains no announcement. */
static gint64
ask_final_step (MusterOperation *self)
{
  g_autoptr (MusterAnnouncement) chief = ask_chief (self);
  return chief != NULL ? chief->step : -1;
}

/* Handles a refused claim; TRUE: the master keeps no announcements, which is fine. */
static gboolean
judge_refusal (MusterOperation *self, GError *failure, GError **error)
{
  if (muster_error_is (failure, MUSTER_ERROR_UNIMPLEMENTED)) {
    g_error_free (failure);
    return TRUE;
  }
  if (muster_error_is (failure, MUSTER_ERROR_FAILED_PRECONDITION)) {
    self->report.outcome = MUSTER_OUTCOME_FENCED;
  } else if (muster_error_is (failure, MUSTER_ERROR_OUT_OF_RANGE)) {
    self->report.outcome = MUSTER_OUTCOME_OVER;
    self->report.final_step = self->before != NULL ? self->before->step : ask_final_step (self);
  } else {
    g_prefix_error (&failure, "Claiming '%s': ", self->manager->model);
  }
  g_propagate_error (error, failure);
  return FALSE;
}

/* Claims the model. Does nothing without a name, or on a master that keeps no announcements. */
static gboolean
claim (MusterOperation *self, GError **error)
{
  const MusterSessionManager *manager = self->manager;
  GError *failure = NULL;
  MusterAnnouncement *before = NULL;
  if (manager->model == NULL)
    return TRUE;

  /* Another attempt of the same operation takes over from the previous one, whose lease may still
   * be held, with the same epoch, so that a newer chief keeps the model. */
  gboolean is_ours = self->claimed_epoch != 0;
  self->has_claimed_before = is_ours;
  muster_operation_phase (self, "claim");
  MusterClaim what = {.model = manager->model,
                      .task = manager->task,
                      .epoch = is_ours ? self->claimed_epoch : self->options->epoch,
                      .ready_op = manager->ready_op,
                      .take_over = is_ours || self->options->overwrite,
                      .spares_living = !is_ours};
  self->lease = muster_session_claim (self->session, &what, &before, self->call_deadline_us,
                                      self->cancellable, &failure);
  keep_before (self, before);
  if (self->lease == NULL)
    return judge_refusal (self, failure, error);
  self->announced = MUSTER_CHIEF_STARTING;
  self->claimed_epoch = muster_lease_epoch (self->lease);
  self->report.epoch = self->claimed_epoch;
  return TRUE;
}

static gboolean
send (MusterOperation *self, const MusterAnnouncement *announcement, GError **error)
{
  g_autoptr (GError) failure = NULL;
  if (muster_lease_announce (self->lease, announcement, self->call_deadline_us, self->cancellable,
                             &failure))
    return TRUE;
  if (muster_error_is (failure, MUSTER_ERROR_FAILED_PRECONDITION))
    self->report.outcome = MUSTER_OUTCOME_FENCED;
  else
    g_prefix_error (&failure,
                    "Announcing '%s' of '%s': ", muster_chief_phase_name (announcement->phase),
                    self->manager->model);
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

/* detail is nullable. */
gboolean
muster_operation_announce (MusterOperation *self, MusterChiefPhase phase, const char *detail,
                           GError **error)
{
  g_auto (MusterAnnouncement) announcement = MUSTER_ANNOUNCEMENT_INIT;
  if (self->lease == NULL)
    return TRUE;
  announcement.phase = phase;
  announcement.detail = g_strdup (detail);
  self->announced = phase;
  return send (self, &announcement, error);
}

/* Fails if the lease is known to be lost, without a call. */
gboolean
muster_operation_check_lease (MusterOperation *self, GError **error)
{
  if (self->lease == NULL || muster_lease_check (self->lease, error))
    return TRUE;
  self->report.outcome = MUSTER_OUTCOME_FENCED;
  return FALSE;
}

static gboolean
take_directory (MusterOperation *self, GError **error)
{
  const MusterPrepareOptions *options = self->options;
  return options->taken_by == NULL || !muster_is_given (options->checkpoint_dir) ||
         muster_saver_take_directory (options->taken_by, self->lease, options->checkpoint_dir,
                                      self->call_deadline_us, self->cancellable, error);
}

/* Reset. */

static gboolean
are_all_missing (const MusterSessionManager *manager, char **missing)
{
  g_autoptr (GHashTable) names = g_hash_table_new (g_str_hash, g_str_equal);
  gsize n = 0;
  for (; missing != NULL && *missing != NULL; missing++)
    g_hash_table_add (names, *missing);
  for (gsize i = 0; i < manager->n_variables; i++) {
    const MusterVariableInfo *variable = &manager->variables[i];
    if (!variable->is_local && !g_hash_table_contains (names, variable->name))
      return FALSE;
    n += !variable->is_local;
  }
  return n > 0;
}

/* Returns TRUE if the master has no value of the model, as after its start: then no step of an
 * earlier run can train there, and a reset would only end the sessions of tasks that wait. */
static gboolean
is_master_blank (MusterOperation *self)
{
  const char *op = self->manager->ready_op;
  g_auto (MusterReadyOpResult) readiness = {0};
  if (op == NULL || self->manager->n_variables == 0)
    return FALSE;
  self->report.polls++;
  return muster_ready_op_probe (self->session, op, self->call_deadline_us, self->cancellable,
                                &readiness, NULL) &&
         !readiness.is_ready && are_all_missing (self->manager, readiness.missing);
}

/* Returns TRUE if the model is another chief's. A chief that died while preparing has prepared
 * nothing, whatever was there before; one that had only claimed has changed nothing. */
static gboolean
is_anothers_work (const MusterOperation *self, const MusterAnnouncement *before)
{
  return before != NULL && before->prepared && before->epoch != self->claimed_epoch &&
         (!muster_chief_phase_is_preparing (before->phase) ||
          before->phase == MUSTER_CHIEF_STARTING);
}

/* On a cluster, where the announcement is a gateway's, the servers that held the values may have
 * ended since; on one server, a graph none of whose variables it has is another model. */
static gboolean
is_free_to_initialise (MusterOperation *self, const MusterAnnouncement *before)
{
  return !is_anothers_work (self, before) ||
         (self->manager->cluster != NULL && is_master_blank (self));
}

static gboolean
refuse_initialised (MusterOperation *self, const MusterAnnouncement *before, GError **error)
{
  g_autofree char *chief = muster_announcement_describe (before);
  self->report.outcome = MUSTER_OUTCOME_FENCED;
  return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                      "'%s' is already initialised (by %s); to join it, use `muster wait`; to "
                      "discard what it has trained, use --overwrite",
                      self->manager->model, chief);
}

/* Whether initialising is all that this chief can do with the model. */
static gboolean
can_only_initialise (MusterOperation *self, gboolean *only, GError **error)
{
  const MusterPrepareOptions *options = self->options;
  gboolean found = FALSE;
  *only = FALSE;
  if (self->is_recovery || options->continue_func != NULL || options->overwrite ||
      options->reset_master || (!has_init_op (options) && options->init_func == NULL))
    return TRUE;
  if (!muster_operation_may_find_checkpoint (options, &found, error))
    return FALSE;
  *only = !found;
  return TRUE;
}

/* A higher epoch takes the model from a living chief. One that would be refused after that, as the
 * model is initialised, is refused before: the chief would have ended for nothing. */
static gboolean
spare_chief (MusterOperation *self, GError **error)
{
  gboolean only;
  if (self->manager->model == NULL || self->options->epoch == 0 || self->claimed_epoch != 0)
    return TRUE;
  if (!can_only_initialise (self, &only, error))
    return FALSE;
  g_autoptr (MusterAnnouncement) chief = only ? ask_chief (self) : NULL;
  return chief == NULL || !chief->alive || chief->epoch >= self->options->epoch ||
         is_free_to_initialise (self, chief) || refuse_initialised (self, chief, error);
}

static gboolean
claim_in_session (MusterOperation *self, GError **error)
{
  if (!muster_operation_create_session (self, error) || !spare_chief (self, error) ||
      !claim (self, error))
    return FALSE;
  muster_operation_set_deadline (self, 0); /* muster_session_manager_set_claim_by () is met */
  return TRUE;
}

/* Whether the model is to be written in place, also one without values, of which another session's
 * step may begin once the first ops have run; or the master to be reset. */
static gboolean
needs_rest (MusterOperation *self)
{
  const MusterPrepareOptions *options = self->options;
  const gboolean resets =
      options->reset_master || (options->reset_unclaimed && self->lease == NULL);
  return !self->report.continued && (options->in_place || (resets && !is_master_blank (self)));
}

/* Resets the master, which only the chief that holds the model may do. That ends the session, so
 * another is created. */
static gboolean
reset (MusterOperation *self, GError **error)
{
  const MusterPrepareOptions *options = self->options;
  if (!needs_rest (self))
    return TRUE;
  if (options->quiesce_func != NULL) {
    muster_operation_phase (self, "rest");
    if (!options->quiesce_func (self->session, self->call_deadline_us, self->cancellable,
                                options->quiesce_func_data, error))
      return FALSE;
  }
  if (options->in_place)
    return TRUE;
  muster_operation_phase (self, "reset");
  if (muster_master_reset (self->master, NULL, self->call_deadline_us, self->cancellable, error))
    return claim_in_session (self, error);
  g_prefix_error (error, "Resetting the master: ");
  return FALSE;
}

/* Initialise. */

/* Restores the announcement that the claim has changed, because the model is still the other
 * chief's. */
static void
put_back (MusterOperation *self)
{
  const MusterAnnouncement *before = self->before;
  g_auto (MusterAnnouncement) announcement = MUSTER_ANNOUNCEMENT_INIT;
  announcement.phase =
      before->phase == MUSTER_CHIEF_STARTING ? MUSTER_CHIEF_PREPARED : before->phase;
  announcement.step = before->step;
  announcement.durable_step = before->durable_step;
  announcement.durable = g_strdup (before->durable);
  announcement.durable_age_us = before->durable_age_us;
  announcement.holder = g_strdup (before->holder);
  announcement.failed = before->failed;
  announcement.ended = g_strdup (before->ended);
  /* The operation has failed in any case. */
  (void)muster_lease_announce (self->lease, &announcement, self->call_deadline_us,
                               self->cancellable, NULL);
}

/* Refuses to run the init ops over a model that another chief has prepared. */
static gboolean
may_initialise (MusterOperation *self, GError **error)
{
  if (self->lease == NULL || self->options->overwrite || self->options->reset_master ||
      is_free_to_initialise (self, self->before))
    return TRUE;
  put_back (self);
  return refuse_initialised (self, self->before, error);
}

static char *
name_of_ops (const char *const *ops, gsize n)
{
  return n == 1 ? g_strdup (*ops) : g_strjoinv (", ", (char **)ops);
}

static gboolean
run_init_ops (MusterOperation *self, GError **error)
{
  const MusterPrepareOptions *options = self->options;
  gboolean is_one = options->init_op != NULL;
  const char *const *ops = is_one ? &options->init_op : options->init_ops;
  gsize n = is_one ? 1 : g_strv_length ((char **)ops);
  MusterStep step = {.feeds = options->init_feeds,
                     .n_feeds = options->n_init_feeds,
                     .targets = ops,
                     .n_targets = n,
                     .deadline_us = self->call_deadline_us};
  if (muster_session_run (self->session, &step, NULL, NULL, self->cancellable, error))
    return TRUE;
  g_autofree char *name = name_of_ops (ops, n);
  g_prefix_error (error, "Running init_op '%s': ", name);
  return FALSE;
}

static gboolean
run_init_func (MusterOperation *self, GError **error)
{
  const MusterPrepareOptions *options = self->options;
  g_autoptr (GError) failure = NULL;
  if (options->init_func (self->session, self->call_deadline_us, self->cancellable,
                          options->init_func_data, &failure))
    return TRUE;
  if (failure == NULL)
    muster_fail (&failure, MUSTER_ERROR_UNKNOWN, "no reason given");
  g_propagate_prefixed_error (error, g_steal_pointer (&failure), "The init function failed: ");
  return FALSE;
}

/* A restored model isn't initialised, and recover never initialises. */
static gboolean
initialise (MusterOperation *self, GError **error)
{
  const MusterPrepareOptions *options = self->options;
  if (self->is_recovery || self->report.continued || self->report.restored_from != NULL)
    return TRUE;
  if (!has_init (self->manager, options))
    return refuse_without_init (error);
  if (!has_init_op (options) && options->init_func == NULL)
    return TRUE;
  if (!may_initialise (self, error) ||
      !muster_operation_announce (self, MUSTER_CHIEF_INITIALISING, NULL, error))
    return FALSE;
  muster_operation_phase (self, "init");
  return (!has_init_op (options) || run_init_ops (self, error)) &&
         muster_operation_check_lease (self, error) &&
         (options->init_func == NULL || run_init_func (self, error));
}

/* Returns TRUE if the init op has initialised what no checkpoint contains. */
static gboolean
has_made_it (const MusterOperation *self)
{
  MusterGraph *graph = self->manager->graph;
  const char *const *ops = self->options->init_ops;
  const MusterNode *made = muster_graph_find_node (graph, MUSTER_AFTER_RESTORE);
  g_autofree guint8 *run = g_malloc0 (muster_graph_n_nodes (graph) + 1);

  muster_graph_mark_needs (graph, self->options->init_op, run);
  for (; ops != NULL && *ops != NULL; ops++)
    muster_graph_mark_needs (graph, *ops, run);
  for (gsize i = 0; i < made->n_input; i++)
    if (!run[muster_node_input (made, i, NULL)])
      return FALSE;
  return TRUE;
}

/* Initialises what no checkpoint contains, after a restore or after an init op that omits it. */
static gboolean
complete_model (MusterOperation *self, GError **error)
{
  MusterGraph *graph = self->manager->graph;
  const gboolean is_restored = self->report.restored_from != NULL;
  if (self->report.continued || graph == NULL ||
      !(is_restored || (!self->is_recovery && has_init_op (self->options))) ||
      !muster_graph_has_node (graph, MUSTER_AFTER_RESTORE) ||
      (!is_restored && has_made_it (self)) ||
      muster_session_run_op (self->session, MUSTER_AFTER_RESTORE, self->call_deadline_us,
                             self->cancellable, error))
    return TRUE;
  g_prefix_error (error, "Initialising what no checkpoint holds: ");
  return FALSE;
}

/* Local init, ready. */

gboolean
muster_operation_run_local_init (MusterOperation *self, GError **error)
{
  const MusterSessionManager *manager = self->manager;
  MusterStep step = {.targets = (const char *const *)manager->local_init_ops,
                     .n_targets = g_strv_length (manager->local_init_ops),
                     .options = manager->local_init_run_options,
                     .deadline_us = self->call_deadline_us};
  muster_operation_phase (self, "local init");
  muster_log (G_LOG_LEVEL_INFO, "local-init", "MESSAGE", "Running local_init_op.");
  if (!muster_session_run (self->session, &step, NULL, NULL, self->cancellable, error)) {
    g_prefix_error (error, "Running local_init_op '%s': ", manager->local_init_name);
    return FALSE;
  }
  muster_log (G_LOG_LEVEL_INFO, "local-init", "MESSAGE", "Done running local_init_op.");
  return TRUE;
}

static gboolean
probe (MusterOperation *self, const char *op, const char *what, char **why, GError **error)
{
  g_auto (MusterReadyOpResult) readiness = {0};
  if (op != NULL)
    self->report.polls++;
  if (!muster_ready_op_probe (self->session, op, self->call_deadline_us, self->cancellable,
                              &readiness, error)) {
    g_prefix_error (error, "%s: ", what);
    return FALSE;
  }
  *why = readiness.is_ready ? NULL : g_steal_pointer (&readiness.why_not);
  if (*why != NULL) {
    g_free (self->why);
    self->why = g_strdup (*why);
  }
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

/* Explains why the model isn't ready. After a restore no init op has run, although TensorFlow's
 * text says so. */
static char *
blame (const MusterOperation *self, const char *why)
{
  const char *restored = self->report.restored_from;
  g_autofree char *what = muster_safe_text (why, -1, LONGEST_WHY);

  if (restored == NULL)
    return g_steal_pointer (&what);
  return g_strdup_printf ("%s; no init op runs after a restore, and the saver that restored '%s' "
                          "leaves variables out: use a saver of all variables "
                          "(muster_meta_graph_complete () adds one), or initialise them in "
                          "local_init_op",
                          what, restored);
}

static gboolean
refuse_shut_gate (const MusterOperation *self, const char *why, GError **error)
{
  const MusterPrepareOptions *options = self->options;
  g_autofree char *cause = blame (self, why);
  return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                      "Init operations did not make model ready for local_init.  "
                      "Init op: %s, init fn: %s, error: %s",
                      name_of_init (options), options->init_func != NULL ? "init_func" : "None",
                      cause);
}

static gboolean
refuse_unready (const MusterOperation *self, const char *why, GError **error)
{
  const MusterPrepareOptions *options = self->options;
  const char *local_init = self->manager->local_init_name;
  g_autofree char *cause = blame (self, why);
  return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                      "Init operations did not make model ready.  "
                      "Init op: %s, init fn: %s, local_init_op: %s, error: %s",
                      name_of_init (options), options->init_func != NULL ? "init_func" : "None",
                      local_init != NULL ? local_init : "None", cause);
}

/* Recover counts a model that isn't ready as a result, not as a failure. */
static gboolean
fall_short (MusterOperation *self, const char *stage, const char *why)
{
  const char *checkpoint = self->report.restored_from;
  self->has_fallen_short = TRUE;
  self->report.outcome = MUSTER_OUTCOME_NOT_READY;
  self->report.reason = checkpoint != NULL
                            ? g_strdup_printf ("Restoring model from %s did not make model %s: %s",
                                               checkpoint, stage, why)
                            : g_strdup ("There was no checkpoint to restore");
  muster_log (G_LOG_LEVEL_INFO, "waiting", "MESSAGE", "%s", self->report.reason);
  return TRUE;
}

/* Checks the gate; if it is open, runs local init. */
static gboolean
init_locally (MusterOperation *self, GError **error)
{
  g_autofree char *why = NULL;

  if (!muster_operation_announce (self, MUSTER_CHIEF_LOCAL_INIT, NULL, error))
    return FALSE;
  if (self->manager->local_init_ops == NULL)
    return TRUE;
  muster_operation_phase (self, "local init");
  if (!probe (self, self->manager->ready_for_local_init_op, "Model not ready for local init", &why,
              error))
    return FALSE;
  if (why == NULL)
    return muster_operation_run_local_init (self, error);
  return self->is_recovery ? fall_short (self, "ready for local init", why)
                           : refuse_shut_gate (self, why, error);
}

static gboolean
check_ready (MusterOperation *self, GError **error)
{
  g_autofree char *why = NULL;

  if (self->has_fallen_short)
    return TRUE;
  if (self->is_recovery && self->report.restored_from == NULL)
    return fall_short (self, NULL, NULL);
  if (self->manager->ready_op == NULL)
    return TRUE;
  muster_operation_phase (self, "ready");
  if (!probe (self, self->manager->ready_op, "Model not ready", &why, error))
    return FALSE;
  if (why == NULL)
    return TRUE;
  return self->is_recovery ? fall_short (self, "ready", why) : refuse_unready (self, why, error);
}

/* Announce. */

/* After a restore, the checkpoint is durable, and its step is the model's. */
static gboolean
announce_prepared (MusterOperation *self, GError **error)
{
  const char *checkpoint = self->report.restored_from;
  g_auto (MusterAnnouncement) announcement = MUSTER_ANNOUNCEMENT_INIT;
  if (self->has_fallen_short)
    return TRUE;
  announcement.phase = MUSTER_CHIEF_PREPARED;
  if (checkpoint != NULL) {
    announcement.step = muster_checkpoint_step (checkpoint);
    announcement.durable_step = announcement.step;
    announcement.durable = g_strdup (checkpoint);
    announcement.durable_age_us = muster_saver_age_of (self->options->saver, checkpoint);
  }
  if (self->report.continued)
    muster_operation_describe_continued (self, &announcement);
  if (self->lease != NULL && !send (self, &announcement, error))
    return FALSE;
  if (self->is_recovery)
    muster_log (G_LOG_LEVEL_INFO, "restore", "MESSAGE", "Restored model from %s", checkpoint);
  return TRUE;
}

/* All of them. */

/* A lost lease is the cause, whatever failed. */
static void
judge_failure (MusterOperation *self, GError **failure)
{
  GError *lost = NULL;
  if (g_error_matches (*failure, G_IO_ERROR, G_IO_ERROR_CANCELLED) ||
      muster_operation_check_lease (self, &lost))
    return;
  g_error_free (*failure);
  *failure = lost;
}

/* Announces the failure, so that waiting tasks know why the model isn't prepared. Before the
 * first phase, the model is as this chief has found it. */
static void
announce_failure (MusterOperation *self, const GError *failure)
{
  if (self->lease != NULL && self->announced != MUSTER_CHIEF_STARTING &&
      !muster_error_is (failure, MUSTER_ERROR_DEADLINE_EXCEEDED) &&
      self->report.outcome != MUSTER_OUTCOME_FENCED)
    muster_announce_failure (self->lease, failure, self->clock);
}

/* Clears the crash record, because this run ends with an error, not by a crash. A failure to
 * write it is ignored. */
static void
end_attempt (MusterOperation *self, GError **failure)
{
  judge_failure (self, failure);
  announce_failure (self, *failure);
  if (self->options->saver != NULL)
    (void)muster_saver_clear_crash_loop (self->options->saver, NULL);
  muster_operation_give_up_session (self, *failure);
}

/* A chief's phases, in order; a phase may have nothing to do. */
static gboolean
attempt (MusterOperation *self, gint64 *cost_us, GError **error)
{
  GError *failure = NULL;
  gint64 started_us = muster_clock_now_us (self->clock);
  gboolean has_begun = initialise_devices (self, &failure) && claim_in_session (self, &failure) &&
                       take_directory (self, &failure);
  if (has_begun)
    muster_operation_continue (self);
  has_begun = has_begun && reset (self, &failure);
  *cost_us = muster_clock_now_us (self->clock) - started_us;
  if (has_begun && muster_operation_restore (self, &failure) && initialise (self, &failure) &&
      complete_model (self, &failure) && init_locally (self, &failure) &&
      check_ready (self, &failure) && announce_prepared (self, &failure)) {
    hand_on (self);
    return TRUE;
  }
  end_attempt (self, &failure);
  g_propagate_error (error, failure);
  return FALSE;
}

static gint64
timeout_of (const MusterPrepareOptions *options)
{
  return options->timeout_us == 0 ? MUSTER_WAIT_FOREVER : options->timeout_us;
}

static MusterSession *
run (MusterOperation *self, const MusterPrepareOptions *options, MusterSessionReport *report,
     GError **error)
{
  static const MusterPrepareOptions defaults;
  GError *refusal = NULL;
  self->options = options != NULL ? options : &defaults;
  self->timeout_us = timeout_of (self->options);
  (void)check_options (self->manager, self->options, !self->is_recovery, &refusal);
  return muster_operation_run (self, attempt, refusal, report, error);
}

MusterSession *
muster_session_manager_prepare_session (MusterSessionManager *self, MusterMaster *master,
                                        const MusterPrepareOptions *options,
                                        MusterSessionReport *report, GCancellable *cancellable,
                                        GError **error)
{
  muster_session_report_begin (report);
  muster_require (error, NULL, self, master);

  MusterOperation operation = {.manager = self, .master = master, .cancellable = cancellable};
  return run (&operation, options, report, error);
}

MusterSession *
muster_session_manager_recover_session (MusterSessionManager *self, MusterMaster *master,
                                        const MusterPrepareOptions *options, gboolean *recovered,
                                        MusterSessionReport *report, GCancellable *cancellable,
                                        GError **error)
{
  muster_session_report_begin (report);
  muster_require (error, NULL, self, master);

  MusterOperation operation = {
      .manager = self, .master = master, .cancellable = cancellable, .is_recovery = TRUE};
  MusterSession *session = run (&operation, options, report, error);
  if (session != NULL && recovered != NULL)
    *recovered = !operation.has_fallen_short;
  return session;
}

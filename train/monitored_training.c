// SPDX-License-Identifier: Apache-2.0
/* A monitored session with the stock hooks, as TensorFlow's MonitoredTrainingSession: which
 * hooks a chief and a worker get, how a chief prepares, and when it may continue with the model on
 * the master. */
#include "train/monitored_training.h"

#include "base/error.h"
#include "base/log_private.h"
#include "base/require_private.h"
#include "checkpoint/stores/default_storage.h"
#include "ready/readiness_private.h"
#include "train/completion/queue_runner_def_private.h"
#include "train/completion/sync_replicas_private.h"
#include "train/hooks/hook_scalar_private.h"
#include "train/hooks/hooks_private.h"
#include "train/monitored/monitored_session_private.h"
#include "train/monitored/session_observer_private.h"
#include "train/position/position_hook_private.h"

#define DEFAULT_SAVE_US       (600 * MUSTER_SECOND)
#define DEFAULT_SUMMARY_STEPS 100
#define DEFAULT_COUNT_STEPS   100
#define DEFAULT_MAX_WAIT_US   (7200 * MUSTER_SECOND)
#define FINISH_BARRIER_US     (60 * MUSTER_SECOND)
/* How long a chief that finds a model waits for running steps to end. */
#define SETTLE_US (5 * MUSTER_SECOND)

/* An interval; at most one of the two is above 0. */
typedef struct {
  gint64 us;
  gint64 steps;
} Every;

typedef struct {
  const MusterMonitoredTrainingOptions *options;
  Every save;
  Every summary;
  MusterSaver *saver;        /* (owned) (nullable) */
  MusterEventWriter *writer; /* (owned) (nullable) */
  GPtrArray *hooks;          /* (owned) (element-type MusterHook) */
} Assembly;

static void
assembly_clear (Assembly *self)
{
  g_clear_object (&self->saver);
  g_clear_pointer (&self->writer, muster_event_writer_unref);
  g_clear_pointer (&self->hooks, g_ptr_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Assembly, assembly_clear)

/* The given interval, or the default if none is given (MON.15). */
static gboolean
how_often (gint64 us, gint64 steps, Every fallback, const char *what, Every *every, GError **error)
{
  if (us > 0 && steps > 0) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "%s can be given in seconds or in steps, not both", what);
  }
  if (us == 0 && steps == 0)
    *every = fallback;
  else
    *every = (Every){MAX (us, 0), MAX (steps, 0)};
  return TRUE;
}

static gboolean
is_on (Every every)
{
  return every.us > 0 || every.steps > 0;
}

/* Takes hook. NULL means that its creation failed. */
static gboolean
add (Assembly *self, MusterHook *hook)
{
  if (hook != NULL)
    g_ptr_array_add (self->hooks, hook);
  return hook != NULL;
}

static void
add_all (Assembly *self, MusterHook *const *hooks, gsize n)
{
  for (gsize i = 0; i < n; i++)
    g_ptr_array_add (self->hooks, g_object_ref (hooks[i]));
}

/* If the user gives a hook that saves, it replaces the default one (DMON.4). */
static gboolean
has_saver_hook (const Assembly *self)
{
  for (gsize i = 0; i < self->options->n_hooks; i++)
    if (MUSTER_IS_CHECKPOINT_SAVER_HOOK (self->options->hooks[i]))
      return TRUE;
  for (gsize i = 0; i < self->options->n_chief_only_hooks; i++)
    if (MUSTER_IS_CHECKPOINT_SAVER_HOOK (self->options->chief_only_hooks[i]))
      return TRUE;
  return FALSE;
}

static gboolean
add_checkpoint_hook (Assembly *self, GError **error)
{
  const MusterMonitoredTrainingOptions *o = self->options;
  MusterCheckpointSaverOptions options = o->saving;
  if (options.checkpoint_dir == NULL || !is_on (self->save) || has_saver_hook (self))
    return TRUE;
  options.save_us = options.save_auto ? 0 : self->save.us;
  options.save_steps = self->save.steps;
  options.saver = self->saver;
  options.from_files = options.from_files || o->restore.fall_back_to_files;
  options.writer = options.writer != NULL ? options.writer : self->writer;
  return add (self, muster_checkpoint_saver_hook_new_at (&options, o->manager.clock, error));
}

/* Event files are local: beside checkpoints in an object store there are none. */
static const char *
find_summary_dir (const MusterMonitoredTrainingOptions *o)
{
  if (o->summary_dir != NULL || o->saving.checkpoint_dir == NULL)
    return o->summary_dir;
  if (muster_storage_is_local (NULL, o->saving.checkpoint_dir))
    return o->saving.checkpoint_dir;
  muster_log (G_LOG_LEVEL_INFO, "summary", "MESSAGE",
              "no event files are written beside '%s': give a local directory for them",
              o->saving.checkpoint_dir);
  return NULL;
}

/* The summaries of the graph, and the loss of a training beside them. */
static gboolean
add_summaries (Assembly *self, GError **error)
{
  const MusterMonitoredTrainingOptions *o = self->options;
  const Every every = self->summary;
  if (self->writer == NULL || !is_on (every))
    return TRUE;
  for (gsize i = 0; i < o->n_chief_only_hooks; i++)
    if (!muster_scalar_hook_set_writer (o->chief_only_hooks[i], self->writer, every.us, every.steps,
                                        o->manager.clock, error))
      return FALSE;
  return add (self, muster_summary_saver_hook_new (NULL, every.steps, every.us, self->writer,
                                                   o->manager.clock, error));
}

/* The chief's hooks, in TensorFlow's order (MON.16). */
static gboolean
add_chiefs_hooks (Assembly *self, GError **error)
{
  const MusterMonitoredTrainingOptions *o = self->options;
  const char *summary_dir = find_summary_dir (o);
  gint64 count_steps = o->log_step_count_steps ? o->log_step_count_steps : DEFAULT_COUNT_STEPS;
  add_all (self, o->chief_only_hooks, o->n_chief_only_hooks);
  if (summary_dir != NULL &&
      (self->writer = muster_event_writer_new (summary_dir, o->manager.clock, error)) == NULL)
    return FALSE;
  if (self->writer != NULL && count_steps > 0 &&
      !add (self,
            muster_step_counter_hook_new (count_steps, 0, self->writer, o->manager.clock, error)))
    return FALSE;
  if (!add_summaries (self, error))
    return FALSE;

  if (o->finish_quiet_us > 0)
    (void)add (self, muster_finish_barrier_hook_new (o->finish_quiet_us, FINISH_BARRIER_US,
                                                     o->manager.clock));
  return add_checkpoint_hook (self, error);
}

/* If the model has positions, each save is a consistent cut. */
static void
guard (const Assembly *self)
{
  const MusterMonitoredTrainingOptions *o = self->options;
  const MusterPositionGuard options = {.quiesce_us = o->position_quiesce_us,
                                       .global_step = muster_scaffold_global_step (o->scaffold),
                                       .clock = o->manager.clock};
  muster_position_guard (self->saver, muster_scaffold_meta_graph (o->scaffold), &options);
}

static gboolean
assemble (Assembly *self, GError **error)
{
  const MusterMonitoredTrainingOptions *o = self->options;
  self->hooks = g_ptr_array_new_with_free_func (g_object_unref);
  if (o->saving.save_auto && (o->saving.save_us != 0 || o->saving.save_steps != 0))
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "%s",
                        "save_auto chooses how often checkpoints are saved; don't set an interval");
  if (!how_often (o->saving.save_us, o->saving.save_steps, (Every){DEFAULT_SAVE_US, 0},
                  "How often checkpoints are saved", &self->save, error) ||
      !how_often (o->save_summaries_us, o->save_summaries_steps, (Every){0, DEFAULT_SUMMARY_STEPS},
                  "How often summaries are saved", &self->summary, error))
    return FALSE;
  if (!o->is_worker && o->saving.checkpoint_dir == NULL)
    muster_log (G_LOG_LEVEL_MESSAGE, "no-checkpoints", "MESSAGE",
                "no checkpoint directory is set; nothing is restored or saved");
  if (!o->is_worker && o->saving.checkpoint_dir != NULL && o->saving.saver != NULL) {
    self->saver = g_object_ref (o->saving.saver);
    guard (self);
  } else if (!o->is_worker && o->saving.checkpoint_dir != NULL) {
    MusterSaverOptions options = {.clock = o->manager.clock};
    self->saver = muster_saver_new (muster_scaffold_meta_graph (o->scaffold), &options, error);
    if (self->saver == NULL)
      return FALSE;
    guard (self);
  }
  (void)add (self, muster_sync_replicas_hook_new (o->scaffold, !o->is_worker, o->n_tasks));
  if (o->saving.preemption != NULL)
    (void)add (self, muster_preemption_hook_new (o->saving.preemption));
  if (!o->is_worker && !add_chiefs_hooks (self, error))
    return FALSE;
  add_all (self, o->hooks, o->n_hooks);
  return TRUE;
}

/* The saver of the hook that saves in the checkpoint directory; NULL: none does. */
static MusterSaver *
find_saving (const Assembly *self)
{
  MusterSaver *found = NULL;
  for (guint i = 0; i < self->hooks->len && found == NULL && self->saver != NULL; i++)
    if (MUSTER_IS_CHECKPOINT_SAVER_HOOK (self->hooks->pdata[i]))
      found = muster_checkpoint_saver_hook_share (
          self->hooks->pdata[i], self->options->saving.checkpoint_dir, self->saver);
  return found;
}

/* All that sessions run beside what the manager itself does. (transfer full) */
static char **
list_runs (const Assembly *self, GPtrArray *queue_runners)
{
  const MusterMonitoredTrainingOptions *o = self->options;
  const MusterSaverInfo *saver =
      self->saver != NULL ? muster_meta_graph_saver (muster_scaffold_meta_graph (o->scaffold))
                          : NULL;
  const char *const own[] = {
      self->writer != NULL && is_on (self->summary) ? muster_scaffold_summary_op (o->scaffold)
                                                    : NULL,
      saver != NULL ? saver->save_tensor : NULL, saver != NULL ? saver->restore_op : NULL};
  g_autoptr (GStrvBuilder) names = g_strv_builder_new ();

  for (gsize i = 0; i < G_N_ELEMENTS (own); i++)
    if (own[i] != NULL)
      g_strv_builder_add (names, own[i]);
  for (const char *const *name = o->manager.will_run; name != NULL && *name != NULL; name++)
    g_strv_builder_add (names, *name);
  for (guint i = 0; i < queue_runners->len; i++) {
    const MusterQueueRunner *runner = queue_runners->pdata[i];
    for (guint k = 0; k < runner->enqueues->len; k++)
      g_strv_builder_add (names, runner->enqueues->pdata[k]);
  }
  return g_strv_builder_end (names);
}

static MusterSessionManager *
make_manager (const Assembly *self, GError **error)
{
  const MusterMonitoredTrainingOptions *o = self->options;
  g_autoptr (GPtrArray) queue_runners =
      muster_queue_runners_of (muster_scaffold_meta_graph (o->scaffold), error);
  if (queue_runners == NULL)
    return NULL;
  g_auto (GStrv) runs = list_runs (self, queue_runners);
  MusterSessionManagerOptions options = muster_monitored_manager_options (o->scaffold, &o->manager);
  options.will_run = (const char *const *)runs;
  MusterSessionManager *manager =
      muster_session_manager_new (muster_scaffold_graph (o->scaffold), &options, error);

  if (manager != NULL && o->observer != NULL)
    muster_session_manager_set_progress (manager, muster_session_observer_waiting,
                                         g_object_ref (o->observer), g_object_unref);
  return manager;
}

/* What a chief knows of the model that it finds on the master. */
typedef struct {
  MusterScaffold *scaffold;     /* (owned) */
  MusterClock *clock;           /* (owned) */
  MusterPositionHook *position; /* (owned) (nullable) */
  gint64 quiesce_us;            /* 0: the default */
  guint n_tasks;                /* with positions; 0: none */
  gboolean is_dealt;
  gboolean own_masters;
  MusterMaster *apart; /* (owned) (nullable) of a task without positions where each has its own */
  GBytes *config;      /* (owned) (nullable) of its sessions */
  gboolean is_apart;   /* and the model has none, as it has seen */
  guint torn;          /* a task whose step was cut off; n_tasks: none is known */
} Living;

static void
living_free (gpointer data)
{
  Living *self = data;
  muster_scaffold_unref (self->scaffold);
  g_object_unref (self->clock);
  g_clear_object (&self->position);
  g_clear_object (&self->apart);
  g_clear_pointer (&self->config, g_bytes_unref);
  g_free (self);
}

/* (transfer full) (nullable) */
static MusterPositionHook *
find_position_hook (const MusterMonitoredTrainingOptions *o)
{
  for (gsize i = 0; i < o->n_hooks; i++)
    if (MUSTER_IS_POSITION_HOOK (o->hooks[i]))
      return g_object_ref (MUSTER_POSITION_HOOK (o->hooks[i]));
  return NULL;
}

/* Lives as long as the manager, and therefore the monitored session. */
static Living *
make_living (const MusterMonitoredTrainingOptions *o, MusterSessionManager *manager)
{
  Living *self = g_new (Living, 1);
  const guint n_tasks = muster_position_n_tasks (muster_scaffold_meta_graph (o->scaffold));
  *self = (Living){
      .scaffold = muster_scaffold_ref (o->scaffold),
      .clock = g_object_ref (o->manager.clock != NULL ? o->manager.clock : muster_system_clock ()),
      .position = find_position_hook (o),
      .quiesce_us = o->position_quiesce_us,
      .n_tasks = n_tasks,
      .is_dealt = muster_position_is_dealt (muster_scaffold_meta_graph (o->scaffold)),
      .own_masters = o->own_masters && n_tasks > 0,
      .apart = o->own_masters && n_tasks == 0 ? g_object_ref (o->master) : NULL,
      .config = o->manager.config != NULL ? g_bytes_ref (o->manager.config) : NULL,
      .torn = n_tasks};
  g_object_set_data_full (G_OBJECT (manager), "muster-living", self, living_free);
  return self;
}

/* With a master of its own, a chief that is started again may find its step there. Sets *ended to
 * the chief's task if it can't, or else to n_tasks. */
static gboolean
find_own (const Living *self, MusterSession *session, guint *ended, gint64 deadline_us,
          GCancellable *cancellable, GError **error)
{
  gboolean is_marked = FALSE;
  if (!muster_position_is_marked (session, &is_marked, deadline_us, cancellable, error))
    return FALSE;
  *ended = is_marked && self->position->may_find_step ? self->n_tasks : self->position->own.task;
  return TRUE;
}

/* The other tasks' steps go on at their masters, as long as these live. */
static gint64
whole_limit_us (const Living *self, gint64 deadline_us)
{
  const gint64 usual_us = self->own_masters ? MUSTER_POSITION_STEP_US : SETTLE_US;
  return muster_position_share (self->quiesce_us > 0 ? self->quiesce_us : usual_us, deadline_us,
                                self->clock);
}

/* Whether the model on the master is whole, and its step. */
static gboolean
find_whole (MusterSession *session, gint64 *step, gint64 deadline_us, GCancellable *cancellable,
            gpointer data, GError **error)
{
  Living *self = data;
  const gint64 now_us = muster_clock_now_us (self->clock);
  const gint64 limit_us = whole_limit_us (self, deadline_us);
  guint ended = self->n_tasks;
  self->torn = self->n_tasks;
  if (self->own_masters && !find_own (self, session, &ended, deadline_us, cancellable, error))
    return FALSE;
  const MusterPositionAwait await = {self->n_tasks,
                                     self->clock,
                                     muster_deadline_after (now_us, limit_us),
                                     deadline_us,
                                     self->is_dealt,
                                     ended,
                                     muster_deadline_after (now_us, MIN (limit_us, SETTLE_US))};
  if (self->n_tasks > 0 &&
      !muster_position_await_whole (session, &await, &self->torn, cancellable, error)) {
    if (self->own_masters && limit_us < MUSTER_POSITION_STEP_US)
      self->torn = self->n_tasks; /* it may still go on */
    return FALSE;
  }
  *step = muster_read_global_step (session, self->scaffold, deadline_us, cancellable, error);
  return *step >= 0;
}

/* Whether a variable that the tasks share has no value: one of the chief's own concerns nobody
 * else's step. */
static gboolean
is_shared (const Living *self, char **missing)
{
  gsize n;
  const MusterVariableInfo *all =
      muster_meta_graph_variables (muster_scaffold_meta_graph (self->scaffold), &n);
  for (gsize i = 0; i < n && missing != NULL; i++)
    if (!all[i].is_local && g_strv_contains ((const char *const *)missing, all[i].name))
      return TRUE;
  return FALSE;
}

/* A step that takes longer counts as cut off. One that needs a variable that is lost fails, once
 * its master notices. */
static gint64
rest_limit_us (const Living *self, MusterSession *session, gint64 deadline_us,
               GCancellable *cancellable)
{
  g_auto (MusterReadyOpResult) readiness = {0};
  const gboolean is_lost =
      muster_ready_op_probe (session, muster_scaffold_ready_op (self->scaffold), deadline_us,
                             cancellable, &readiness, NULL) &&
      !readiness.is_ready && is_shared (self, readiness.missing);
  return is_lost ? SETTLE_US : MUSTER_POSITION_STEP_US;
}

/* For a chief with a master of its own. */
static gboolean
rest (const Living *self, MusterSession *session, MusterPositionQuiesce *others,
      GCancellable *cancellable, GError **error)
{
  const gint64 limit_us = rest_limit_us (self, session, others->deadline_us, cancellable);
  guint ended = self->n_tasks;
  if (!find_own (self, session, &ended, others->deadline_us, cancellable, error))
    return FALSE;
  if (others->but == self->n_tasks)
    others->but = ended;
  return muster_position_rest (session, others, limit_us, cancellable, error);
}

/* Waits for the steps of an earlier run on the master to end, before the reset; not for one that is
 * known to have been cut off. */
static gboolean
quiesce (MusterSession *session, gint64 deadline_us, GCancellable *cancellable, gpointer data,
         GError **error)
{
  Living *self = data;
  if (self->apart != NULL)
    return self->is_apart =
               muster_position_refuse (self->apart, muster_scaffold_meta_graph (self->scaffold),
                                       self->config, deadline_us, cancellable, error);
  MusterPositionQuiesce others = {self->n_tasks, self->torn, muster_system_clock (), deadline_us,
                                  self->is_dealt};
  self->torn = self->n_tasks;
  if (self->own_masters)
    return rest (self, session, &others, cancellable, error);
  if (self->n_tasks > 0)
    muster_position_quiesce (session, &others, cancellable);
  return TRUE;
}

/* A checkpoint without positions was saved by a program that doesn't use them. One of a job with a
 * fixed number of tasks lacks what a job whose batches are dealt begins with. */
static MusterRestoreOptions
restore_options (const MusterMonitoredTrainingOptions *o)
{
  static const char *const needs[] = {MUSTER_POSITION_DONE, MUSTER_POSITION_HOLD,
                                      MUSTER_POSITION_OVER, NULL};
  MusterMetaGraph *meta_graph = muster_scaffold_meta_graph (o->scaffold);
  MusterRestoreOptions restore = o->restore;
  if (!restore.allow_missing && restore.needs == NULL && muster_position_n_tasks (meta_graph) > 0)
    restore.needs = needs;
  if (restore.may_lack == NULL && muster_position_is_dealt (meta_graph))
    restore.may_lack = muster_position_dealt_variables ();
  return restore;
}

/* Refuses parts of the options that others stand in for. */
static gboolean
check_parts (const MusterMonitoredTrainingOptions *o, GError **error)
{
  const MusterSessionManagerOptions *manager = &o->manager;
  const char *directory = o->restore.directory;
  if (o->restore.prefix != NULL ||
      (directory != NULL && g_strcmp0 (directory, o->saving.checkpoint_dir) != 0))
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "training restores the latest checkpoint of checkpoint_dir; set that in "
                        "place of the restore's prefix or directory");
  if (manager->local_init_op != NULL || manager->local_init_ops != NULL ||
      manager->ready_op != NULL || manager->ready_for_local_init_op != NULL ||
      manager->meta_graph != NULL)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "the session manager's ops and meta graph are the scaffold's; set them "
                        "there");
  return TRUE;
}

/* The chief closes the model to steps, and its hook opens it. */
static gboolean
check_masters (const Living *self, const MusterMonitoredTrainingOptions *o, GError **error)
{
  const gboolean opens = self->position != NULL && self->position->options.own_masters;
  return self->n_tasks == 0 || opens == (o->own_masters != FALSE) ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "own_masters has to be the same in the options of training and of its "
                      "position hook, which a model with positions needs then");
}

/* Checks the arguments before anything is changed. */
static gboolean
check_places (const MusterMonitoredTrainingOptions *o, GError **error)
{
  MusterStorage *storage =
      o->saving.saver != NULL ? muster_saver_storage (o->saving.saver) : muster_default_storage ();
  return (o->saving.checkpoint_dir == NULL ||
          muster_storage_check_path (storage, "checkpoint directory", o->saving.checkpoint_dir,
                                     error)) &&
         (o->summary_dir == NULL ||
          muster_storage_check_path (NULL, "summary directory", o->summary_dir, error));
}

/* Whether replicas of an earlier run may be at a step on the master, and the model there may go: a
 * checkpoint stands in for it. */
static gboolean
resets_in_sync (const MusterMonitoredTrainingOptions *o, MusterSaver *saver)
{
  if (o->n_tasks <= 1 ||
      !muster_graph_has_node (muster_scaffold_graph (o->scaffold), MUSTER_SYNC_TOKENS))
    return FALSE;
  g_autofree char *latest =
      o->saving.checkpoint_dir != NULL && saver != NULL
          ? muster_saver_latest_checkpoint (saver, o->saving.checkpoint_dir, NULL)
          : NULL;
  return o->overwrite || latest != NULL;
}

/* A task without positions, whose steps neither a fence nor a hold stops. A master that doesn't say
 * isn't a reason. */
static gboolean
refuse_beside (const Living *self, GCancellable *cancellable, GError **error)
{
  g_autoptr (GError) failure = NULL;
  if (self->apart == NULL || self->is_apart ||
      muster_position_refuse (self->apart, muster_scaffold_meta_graph (self->scaffold),
                              self->config, muster_position_in_us (MUSTER_POSITION_STEP_US),
                              cancellable, &failure) ||
      !muster_error_is (failure, MUSTER_ERROR_FAILED_PRECONDITION))
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

static MusterMonitoredSession *
open_session (const MusterMonitoredTrainingOptions *options, MusterSessionReport *report,
              GCancellable *cancellable, GError **error)
{
  g_auto (Assembly) parts = {.options = options};
  if (!check_parts (options, error) || !check_places (options, error) || !assemble (&parts, error))
    return NULL;
  const MusterRestoreOptions restore = restore_options (options);
  g_autoptr (MusterSessionManager) manager = make_manager (&parts, error);
  if (manager == NULL)
    return NULL;
  /* With positions (train/position/position.h) a chief starts only when no earlier run of the job
   * continues. */
  Living *living = make_living (options, manager);
  if (!check_masters (living, options, error))
    return NULL;
  const guint n_tasks = living->n_tasks;
  const gboolean may_continue =
      !options->always_restore && (n_tasks > 0 || options->continue_without_positions);
  const gboolean resets =
      (n_tasks > 1 && !living->own_masters) || resets_in_sync (options, parts.saver);
  MusterPrepareOptions prepare = {.saver = parts.saver,
                                  .checkpoint_dir = options->saving.checkpoint_dir,
                                  .taken_by = find_saving (&parts),
                                  .restore = &restore,
                                  .overwrite = options->overwrite,
                                  .timeout_us = options->timeout_us,
                                  .reset_master = resets,
                                  .reset_unclaimed = n_tasks == 1 && !living->own_masters,
                                  .in_place = options->own_masters && !resets,
                                  .quiesce_func = quiesce,
                                  .quiesce_func_data = living,
                                  .continue_func = may_continue ? find_whole : NULL,
                                  .continue_func_data = living};
  MusterMonitoredSessionOptions session = {.scaffold = options->scaffold,
                                           .master = options->master,
                                           .manager = manager,
                                           .is_worker = options->is_worker,
                                           .prepare = &prepare,
                                           .max_wait_us = options->timeout_us ? options->timeout_us
                                                                              : DEFAULT_MAX_WAIT_US,
                                           .hooks = (MusterHook *const *)parts.hooks->pdata,
                                           .n_hooks = parts.hooks->len,
                                           .step_timeout_us = options->step_timeout_us,
                                           .stop_grace_us = options->stop_grace_us,
                                           .recovery = options->recovery,
                                           .observer = options->observer,
                                           .clock = options->manager.clock};
  g_autoptr (MusterMonitoredSession) opened =
      muster_monitored_session_new (&session, report, cancellable, error);
  return opened != NULL && refuse_beside (living, cancellable, error) ? g_steal_pointer (&opened)
                                                                      : NULL;
}

MusterMonitoredSession *
muster_monitored_training_session_new (const MusterMonitoredTrainingOptions *options,
                                       MusterSessionReport *report, GCancellable *cancellable,
                                       GError **error)
{
  muster_require (error, NULL, options);
  muster_require (error, NULL, options->scaffold, options->master);

  /* Every task with a checkpoint directory needs it, so that all have the same graph. */
  gboolean needs_saver = options->saving.checkpoint_dir != NULL && options->saving.saver == NULL;
  g_autoptr (MusterScaffold) scaffold = needs_saver
                                            ? muster_scaffold_with_saver (options->scaffold, error)
                                            : muster_scaffold_ref (options->scaffold);
  if (scaffold == NULL)
    return NULL;
  MusterMonitoredTrainingOptions with = *options;
  with.scaffold = scaffold;
  return open_session (&with, report, cancellable, error);
}

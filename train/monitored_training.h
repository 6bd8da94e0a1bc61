// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/hooks/hooks.h"
#include "train/monitored/monitored_session.h"

G_BEGIN_DECLS

/**
 * MusterMonitoredTrainingOptions:
 * @scaffold: the model
 * @master: where to create sessions
 * @is_worker: TRUE: a worker; FALSE: a chief
 * @manager: of the session manager: the model's name, the task's, the cluster. The ops and the meta
 *   graph are the scaffold's, and must be unset. Queue runners, summaries and saves are added to
 * `will_run`. `clock` is everything's
 * @saving: of the hook that saves, and of what is restored: `checkpoint_dir`, the interval. A chief
 *   without a directory restores and saves nothing
 * @restore: of a chief: what is restored from `checkpoint_dir`; `prefix` must be unset, and
 *   `directory` unset or the same
 * @overwrite: (attributes flag=overwrite of=train): start a job again that is over, or that another
 *   chief has prepared. As in [struct@PrepareOptions]
 * @always_restore: (attributes flag=restore of=train): restore the latest checkpoint, even if a
 * chief that died left the model intact on the master. Otherwise a chief continues with such a
 * model, if that has a name and positions
 * @continue_without_positions: it also continues with a model that has no positions, of which
 *   it is unknown whether the predecessor's last step was cut off, and what its input has read
 * @save_summaries_us: the interval of summaries in microseconds; 0: by steps. Setting both is
 *   INVALID_ARGUMENT
 * @save_summaries_steps: the interval of summaries in steps; 0: 100; %MUSTER_NEVER: none
 * @log_step_count_steps: the interval of "global_step/sec"; 0: 100; %MUSTER_NEVER: none
 * @summary_dir: (nullable) (attributes flag=log-dir arg=DIR of=train,evaluate): local directory for
 * TensorBoard event files; `NULL`: in @checkpoint_dir of [struct@CheckpointSaverOptions], if that
 * is local
 * @hooks: (nullable) (array length=n_hooks): called last, on every task
 * @n_hooks: the number of @hooks
 * @chief_only_hooks: (nullable) (array length=n_chief_only_hooks): called first, on the chief only
 * @n_chief_only_hooks: the number of @chief_only_hooks
 * @step_timeout_us: (attributes flag=step-timeout of=train): time after which a step's session is
 * considered lost; 0: forever. Set it above the longest step
 * @stop_grace_us: for the coordinator's threads at the end; 0: 120 s
 * @timeout_us: for preparing the model or waiting for it, each time, in microseconds; 0: no limit
 *   for a chief, 7200 s for a worker
 * @finish_quiet_us: whether a chief waits at the end for workers that still train: see
 *   muster_finish_barrier_hook_new (), for 60 s at most. 0: no
 * @recovery: (nullable): as in [struct@MonitoredSessionOptions]
 * @position_quiesce_us: with positions: quiesce_us of MusterPositionGuard
 * @n_tasks: chief and workers, the same in all of them; 0: unknown. Of a model with a
 *   SyncReplicasOptimizer: if @master is theirs alone; more than one: a chief that restores a
 *   checkpoint, or overwrites the model, resets it. In [struct@Training] 0 is 1
 * @own_masters: each task has a master of its own, over the same variables, as in a TensorFlow
 *   cluster. With positions, a chief that restores fences the model instead of resetting its
 *   master, which needs a position hook with the same
 * @observer: (nullable): is told of its sessions, and what they wait for
 *
 * Options of muster_monitored_training_session_new (). Zeros are the defaults; @scaffold and
 * @master are needed.
 */
typedef struct {
  MusterScaffold *scaffold;
  MusterMaster *master;
  gboolean is_worker;
  MusterSessionManagerOptions manager;
  MusterCheckpointSaverOptions saving;
  MusterRestoreOptions restore;
  gboolean overwrite;
  gboolean always_restore;
  gboolean continue_without_positions;
  gint64 save_summaries_us;
  gint64 save_summaries_steps;
  gint64 log_step_count_steps;
  const char *summary_dir;
  MusterHook *const *hooks;
  gsize n_hooks;
  MusterHook *const *chief_only_hooks;
  gsize n_chief_only_hooks;
  gint64 step_timeout_us;
  gint64 stop_grace_us;
  gint64 timeout_us;
  gint64 finish_quiet_us;
  const MusterRetryPolicy *recovery;
  gint64 position_quiesce_us;
  guint n_tasks;
  gboolean own_masters;
  MusterSessionObserver *observer;
} MusterMonitoredTrainingOptions;

#define MUSTER_TYPE_MONITORED_TRAINING_OPTIONS (muster_monitored_training_options_get_type ())
GType muster_monitored_training_options_get_type (void);

/**
 * muster_monitored_training_options_new:
 * @scaffold: the model
 * @master: where to create sessions
 *
 * Options on the heap, for other languages: numbers, booleans and strings are fields, the rest is
 * set by methods.
 *
 * Returns: (transfer full): options of a chief
 */
MusterMonitoredTrainingOptions *muster_monitored_training_options_new (MusterScaffold *scaffold,
                                                                       MusterMaster *master);

/**
 * muster_monitored_training_session_new:
 * @options: the model, the master, and what is added
 * @report: (nullable): the manager's
 * @cancellable: (nullable): as in muster_monitored_session_new ()
 *
 * Creates a monitored session like TensorFlow's `MonitoredTrainingSession` (behaviours MON.14 to
 * MON.19): a scaffold with the session manager, the saver and the standard hooks. Strings are
 * copied; what hooks point to must live as long as the session.
 *
 * Returns: (transfer full): the session, ready to run
 */
MusterMonitoredSession *
muster_monitored_training_session_new (const MusterMonitoredTrainingOptions *options,
                                       MusterSessionReport *report, GCancellable *cancellable,
                                       GError **error);

G_END_DECLS

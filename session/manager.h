// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/lease.h"
#include "master/master.h"
#include "ready/backoff.h"
#include "ready/reasons.h"
#include "saver/restore.h"

G_BEGIN_DECLS

/**
 * MusterSessionManager:
 *
 * Creates sessions whose model is ready, like TensorFlow 1's SessionManager (behaviours B002). The
 * chief prepares: it restores the latest checkpoint or runs the init ops. Other tasks wait. Recover
 * restores, and reports whether the model is then ready. The manager has no role and keeps no
 * session; the caller owns what an operation returns. Any number of threads may use it.
 *
 * One deadline bounds an operation (docs/decisions/0005). The error names the phase in which the
 * time ran out, and how long each phase took. An operation that fails closes its session in the
 * remaining time, or a quarter of a second if none remains, but within five seconds. A wait keeps
 * its session and creates another only if the master lost it (docs/decisions/0006).
 */

#define MUSTER_TYPE_SESSION_MANAGER (muster_session_manager_get_type ())
G_DECLARE_FINAL_TYPE (MusterSessionManager, muster_session_manager, MUSTER, SESSION_MANAGER,
                      GObject)

/**
 * MusterSessionManagerOptions:
 * @local_init_op: runs after every restore or init, and in each waiter. Without
 *   @ready_for_local_init_op, a waiter that ran it before the model was ready runs it again
 *   (nullable)
 * @local_init_ops: (array zero-terminated=1): a list instead, run in one step (nullable)
 * @ready_op: NULL: readiness isn't checked
 * @ready_for_local_init_op: the gate before local init; needs local_init_op
 * @recovery_wait_us: the maximum interval between readiness checks in microseconds; 0: 30 s; below
 *   0 is INVALID_ARGUMENT
 * @local_init_run_options: a serialised RunOptions (nullable)
 * @config: a serialised ConfigProto for every session (nullable)
 * @clock: NULL: the machine's
 * @model: The model's name in announcements, on muster's servers. With a name, the chief claims the
 *   model before it runs anything; waiters see the chief's phase, aren't ready before its init
 *   function has ended, and are notified when the job is over. NULL: no claim, no announcements.
 * @task: this task's name in messages, such as "worker:3" (nullable)
 * @meta_graph: gives the task that owns a variable, for reasons (nullable)
 * @cluster: (array zero-terminated=1): "ps:0=HOST:PORT": probed when the master doesn't answer
 *   (nullable)
 * @chief: "chief:0=HOST:PORT": the chief's master, in a cluster whose tasks have their own masters;
 *   for remedies in reasons (nullable)
 * @waiting: the retries of waiters; %NULL: muster_retry_waiting; copied
 * @preparing: the retries of the chief; %NULL: muster_retry_preparing; copied
 *
 * What a manager is made of.
 */
typedef struct {
  const char *local_init_op;
  const char *const *local_init_ops;
  const char *ready_op;
  const char *ready_for_local_init_op;
  gint64 recovery_wait_us;
  GBytes *local_init_run_options;
  GBytes *config;
  MusterClock *clock;
  const char *model;
  const char *task;
  MusterMetaGraph *meta_graph;
  const char *const *cluster;
  const char *chief;
  const MusterRetryPolicy *waiting;
  const MusterRetryPolicy *preparing;
} MusterSessionManagerOptions;

#define MUSTER_TYPE_SESSION_MANAGER_OPTIONS (muster_session_manager_options_get_type ())
GType muster_session_manager_options_get_type (void);

/**
 * muster_session_manager_options_new:
 *
 * Creates options with all defaults.
 *
 * Returns: (transfer full): options
 */
MusterSessionManagerOptions *muster_session_manager_options_new (void);

/**
 * muster_session_manager_options_copy:
 * @self: options
 *
 * Copies them with all that they point to.
 *
 * Returns: (transfer full): a copy
 */
MusterSessionManagerOptions *
muster_session_manager_options_copy (const MusterSessionManagerOptions *self);

/**
 * muster_session_manager_options_free:
 * @self: (nullable): a copy
 *
 * Frees a copy.
 */
void muster_session_manager_options_free (MusterSessionManagerOptions *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterSessionManagerOptions, muster_session_manager_options_free)

/**
 * muster_session_manager_options_set_local_init_ops:
 * @self: a copy
 * @ops: (array zero-terminated=1) (nullable): ops, run in one step
 *
 * Sets the field local_init_ops of a copy.
 */
void muster_session_manager_options_set_local_init_ops (MusterSessionManagerOptions *self,
                                                        const char *const *ops);

/**
 * muster_session_manager_options_set_cluster:
 * @self: a copy
 * @tasks: (array zero-terminated=1) (nullable): tasks: "ps:0=HOST:PORT"
 *
 * Sets the field cluster of a copy.
 */
void muster_session_manager_options_set_cluster (MusterSessionManagerOptions *self,
                                                 const char *const *tasks);

/**
 * muster_session_manager_options_set_local_init_run_options:
 * @self: a copy
 * @run_options: (nullable): a serialised RunOptions
 *
 * Sets the field of that name in a copy.
 */
void muster_session_manager_options_set_local_init_run_options (MusterSessionManagerOptions *self,
                                                                GBytes *run_options);

/**
 * muster_session_manager_options_set_config:
 * @self: a copy
 * @config: (nullable): a serialised ConfigProto for every session
 *
 * Sets the field of that name in a copy.
 */
void muster_session_manager_options_set_config (MusterSessionManagerOptions *self, GBytes *config);

/**
 * muster_session_manager_options_set_clock:
 * @self: a copy
 * @clock: (nullable): a clock; %NULL: the machine's
 *
 * Sets the field of that name in a copy.
 */
void muster_session_manager_options_set_clock (MusterSessionManagerOptions *self,
                                               MusterClock *clock);

/**
 * muster_session_manager_options_set_meta_graph:
 * @self: a copy
 * @meta_graph: (nullable): gives the task that owns a variable, for reasons
 *
 * Sets the field of that name in a copy.
 */
void muster_session_manager_options_set_meta_graph (MusterSessionManagerOptions *self,
                                                    MusterMetaGraph *meta_graph);

/**
 * muster_session_manager_options_set_waiting:
 * @self: a copy
 * @policy: (nullable): the retries of waiters
 *
 * Sets the field waiting of a copy.
 */
void muster_session_manager_options_set_waiting (MusterSessionManagerOptions *self,
                                                 const MusterRetryPolicy *policy);

/**
 * muster_session_manager_options_set_preparing:
 * @self: a copy
 * @policy: (nullable): the retries of the chief
 *
 * Sets the field preparing of a copy.
 */
void muster_session_manager_options_set_preparing (MusterSessionManagerOptions *self,
                                                   const MusterRetryPolicy *policy);

/**
 * muster_session_manager_new:
 * @graph: (nullable): the sessions' graph; %NULL for masters that have their own graph; on any
 *   other master, operations then fail with INVALID_ARGUMENT
 * @options: (nullable): %NULL: all defaults
 *
 * Creates a manager. INVALID_ARGUMENT: "If you pass a ready_for_local_init_op you must also pass a
 * local_init_op" (B002.2).
 *
 * Returns: (transfer full): a manager
 */
MusterSessionManager *muster_session_manager_new (MusterGraph *graph,
                                                  const MusterSessionManagerOptions *options,
                                                  GError **error);

/**
 * muster_session_manager_new_for_ops:
 * @graph: the sessions' graph
 * @ready_op: (nullable): as in the options
 * @ready_for_local_init_op: (nullable): as in the options
 * @local_init_op: (nullable): as in the options
 * @model: (nullable): the model's name
 * @task: (nullable): this task's name in messages
 *
 * Creates a manager of a model's ops, which a scaffold names: [ctor@SessionManager.new] without
 * other options.
 *
 * Returns: (transfer full): a manager
 */
MusterSessionManager *muster_session_manager_new_for_ops (MusterGraph *graph, const char *ready_op,
                                                          const char *ready_for_local_init_op,
                                                          const char *local_init_op,
                                                          const char *model, const char *task,
                                                          GError **error);

/**
 * MusterInitFunc:
 * @session: the session
 * @deadline_us: the operation's deadline
 * @cancellable: (nullable): the operation's
 * @user_data: the data of the function
 * @error: where to return an error
 *
 * Initialises the model after the init op, in the chief. It must respect the deadline and the
 * cancellable. An operation that starts again in another session calls it again.
 *
 * Returns: %FALSE fails the operation
 */
typedef gboolean (*MusterInitFunc) (MusterSession *session, gint64 deadline_us,
                                    GCancellable *cancellable, gpointer user_data, GError **error);

/**
 * MusterDeviceFunc:
 * @master: the master
 * @deadline_us: the operation's deadline
 * @cancellable: (nullable): the operation's
 * @user_data: the data of the function
 * @error: where to return an error
 *
 * Initialises the master's devices, which may clear their memory. Therefore it runs before the
 * session is created and anything restored (B002.10).
 *
 * Returns: %FALSE fails the operation
 */
typedef gboolean (*MusterDeviceFunc) (MusterMaster *master, gint64 deadline_us,
                                      GCancellable *cancellable, gpointer user_data,
                                      GError **error);

/**
 * MusterQuiesceFunc:
 * @session: the chief's session
 * @deadline_us: the operation's deadline
 * @cancellable: (nullable): the operation's
 * @user_data: the data of the function
 *
 * Lets the steps of other sessions finish before the master is reset. It does so until the
 * deadline; steps that remain are aborted.
 */
typedef void (*MusterQuiesceFunc) (MusterSession *session, gint64 deadline_us,
                                   GCancellable *cancellable, gpointer user_data);

/**
 * MusterContinueFunc:
 * @session: the chief's session
 * @step: (out): the model's step
 * @deadline_us: the operation's deadline
 * @cancellable: (nullable): the operation's
 * @user_data: the data of the function
 * @error: where to return the reason
 *
 * Decides whether a chief may continue with the model that an earlier chief, of the same graph, has
 * prepared and trained on the master: no step that was cut off has changed only a part of it.
 *
 * Returns: %FALSE: the chief prepares the model as if this function weren't set
 */
typedef gboolean (*MusterContinueFunc) (MusterSession *session, gint64 *step, gint64 deadline_us,
                                        GCancellable *cancellable, gpointer user_data,
                                        GError **error);

/**
 * MusterPrepareOptions:
 * @init_op: initialises the model if there is nothing to restore (nullable)
 * @init_ops: (array zero-terminated=1): a list instead, run in one step (nullable)
 * @init_feeds: (array length=n_init_feeds): fed to the init ops
 * @n_init_feeds: the number of feeds
 * @init_func: runs after the init ops (nullable)
 * @init_func_data: its data
 * @saver: NULL: nothing is restored
 * @checkpoint_dir: restores its latest checkpoint; NULL and "" are unset
 * @checkpoint_filename: restores this checkpoint instead
 * @restore: %NULL: defaults; copied, names referenced
 * @wait_for_checkpoint: wait for a checkpoint if there is none
 * @max_wait_us: microseconds to wait for a checkpoint; 0: 7200 s, not "don't wait"; below 0: check
 *   once; %MUSTER_WAIT_FOREVER. If none appears in time, that isn't an error
 * @timeout_us: of the whole operation, in microseconds; 0: %MUSTER_WAIT_FOREVER
 * @epoch: the chief's, if the model has a name; 0: the master assigns the next
 * @overwrite: initialise even a model that another chief has prepared, or whose job is over
 * @reset_master: after the chief has claimed the model, it resets the master and continues in a new
 *   session, unless the ready op says that none of the model's variables has a value. No step of an
 *   earlier session runs on during the restore or init, and all other sessions are lost (ABORTED),
 *   so that their tasks wait for the model again
 * @reset_unclaimed: the same, only if nothing was claimed. If the model was claimed, the claim has
 *   ended the earlier chief's session, and other models on the master are kept
 * @quiesce_func: runs before such a reset (nullable)
 * @quiesce_func_data: its data
 * @continue_func: if the model was claimed and an earlier chief has left it whole, with the same
 *   graph and checkpoint directory, the chief continues with it: nothing is reset, restored or
 *   initialised. Not with @overwrite, @checkpoint_filename or @device_func, and not in recover.
 *   %NULL: it is always restored or initialised
 * @continue_func_data: its data
 * @device_func: runs before each session that prepare and recover create (nullable)
 * @device_func_data: its data
 * @owners: (array fixed-size=4): what frees the functions' data in a copy (private)
 *
 * How a chief makes a model ready. Copies of the boxed type own everything but functions' data that
 * weren't set by a function of this type.
 */
typedef struct {
  const char *init_op;
  const char *const *init_ops;
  const MusterFeed *init_feeds;
  gsize n_init_feeds;
  MusterInitFunc init_func;
  gpointer init_func_data;
  MusterSaver *saver;
  const char *checkpoint_dir;
  const char *checkpoint_filename;
  const MusterRestoreOptions *restore;
  gboolean wait_for_checkpoint;
  gint64 max_wait_us;
  gint64 timeout_us;
  gint64 epoch;
  gboolean overwrite;
  gboolean reset_master;
  gboolean reset_unclaimed;
  MusterQuiesceFunc quiesce_func;
  gpointer quiesce_func_data;
  MusterContinueFunc continue_func;
  gpointer continue_func_data;
  MusterDeviceFunc device_func;
  gpointer device_func_data;
  /*< private >*/
  GBytes *owners[4];
} MusterPrepareOptions;

#define MUSTER_TYPE_PREPARE_OPTIONS (muster_prepare_options_get_type ())
GType muster_prepare_options_get_type (void);

/**
 * muster_prepare_options_new:
 * @init_op: (nullable): the op that initialises the model if there is nothing to restore
 * @saver: (nullable): the saver that restores it
 * @checkpoint_dir: (nullable): the checkpoint directory
 *
 * Creates options; further fields are set afterwards.
 *
 * Returns: (transfer full): options
 */
MusterPrepareOptions *muster_prepare_options_new (const char *init_op, MusterSaver *saver,
                                                  const char *checkpoint_dir);

/**
 * muster_prepare_options_copy:
 * @self: options
 *
 * Copies them.
 *
 * Returns: (transfer full): a copy
 */
MusterPrepareOptions *muster_prepare_options_copy (const MusterPrepareOptions *self);

/**
 * muster_prepare_options_free:
 * @self: (nullable): a copy
 *
 * Frees a copy.
 */
void muster_prepare_options_free (MusterPrepareOptions *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterPrepareOptions, muster_prepare_options_free)

/**
 * muster_prepare_options_feed:
 * @self: a copy
 * @name: the tensor to feed: "x:0" or "x"
 * @value: its value, which is referenced
 *
 * Adds a feed for the init ops.
 */
void muster_prepare_options_feed (MusterPrepareOptions *self, const char *name,
                                  MusterTensor *value);

/**
 * muster_prepare_options_set_init_ops:
 * @self: a copy
 * @ops: (array zero-terminated=1) (nullable): ops, run in one step
 *
 * Sets the field init_ops of a copy.
 */
void muster_prepare_options_set_init_ops (MusterPrepareOptions *self, const char *const *ops);

/**
 * muster_prepare_options_set_saver:
 * @self: a copy
 * @saver: (nullable): the saver that restores the model
 *
 * Sets the field of that name in a copy.
 */
void muster_prepare_options_set_saver (MusterPrepareOptions *self, MusterSaver *saver);

/**
 * muster_prepare_options_set_restore:
 * @self: a copy
 * @restore: (nullable): how it is restored
 *
 * Sets the field of that name in a copy.
 */
void muster_prepare_options_set_restore (MusterPrepareOptions *self,
                                         const MusterRestoreOptions *restore);

/**
 * muster_prepare_options_set_init_func:
 * @self: a copy
 * @func: (nullable) (scope notified) (closure user_data) (destroy destroy): runs after the init ops
 * @user_data: its data
 * @destroy: (nullable): frees @user_data with the last copy
 *
 * Sets the field of that name in a copy.
 */
void muster_prepare_options_set_init_func (MusterPrepareOptions *self, MusterInitFunc func,
                                           gpointer user_data, GDestroyNotify destroy);

/**
 * muster_prepare_options_set_quiesce_func:
 * @self: a copy
 * @func: (nullable) (scope notified) (closure user_data) (destroy destroy): runs before a reset
 * @user_data: its data
 * @destroy: (nullable): frees @user_data with the last copy
 *
 * Sets the field of that name in a copy.
 */
void muster_prepare_options_set_quiesce_func (MusterPrepareOptions *self, MusterQuiesceFunc func,
                                              gpointer user_data, GDestroyNotify destroy);

/**
 * muster_prepare_options_set_continue_func:
 * @self: a copy
 * @func: (nullable) (scope notified) (closure user_data) (destroy destroy): decides whether to
 *   continue
 * @user_data: its data
 * @destroy: (nullable): frees @user_data with the last copy
 *
 * Sets the field of that name in a copy.
 */
void muster_prepare_options_set_continue_func (MusterPrepareOptions *self, MusterContinueFunc func,
                                               gpointer user_data, GDestroyNotify destroy);

/**
 * muster_prepare_options_set_device_func:
 * @self: a copy
 * @func: (nullable) (scope notified) (closure user_data) (destroy destroy): runs before a session
 *   is created
 * @user_data: its data
 * @destroy: (nullable): frees @user_data with the last copy
 *
 * Sets the field of that name in a copy.
 */
void muster_prepare_options_set_device_func (MusterPrepareOptions *self, MusterDeviceFunc func,
                                             gpointer user_data, GDestroyNotify destroy);

/**
 * MusterOutcome:
 * @MUSTER_OUTCOME_FAILED: the operation failed
 * @MUSTER_OUTCOME_READY: the model is ready
 * @MUSTER_OUTCOME_NOT_READY: recover: there is a session, but the model isn't ready; wait: the
 *   model wasn't ready in time, whatever the time was spent on
 * @MUSTER_OUTCOME_FENCED: another chief holds the model, or has prepared it
 * @MUSTER_OUTCOME_OVER: the job has ended; there is nothing to start
 *
 * How an operation of a session manager ended.
 */
typedef enum {
  MUSTER_OUTCOME_FAILED,
  MUSTER_OUTCOME_READY,
  MUSTER_OUTCOME_NOT_READY,
  MUSTER_OUTCOME_FENCED,
  MUSTER_OUTCOME_OVER,
} MusterOutcome;

/**
 * MusterSessionReport:
 * @outcome: how it ended
 * @final_step: OVER: the job's last step; else -1
 * @epoch: prepare: the chief's; 0: the master keeps no announcements
 * @reasons: (element-type MusterReason): the last situation (owned, nullable)
 * @timeline: (element-type MusterSpan): the intervals of the phases, in order; 10,000 at most
 *   (owned, nullable)
 * @retries: (array fixed-size=5): by #MusterFailure: the number of retries
 * @restored_from: the checkpoint (owned, nullable)
 * @continued: prepare: with the model on the master; nothing was restored or initialised
 * @continued_step: if @continued: the model's step
 * @passed_over: newer checkpoints that weren't whole, the cause, and what was done with them: lines
 *   (owned, nullable)
 * @restore_warning: remarks on the restore: lines (owned, nullable)
 * @reason: recover, and operations that failed: why the model isn't ready (owned, nullable)
 * @goodput: prepare: what the chief before has announced of the job's time (owned, nullable)
 * @goodput_at_us: when it had measured that, an instant in microseconds
 * @phases: (element-type MusterPhase): the phases, in order (owned, nullable)
 * @polls: the number of readiness checks
 * @sessions: the number of sessions created
 * @pushed: the master pushed readiness
 *
 * What an operation did, for messages and logs.
 */
typedef struct {
  MusterOutcome outcome;
  gint64 final_step;
  gint64 epoch;
  GPtrArray *reasons;
  GArray *timeline;
  guint retries[MUSTER_N_FAILURES];
  char *restored_from;
  gboolean continued;
  gint64 continued_step;
  char *passed_over;
  char *restore_warning;
  char *reason;
  MusterGoodput *goodput;
  gint64 goodput_at_us;
  GArray *phases;
  guint polls;
  guint sessions;
  gboolean pushed;
} MusterSessionReport;

/**
 * MusterPhase:
 * @name: "devices", "connect" (until there was a session, with the pauses), "create" (of the
 *   session that was created), "claim", "continue", "reset", "restore", "init", "local init",
 *   "waiting" or "ready"; static
 * @duration_us: its time in microseconds; times of one name are added
 *
 * The time of a phase of an operation.
 */
typedef struct {
  const char *name;
  gint64 duration_us;
} MusterPhase;

#define MUSTER_TYPE_PHASE (muster_phase_get_type ())
GType muster_phase_get_type (void);

/**
 * muster_phase_copy:
 * @self: a phase
 *
 * Copies it.
 *
 * Returns: (transfer full): a copy
 */
MusterPhase *muster_phase_copy (const MusterPhase *self);

/**
 * muster_phase_free:
 * @self: (nullable): a copy
 *
 * Frees a copy.
 */
void muster_phase_free (MusterPhase *self);

/**
 * MusterSpan:
 * @name: a phase's name; static
 * @started_us: microseconds since the operation began
 * @duration_us: microseconds
 *
 * One interval of a phase.
 */
typedef struct {
  const char *name;
  gint64 started_us;
  gint64 duration_us;
} MusterSpan;

#define MUSTER_TYPE_SPAN (muster_span_get_type ())
GType muster_span_get_type (void);

/**
 * muster_span_copy:
 * @self: an interval
 *
 * Copies it.
 *
 * Returns: (transfer full): a copy
 */
MusterSpan *muster_span_copy (const MusterSpan *self);

/**
 * muster_span_free:
 * @self: (nullable): a copy
 *
 * Frees a copy.
 */
void muster_span_free (MusterSpan *self);

#define MUSTER_TYPE_SESSION_REPORT (muster_session_report_get_type ())
GType muster_session_report_get_type (void);

/**
 * muster_session_report_new:
 *
 * Creates an empty report, for an operation to fill.
 *
 * Returns: (transfer full): a report
 */
MusterSessionReport *muster_session_report_new (void);

/**
 * muster_session_report_copy:
 * @self: a report
 *
 * Copies it with all that it contains.
 *
 * Returns: (transfer full): a copy
 */
MusterSessionReport *muster_session_report_copy (const MusterSessionReport *self);

/**
 * muster_session_report_free:
 * @self: (nullable): a report
 *
 * Frees what [ctor@SessionReport.new] or a copy gave.
 */
void muster_session_report_free (MusterSessionReport *self);

/**
 * muster_session_report_list_phases:
 * @self: a report
 * @n: (out): their number
 *
 * The phases of the operation, in order, for languages that can't read the field.
 *
 * Returns: (array length=n) (transfer none) (nullable): the phases, borrowed
 */
const MusterPhase *muster_session_report_list_phases (const MusterSessionReport *self, gsize *n);

/**
 * muster_session_report_list_spans:
 * @self: a report
 * @n: (out): their number
 *
 * The intervals of the phases, in order, for languages that can't read the timeline.
 *
 * Returns: (array length=n) (transfer none) (nullable): the intervals, borrowed
 */
const MusterSpan *muster_session_report_list_spans (const MusterSessionReport *self, gsize *n);

/**
 * muster_session_report_clear:
 * @self: a report
 *
 * Frees what a report contains, and empties it.
 */
void muster_session_report_clear (MusterSessionReport *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterSessionReport, muster_session_report_clear)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterSessionReport, muster_session_report_free)

/**
 * muster_session_manager_prepare_session:
 * @self: a session manager
 * @master: a master
 * @options: (nullable): %NULL: all defaults
 * @report: (nullable): set also on failure; clear it afterwards
 * @cancellable: (nullable): cancels the call
 *
 * Creates a session and makes the model ready. FAILED_PRECONDITION, with TensorFlow's text, if
 * nothing can make it ready or it isn't ready afterwards.
 *
 * If the master loses the session (ABORTED), ends a step (CANCELLED) or, with a timeout, can't be
 * reached (UNAVAILABLE), the operation starts again in another session according to the policy
 * `preparing`, including restore, init op and init function: an init function must tolerate a
 * second run.
 *
 * A model with a name is claimed right after CreateSession. FAILED_PRECONDITION and FENCED: a
 * living chief holds it, or took it during the operation, or (unless `overwrite`) another chief
 * prepared it, nothing was restored, and the init ops would overwrite it. OUT_OF_RANGE and OVER:
 * its job has ended.
 *
 * Returns: (transfer full): the session
 */
MusterSession *muster_session_manager_prepare_session (MusterSessionManager *self,
                                                       MusterMaster *master,
                                                       const MusterPrepareOptions *options,
                                                       MusterSessionReport *report,
                                                       GCancellable *cancellable, GError **error);

/**
 * muster_session_manager_recover_session:
 * @self: a session manager
 * @master: a master
 * @options: (nullable): init_op, feeds and init_func aren't used; %NULL: all defaults
 * @recovered: (out) (optional): %TRUE if the model was restored and is ready
 * @report: (nullable): set also on failure; clear it afterwards
 * @cancellable: (nullable): cancels the call
 *
 * Creates a session and restores if possible. A session whose model isn't recovered is success, and
 * the report's reason has the cause: the caller then initialises the model and announces that it is
 * prepared ([method@Session.manager_lease]). Retries and claims like
 * [method@SessionManager.prepare_session].
 *
 * Returns: (transfer full): the session
 */
MusterSession *muster_session_manager_recover_session (
    MusterSessionManager *self, MusterMaster *master, const MusterPrepareOptions *options,
    gboolean *recovered, MusterSessionReport *report, GCancellable *cancellable, GError **error);

/**
 * muster_session_manager_wait_for_session:
 * @self: a session manager
 * @master: a master
 * @timeout_us: microseconds; 0 or below: check once, for at most 30 s; %MUSTER_WAIT_FOREVER: no
 *   limit
 * @report: (nullable): set also on failure; clear it afterwards
 * @cancellable: (nullable): cancels the call
 *
 * Waits until another task has made the model ready. If the master can't be reached (UNAVAILABLE),
 * lost the session (ABORTED) or is stopping (CANCELLED), it retries according to the policy
 * `waiting` until the deadline; any other failure ends the wait. DEADLINE_EXCEEDED and NOT_READY
 * when the time is used: "Session was not ready after waiting N secs.", with the cause, the number
 * of checks, and what took the time; the report's sessions is 0 if the master never answered.
 * OUT_OF_RANGE and OVER: the chief has ended the job.
 *
 * Returns: (transfer full): the session
 */
MusterSession *muster_session_manager_wait_for_session (MusterSessionManager *self,
                                                        MusterMaster *master, gint64 timeout_us,
                                                        MusterSessionReport *report,
                                                        GCancellable *cancellable, GError **error);

/**
 * muster_session_manager_prepare_session_async:
 * @self: a session manager
 * @master: a master
 * @options: (nullable): strings and structs are copied, the feeds' tensors referenced; a function's
 *   data must live until the end
 * @cancellable: (nullable): cancels the call
 * @callback: (scope async): called in the thread's main context when it is done
 * @user_data: passed to the callback
 *
 * Starts [method@SessionManager.prepare_session] on a thread of its own.
 */
void muster_session_manager_prepare_session_async (MusterSessionManager *self, MusterMaster *master,
                                                   const MusterPrepareOptions *options,
                                                   GCancellable *cancellable,
                                                   GAsyncReadyCallback callback,
                                                   gpointer user_data);

/**
 * muster_session_manager_prepare_session_finish:
 * @self: a session manager
 * @result: the result that the callback got
 * @report: (nullable): set also on failure; clear it afterwards
 *
 * Ends [method@SessionManager.prepare_session_async].
 *
 * Returns: (transfer full): the session
 */
MusterSession *muster_session_manager_prepare_session_finish (MusterSessionManager *self,
                                                              GAsyncResult *result,
                                                              MusterSessionReport *report,
                                                              GError **error);

/**
 * muster_session_manager_recover_session_async:
 * @self: a session manager
 * @master: a master
 * @options: (nullable): strings and structs are copied, the feeds' tensors referenced; a function's
 *   data must live until the end
 * @cancellable: (nullable): cancels the call
 * @callback: (scope async): called in the thread's main context when it is done
 * @user_data: passed to the callback
 *
 * Starts [method@SessionManager.recover_session] on a thread of its own.
 */
void muster_session_manager_recover_session_async (MusterSessionManager *self, MusterMaster *master,
                                                   const MusterPrepareOptions *options,
                                                   GCancellable *cancellable,
                                                   GAsyncReadyCallback callback,
                                                   gpointer user_data);

/**
 * muster_session_manager_recover_session_finish:
 * @self: a session manager
 * @result: the result that the callback got
 * @recovered: (out) (optional): %TRUE if the model was restored and is ready
 * @report: (nullable): set also on failure; clear it afterwards
 *
 * Ends [method@SessionManager.recover_session_async].
 *
 * Returns: (transfer full): the session
 */
MusterSession *muster_session_manager_recover_session_finish (MusterSessionManager *self,
                                                              GAsyncResult *result,
                                                              gboolean *recovered,
                                                              MusterSessionReport *report,
                                                              GError **error);

/**
 * muster_session_manager_wait_for_session_async:
 * @self: a session manager
 * @master: a master
 * @timeout_us: microseconds; 0 or below: check once, for at most 30 s; %MUSTER_WAIT_FOREVER: no
 *   limit
 * @cancellable: (nullable): cancels the call
 * @callback: (scope async): called in the thread's main context when it is done
 * @user_data: passed to the callback
 *
 * Starts [method@SessionManager.wait_for_session] on a thread of its own.
 */
void muster_session_manager_wait_for_session_async (MusterSessionManager *self,
                                                    MusterMaster *master, gint64 timeout_us,
                                                    GCancellable *cancellable,
                                                    GAsyncReadyCallback callback,
                                                    gpointer user_data);

/**
 * muster_session_manager_wait_for_session_finish:
 * @self: a session manager
 * @result: the result that the callback got
 * @report: (nullable): set also on failure; clear it afterwards
 *
 * Ends [method@SessionManager.wait_for_session_async].
 *
 * Returns: (transfer full): the session
 */
MusterSession *muster_session_manager_wait_for_session_finish (MusterSessionManager *self,
                                                               GAsyncResult *result,
                                                               MusterSessionReport *report,
                                                               GError **error);

/**
 * muster_session_manager_lease:
 * @session: a session from prepare or recover
 *
 * The chief's lease on the model. It is held as long as the session. Announce the phases of
 * training with it, and pass it to the saver.
 *
 * Returns: (transfer none) (nullable): the lease; %NULL if there is none (the model has no name, or
 *   the master keeps no announcements)
 */
MusterLease *muster_session_manager_lease (MusterSession *session);

/**
 * muster_session_manager_restored_from:
 * @session: a session from prepare or recover
 *
 * The checkpoint that a session was restored from.
 *
 * Returns: (nullable): its prefix, borrowed from the session
 */
const char *muster_session_manager_restored_from (MusterSession *session);

/**
 * muster_session_manager_continued_step:
 * @session: a session from prepare
 *
 * The step of the model on the master with which a session continues.
 *
 * Returns: the step; -1: the model was restored or initialised
 */
gint64 muster_session_manager_continued_step (MusterSession *session);

/**
 * MusterSessionProgress:
 * @message: one line
 * @readiness: the last readiness; empty if the master wasn't asked for it
 * @reasons: (element-type MusterReason): the situation
 * @user_data: the data of the function
 *
 * Called on the waiting thread when the situation changes, and when a master with an address hasn't
 * answered CreateSession for two seconds, with the cause.
 */
typedef void (*MusterSessionProgress) (const char *message, const MusterReadiness *readiness,
                                       GPtrArray *reasons, gpointer user_data);

/**
 * muster_session_manager_set_progress:
 * @self: a session manager
 * @progress: (nullable) (scope notified) (closure user_data) (destroy destroy): the function
 * @user_data: its data
 * @destroy: (nullable): frees @user_data with the manager, or when another function is set
 *
 * Sets a function that hears of an operation's progress. Set it before the first operation.
 */
void muster_session_manager_set_progress (MusterSessionManager *self,
                                          MusterSessionProgress progress, gpointer user_data,
                                          GDestroyNotify destroy);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/step_builder.h"
#include "session/manager.h"
#include "train/monitored/hook.h"
#include "train/monitored/session_observer.h"

G_BEGIN_DECLS

/**
 * MusterMonitoredSession:
 *
 * A session with hooks that recovers from failures, like TensorFlow's `MonitoredSession`
 * (behaviours MON.20 to MON.61). If a run fails because the master lost the session (ABORTED) or
 * can't be reached (UNAVAILABLE), it closes the session, creates another in the same way, restored
 * or waited for, and runs again; the caller only sees the result.
 *
 * One thread runs it; [method@MonitoredSession.request_stop] and
 * [method@MonitoredSession.should_stop] may be called by any. Deadlines are on its clock: if that
 * isn't the machine's, its master must use the same.
 */
#define MUSTER_TYPE_MONITORED_SESSION (muster_monitored_session_get_type ())
G_DECLARE_FINAL_TYPE (MusterMonitoredSession, muster_monitored_session, MUSTER, MONITORED_SESSION,
                      GObject)

/**
 * MusterMonitoredSessionOptions:
 * @scaffold: the model: graph, ops and global step
 * @master: where to create sessions
 * @manager: (nullable): NULL: one with the scaffold's ops
 * @is_worker: TRUE: a worker, which waits for the model; FALSE: a chief, which prepares it
 * @prepare: (nullable): of a chief: what to restore and how to initialise. Unset init_op,
 *   init_feeds and init_func are the scaffold's. If saver is unset and there is something to
 * restore from: one for the scaffold's SaverDef, which is built if there is none. Copied; the feeds
 * and the functions' data must live as long as the session
 * @max_wait_us: of a worker, for the model, in microseconds; 0: 30 minutes (MON.11)
 * @hooks: (array length=n_hooks) (nullable): called in this order
 * @n_hooks: the number of @hooks
 * @step_timeout_us: a longer run counts as a lost session (UNAVAILABLE), which is replaced. Set it
 *   above the longest step. It is the only way to detect that a machine behind the master has
 *   stopped silently. 0: none; the step's own deadline is the caller's and isn't recovered from
 * @stop_grace_us: for the coordinator's threads at the end, in microseconds; 0: 120 s
 * @never_recover: a singular session: no recovery (MON.47)
 * @recovery: (nullable): retries without progress (a higher global step or, without one, a
 *   successful run), and their pauses; NULL: 10 times, 100 ms to 10 s
 * @observer: (nullable): is told of its sessions
 * @clock: (nullable): NULL: the machine's
 *
 * Options of a [class@MonitoredSession]. Zeros are the defaults; @scaffold and @master are needed.
 */
typedef struct {
  MusterScaffold *scaffold;
  MusterMaster *master;
  MusterSessionManager *manager;
  gboolean is_worker;
  const MusterPrepareOptions *prepare;
  gint64 max_wait_us;
  MusterHook *const *hooks;
  gsize n_hooks;
  gint64 step_timeout_us;
  gint64 stop_grace_us;
  gboolean never_recover;
  const MusterRetryPolicy *recovery;
  MusterSessionObserver *observer;
  MusterClock *clock;
} MusterMonitoredSessionOptions;

#define MUSTER_TYPE_MONITORED_SESSION_OPTIONS (muster_monitored_session_options_get_type ())
GType muster_monitored_session_options_get_type (void);

/**
 * muster_monitored_session_options_new:
 * @scaffold: the model
 * @master: where to create sessions
 *
 * Options on the heap, for other languages: numbers and booleans are fields, the rest is set by
 * methods.
 *
 * Returns: (transfer full): options of a chief that restores nothing
 */
MusterMonitoredSessionOptions *muster_monitored_session_options_new (MusterScaffold *scaffold,
                                                                     MusterMaster *master);

/**
 * muster_monitored_session_new:
 * @options: the model, the master and the hooks
 * @report: (nullable): set by the manager, even on failure
 * @cancellable: (nullable): ends every wait during the session's life and stops its threads. To end
 *   a single call, cancel the calling thread's g_cancellable_get_current ()
 *
 * Calls the hooks' begin and creates the first session, then starts the graph's queue runners (of
 * the meta graph's collection "queue_runners", like TensorFlow's QueueRunner). Two hooks with the
 * same claim are INVALID_ARGUMENT before there is a session.
 *
 * Returns: (transfer full): the session, ready to run
 */
MusterMonitoredSession *muster_monitored_session_new (const MusterMonitoredSessionOptions *options,
                                                      MusterSessionReport *report,
                                                      GCancellable *cancellable, GError **error);

/**
 * muster_monitored_session_run: (skip)
 * @self: the session
 * @step: feeds, fetches and targets; its deadline also limits the recovery
 * @fetched: (nullable): where to return the fetched tensors, as in muster_session_run ()
 * @metadata: (nullable): where to return a serialised `RunMetadata`
 *
 * Runs a step with all hooks. If the recovery isn't complete by the deadline, the next run
 * continues it. FAILED_PRECONDITION after a stop requested by a hook or request_stop ("Run called
 * even after should_stop requested.") and after the end. After a thread has failed it still runs,
 * like TensorFlow's, and fails with the master's error, such as CANCELLED for a closed queue.
 *
 * Returns: FALSE with an error if the step failed for good
 */
gboolean muster_monitored_session_run (MusterMonitoredSession *self, const MusterStep *step,
                                       MusterTensor **fetched, GBytes **metadata, GError **error);

/**
 * muster_monitored_session_run_without_hooks: (skip)
 * @self: the session
 * @step: feeds, fetches and targets
 * @fetched: (nullable): as in muster_monitored_session_run ()
 * @metadata: (nullable): as in muster_monitored_session_run ()
 *
 * The same without hooks, also with recovery (DMON.5).
 *
 * Returns: FALSE with an error if the step failed for good
 */
gboolean muster_monitored_session_run_without_hooks (MusterMonitoredSession *self,
                                                     const MusterStep *step, MusterTensor **fetched,
                                                     GBytes **metadata, GError **error);

/**
 * muster_monitored_session_run_builder:
 * @self: the session
 * @step: feeds, fetches and targets
 * @with_hooks: FALSE: without hooks (muster_monitored_session_run_without_hooks ())
 * @timeout_us: in microseconds, including a recovery, or %MUSTER_WAIT_FOREVER
 *
 * muster_monitored_session_run () for other languages: runs the builder's step with a timeout
 * instead of a deadline.
 *
 * Returns: (transfer container) (element-type MusterTensor): the fetched tensors, in the order of
 *   the calls of [method@StepBuilder.fetch]
 */
GPtrArray *muster_monitored_session_run_builder (MusterMonitoredSession *self,
                                                 MusterStepBuilder *step, gboolean with_hooks,
                                                 gint64 timeout_us, GError **error);

/**
 * MusterStepFunction:
 * @self: the monitored session
 * @session: its current session, without hooks
 * @deadline_us: the call's deadline
 * @cancellable: (nullable): the monitored session's
 * @user_data: the caller's
 * @error: set it for a failure
 *
 * Several runs that belong together: if one finds the session lost, the whole function is run again
 * in the next session (MON.48 to MON.50, DMON.9). It runs in @session, without hooks, or through
 * muster_monitored_session_run ().
 *
 * Returns: FALSE without an error requests a stop and isn't a failure
 */
typedef gboolean (*MusterStepFunction) (MusterMonitoredSession *self, MusterSession *session,
                                        gint64 deadline_us, GCancellable *cancellable,
                                        gpointer user_data, GError **error);

/**
 * muster_monitored_session_run_step_function:
 * @self: the session
 * @function: (scope call) (closure user_data): what to run
 * @user_data: passed to @function
 * @deadline_us: on the session's clock, passed to @function, or %MUSTER_WAIT_FOREVER
 *
 * Runs a function, and again in the next session if one of its runs finds the session lost.
 *
 * Returns: FALSE with the function's error
 */
gboolean muster_monitored_session_run_step_function (MusterMonitoredSession *self,
                                                     MusterStepFunction function,
                                                     gpointer user_data, gint64 deadline_us,
                                                     GError **error);

/**
 * muster_monitored_session_should_stop:
 * @self: the session
 *
 * Whether to stop running steps. Never blocks, never fails. Any thread.
 *
 * Returns: TRUE once a hook, a thread or the caller has requested a stop, after an unrecoverable
 *   failure of a thread, and after the end. FALSE if a thread has reported a lost session: the next
 *   run creates another (TensorFlow creates it here, MON.43)
 */
gboolean muster_monitored_session_should_stop (MusterMonitoredSession *self);

/**
 * muster_monitored_session_request_stop:
 * @self: the session
 *
 * Requests a stop. Any thread.
 */
void muster_monitored_session_request_stop (MusterMonitoredSession *self);

/**
 * muster_monitored_session_finish:
 * @self: the session
 * @failure: (nullable): the caller's result
 * @deadline_us: for the hooks' end functions, on the session's clock, or %MUSTER_WAIT_FOREVER
 *
 * Ends the session. NULL, OUT_OF_RANGE (the end of the input, from a run, from before_run or from
 * the caller) and a stop are clean ends: the hooks' end functions are called, all of them, once.
 * Any other failure is passed to their on_error and returned; so is an OUT_OF_RANGE from another
 * function of a hook, which is a mistake in the hook (DMON.8). Then the threads are joined and the
 * session is closed.
 *
 * The hooks' end functions have until @deadline_us, the threads stop_grace_us, but no longer than
 * that. Cancelling the session's cancellable ends both.
 *
 * Returns: FALSE with the first error: a thread's report to the coordinator, unless it is a lost
 *   session; else @failure; else the one of a hook's end. The others are logged. A second call is
 *   FAILED_PRECONDITION ("Session is already closed.")
 */
gboolean muster_monitored_session_finish (MusterMonitoredSession *self, const GError *failure,
                                          gint64 deadline_us, GError **error);

/**
 * muster_monitored_session_end:
 * @self: the session
 * @deadline_us: for the hooks' end functions, on the session's clock, or %MUSTER_WAIT_FOREVER
 *
 * muster_monitored_session_finish () without a failure, for other languages.
 *
 * Returns: FALSE with an error, as there
 */
gboolean muster_monitored_session_end (MusterMonitoredSession *self, gint64 deadline_us,
                                       GError **error);

/**
 * muster_monitored_session_session:
 * @self: the session
 *
 * The current session, for the caller's own threads. A recovery replaces it.
 *
 * Returns: (transfer none) (nullable): the session; NULL after the end
 */
MusterSession *muster_monitored_session_session (MusterMonitoredSession *self);

/**
 * muster_monitored_session_coordinator:
 * @self: the session
 *
 * The current session's coordinator, for the caller's own threads. A recovery replaces it.
 *
 * Returns: (transfer none): the coordinator; after the end the last one, which is joined
 */
MusterCoordinator *muster_monitored_session_coordinator (MusterMonitoredSession *self);

/**
 * muster_monitored_session_global_step:
 * @self: the session
 *
 * The highest global step of any run.
 *
 * Returns: the step; -1 before the first run
 */
gint64 muster_monitored_session_global_step (MusterMonitoredSession *self);

/**
 * muster_monitored_session_end_of_input:
 * @self: the session
 *
 * What has ended the input.
 *
 * Returns: (nullable): the text of the failure, which names the op or the hook, borrowed from the
 *   session; NULL if the input hasn't ended
 */
const char *muster_monitored_session_end_of_input (MusterMonitoredSession *self);

/**
 * muster_monitored_session_goodput:
 * @self: the session
 * @goodput: (out caller-allocates): where to return it
 *
 * What the job's time was spent on. A chief with a checkpoint hook continues the account of the
 * runs before. After the end it no longer changes.
 */
void muster_monitored_session_goodput (MusterMonitoredSession *self, MusterGoodput *goodput);

/**
 * muster_monitored_session_n_recoveries:
 * @self: the session
 *
 * How often it has recovered.
 *
 * Returns: the number of recoveries
 */
guint muster_monitored_session_n_recoveries (MusterMonitoredSession *self);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/lease.h"
#include "session/manager_options.h"
#include "session/prepare_options.h"
#include "session/report.h"

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
 * muster_session_manager_new:
 * @graph: (nullable): the sessions' graph; %NULL for masters that have their own graph; on any
 *   other master, operations then fail with INVALID_ARGUMENT
 * @options: (nullable): %NULL: all defaults
 *
 * Creates a manager. INVALID_ARGUMENT: "If you pass a ready_for_local_init_op you must also pass a
 * local_init_op" (B002.2), or an op that isn't in @graph.
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
 * muster_session_manager_graph:
 * @self: a manager
 *
 * The graph of its sessions.
 *
 * Returns: (transfer none) (nullable): the graph; %NULL: the manager was made without one
 */
MusterGraph *muster_session_manager_graph (MusterSessionManager *self);

/**
 * muster_session_manager_prepare_session:
 * @self: a session manager
 * @master: a master
 * @options: (nullable): %NULL: all defaults
 * @report: (nullable): set even on failure; clear it afterwards
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
 * its job has ended. ALREADY_EXISTS: another model, whose chief lives, has a variable of the same
 * name.
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
 * @report: (nullable): set even on failure; clear it afterwards
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
 * @report: (nullable): set even on failure; clear it afterwards
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
 * @report: (nullable): set even on failure; clear it afterwards
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
 * @report: (nullable): set even on failure; clear it afterwards
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
 * Called when the situation changes, not at intervals, and when a master with an address hasn't
 * answered CreateSession for two seconds, with the cause. Changes that follow one another quickly
 * may be reported as one, and the end of the wait isn't reported. It runs on the thread that waits:
 * the caller's, or for an asynchronous operation a thread that it starts.
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

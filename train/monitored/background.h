// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/monitored/monitored_session.h"

G_BEGIN_DECLS

/* The operations of a monitored session in the background, for programs with a main loop:
 * master/background.h has the conventions. A session runs one call at a time, and calls hooks and
 * listeners on the call's thread. A cancellable of a run ends that run; the one that the session
 * was created with ends the session. */

/**
 * muster_monitored_session_new_async:
 * @options: the options, which are copied
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Creates a monitored session in the background: muster_monitored_session_new (). @cancellable
 * also ends every later wait of the session.
 */
void muster_monitored_session_new_async (const MusterMonitoredSessionOptions *options,
                                         GCancellable *cancellable, GAsyncReadyCallback callback,
                                         gpointer user_data);

/**
 * muster_monitored_session_new_finish:
 * @result: what the callback was given
 * @report: (nullable): what was done, also on failure; clear it
 *
 * The result of muster_monitored_session_new_async ().
 *
 * Returns: (transfer full): a monitored session
 */
MusterMonitoredSession *muster_monitored_session_new_finish (GAsyncResult *result,
                                                             MusterSessionReport *report,
                                                             GError **error);

/**
 * muster_monitored_session_run_async: (skip)
 * @self: a monitored session
 * @step: the step, which is copied; its tensors are referenced
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Runs a step with all hooks in the background: muster_monitored_session_run (). Bindings use
 * muster_monitored_session_run_builder_async ().
 */
void muster_monitored_session_run_async (MusterMonitoredSession *self, const MusterStep *step,
                                         GCancellable *cancellable, GAsyncReadyCallback callback,
                                         gpointer user_data);

/**
 * muster_monitored_session_run_finish: (skip)
 * @self: a monitored session
 * @result: what the callback was given
 * @fetched: (out caller-allocates) (nullable): one tensor (transfer full) for each fetch;
 * untouched on failure
 * @metadata: (out) (optional) (nullable): a serialised RunMetadata, if the step asked for one
 *
 * The result of muster_monitored_session_run_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_monitored_session_run_finish (MusterMonitoredSession *self, GAsyncResult *result,
                                              MusterTensor **fetched, GBytes **metadata,
                                              GError **error);

/**
 * muster_monitored_session_run_without_hooks_async: (skip)
 * @self: a monitored session
 * @step: the step, which is copied; its tensors are referenced
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Runs a step without hooks in the background: muster_monitored_session_run_without_hooks ().
 */
void muster_monitored_session_run_without_hooks_async (MusterMonitoredSession *self,
                                                       const MusterStep *step,
                                                       GCancellable *cancellable,
                                                       GAsyncReadyCallback callback,
                                                       gpointer user_data);

/**
 * muster_monitored_session_run_without_hooks_finish: (skip)
 * @self: a monitored session
 * @result: what the callback was given
 * @fetched: (out caller-allocates) (nullable): one tensor (transfer full) for each fetch;
 * untouched on failure
 * @metadata: (out) (optional) (nullable): a serialised RunMetadata, if the step asked for one
 *
 * The result of muster_monitored_session_run_without_hooks_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_monitored_session_run_without_hooks_finish (MusterMonitoredSession *self,
                                                            GAsyncResult *result,
                                                            MusterTensor **fetched,
                                                            GBytes **metadata, GError **error);

/**
 * muster_monitored_session_run_builder_async:
 * @self: a monitored session
 * @step: feeds, fetches and targets; copied
 * @with_hooks: %FALSE: without hooks
 * @timeout_us: in microseconds, including a recovery, or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Runs a step in the background: muster_monitored_session_run_builder ().
 */
void muster_monitored_session_run_builder_async (MusterMonitoredSession *self,
                                                 MusterStepBuilder *step, gboolean with_hooks,
                                                 gint64 timeout_us, GCancellable *cancellable,
                                                 GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_monitored_session_run_builder_finish:
 * @self: a monitored session
 * @result: what the callback was given
 *
 * The result of muster_monitored_session_run_builder_async ().
 *
 * Returns: (transfer container) (element-type MusterTensor): the fetched tensors, in the order of
 * the calls of muster_step_builder_fetch ()
 */
GPtrArray *muster_monitored_session_run_builder_finish (MusterMonitoredSession *self,
                                                        GAsyncResult *result, GError **error);

/**
 * muster_monitored_session_finish_async:
 * @self: a monitored session
 * @failure: (nullable): the caller's result; copied
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Ends the session in the background: muster_monitored_session_finish ().
 */
void muster_monitored_session_finish_async (MusterMonitoredSession *self, const GError *failure,
                                            gint64 deadline_us, GCancellable *cancellable,
                                            GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_monitored_session_finish_finish:
 * @self: a monitored session
 * @result: what the callback was given
 *
 * The result of muster_monitored_session_finish_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_monitored_session_finish_finish (MusterMonitoredSession *self, GAsyncResult *result,
                                                 GError **error);

/**
 * muster_monitored_session_end_async:
 * @self: a monitored session
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Ends the session, without a failure, in the background: muster_monitored_session_end ().
 */
void muster_monitored_session_end_async (MusterMonitoredSession *self, gint64 deadline_us,
                                         GCancellable *cancellable, GAsyncReadyCallback callback,
                                         gpointer user_data);

/**
 * muster_monitored_session_end_finish:
 * @self: a monitored session
 * @result: what the callback was given
 *
 * The result of muster_monitored_session_end_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_monitored_session_end_finish (MusterMonitoredSession *self, GAsyncResult *result,
                                              GError **error);

G_END_DECLS

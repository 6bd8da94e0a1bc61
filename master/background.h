// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/lease.h"
#include "master/master.h"
#include "master/step_builder.h"

G_BEGIN_DECLS

/* The operations of masters, sessions, leases and memberships in the background, for programs with
 * a main loop. Each begins at once, on a thread of its own, and calls back in the thread-default
 * main context of the thread that called it. Arguments are copied or referenced. Its finish
 * function returns what the blocking operation returns; an error of a call that was cancelled by
 * its cancellable is G_IO_ERROR_CANCELLED, and NULL where it isn't allowed is INVALID_ARGUMENT,
 * there too. An object is kept alive during its call. A result that nobody finishes is freed. */

/**
 * muster_master_create_session_async:
 * @self: a master
 * @graph: (nullable): the graph; %NULL only if the master has its own
 * @config: (nullable): a serialised ConfigProto
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Creates a session in the background: muster_master_create_session ().
 */
void muster_master_create_session_async (MusterMaster *self, MusterGraph *graph, GBytes *config,
                                         gint64 deadline_us, GCancellable *cancellable,
                                         GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_master_create_session_finish:
 * @self: a master
 * @result: what the callback was given
 *
 * The result of muster_master_create_session_async ().
 *
 * Returns: (transfer full): a session
 */
MusterSession *muster_master_create_session_finish (MusterMaster *self, GAsyncResult *result,
                                                    GError **error);

/**
 * muster_master_list_devices_async:
 * @self: a master
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Lists the master's devices in the background: muster_master_list_devices ().
 */
void muster_master_list_devices_async (MusterMaster *self, gint64 deadline_us,
                                       GCancellable *cancellable, GAsyncReadyCallback callback,
                                       gpointer user_data);

/**
 * muster_master_list_devices_finish:
 * @self: a master
 * @result: what the callback was given
 *
 * The result of muster_master_list_devices_async ().
 *
 * Returns: (transfer container) (element-type MusterDevice): the devices
 */
GPtrArray *muster_master_list_devices_finish (MusterMaster *self, GAsyncResult *result,
                                              GError **error);

/**
 * muster_master_reset_async:
 * @self: a master
 * @containers: (array zero-terminated=1) (nullable): names of containers; %NULL: all
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Removes variables in the background: muster_master_reset ().
 */
void muster_master_reset_async (MusterMaster *self, const char *const *containers,
                                gint64 deadline_us, GCancellable *cancellable,
                                GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_master_reset_finish:
 * @self: a master
 * @result: what the callback was given
 *
 * The result of muster_master_reset_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_master_reset_finish (MusterMaster *self, GAsyncResult *result, GError **error);

/**
 * muster_session_run_async: (skip)
 * @self: a session
 * @step: the step, which is copied; its tensors are referenced
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Runs a step in the background: muster_session_run (). Bindings use
 * muster_step_builder_run_async ().
 */
void muster_session_run_async (MusterSession *self, const MusterStep *step,
                               GCancellable *cancellable, GAsyncReadyCallback callback,
                               gpointer user_data);

/**
 * muster_session_run_finish: (skip)
 * @self: a session
 * @result: what the callback was given
 * @fetched: (out caller-allocates) (nullable): one tensor (transfer full) for each fetch;
 * untouched on failure
 * @metadata: (out) (optional) (nullable): a serialised RunMetadata, if the step asked for one
 *
 * The result of muster_session_run_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_session_run_finish (MusterSession *self, GAsyncResult *result,
                                    MusterTensor **fetched, GBytes **metadata, GError **error);

/**
 * muster_session_run_op_async:
 * @self: a session
 * @op: the op
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Runs an op for its effect in the background: muster_session_run_op ().
 */
void muster_session_run_op_async (MusterSession *self, const char *op, gint64 deadline_us,
                                  GCancellable *cancellable, GAsyncReadyCallback callback,
                                  gpointer user_data);

/**
 * muster_session_run_op_finish:
 * @self: a session
 * @result: what the callback was given
 *
 * The result of muster_session_run_op_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_session_run_op_finish (MusterSession *self, GAsyncResult *result, GError **error);

/**
 * muster_session_fetch_async:
 * @self: a session
 * @tensor: the tensor, such as "loss:0"
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Fetches a tensor in the background: muster_session_fetch ().
 */
void muster_session_fetch_async (MusterSession *self, const char *tensor, gint64 deadline_us,
                                 GCancellable *cancellable, GAsyncReadyCallback callback,
                                 gpointer user_data);

/**
 * muster_session_fetch_finish:
 * @self: a session
 * @result: what the callback was given
 *
 * The result of muster_session_fetch_async ().
 *
 * Returns: (transfer full): the tensor
 */
MusterTensor *muster_session_fetch_finish (MusterSession *self, GAsyncResult *result,
                                           GError **error);

/**
 * muster_session_extend_async:
 * @self: a session
 * @graph: the nodes to add
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Adds nodes to the session's graph in the background: muster_session_extend ().
 */
void muster_session_extend_async (MusterSession *self, MusterGraph *graph, gint64 deadline_us,
                                  GCancellable *cancellable, GAsyncReadyCallback callback,
                                  gpointer user_data);

/**
 * muster_session_extend_finish:
 * @self: a session
 * @result: what the callback was given
 *
 * The result of muster_session_extend_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_session_extend_finish (MusterSession *self, GAsyncResult *result, GError **error);

/**
 * muster_session_close_async:
 * @self: a session
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Closes the session in the background: muster_session_close ().
 */
void muster_session_close_async (MusterSession *self, gint64 deadline_us, GCancellable *cancellable,
                                 GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_session_close_finish:
 * @self: a session
 * @result: what the callback was given
 *
 * The result of muster_session_close_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_session_close_finish (MusterSession *self, GAsyncResult *result, GError **error);

/**
 * muster_session_set_up_partial_run_async: (skip)
 * @self: a session
 * @step: the whole step, which is copied
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Sets up a step that runs in parts, in the background: muster_session_set_up_partial_run ().
 */
void muster_session_set_up_partial_run_async (MusterSession *self, const MusterStep *step,
                                              gint64 deadline_us, GCancellable *cancellable,
                                              GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_session_set_up_partial_run_finish: (skip)
 * @self: a session
 * @result: what the callback was given
 *
 * The result of muster_session_set_up_partial_run_async ().
 *
 * Returns: (transfer full): the handle of the partial run
 */
char *muster_session_set_up_partial_run_finish (MusterSession *self, GAsyncResult *result,
                                                GError **error);

/**
 * muster_session_run_part_async: (skip)
 * @self: a session
 * @partial_run: the handle
 * @part: the part, which is copied; its tensors are referenced
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Runs a part of a partial run in the background: muster_session_run_part ().
 */
void muster_session_run_part_async (MusterSession *self, const char *partial_run,
                                    const MusterStep *part, GCancellable *cancellable,
                                    GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_session_run_part_finish: (skip)
 * @self: a session
 * @result: what the callback was given
 * @fetched: (out caller-allocates) (nullable): one tensor (transfer full) for each fetch;
 * untouched on failure
 * @metadata: (out) (optional) (nullable): a serialised RunMetadata, if the step asked for one
 *
 * The result of muster_session_run_part_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_session_run_part_finish (MusterSession *self, GAsyncResult *result,
                                         MusterTensor **fetched, GBytes **metadata, GError **error);

/**
 * muster_session_make_callable_async: (skip)
 * @self: a session
 * @step: the step, which is copied
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Registers a step at the master in the background: muster_session_make_callable ().
 */
void muster_session_make_callable_async (MusterSession *self, const MusterStep *step,
                                         gint64 deadline_us, GCancellable *cancellable,
                                         GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_session_make_callable_finish: (skip)
 * @self: a session
 * @result: what the callback was given
 *
 * The result of muster_session_make_callable_async ().
 *
 * Returns: its number, or 0 with an error
 */
gint64 muster_session_make_callable_finish (MusterSession *self, GAsyncResult *result,
                                            GError **error);

/**
 * muster_session_run_callable_async: (skip)
 * @self: a session
 * @callable: the number of the step
 * @feeds: (array length=n_feeds): the tensors to feed, which are referenced
 * @n_feeds: their number
 * @n_fetches: the number of tensors that the step fetches
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Runs a registered step in the background: muster_session_run_callable ().
 */
void muster_session_run_callable_async (MusterSession *self, gint64 callable,
                                        MusterTensor *const *feeds, gsize n_feeds, gsize n_fetches,
                                        gint64 deadline_us, GCancellable *cancellable,
                                        GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_session_run_callable_finish: (skip)
 * @self: a session
 * @result: what the callback was given
 * @fetched: (out caller-allocates) (nullable): one tensor (transfer full) for each fetch;
 * untouched on failure
 * @metadata: (out) (optional) (nullable): a serialised RunMetadata, if the step asked for one
 *
 * The result of muster_session_run_callable_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_session_run_callable_finish (MusterSession *self, GAsyncResult *result,
                                             MusterTensor **fetched, GBytes **metadata,
                                             GError **error);

/**
 * muster_session_release_callable_async:
 * @self: a session
 * @callable: the number of the step
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Releases a registered step in the background: muster_session_release_callable ().
 */
void muster_session_release_callable_async (MusterSession *self, gint64 callable,
                                            gint64 deadline_us, GCancellable *cancellable,
                                            GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_session_release_callable_finish:
 * @self: a session
 * @result: what the callback was given
 *
 * The result of muster_session_release_callable_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_session_release_callable_finish (MusterSession *self, GAsyncResult *result,
                                                 GError **error);

/**
 * muster_step_builder_run_async:
 * @self: a step, which is copied: it may be changed during the call
 * @session: the session that runs it
 * @timeout_us: microseconds, or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Runs the step in the background: muster_step_builder_run ().
 */
void muster_step_builder_run_async (MusterStepBuilder *self, MusterSession *session,
                                    gint64 timeout_us, GCancellable *cancellable,
                                    GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_step_builder_run_finish:
 * @self: a step, which is copied: it may be changed during the call
 * @result: what the callback was given
 *
 * The result of muster_step_builder_run_async ().
 *
 * Returns: (transfer container) (element-type MusterTensor): the fetched tensors, in the order of
 * the calls of muster_step_builder_fetch ()
 */
GPtrArray *muster_step_builder_run_finish (MusterStepBuilder *self, GAsyncResult *result,
                                           GError **error);

/**
 * muster_watch_next_async:
 * @self: a watch
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Waits for the next change in the background: muster_watch_next ().
 */
void muster_watch_next_async (MusterWatch *self, GCancellable *cancellable,
                              GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_watch_next_finish:
 * @self: a watch
 * @result: what the callback was given
 * @readiness: (nullable): where the state goes, which the caller clears
 *
 * The result of muster_watch_next_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_watch_next_finish (MusterWatch *self, GAsyncResult *result,
                                   MusterReadiness *readiness, GError **error);

/**
 * muster_session_claim_async:
 * @self: a session
 * @claim: what is claimed; copied
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Claims a model for a chief in the background: muster_session_claim ().
 */
void muster_session_claim_async (MusterSession *self, const MusterClaim *claim, gint64 deadline_us,
                                 GCancellable *cancellable, GAsyncReadyCallback callback,
                                 gpointer user_data);

/**
 * muster_session_claim_finish:
 * @self: a session
 * @result: what the callback was given
 * @before: (out) (optional) (nullable) (transfer full): the model's announcement before
 *
 * The result of muster_session_claim_async ().
 *
 * Returns: (transfer full): the lease
 */
MusterLease *muster_session_claim_finish (MusterSession *self, GAsyncResult *result,
                                          MusterAnnouncement **before, GError **error);

/**
 * muster_lease_announce_async:
 * @self: a lease
 * @announcement: what is announced; copied
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Announces a phase in the background: muster_lease_announce ().
 */
void muster_lease_announce_async (MusterLease *self, const MusterAnnouncement *announcement,
                                  gint64 deadline_us, GCancellable *cancellable,
                                  GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_lease_announce_finish:
 * @self: a lease
 * @result: what the callback was given
 *
 * The result of muster_lease_announce_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_lease_announce_finish (MusterLease *self, GAsyncResult *result, GError **error);

/**
 * muster_lease_announce_phase_async:
 * @self: a lease
 * @phase: the phase
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Announces a phase in the background: muster_lease_announce_phase ().
 */
void muster_lease_announce_phase_async (MusterLease *self, MusterChiefPhase phase,
                                        gint64 deadline_us, GCancellable *cancellable,
                                        GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_lease_announce_phase_finish:
 * @self: a lease
 * @result: what the callback was given
 *
 * The result of muster_lease_announce_phase_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_lease_announce_phase_finish (MusterLease *self, GAsyncResult *result,
                                             GError **error);

/**
 * muster_master_join_async:
 * @self: a master
 * @join: what is asked for; copied
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Makes a task a member of a job in the background: muster_master_join ().
 */
void muster_master_join_async (MusterMaster *self, const MusterJoin *join, gint64 deadline_us,
                               GCancellable *cancellable, GAsyncReadyCallback callback,
                               gpointer user_data);

/**
 * muster_master_join_finish:
 * @self: a master
 * @result: what the callback was given
 *
 * The result of muster_master_join_async ().
 *
 * Returns: (transfer full): the membership
 */
MusterMembership *muster_master_join_finish (MusterMaster *self, GAsyncResult *result,
                                             GError **error);

/**
 * muster_membership_wait_async:
 * @self: a membership
 * @after_version: a roster's version
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Waits for a later roster in the background: muster_membership_wait ().
 */
void muster_membership_wait_async (MusterMembership *self, guint64 after_version,
                                   gint64 deadline_us, GCancellable *cancellable,
                                   GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_membership_wait_finish:
 * @self: a membership
 * @result: what the callback was given
 *
 * The result of muster_membership_wait_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_membership_wait_finish (MusterMembership *self, GAsyncResult *result,
                                        GError **error);

/**
 * muster_membership_leave_async:
 * @self: a membership
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Leaves a job in the background: muster_membership_leave ().
 */
void muster_membership_leave_async (MusterMembership *self, gint64 deadline_us,
                                    GCancellable *cancellable, GAsyncReadyCallback callback,
                                    gpointer user_data);

/**
 * muster_membership_leave_finish:
 * @self: a membership
 * @result: what the callback was given
 *
 * The result of muster_membership_leave_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_membership_leave_finish (MusterMembership *self, GAsyncResult *result,
                                         GError **error);

G_END_DECLS

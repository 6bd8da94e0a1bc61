// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/async/async_saver.h"
#include "saver/async/checkpoint_manager.h"

G_BEGIN_DECLS

/* The operations of async savers and checkpoint managers in the background, for programs with a
 * main loop, which even the step that takes a snapshot would hold: master/background.h has the
 * conventions. */

/**
 * muster_save_ticket_wait_async:
 * @self: a ticket
 * @state: a state from %MUSTER_SAVE_STAGED to %MUSTER_SAVE_DURABLE
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Waits for a state of the save in the background: muster_save_ticket_wait ().
 */
void muster_save_ticket_wait_async (MusterSaveTicket *self, MusterSaveState state,
                                    gint64 deadline_us, GCancellable *cancellable,
                                    GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_save_ticket_wait_finish:
 * @self: a ticket
 * @result: what the callback was given
 *
 * The result of muster_save_ticket_wait_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_save_ticket_wait_finish (MusterSaveTicket *self, GAsyncResult *result,
                                         GError **error);

/**
 * muster_async_saver_prepare_async:
 * @self: an async saver
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Does the preparations of the first save in the background: muster_async_saver_prepare ().
 */
void muster_async_saver_prepare_async (MusterAsyncSaver *self, gint64 deadline_us,
                                       GCancellable *cancellable, GAsyncReadyCallback callback,
                                       gpointer user_data);

/**
 * muster_async_saver_prepare_finish:
 * @self: an async saver
 * @result: what the callback was given
 *
 * The result of muster_async_saver_prepare_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_async_saver_prepare_finish (MusterAsyncSaver *self, GAsyncResult *result,
                                            GError **error);

/**
 * muster_async_saver_save_async:
 * @self: an async saver
 * @directory: the checkpoint directory
 * @step: the number in the checkpoint's name; below 0: the save counter's next
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Takes a snapshot in the background, to be saved: muster_async_saver_save ().
 */
void muster_async_saver_save_async (MusterAsyncSaver *self, const char *directory, gint64 step,
                                    gint64 deadline_us, GCancellable *cancellable,
                                    GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_async_saver_save_finish:
 * @self: an async saver
 * @result: what the callback was given
 *
 * The result of muster_async_saver_save_async ().
 *
 * Returns: (transfer full): the ticket of the save
 */
MusterSaveTicket *muster_async_saver_save_finish (MusterAsyncSaver *self, GAsyncResult *result,
                                                  GError **error);

/**
 * muster_async_saver_save_in_tiers_async:
 * @self: an async saver
 * @directory: the checkpoint directory
 * @step: the number in the checkpoint's name; below 0: the save counter's next
 * @due: the fast tiers that are due
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Takes a snapshot in the background, to be saved in tiers: muster_async_saver_save_in_tiers ().
 */
void muster_async_saver_save_in_tiers_async (MusterAsyncSaver *self, const char *directory,
                                             gint64 step, MusterTierSet due, gint64 deadline_us,
                                             GCancellable *cancellable,
                                             GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_async_saver_save_in_tiers_finish:
 * @self: an async saver
 * @result: what the callback was given
 *
 * The result of muster_async_saver_save_in_tiers_async ().
 *
 * Returns: (transfer full): the ticket of the save
 */
MusterSaveTicket *muster_async_saver_save_in_tiers_finish (MusterAsyncSaver *self,
                                                           GAsyncResult *result, GError **error);

/**
 * muster_async_saver_write_async:
 * @self: an async saver
 * @prefix: the checkpoint to write
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Takes a snapshot in the background, to be written as a given checkpoint:
 * muster_async_saver_write ().
 */
void muster_async_saver_write_async (MusterAsyncSaver *self, const char *prefix, gint64 deadline_us,
                                     GCancellable *cancellable, GAsyncReadyCallback callback,
                                     gpointer user_data);

/**
 * muster_async_saver_write_finish:
 * @self: an async saver
 * @result: what the callback was given
 *
 * The result of muster_async_saver_write_async ().
 *
 * Returns: (transfer full): the ticket of the save
 */
MusterSaveTicket *muster_async_saver_write_finish (MusterAsyncSaver *self, GAsyncResult *result,
                                                   GError **error);

/**
 * muster_async_saver_restore_async:
 * @self: an async saver
 * @options: (nullable): the checkpoint or directory, and what is compatible; copied
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Waits for running saves and restores, in the background: muster_async_saver_restore ().
 */
void muster_async_saver_restore_async (MusterAsyncSaver *self, const MusterRestoreOptions *options,
                                       gint64 deadline_us, GCancellable *cancellable,
                                       GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_async_saver_restore_finish:
 * @self: an async saver
 * @result: what the callback was given
 * @restored: (nullable): set to what was restored; clear it
 *
 * The result of muster_async_saver_restore_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_async_saver_restore_finish (MusterAsyncSaver *self, GAsyncResult *result,
                                            MusterRestored *restored, GError **error);

/**
 * muster_async_saver_read_async:
 * @self: an async saver
 * @prefix: the checkpoint to restore
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Restores a given checkpoint in the background: muster_async_saver_read ().
 */
void muster_async_saver_read_async (MusterAsyncSaver *self, const char *prefix, gint64 deadline_us,
                                    GCancellable *cancellable, GAsyncReadyCallback callback,
                                    gpointer user_data);

/**
 * muster_async_saver_read_finish:
 * @self: an async saver
 * @result: what the callback was given
 *
 * The result of muster_async_saver_read_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_async_saver_read_finish (MusterAsyncSaver *self, GAsyncResult *result,
                                         GError **error);

/**
 * muster_async_saver_sync_async:
 * @self: an async saver
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Waits for running saves and copies in the background: muster_async_saver_sync ().
 */
void muster_async_saver_sync_async (MusterAsyncSaver *self, gint64 deadline_us,
                                    GCancellable *cancellable, GAsyncReadyCallback callback,
                                    gpointer user_data);

/**
 * muster_async_saver_sync_finish:
 * @self: an async saver
 * @result: what the callback was given
 *
 * The result of muster_async_saver_sync_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_async_saver_sync_finish (MusterAsyncSaver *self, GAsyncResult *result,
                                         GError **error);

/**
 * muster_async_saver_sync_saves_async:
 * @self: an async saver
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Waits for running saves in the background: muster_async_saver_sync_saves ().
 */
void muster_async_saver_sync_saves_async (MusterAsyncSaver *self, gint64 deadline_us,
                                          GCancellable *cancellable, GAsyncReadyCallback callback,
                                          gpointer user_data);

/**
 * muster_async_saver_sync_saves_finish:
 * @self: an async saver
 * @result: what the callback was given
 *
 * The result of muster_async_saver_sync_saves_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_async_saver_sync_saves_finish (MusterAsyncSaver *self, GAsyncResult *result,
                                               GError **error);

/**
 * muster_async_saver_shutdown_async:
 * @self: an async saver
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Refuses new saves and waits for running ones, in the background: muster_async_saver_shutdown
 * ().
 */
void muster_async_saver_shutdown_async (MusterAsyncSaver *self, gint64 deadline_us,
                                        GCancellable *cancellable, GAsyncReadyCallback callback,
                                        gpointer user_data);

/**
 * muster_async_saver_shutdown_finish:
 * @self: an async saver
 * @result: what the callback was given
 *
 * The result of muster_async_saver_shutdown_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_async_saver_shutdown_finish (MusterAsyncSaver *self, GAsyncResult *result,
                                             GError **error);

/**
 * muster_checkpoint_manager_save_async:
 * @self: a checkpoint manager
 * @session: a session of the model
 * @number: the number in the checkpoint's name; below 0: the save counter
 * @check_interval: skip it within the interval
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Saves in the background: muster_checkpoint_manager_save ().
 */
void muster_checkpoint_manager_save_async (MusterCheckpointManager *self, MusterSession *session,
                                           gint64 number, gboolean check_interval,
                                           gint64 deadline_us, GCancellable *cancellable,
                                           GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_checkpoint_manager_save_finish:
 * @self: a checkpoint manager
 * @result: what the callback was given
 * @saved: (nullable): set to what became of the save; clear it
 *
 * The result of muster_checkpoint_manager_save_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_checkpoint_manager_save_finish (MusterCheckpointManager *self, GAsyncResult *result,
                                                MusterSaved *saved, GError **error);

/**
 * muster_checkpoint_manager_sync_async:
 * @self: a checkpoint manager
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Waits for running saves in the background: muster_checkpoint_manager_sync ().
 */
void muster_checkpoint_manager_sync_async (MusterCheckpointManager *self, gint64 deadline_us,
                                           GCancellable *cancellable, GAsyncReadyCallback callback,
                                           gpointer user_data);

/**
 * muster_checkpoint_manager_sync_finish:
 * @self: a checkpoint manager
 * @result: what the callback was given
 *
 * The result of muster_checkpoint_manager_sync_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_checkpoint_manager_sync_finish (MusterCheckpointManager *self, GAsyncResult *result,
                                                GError **error);

/**
 * muster_checkpoint_manager_restore_or_initialize_async:
 * @self: a checkpoint manager
 * @session: a session of the model
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Restores the newest whole checkpoint, or initialises the model, in the background:
 * muster_checkpoint_manager_restore_or_initialize ().
 */
void muster_checkpoint_manager_restore_or_initialize_async (
    MusterCheckpointManager *self, MusterSession *session, gint64 deadline_us,
    GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_checkpoint_manager_restore_or_initialize_finish:
 * @self: a checkpoint manager
 * @result: what the callback was given
 * @restored: (out) (optional) (nullable): the checkpoint; %NULL: there was none
 *
 * The result of muster_checkpoint_manager_restore_or_initialize_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_checkpoint_manager_restore_or_initialize_finish (MusterCheckpointManager *self,
                                                                 GAsyncResult *result,
                                                                 char **restored, GError **error);

G_END_DECLS

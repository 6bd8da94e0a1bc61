// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/saver.h"

G_BEGIN_DECLS

/* The operations of savers in the background, for programs with a main loop: master/background.h
 * has the conventions. MusterAsyncSaver (saver/async/async_saver.h) is another thing: it lets the
 * model be trained while it is saved. */

/**
 * muster_saver_save_async:
 * @self: a saver
 * @session: a session of the model
 * @directory: the checkpoint directory
 * @step: the step in the checkpoint's name; below 0: none
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Saves the model in the background: muster_saver_save (). Steps that run meanwhile may change
 * what is saved.
 */
void muster_saver_save_async (MusterSaver *self, MusterSession *session, const char *directory,
                              gint64 step, gint64 deadline_us, GCancellable *cancellable,
                              GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_saver_save_finish:
 * @self: a saver
 * @result: what the callback was given
 *
 * The result of muster_saver_save_async ().
 *
 * Returns: (transfer full): the checkpoint
 */
char *muster_saver_save_finish (MusterSaver *self, GAsyncResult *result, GError **error);

/**
 * muster_saver_restore_async:
 * @self: a saver
 * @session: a session of the model
 * @options: (nullable): the checkpoint or directory, and what is compatible; copied
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Restores a checkpoint in the background: muster_saver_restore (). The progress function of the
 * options is called on other threads.
 */
void muster_saver_restore_async (MusterSaver *self, MusterSession *session,
                                 const MusterRestoreOptions *options, gint64 deadline_us,
                                 GCancellable *cancellable, GAsyncReadyCallback callback,
                                 gpointer user_data);

/**
 * muster_saver_restore_finish:
 * @self: a saver
 * @result: what the callback was given
 * @restored: (nullable): set to what was restored; clear it
 *
 * The result of muster_saver_restore_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_saver_restore_finish (MusterSaver *self, GAsyncResult *result,
                                      MusterRestored *restored, GError **error);

/**
 * muster_saver_check_compatible_async:
 * @self: a saver
 * @prefix: the checkpoint
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Compares a checkpoint with what the saver restores, and reads every tensor, in the background:
 * muster_saver_check_compatible ().
 */
void muster_saver_check_compatible_async (MusterSaver *self, const char *prefix,
                                          GCancellable *cancellable, GAsyncReadyCallback callback,
                                          gpointer user_data);

/**
 * muster_saver_check_compatible_finish:
 * @self: a saver
 * @result: what the callback was given
 *
 * The result of muster_saver_check_compatible_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_saver_check_compatible_finish (MusterSaver *self, GAsyncResult *result,
                                               GError **error);

/**
 * muster_saver_claim_directory_async:
 * @self: a saver
 * @directory: the checkpoint directory
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Claims a directory for the chief that holds the saver's lease, in the background:
 * muster_saver_claim_directory ().
 */
void muster_saver_claim_directory_async (MusterSaver *self, const char *directory,
                                         gint64 deadline_us, GCancellable *cancellable,
                                         GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_saver_claim_directory_finish:
 * @self: a saver
 * @result: what the callback was given
 *
 * The result of muster_saver_claim_directory_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_saver_claim_directory_finish (MusterSaver *self, GAsyncResult *result,
                                              GError **error);

/**
 * muster_saver_begin_run_async:
 * @self: a saver
 * @directory: the checkpoint directory
 * @resumed_prefix: (nullable): the checkpoint that was restored
 * @resumed_step: without one: the step at which the model was on the master; -1: it was
 * initialised
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Begins a run in a directory, in the background: muster_saver_begin_run ().
 */
void muster_saver_begin_run_async (MusterSaver *self, const char *directory,
                                   const char *resumed_prefix, gint64 resumed_step,
                                   gint64 deadline_us, GCancellable *cancellable,
                                   GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_saver_begin_run_finish:
 * @self: a saver
 * @result: what the callback was given
 *
 * The result of muster_saver_begin_run_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_saver_begin_run_finish (MusterSaver *self, GAsyncResult *result, GError **error);

G_END_DECLS

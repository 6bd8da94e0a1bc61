// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/edit/edit.h"

G_BEGIN_DECLS

/* Edits in the background, without a report of their progress (base/background.h). */

/**
 * muster_checkpoint_copy_async:
 * @from: a checkpoint
 * @to: the prefix of the copy
 * @options: (nullable): options
 * @deadline_us: when it ends at the latest
 * @cancellable: (nullable): ends it
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Copies a checkpoint in the background: [func@checkpoint_copy].
 */
void muster_checkpoint_copy_async (const char *from, const char *to,
                                   const MusterEditOptions *options, gint64 deadline_us,
                                   GCancellable *cancellable, GAsyncReadyCallback callback,
                                   gpointer user_data);

/**
 * muster_checkpoint_copy_finish:
 * @result: what the callback was given
 * @report: (out caller-allocates) (optional): what was done
 * @error: return location for an error
 *
 * The result of [func@checkpoint_copy_async].
 *
 * Returns: `TRUE` if the result is durable
 */
gboolean muster_checkpoint_copy_finish (GAsyncResult *result, MusterEditReport *report,
                                        GError **error);

/**
 * muster_checkpoint_merge_async:
 * @from: (array zero-terminated=1): checkpoints
 * @to: the prefix of the result
 * @options: (nullable): options
 * @deadline_us: when it ends at the latest
 * @cancellable: (nullable): ends it
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Averages checkpoints in the background: [func@checkpoint_merge].
 */
void muster_checkpoint_merge_async (const char *const *from, const char *to,
                                    const MusterEditOptions *options, gint64 deadline_us,
                                    GCancellable *cancellable, GAsyncReadyCallback callback,
                                    gpointer user_data);

/**
 * muster_checkpoint_merge_finish:
 * @result: what the callback was given
 * @report: (out caller-allocates) (optional): what was done
 * @error: return location for an error
 *
 * The result of [func@checkpoint_merge_async].
 *
 * Returns: `TRUE` if the result is durable
 */
gboolean muster_checkpoint_merge_finish (GAsyncResult *result, MusterEditReport *report,
                                         GError **error);

/**
 * muster_checkpoint_extract_async:
 * @from: a checkpoint
 * @patterns: (array zero-terminated=1): names, with `*` and `?`
 * @to: the prefix of the result
 * @options: (nullable): options
 * @deadline_us: when it ends at the latest
 * @cancellable: (nullable): ends it
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Makes a checkpoint of some variables in the background: [func@checkpoint_extract].
 */
void muster_checkpoint_extract_async (const char *from, const char *const *patterns, const char *to,
                                      const MusterEditOptions *options, gint64 deadline_us,
                                      GCancellable *cancellable, GAsyncReadyCallback callback,
                                      gpointer user_data);

/**
 * muster_checkpoint_extract_finish:
 * @result: what the callback was given
 * @report: (out caller-allocates) (optional): what was done
 * @error: return location for an error
 *
 * The result of [func@checkpoint_extract_async].
 *
 * Returns: `TRUE` if the result is durable
 */
gboolean muster_checkpoint_extract_finish (GAsyncResult *result, MusterEditReport *report,
                                           GError **error);

/**
 * muster_checkpoint_extract_npy_async:
 * @from: a checkpoint
 * @patterns: (array zero-terminated=1): names, with `*` and `?`
 * @to: a directory, or a name that ends in `.npy`
 * @options: (nullable): options
 * @deadline_us: when it ends at the latest
 * @cancellable: (nullable): ends it
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Writes some variables as NumPy files in the background: [func@checkpoint_extract_npy].
 */
void muster_checkpoint_extract_npy_async (const char *from, const char *const *patterns,
                                          const char *to, const MusterEditOptions *options,
                                          gint64 deadline_us, GCancellable *cancellable,
                                          GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_checkpoint_extract_npy_finish:
 * @result: what the callback was given
 * @report: (out caller-allocates) (optional): what was done
 * @error: return location for an error
 *
 * The result of [func@checkpoint_extract_npy_async].
 *
 * Returns: `TRUE` if the result is durable
 */
gboolean muster_checkpoint_extract_npy_finish (GAsyncResult *result, MusterEditReport *report,
                                               GError **error);

/**
 * muster_checkpoint_rename_async:
 * @from: a checkpoint
 * @names: (array zero-terminated=1): old and new names in turn
 * @to: the prefix of the result
 * @options: (nullable): options
 * @deadline_us: when it ends at the latest
 * @cancellable: (nullable): ends it
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Copies a checkpoint with other names in the background: [func@checkpoint_rename].
 */
void muster_checkpoint_rename_async (const char *from, const char *const *names, const char *to,
                                     const MusterEditOptions *options, gint64 deadline_us,
                                     GCancellable *cancellable, GAsyncReadyCallback callback,
                                     gpointer user_data);

/**
 * muster_checkpoint_rename_finish:
 * @result: what the callback was given
 * @report: (out caller-allocates) (optional): what was done
 * @error: return location for an error
 *
 * The result of [func@checkpoint_rename_async].
 *
 * Returns: `TRUE` if the result is durable
 */
gboolean muster_checkpoint_rename_finish (GAsyncResult *result, MusterEditReport *report,
                                          GError **error);

G_END_DECLS

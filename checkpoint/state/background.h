// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/state/checkpoint_mark.h"

G_BEGIN_DECLS

/* Pins and metrics in the background (base/background.h). */

/**
 * muster_checkpoint_pin_async:
 * @storage: (nullable): where; `NULL`: local files
 * @prefix: a checkpoint
 * @why: (nullable): a reason, for messages
 * @deadline_us: when to give up
 * @cancellable: (nullable): stops it
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Pins a checkpoint in the background: [func@checkpoint_pin].
 */
void muster_checkpoint_pin_async (MusterStorage *storage, const char *prefix, const char *why,
                                  gint64 deadline_us, GCancellable *cancellable,
                                  GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_checkpoint_pin_finish:
 * @result: what the callback was given
 * @error: return location for an error
 *
 * The result of [func@checkpoint_pin_async].
 *
 * Returns: `TRUE` if it is pinned
 */
gboolean muster_checkpoint_pin_finish (GAsyncResult *result, GError **error);

/**
 * muster_checkpoint_unpin_async:
 * @storage: (nullable): where; `NULL`: local files
 * @prefix: a checkpoint
 * @deadline_us: when to give up
 * @cancellable: (nullable): stops it
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Removes a pin in the background: [func@checkpoint_unpin].
 */
void muster_checkpoint_unpin_async (MusterStorage *storage, const char *prefix, gint64 deadline_us,
                                    GCancellable *cancellable, GAsyncReadyCallback callback,
                                    gpointer user_data);

/**
 * muster_checkpoint_unpin_finish:
 * @result: what the callback was given
 * @error: return location for an error
 *
 * The result of [func@checkpoint_unpin_async].
 *
 * Returns: `TRUE` if it is pinned no more
 */
gboolean muster_checkpoint_unpin_finish (GAsyncResult *result, GError **error);

/**
 * muster_checkpoint_set_metric_async:
 * @storage: (nullable): where; `NULL`: local files
 * @prefix: a checkpoint
 * @name: the metric
 * @value: its value
 * @deadline_us: when to give up
 * @cancellable: (nullable): stops it
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Gives a saved checkpoint a metric's value in the background: [func@checkpoint_set_metric].
 */
void muster_checkpoint_set_metric_async (MusterStorage *storage, const char *prefix,
                                         const char *name, double value, gint64 deadline_us,
                                         GCancellable *cancellable, GAsyncReadyCallback callback,
                                         gpointer user_data);

/**
 * muster_checkpoint_set_metric_finish:
 * @result: what the callback was given
 * @error: return location for an error
 *
 * The result of [func@checkpoint_set_metric_async].
 *
 * Returns: `TRUE` if the value is recorded
 */
gboolean muster_checkpoint_set_metric_finish (GAsyncResult *result, GError **error);

G_END_DECLS

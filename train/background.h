// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/train.h"

G_BEGIN_DECLS

/* Training in the background, for programs with a main loop: master/background.h has the
 * conventions. */

/**
 * muster_train_async:
 * @training: what to train, which is copied; what its listener points to must live until the call
 *   is over
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Trains one task of a job in the background: muster_train (). The listener's functions are
 * called on the call's thread.
 */
void muster_train_async (const MusterTraining *training, GCancellable *cancellable,
                         GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_train_finish:
 * @result: what the callback was given
 * @trained: (nullable): the result, also on failure; clear it
 *
 * The result of muster_train_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_train_finish (GAsyncResult *result, MusterTrained *trained, GError **error);

G_END_DECLS

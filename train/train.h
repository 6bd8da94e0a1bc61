// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/training.h"

G_BEGIN_DECLS

/**
 * muster_train:
 * @training: what to train
 * @trained: (nullable): set to the result, even on failure; not cleared before
 * @cancellable: (nullable): ends the training
 *
 * Trains one task of a job, chief or worker, from the job's current state to its end: a monitored
 * session with the standard hooks runs the train op with batches until the global step, which all
 * tasks share, reaches its target, or all batches are done. Each task's position in the data is
 * kept in the model (muster_position_add ()): a resumed job skips no batch and repeats none. A
 * chief of several tasks resets its master, which must be the job's own; so does a single task on a
 * master without claims. A chief whose predecessor died and left the model intact on the master
 * continues with it instead. Input that the graph reads by itself has no position. Lost sessions
 * are recovered. A chief also claims its checkpoint directory, saves, announces its progress (at
 * most once a second), and may end the job. A run that restored a checkpoint (count_deaths in
 * [struct@RestoreOptions]) counts as good after the first save, after ten seconds of steps or at
 * the end; if a step fails by itself before that, it counts as a death.
 *
 * A task of an elastic job trains in rounds, as the chief or as a worker. When the chief is gone,
 * another task takes over: it claims the model, continues with the one on the master, and saves,
 * announces and ends the job from then on. A chief that was replaced continues as a worker. A task
 * that is cancelled or preempted leaves; the others train the batch that it had in hand. A task of
 * a job that is over succeeds without training.
 *
 * The scaffold is completed first ([method@Scaffold.complete]). The end of the graph's own input
 * ends the training.
 *
 * INVALID_ARGUMENT if the graph has no train op, or several that write one variable, until_step and
 * epochs are both 0 though the graph has no input of its own, or one is negative, a feed or the
 * loss isn't in its graph, it can't be extended by positions, or the checkpoint is from another
 * number of tasks; OUT_OF_RANGE if the job is over, unless it is elastic; FAILED_PRECONDITION if
 * another chief holds the lease or the directory; otherwise the error of creating the session, of a
 * step, of the last save or of announcing the end of the job.
 *
 * Returns: FALSE with an error
 */
gboolean muster_train (const MusterTraining *training, MusterTrained *trained,
                       GCancellable *cancellable, GError **error);

/**
 * muster_train_async:
 * @training: what to train, which is copied
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Trains one task of a job on a thread of its own: muster_train (). The observer's handlers are
 * called on the call's thread.
 */
void muster_train_async (const MusterTraining *training, GCancellable *cancellable,
                         GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_train_finish:
 * @result: what the callback was given
 * @trained: (nullable): the result, even on failure; clear it
 *
 * The result of muster_train_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_train_finish (GAsyncResult *result, MusterTrained *trained, GError **error);

G_END_DECLS

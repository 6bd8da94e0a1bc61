// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/error.h"

G_BEGIN_DECLS

/**
 * MusterFitPosition:
 * @epoch: counts from 0
 * @batch: of that epoch, counts from 0
 *
 * The next batch to train.
 */
typedef struct {
  gint64 epoch;
  gint64 batch;
} MusterFitPosition;

/**
 * MusterFitCallback:
 * @train_begin: n_batches is the number in an epoch, 0 if unknown. *start is the position to start
 *   from: the caller's, or as changed by an earlier callback
 * @epoch_begin: before an epoch
 * @batch_end: batch is the last one trained
 * @epoch_end: after an epoch
 * @train_end: after the last epoch
 * @train_failed: called instead of train_end if the training failed
 * @user_data: passed to each function
 *
 * Functions that muster_fit () calls, like a callback of Keras'; each may be NULL. FALSE with an
 * error ends the training. Callbacks are called in the order of the list.
 */
typedef struct {
  gboolean (*train_begin) (MusterFitPosition *start, gint64 n_batches, gint64 deadline_us,
                           GCancellable *cancellable, gpointer user_data, GError **error);
  gboolean (*epoch_begin) (gint64 epoch, gint64 deadline_us, GCancellable *cancellable,
                           gpointer user_data, GError **error);
  gboolean (*batch_end) (gint64 epoch, gint64 batch, gint64 deadline_us, GCancellable *cancellable,
                         gpointer user_data, GError **error);
  gboolean (*epoch_end) (gint64 epoch, gint64 deadline_us, GCancellable *cancellable,
                         gpointer user_data, GError **error);
  gboolean (*train_end) (gint64 deadline_us, GCancellable *cancellable, gpointer user_data,
                         GError **error);
  void (*train_failed) (const GError *failure, gpointer user_data);
  gpointer user_data;
} MusterFitCallback;

/**
 * MusterFitTrain:
 * @at: the first batch
 * @n: how many
 * @deadline_us: of the training, an instant of g_get_monotonic_time ()
 * @cancellable: (nullable): of the training
 * @user_data: the caller's
 * @error: OUT_OF_RANGE: the epoch has no more
 *
 * Trains batches. It must return soon after the deadline or a cancellation.
 *
 * Returns: FALSE with an error
 */
typedef gboolean (*MusterFitTrain) (const MusterFitPosition *at, gint64 n, gint64 deadline_us,
                                    GCancellable *cancellable, gpointer user_data, GError **error);

/**
 * MusterFit:
 * @train: trains batches
 * @user_data: passed to @train
 * @n_epochs: trains epochs below this number
 * @n_batches: in an epoch; 0: until @train returns OUT_OF_RANGE
 * @batches_per_call: batches between two calls of batch_end; 0: 1
 * @start: used if nothing is restored
 * @callbacks: (nullable) (array length=n_callbacks): called in this order
 * @n_callbacks: the number of @callbacks
 *
 * A loop over epochs and batches with callbacks, for muster_fit ().
 */
typedef struct {
  MusterFitTrain train;
  gpointer user_data;
  gint64 n_epochs;
  gint64 n_batches;
  gint64 batches_per_call;
  MusterFitPosition start;
  const MusterFitCallback *callbacks;
  gsize n_callbacks;
  /*< private >*/
  GBytes *owner;
} MusterFit;

#define MUSTER_TYPE_FIT (muster_fit_get_type ())
GType muster_fit_get_type (void);

/**
 * muster_fit_new:
 * @n_epochs: trains epochs below this number
 * @n_batches: in an epoch; 0: until the train function fails with OUT_OF_RANGE
 *
 * A loop on the heap, for other languages. Set what trains with [method@Fit.set_train].
 *
 * Returns: (transfer full): the loop
 */
MusterFit *muster_fit_new (gint64 n_epochs, gint64 n_batches);

/**
 * muster_fit_set_train:
 * @self: a loop from new or copy
 * @train: (scope notified) (closure user_data) (destroy destroy): trains batches
 * @user_data: passed to @train
 * @destroy: frees @user_data with the last copy of the loop
 *
 * Sets what trains.
 */
void muster_fit_set_train (MusterFit *self, MusterFitTrain train, gpointer user_data,
                           GDestroyNotify destroy);

/**
 * muster_fit_add_callback: (skip)
 * @self: a loop from new or copy
 * @callback: its functions
 * @destroy: frees its user_data with the last copy of the loop
 *
 * Adds a callback, which is called after those that were added before.
 */
void muster_fit_add_callback (MusterFit *self, const MusterFitCallback *callback,
                              GDestroyNotify destroy);

/**
 * muster_fit:
 * @fit: what to train
 * @reached: (out caller-allocates) (optional): the position after the last batch, even on failure
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER; passed to every
 * function
 * @cancellable: (nullable): ends the training; passed to every function
 *
 * Trains until the last epoch, the deadline or a cancellation, both checked before each call of the
 * train function, like Keras' `fit ()`. Callbacks can save and restore the training's state
 * ([struct@Backup], [struct@WorkerTrainingState]). INVALID_ARGUMENT for negative numbers. One
 * thread.
 *
 * Returns: FALSE with an error if the training failed
 */
gboolean muster_fit (const MusterFit *fit, MusterFitPosition *reached, gint64 deadline_us,
                     GCancellable *cancellable, GError **error);

/**
 * muster_fit_position_after: (skip)
 * @epoch: an epoch
 * @batch: a batch of it
 * @n_batches: in an epoch; 0: unknown
 *
 * The position after a batch.
 *
 * Returns: the next batch, or the first of the next epoch after @n_batches
 */
MusterFitPosition muster_fit_position_after (gint64 epoch, gint64 batch, gint64 n_batches);

/**
 * MusterSaveFreqKind:
 * @MUSTER_SAVE_EPOCH: at the end of each epoch
 * @MUSTER_SAVE_EVERY_N: after every n batches
 * @MUSTER_SAVE_NEVER: only on request
 *
 * When to save.
 */
typedef enum {
  MUSTER_SAVE_EPOCH,
  MUSTER_SAVE_EVERY_N,
  MUSTER_SAVE_NEVER,
} MusterSaveFreqKind;

/**
 * MusterSaveFreq:
 * @kind: when to save
 * @n: batches, for %MUSTER_SAVE_EVERY_N
 *
 * How often to save. Zeros: at the end of each epoch.
 */
typedef struct {
  MusterSaveFreqKind kind;
  gint64 n;
} MusterSaveFreq;

/**
 * muster_save_freq_parse:
 * @text: "epoch", "never", or a number of batches
 * @freq: (out caller-allocates): where to return it
 *
 * Reads Keras' `save_freq`. INVALID_ARGUMENT: "Invalid value for argument `save_freq`." and what is
 * expected.
 *
 * Returns: FALSE with an error for other texts
 */
gboolean muster_save_freq_parse (const char *text, MusterSaveFreq *freq, GError **error);

/**
 * muster_save_freq_check:
 * @freq: how often to save
 *
 * The same for a struct.
 *
 * Returns: FALSE with an error if it is invalid
 */
gboolean muster_save_freq_check (const MusterSaveFreq *freq, GError **error);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/error.h"

G_BEGIN_DECLS

/* A loop over epochs and batches with callbacks, like Keras' fit (). Callbacks can save and restore
 * the training's state (callbacks/backup.h, callbacks/worker_training_state.h). One thread.
 *
 * The deadline (on muster_system_clock ()) and the nullable GCancellable are passed to every
 * function that it calls; these must return soon after either. */

/* The next batch to train. Both count from 0. */
typedef struct {
  gint64 epoch;
  gint64 batch;
} MusterFitPosition;

/* Any function may be NULL. FALSE with an error ends the training. Callbacks are called in the
 * order of the list. */
typedef struct {
  /* n_batches is the number in an epoch, 0 if unknown. *start is the position to start from: the
   * caller's, or as changed by an earlier callback. */
  gboolean (*train_begin) (MusterFitPosition *start, gint64 n_batches, gint64 deadline_us,
                           GCancellable *cancellable, gpointer user_data, GError **error);
  gboolean (*epoch_begin) (gint64 epoch, gint64 deadline_us, GCancellable *cancellable,
                           gpointer user_data, GError **error);
  /* batch is the last one trained. */
  gboolean (*batch_end) (gint64 epoch, gint64 batch, gint64 deadline_us, GCancellable *cancellable,
                         gpointer user_data, GError **error);
  gboolean (*epoch_end) (gint64 epoch, gint64 deadline_us, GCancellable *cancellable,
                         gpointer user_data, GError **error);
  gboolean (*train_end) (gint64 deadline_us, GCancellable *cancellable, gpointer user_data,
                         GError **error);
  /* Called instead of train_end if the training failed. */
  void (*train_failed) (const GError *failure, gpointer user_data);
  gpointer user_data;
} MusterFitCallback;

/* Trains n batches starting at `at`. OUT_OF_RANGE: the epoch has no more. */
typedef gboolean (*MusterFitTrain) (const MusterFitPosition *at, gint64 n, gint64 deadline_us,
                                    GCancellable *cancellable, gpointer user_data, GError **error);

typedef struct {
  MusterFitTrain train;
  gpointer user_data;
  gint64 n_epochs;         /* trains epochs below this number */
  gint64 n_batches;        /* in an epoch; 0: until train returns OUT_OF_RANGE */
  gint64 batches_per_call; /* batches between two calls of batch_end; 0: 1 */
  MusterFitPosition start; /* used if nothing is restored */
  const MusterFitCallback *callbacks;
  gsize n_callbacks;
} MusterFit;

/* Trains until the last epoch, deadline_us or a cancellation, both checked before each call of
 * train. *reached (nullable) becomes the position after the last batch, also on failure.
 * INVALID_ARGUMENT for negative numbers. */
gboolean muster_fit (const MusterFit *fit, MusterFitPosition *reached, gint64 deadline_us,
                     GCancellable *cancellable, GError **error);

/* The position after a batch: the next batch, or the first of the next epoch after n_batches (0:
 * unknown). */
MusterFitPosition muster_fit_position_after (gint64 epoch, gint64 batch, gint64 n_batches);

/* When to save. */
typedef enum {
  MUSTER_SAVE_EPOCH, /* at the end of each epoch */
  MUSTER_SAVE_EVERY_N,
  MUSTER_SAVE_NEVER, /* only on request */
} MusterSaveFreqKind;

typedef struct {
  MusterSaveFreqKind kind;
  gint64 n; /* batches, for EVERY_N */
} MusterSaveFreq;

/* "epoch", "never", or a number of batches. INVALID_ARGUMENT: "Invalid value for argument
 * `save_freq`." and what is expected. */
gboolean muster_save_freq_parse (const char *text, MusterSaveFreq *freq, GError **error);
/* The same for a struct. */
gboolean muster_save_freq_check (const MusterSaveFreq *freq, GError **error);

G_END_DECLS

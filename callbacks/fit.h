// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/error.h"

G_BEGIN_DECLS

/* A small loop over epochs and batches, with callbacks as Keras' fit () has them: for programs that
 * count in epochs. What keeps a state and comes back from it is such a callback
 * (callbacks/backup.h, callbacks/worker_training_state.h). One thread.
 *
 * The call's deadline (on muster_system_clock ()) and its nullable GCancellable are handed to every
 * function that it calls: what waits there comes back soon after either. */

/* The batch that is to be trained next; both count from 0. */
typedef struct {
  gint64 epoch;
  gint64 batch;
} MusterFitPosition;

/* Any verb may be missing; FALSE with an error ends the training. Called in the order of the
 * list. */
typedef struct {
  /* n_batches: in an epoch, 0 where nobody knows. *start is where training begins: the caller's, or
   * what a callback before has made of it. */
  gboolean (*train_begin) (MusterFitPosition *start, gint64 n_batches, gint64 deadline_us,
                           GCancellable *cancellable, gpointer user_data, GError **error);
  gboolean (*epoch_begin) (gint64 epoch, gint64 deadline_us, GCancellable *cancellable,
                           gpointer user_data, GError **error);
  /* batch is the last one that has been trained. */
  gboolean (*batch_end) (gint64 epoch, gint64 batch, gint64 deadline_us, GCancellable *cancellable,
                         gpointer user_data, GError **error);
  gboolean (*epoch_end) (gint64 epoch, gint64 deadline_us, GCancellable *cancellable,
                         gpointer user_data, GError **error);
  gboolean (*train_end) (gint64 deadline_us, GCancellable *cancellable, gpointer user_data,
                         GError **error);
  /* In the place of train_end, where training has ended with an error. */
  void (*train_failed) (const GError *failure, gpointer user_data);
  gpointer user_data;
} MusterFitCallback;

/* Trains n batches from at on. OUT_OF_RANGE: the epoch has no more. */
typedef gboolean (*MusterFitTrain) (const MusterFitPosition *at, gint64 n, gint64 deadline_us,
                                    GCancellable *cancellable, gpointer user_data, GError **error);

typedef struct {
  MusterFitTrain train;
  gpointer user_data;
  gint64 n_epochs;         /* the epoch to end before */
  gint64 n_batches;        /* in an epoch; 0: until train says OUT_OF_RANGE */
  gint64 batches_per_call; /* how many are trained between two batch_end; 0: 1 */
  MusterFitPosition start; /* where nothing is restored */
  const MusterFitCallback *callbacks;
  gsize n_callbacks;
} MusterFit;

/* Trains until the last epoch, deadline_us or a cancel, which it also looks at before each call of
 * train. *reached (nullable) gets the position after the last batch, also on failure.
 * INVALID_ARGUMENT for numbers below 0. */
gboolean muster_fit (const MusterFit *fit, MusterFitPosition *reached, gint64 deadline_us,
                     GCancellable *cancellable, GError **error);

/* The position after another: the next batch, or the next epoch's first where n_batches (0: not
 * known) are done. */
MusterFitPosition muster_fit_position_after (gint64 epoch, gint64 batch, gint64 n_batches);

/* When a state is saved. */
typedef enum {
  MUSTER_SAVE_EPOCH, /* at the end of each epoch */
  MUSTER_SAVE_EVERY_N,
  MUSTER_SAVE_NEVER, /* only when it is asked for */
} MusterSaveFreqKind;

typedef struct {
  MusterSaveFreqKind kind;
  gint64 n; /* batches, for EVERY_N */
} MusterSaveFreq;

/* "epoch", "never", or a number of batches. INVALID_ARGUMENT: "Invalid value for argument
 * `save_freq`." and what is expected. */
gboolean muster_save_freq_parse (const char *text, MusterSaveFreq *freq, GError **error);
/* The same for one that was put together. */
gboolean muster_save_freq_check (const MusterSaveFreq *freq, GError **error);

G_END_DECLS

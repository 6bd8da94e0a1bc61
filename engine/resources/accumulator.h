// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

#include <gio/gio.h>

G_BEGIN_DECLS

/* MusterAccumulator is TensorFlow's ConditionalAccumulator: it adds gradients up, drops those that
 * were computed for an older step than its own, and gives their mean or sum to whoever asked for so
 * many, in the order in which they asked; with that its step goes up by one and it is empty again.
 * Dense gradients are added element by element, sparse ones row by row. Errors are TensorFlow's
 * codes and words. Not counted: whoever keeps it says when it goes. Any thread. */

typedef struct _MusterAccumulator MusterAccumulator;

typedef struct {
  MusterDType dtype;
  gboolean is_sparse;
  gboolean is_sum;              /* else the mean */
  int n_dims;                   /* of the gradients; -1: any */
  gint64 dims[MUSTER_MAX_DIMS]; /* -1: any size */
} MusterAccumulatorKind;

MusterAccumulator *muster_accumulator_new (const MusterAccumulatorKind *kind);
void muster_accumulator_free (MusterAccumulator *self); /* nobody waits at it; accepts NULL */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterAccumulator, muster_accumulator_free)

MusterDType muster_accumulator_dtype (const MusterAccumulator *self);
gboolean muster_accumulator_is_sparse (const MusterAccumulator *self);
gint32 muster_accumulator_n_accumulated (MusterAccumulator *self);
void muster_accumulator_set_global_step (MusterAccumulator *self, gint64 step);

/* Adds a gradient of the accumulator's dtype. INVALID_ARGUMENT where its shape doesn't fit. One for
 * an older step is dropped without a word, its shape not looked at. */
gboolean muster_accumulator_apply (MusterAccumulator *self, gint64 local_step,
                                   MusterTensor *gradient, GError **error);

/* The same for rows: indices is int64; shape (int64) is that of all rows, NULL if it isn't known.
 */
gboolean muster_accumulator_apply_rows (MusterAccumulator *self, gint64 local_step,
                                        MusterTensor *indices, MusterTensor *values,
                                        MusterTensor *shape, GError **error);

/* What was accumulated: a dense gradient, or indices, values and shape. */
typedef struct {
  MusterTensor *parts[3]; /* (owned) NULL behind the last */
} MusterAccumulated;

void muster_accumulated_clear (MusterAccumulated *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterAccumulated, muster_accumulated_clear)

/* TRUE if there is enough and nobody asked before. FALSE without an error if there isn't. */
gboolean muster_accumulator_try_take (MusterAccumulator *self, gint32 n_required,
                                      MusterAccumulated *taken, GError **error);

/* Asks for it, under a name of the caller's own (any pointer). func is called once, in this call or
 * later, from any thread and without a lock, with what there is (transfer full) or an error
 * (transfer full). */
typedef void (*MusterAccumulatorFunc) (gpointer waiter, MusterAccumulated *taken, GError *error);
void muster_accumulator_take (MusterAccumulator *self, gint32 n_required, gpointer waiter,
                              MusterAccumulatorFunc func);

/* Asks no longer: func is called with CANCELLED, unless it was called already. NULL: everybody. */
void muster_accumulator_cancel (MusterAccumulator *self, gpointer waiter);

G_END_DECLS

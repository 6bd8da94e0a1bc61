// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

#include <gio/gio.h>

G_BEGIN_DECLS

/* MusterAccumulator is TensorFlow's ConditionalAccumulator. It adds gradients, drops those computed
 * for an older step than its own, and returns their mean or sum to callers that require a number of
 * them, in order of request; then its step increases by one and it is empty. Dense gradients are
 * added by element, sparse ones by row. Errors have TensorFlow's codes and texts. Not
 * reference-counted: the owner frees it. Any thread. */

typedef struct _MusterAccumulator MusterAccumulator;

typedef struct {
  MusterDType dtype;
  gboolean is_sparse;
  gboolean is_sum;              /* otherwise the mean */
  int n_dims;                   /* of the gradients; -1: any */
  gint64 dims[MUSTER_MAX_DIMS]; /* -1: any size */
} MusterAccumulatorKind;

MusterAccumulator *muster_accumulator_new (const MusterAccumulatorKind *kind);
void muster_accumulator_free (MusterAccumulator *self); /* no caller may be waiting; accepts NULL */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterAccumulator, muster_accumulator_free)

MusterDType muster_accumulator_dtype (const MusterAccumulator *self);
gboolean muster_accumulator_is_sparse (const MusterAccumulator *self);
gint32 muster_accumulator_n_accumulated (MusterAccumulator *self);
void muster_accumulator_set_global_step (MusterAccumulator *self, gint64 step);

/* Adds a gradient of the accumulator's dtype. INVALID_ARGUMENT if its shape doesn't fit. A gradient
 * for an older step is ignored, without checking its shape. */
gboolean muster_accumulator_apply (MusterAccumulator *self, gint64 local_step,
                                   MusterTensor *gradient, GError **error);

/* The same for rows: indices is int64; shape (int64) is the dense shape, NULL if unknown. */
gboolean muster_accumulator_apply_rows (MusterAccumulator *self, gint64 local_step,
                                        MusterTensor *indices, MusterTensor *values,
                                        MusterTensor *shape, GError **error);

/* The result: a dense gradient, or indices, values and shape. */
typedef struct {
  MusterTensor *parts[3]; /* (owned) unused ones are NULL */
} MusterAccumulated;

void muster_accumulated_clear (MusterAccumulated *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterAccumulated, muster_accumulated_clear)

/* TRUE if there are enough and no caller waits. FALSE without an error if not. */
gboolean muster_accumulator_try_take (MusterAccumulator *self, gint32 n_required,
                                      MusterAccumulated *taken, GError **error);

/* Requests the result, identified by waiter (any pointer). func is called once, in this call or
 * later, from any thread and without a lock, with the result (transfer full) or an error (transfer
 * full). */
typedef void (*MusterAccumulatorFunc) (gpointer waiter, MusterAccumulated *taken, GError *error);
void muster_accumulator_take (MusterAccumulator *self, gint32 n_required, gpointer waiter,
                              MusterAccumulatorFunc func);

/* Cancels a request: func is called with CANCELLED, unless it was called already. NULL: all
 * requests. */
void muster_accumulator_cancel (MusterAccumulator *self, gpointer waiter);

G_END_DECLS

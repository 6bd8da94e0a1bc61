// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

G_BEGIN_DECLS

/* MusterBatches returns the rows of arrays in batches. The order depends only on the seed and the
 * epoch: each row at most once in an epoch, reshuffled for the next. The position is a number, so a
 * resumed job can continue there. Not thread-safe. */

typedef struct _MusterBatches MusterBatches;

/* All arrays must have the same number of rows (their first dimension), and the batch size must be
 * between 1 and that number; otherwise INVALID_ARGUMENT. The arrays are referenced. */
MusterBatches *muster_batches_new (MusterTensor *const *arrays, gsize n_arrays, gint64 batch_size,
                                   guint64 seed, GError **error);
void muster_batches_free (MusterBatches *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterBatches, muster_batches_free)

/* The next batch: one tensor for each array (transfer full). A batch never spans two epochs: the
 * rows that remain are left out of that epoch. */
void muster_batches_next (MusterBatches *self, MusterTensor **batch);

/* The number of batches in an epoch. */
gint64 muster_batches_per_epoch (MusterBatches *self);

/* The number of batches returned since the start. Seeking to a position has the same effect as
 * reading up to it. */
gint64 muster_batches_position (MusterBatches *self);
void muster_batches_seek (MusterBatches *self, gint64 position);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

G_BEGIN_DECLS

/**
 * MusterBatches:
 *
 * Returns the rows of arrays in batches, and values without rows with each. The order depends only
 * on the seed and the epoch: each row at most once in an epoch, reshuffled for the next. The
 * position is a number, so a resumed job can continue there. Reference-counted; not thread-safe.
 */
typedef struct _MusterBatches MusterBatches;

#define MUSTER_TYPE_BATCHES (muster_batches_get_type ())
GType muster_batches_get_type (void);

/**
 * muster_batches_new:
 * @arrays: (array length=n_arrays): arrays with the same number of rows (their first dimension),
 *   and scalars, which are the same in each batch; referenced. None: all are added as constants
 * @n_arrays: the number of @arrays
 * @batch_size: the rows of a batch, from 1 to the number of rows; of no meaning if all are scalars
 * @seed: of the order
 *
 * Batches of arrays. INVALID_ARGUMENT for other arrays and sizes.
 *
 * Returns: (transfer full): the batches, at position 0
 */
MusterBatches *muster_batches_new (MusterTensor *const *arrays, gsize n_arrays, gint64 batch_size,
                                   guint64 seed, GError **error);

/**
 * muster_batches_add_constant:
 * @self: the batches, at position 0
 * @array: an array of any shape; referenced
 *
 * Adds an array that is the same in each batch, whatever its shape, behind those that are there: a
 * list of rates. Its first dimension isn't rows.
 */
void muster_batches_add_constant (MusterBatches *self, MusterTensor *array);

/**
 * muster_batches_ref:
 * @self: the batches
 *
 * Adds a reference.
 *
 * Returns: (transfer full): @self
 */
MusterBatches *muster_batches_ref (MusterBatches *self);

/**
 * muster_batches_free:
 * @self: (transfer full) (nullable): the batches
 *
 * Drops a reference.
 */
void muster_batches_free (MusterBatches *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterBatches, muster_batches_free)

/**
 * muster_batches_next: (skip)
 * @self: the batches
 * @batch: where to return one tensor for each array, owned by the caller
 *
 * The next batch. A batch never spans two epochs: the rows that remain are left out of that epoch.
 */
void muster_batches_next (MusterBatches *self, MusterTensor **batch);

/**
 * muster_batches_next_list:
 * @self: the batches
 *
 * muster_batches_next () for other languages.
 *
 * Returns: (transfer container) (element-type MusterTensor): one tensor for each array
 */
GPtrArray *muster_batches_next_list (MusterBatches *self);

/**
 * muster_batches_per_epoch:
 * @self: the batches
 *
 * How many batches an epoch has.
 *
 * Returns: the rows by the batch size, rounded down; 0 if all arrays are scalars: then there is no
 *   epoch
 */
gint64 muster_batches_per_epoch (MusterBatches *self);

/**
 * muster_batches_array:
 * @self: the batches
 * @index: from 0
 *
 * One of the arrays.
 *
 * Returns: (transfer none) (nullable): the array; %NULL from their number on
 */
MusterTensor *muster_batches_array (MusterBatches *self, gsize index);

/**
 * muster_batches_position:
 * @self: the batches
 *
 * How many batches were returned since the start.
 *
 * Returns: the position
 */
gint64 muster_batches_position (MusterBatches *self);

/**
 * muster_batches_seek:
 * @self: the batches
 * @position: the number of batches before the next
 *
 * Sets the position, with the same effect as reading up to it.
 */
void muster_batches_seek (MusterBatches *self, gint64 position);

G_END_DECLS

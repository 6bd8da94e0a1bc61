// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

G_BEGIN_DECLS

/* MusterBatches deals rows of arrays in batches, in an order that only its seed and the epoch
 * decide: a row at most once in an epoch, reshuffled from one to the next. The position is a
 * number, so a resumed job goes on where it was. Not thread-safe. */

typedef struct _MusterBatches MusterBatches;

/* arrays all have the same number of rows (their first dimension); INVALID_ARGUMENT otherwise, and
 * for a batch size that isn't between 1 and that number. They are kept. */
MusterBatches *muster_batches_new (MusterTensor *const *arrays, gsize n_arrays, gint64 batch_size,
                                   guint64 seed, GError **error);
void muster_batches_free (MusterBatches *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterBatches, muster_batches_free)

/* The next batch: one tensor for each array (transfer full). A batch never spans two epochs: rows
 * that don't fill one are left out of that epoch. */
void muster_batches_next (MusterBatches *self, MusterTensor **batch);

/* How many batches an epoch has. */
gint64 muster_batches_per_epoch (MusterBatches *self);

/* How many batches were dealt since the start; seeking there is the same as dealing them. */
gint64 muster_batches_position (MusterBatches *self);
void muster_batches_seek (MusterBatches *self, gint64 position);

G_END_DECLS

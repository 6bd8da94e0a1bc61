// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/position/batches.h"

G_BEGIN_DECLS

/* Each array is fed to one tensor. */
gboolean muster_batches_check_feeds (MusterBatches *self /* nullable */, gsize n_feeds,
                                     GError **error);

/* The array of the index-th feed (nullable) (not owned), and the rows of it that a step is fed
 * with; -1: all of it. */
const MusterTensor *muster_batches_fed (const MusterBatches *self, gsize index, gint64 *n_rows);

/* The rows from first on, a batch of them at most, in their own order; the position stays. Returns
 * their number; 0, and nothing in batch, behind the last, and if no array has rows. */
gint64 muster_batches_rows (const MusterBatches *self, gint64 first, MusterTensor **batch);

G_END_DECLS

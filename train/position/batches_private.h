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

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_index_private.h"
#include "checkpoint/format/v1_files_private.h"

G_BEGIN_DECLS

/* V1 checkpoints, which TensorFlow wrote before 0.12 and still reads: LevelDB tables whose first
 * entry lists the tensors, and whose others are messages with the values of one each. PREFIX is the
 * file, or names all of them: "model.ckpt-7-?????-of-00002". They are read whole and never written.
 */

/* Reads and checks all of it. *data (transfer full) has what would be the only data file of an
 * index with the same tensors. DATA_LOSS; RESOURCE_EXHAUSTED for more than 2 GiB. */
MusterBundleIndex *muster_v1_load (MusterStorage *storage, const char *prefix, GBytes **data,
                                   GError **error);

/* The index of a checkpoint of either format; *data is left as it is for one of today's. */
MusterBundleIndex *muster_any_index_load (MusterStorage *storage, const char *prefix, GBytes **data,
                                          GError **error);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/**
 * MusterCheckpointOverview:
 * @when_us: when its index was written, in microseconds since 1970
 * @bytes: the total size of its files: index, data and meta graph
 * @n_shards: the number of its data files
 * @n_tensors: the number of its tensors
 *
 * Information about a checkpoint from its files, without reading tensors.
 */
typedef struct {
  gint64 when_us;
  guint64 bytes;
  gint32 n_shards;
  gsize n_tensors;
} MusterCheckpointOverview;

/**
 * muster_checkpoint_inspect:
 * @storage: (nullable): where; `NULL`: local files
 * @prefix: a checkpoint
 * @overview: (out caller-allocates): what was found; on failure, what was found before
 * @error: return location for an error
 *
 * Reads and checks the index, and checks that every data file exists with the size that the index
 * requires. Fast for any size. `NOT_FOUND` or `DATA_LOSS` if something is missing or damaged.
 *
 * Returns: `TRUE` if the checkpoint is complete
 */
gboolean muster_checkpoint_inspect (MusterStorage *storage, const char *prefix,
                                    MusterCheckpointOverview *overview, GError **error);

/**
 * muster_checkpoint_check_meta_graph:
 * @storage: (nullable): where; `NULL`: local files
 * @prefix: a checkpoint
 * @error: return location for an error
 *
 * Checks `PREFIX.meta`, which contains no checksum, against the directory's side file. `DATA_LOSS`
 * if it was changed.
 *
 * Returns: `TRUE` if it is as it was written, and if there is nothing to compare with: no meta
 *   graph, no readable side file, or one that describes another checkpoint with that name (its sum
 *   of the index differs)
 */
gboolean muster_checkpoint_check_meta_graph (MusterStorage *storage, const char *prefix,
                                             GError **error);

G_END_DECLS

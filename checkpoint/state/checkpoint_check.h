// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/* Information about a checkpoint from its files, without reading tensors. */
typedef struct {
  gint64 when_us; /* microseconds since 1970; when its index was written */
  guint64 bytes;  /* total size of its files: index, data and meta graph */
  gint32 n_shards;
  gsize n_tensors;
} MusterCheckpointOverview;

/* Reads and checks the index, and checks that every data file exists with the size that the index
 * requires. Fast for any size. FALSE with NOT_FOUND or DATA_LOSS; overview then has what was found
 * before. storage (nullable): local files. */
gboolean muster_checkpoint_inspect (MusterStorage *storage, const char *prefix,
                                    MusterCheckpointOverview *overview, GError **error);

/* Checks PREFIX.meta, which contains no checksum, against the side file's sum
 * (checkpoint_record.h). FALSE with DATA_LOSS if it was changed. TRUE also if there is nothing to
 * compare with: no meta graph, no readable side file, or one that describes another checkpoint with
 * that name (its sum of the index differs). storage (nullable): local files. */
gboolean muster_checkpoint_check_meta_graph (MusterStorage *storage, const char *prefix,
                                             GError **error);

G_END_DECLS

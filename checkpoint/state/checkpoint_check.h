// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/* What the files of a checkpoint say without a tensor being read. */
typedef struct {
  gint64 when_us; /* when its index was written, since 1970 */
  guint64 bytes;  /* of its files: index, data and, where there is one, the meta graph */
  gint32 n_shards;
  gsize n_tensors;
} MusterCheckpointOverview;

/* Reads and checks the index, and whether every data file is there and as long as the index wants
 * it: quick, whatever the size. FALSE with NOT_FOUND or DATA_LOSS, and look filled as far as it
 * came. storage NULL: local files. */
gboolean muster_checkpoint_inspect (MusterStorage *storage, const char *prefix,
                                    MusterCheckpointOverview *overview, GError **error);

/* Whether PREFIX.meta, which has no checksum inside, is as it was saved: compared with the side
 * file's sum (checkpoint_record.h). FALSE with DATA_LOSS where it isn't. TRUE also where there is
 * nothing to compare: no meta graph, no side file that can be read, or one that tells of another
 * checkpoint of that name (its sum of the index isn't this index's). storage NULL: local files. */
gboolean muster_checkpoint_check_meta_graph (MusterStorage *storage, const char *prefix,
                                             GError **error);

G_END_DECLS

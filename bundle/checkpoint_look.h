// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bundle/storage.h"

G_BEGIN_DECLS

/* What the files of a checkpoint say without a tensor being read. */
typedef struct {
  gint64 when_us; /* when its index was written, since 1970 */
  guint64 bytes;  /* index and data files */
  gint32 n_shards;
  gsize n_tensors;
} MusterCheckpointLook;

/* Reads and checks the index, and whether every data file is there and as long as the index wants
 * it: quick, whatever the size. FALSE with NOT_FOUND or DATA_LOSS, and look filled as far as it
 * came. storage NULL: local files. */
gboolean muster_checkpoint_look (MusterStorage *storage, const char *prefix,
                                 MusterCheckpointLook *look, GError **error);

G_END_DECLS

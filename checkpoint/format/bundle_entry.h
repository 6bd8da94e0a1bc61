// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

G_BEGIN_DECLS

/* What the reader of a checkpoint, its index and its data files share. */

/* One tensor of the index. */
typedef struct {
  const char *name;
  MusterDType dtype;
  int n_dims;
  const gint64 *dims;
  gint32 shard;
  gint64 offset;
  gint64 size;        /* bytes in the data file */
  guint32 crc32c;     /* masked */
  gboolean is_sliced; /* the whole of a partitioned variable: its bytes lie in its slices */
} MusterBundleEntry;

/* How far something long has come, in bytes. It may be called on any thread, on one at a time, and
 * done never goes back; what it does should be short. */
typedef void (*MusterBundleProgress) (guint64 done, guint64 total, gpointer user_data);

G_END_DECLS

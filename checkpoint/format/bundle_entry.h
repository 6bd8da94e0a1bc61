// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

G_BEGIN_DECLS

/* What the reader, the index and the data files of a checkpoint share. */

/* A tensor in the index. */
typedef struct {
  const char *name;
  MusterDType dtype;
  int n_dims;
  const gint64 *dims;
  gint32 shard;
  gint64 offset;
  gint64 size;        /* bytes in the data file */
  guint32 crc32c;     /* masked */
  gboolean is_sliced; /* a partitioned variable: its bytes are in its slices */
} MusterBundleEntry;

/* Reports the progress of a long operation, in bytes. It is called from any thread, one call at a
 * time, with done never decreasing. It should return quickly. */
typedef void (*MusterBundleProgress) (guint64 done, guint64 total, gpointer user_data);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/edit/edit_work_private.h"
#include "checkpoint/format/bundle_data_private.h"

G_BEGIN_DECLS

/* Copies the data files of a checkpoint byte for byte, and checks every tensor's sum on the way.
 * The index is the caller's: written last, it makes the copy a checkpoint. */
typedef struct {
  MusterEditWork *work;
  const char *from;
  const MusterBundleIndex *index; /* of from */
  const char *to;                 /* a prefix */
  gint32 n_shards;                /* of to: the index's or more, the others empty; 0: the index's */
  gboolean resumes;               /* a file that is there and whole isn't copied again */
  /* results */
  gint32 n_done;      /* files that are there */
  guint64 bytes;      /* of all files */
  guint64 kept_bytes; /* of those that were there */
  gboolean is_source; /* what failed is the reading, or what was read is damaged */
} MusterDataCopy;

gboolean muster_edit_copy_data (MusterDataCopy *self, GError **error);

/* The size of a checkpoint's data files. */
gboolean muster_edit_measure (MusterStorage *storage, const char *prefix, gint32 n_shards,
                              guint64 *bytes, GError **error);

/* Checks what the data files' sums don't: that the index has no flaw, and that all slices of each
 * partitioned variable are there. */
gboolean muster_edit_check_index (MusterBundleData *data, const MusterBundleIndex *index,
                                  const char *prefix, GError **error);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

G_BEGIN_DECLS

/**
 * MusterBundleEntry:
 * @name: the tensor's name in the checkpoint
 * @dtype: its type
 * @n_dims: its number of dimensions
 * @dims: (skip): its shape, @n_dims sizes; in other languages [method@BundleEntry.shape]
 * @shard: the data file that has it, counted from 0
 * @offset: where it begins in that file, in bytes
 * @size: its bytes in the data file
 * @crc32c: the masked CRC32C of these bytes
 * @is_sliced: `TRUE` for a partitioned variable: its bytes are in its slices
 *
 * A tensor in a checkpoint's index, as TensorFlow's `BundleEntryProto` describes it. Nothing of its
 * bytes has been read.
 *
 * An entry that a reader returns is the reader's: it is valid as long as the reader.
 */
typedef struct {
  const char *name;
  MusterDType dtype;
  int n_dims;
  const gint64 *dims;
  gint32 shard;
  gint64 offset;
  gint64 size;
  guint32 crc32c;
  gboolean is_sliced;
} MusterBundleEntry;

#define MUSTER_TYPE_BUNDLE_ENTRY (muster_bundle_entry_get_type ())
GType muster_bundle_entry_get_type (void);

/**
 * muster_bundle_entry_shape:
 * @self: an entry
 * @n_dims: (out): the number of dimensions
 *
 * The shape of the whole tensor, for languages that need an array's length with it.
 *
 * Returns: (array length=n_dims) (transfer full): the sizes of its dimensions
 */
gint64 *muster_bundle_entry_shape (const MusterBundleEntry *self, int *n_dims);

/**
 * MusterBundleProgress:
 * @done: bytes that are done
 * @total: bytes in all
 * @user_data: the caller's
 *
 * Reports the progress of a long operation, in bytes. It is called from any thread, one call at a
 * time, with @done never decreasing. It should return quickly.
 */
typedef void (*MusterBundleProgress) (guint64 done, guint64 total, gpointer user_data);

G_END_DECLS

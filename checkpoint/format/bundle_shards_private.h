// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_index_private.h"
#include "checkpoint/format/bundle_writer_private.h"

G_BEGIN_DECLS

/* MusterShards writes the data files of a checkpoint. Tensors are first noted by reference. Then
 * all are written under temporary names (in a store that can't rename under free names of their
 * own), to one data file or to several in parallel. Freeing it removes the files unless
 * muster_shards_keep () was called. One thread; writing uses more. */

typedef struct _MusterShards MusterShards;

/* Creates the first data file, so that an unwritable directory is reported at once. */
MusterShards *muster_shards_new (MusterStorage *storage, const char *prefix, GError **error);
void muster_shards_free (MusterShards *self);

/* Number of data files, at most 8. 0: chosen by size and number of processors. */
void muster_shards_set_number (MusterShards *self, guint n);

/* Notes the tensor of the index's entry number `entry`. */
void muster_shards_note (MusterShards *self, guint entry, MusterTensor *tensor);
/* The same for one that comes in parts; its dims are the entry's. */
void muster_shards_note_parts (MusterShards *self, guint entry, const MusterBundleParts *parts);

/* Notes the tensors of the index's first entries. */
void muster_shards_note_all (MusterShards *self, MusterTensor *const *tensors, guint n);

/* Assigns the entries' places, reserves space, writes, computes checksums and syncs. May be called
 * once. A full store is G_FILE_ERROR_NOSPC, with the space needed, the free space and the
 * directory. */
gboolean muster_shards_write (MusterShards *self, MusterBundleIndex *index,
                              GCancellable *cancellable, GError **error);

/* Paths of the data files, by shard, NULL-terminated. */
const char *const *muster_shards_paths (MusterShards *self);

/* Keeps the files: they are a checkpoint's now. */
void muster_shards_keep (MusterShards *self);

G_END_DECLS

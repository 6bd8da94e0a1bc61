// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_index.h"

G_BEGIN_DECLS

/* MusterShards is the data of a checkpoint on its way to the disk: first the tensors are noted, a
 * reference each, then all of them are written, in one data file or in several at once, under
 * temporary names. What isn't kept is taken away when it is freed. One thread, but for the writing,
 * which uses some of its own. */

typedef struct _MusterShards MusterShards;

/* Begins the first data file: a directory that can't be written to is known at once. */
MusterShards *muster_shards_new (MusterStorage *storage, const char *prefix, GError **error);
void muster_shards_free (MusterShards *self);

/* At most 8; 0: by size and processors. */
void muster_shards_set_number (MusterShards *self, guint n);

/* Notes the tensor of the index's entry of that number. */
void muster_shards_note (MusterShards *self, guint entry, MusterTensor *tensor);

/* Notes the tensors of the index's first entries. */
void muster_shards_note_all (MusterShards *self, MusterTensor *const *tensors, guint n);

/* Gives every entry its place, takes the room for all of it, writes, checksums and syncs. Once. A
 * full store is G_FILE_ERROR_NOSPC with how much is needed, how much is free, and where. */
gboolean muster_shards_write (MusterShards *self, MusterBundleIndex *index,
                              GCancellable *cancellable, GError **error);

/* Where the data files lie, by shard, NULL-terminated. */
const char *const *muster_shards_paths (MusterShards *self);

/* They have another name now. */
void muster_shards_keep (MusterShards *self);

G_END_DECLS

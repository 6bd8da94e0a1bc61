// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_entry.h"
#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/* MusterBundleReader reads a V2 checkpoint, PREFIX.index and PREFIX.data-*-of-*, as TensorFlow and
 * muster write it (docs/checkpoint-format.md). Opening reads and checks the index alone; a tensor's
 * bytes are read, and their CRC32C checked, when it is asked for. Damage is DATA_LOSS and names the
 * file and the tensor; a checkpoint or tensor that isn't there is NOT_FOUND. Nothing in a file is
 * trusted: a size is checked against the file before memory is taken. One reader may be used by
 * several threads at once. */

typedef struct _MusterBundleReader MusterBundleReader;

/* storage NULL: local files. */
MusterBundleReader *muster_bundle_reader_open (MusterStorage *storage, const char *prefix,
                                               GError **error);
MusterBundleReader *muster_bundle_reader_ref (MusterBundleReader *self);
void muster_bundle_reader_unref (MusterBundleReader *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterBundleReader, muster_bundle_reader_unref)

const char *muster_bundle_reader_prefix (MusterBundleReader *self);
gint32 muster_bundle_reader_n_shards (MusterBundleReader *self);

/* The tensors in name order, the slices of partitioned ones left out; borrowed. */
gsize muster_bundle_reader_n_entries (MusterBundleReader *self);
const MusterBundleEntry *muster_bundle_reader_entry (MusterBundleReader *self, gsize index);

/* All of them, n pointers (transfer container). */
const MusterBundleEntry **muster_bundle_reader_entries (MusterBundleReader *self, gsize *n);
/* The entry of a name, or NULL. */
const MusterBundleEntry *muster_bundle_reader_find (MusterBundleReader *self, const char *name);

/* Of a tensor that is_sliced: how many slices it lies in, and the i-th of them, "0,3:-" (transfer
 * full), with the data file that holds it (-1 where the index lacks it). */
gsize muster_bundle_reader_n_slices (MusterBundleReader *self, const char *name);
char *muster_bundle_reader_slice (MusterBundleReader *self, const char *name, gsize i,
                                  gint32 *shard);

/* Reads a tensor whole (its slices put together) and checks it. */
MusterTensor *muster_bundle_reader_read (MusterBundleReader *self, const char *name,
                                         GError **error);

/* Reads a part of a tensor: slice (nullable) is TensorFlow's text, "0,4:-" (start,length for each
 * dimension, '-' for all of it; the shape may stand before it: "10 4 0,4:-"). NULL or "" reads it
 * whole. */
MusterTensor *muster_bundle_reader_read_slice (MusterBundleReader *self, const char *name,
                                               const char *slice, GError **error);

/* Reads n tensors, or parts of them, at once: tensors has room for n and is filled with all of them
 * (transfer full), or left alone. slices (nullable) are texts as above, each nullable. */
gboolean muster_bundle_reader_read_many (MusterBundleReader *self, const char *const *names,
                                         const char *const *slices, gsize n, MusterTensor **tensors,
                                         GCancellable *cancellable, GError **error);

/* The same, of entries that muster_bundle_reader_find () or _entry () of this reader told; slices
 * (nullable) as above. */
gboolean muster_bundle_reader_read_entries (MusterBundleReader *self,
                                            const MusterBundleEntry *const *entries,
                                            const char *const *slices, gsize n,
                                            MusterTensor **tensors, GCancellable *cancellable,
                                            GError **error);

/* Reads every byte that belongs to the checkpoint, through small buffers: TRUE if all are as they
 * were written. Each tensor has its checksum, whatever its type; what lies between tensors, or
 * behind the last of a file, must be zeros; no tensor lies over another; slices are complete.
 * Damage in a part of the index that nobody reads counts as well. A bit that has flipped is found
 * wherever it is. A data file that no tensor lies in isn't looked at. progress (nullable) is told
 * how far it is. */
gboolean muster_bundle_reader_verify (MusterBundleReader *self, MusterBundleProgress progress,
                                      gpointer user_data, GCancellable *cancellable,
                                      GError **error);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_entry.h"
#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/* MusterBundleReader reads a V2 checkpoint of TensorFlow's or muster's: PREFIX.index and
 * PREFIX.data-*-of-* (docs/checkpoint-format.md). Opening reads and checks only the index. A
 * tensor's bytes are read, and their CRC32C checked, on request. Damage is DATA_LOSS, which names
 * the file and the tensor; a missing checkpoint or tensor is NOT_FOUND. A size in the index is
 * checked against the file before memory is allocated. Any thread may use a reader. */

typedef struct _MusterBundleReader MusterBundleReader;

/* storage (nullable): local files. */
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

/* For a tensor that is_sliced: the number of its slices, and the i-th of them as "0,3:-" (transfer
 * full), with the shard that contains it (-1 if the index lacks it). */
gsize muster_bundle_reader_n_slices (MusterBundleReader *self, const char *name);
char *muster_bundle_reader_slice (MusterBundleReader *self, const char *name, gsize i,
                                  gint32 *shard);

/* Reads and checks a whole tensor, slices joined. */
MusterTensor *muster_bundle_reader_read (MusterBundleReader *self, const char *name,
                                         GError **error);

/* Reads a part of a tensor. slice (nullable) is TensorFlow's text "0,4:-": start,length for each
 * dimension, '-' for all of it, optionally after the shape: "10 4 0,4:-". NULL or "" reads the
 * whole tensor. */
MusterTensor *muster_bundle_reader_read_slice (MusterBundleReader *self, const char *name,
                                               const char *slice, GError **error);

/* Reads n tensors, or parts of them. tensors has n elements: all are set (transfer full), or none
 * on failure. slices (nullable) has n texts as above, each nullable. */
gboolean muster_bundle_reader_read_many (MusterBundleReader *self, const char *const *names,
                                         const char *const *slices, gsize n, MusterTensor **tensors,
                                         GCancellable *cancellable, GError **error);

/* The same for entries that this reader's muster_bundle_reader_find () or _entry () returned.
 * slices (nullable) as above. */
gboolean muster_bundle_reader_read_entries (MusterBundleReader *self,
                                            const MusterBundleEntry *const *entries,
                                            const char *const *slices, gsize n,
                                            MusterTensor **tensors, GCancellable *cancellable,
                                            GError **error);

/* Reads every byte of the checkpoint, through small buffers, and returns TRUE if all are as they
 * were written. It checks the checksum of each tensor of any type, that the bytes between tensors
 * and at the end of a file are zero, that tensors don't overlap, that slices are complete, and all
 * parts of the index. So any changed bit is found. A data file without tensors isn't read. progress
 * (nullable) is called during the work. */
gboolean muster_bundle_reader_verify (MusterBundleReader *self, MusterBundleProgress progress,
                                      gpointer user_data, GCancellable *cancellable,
                                      GError **error);

G_END_DECLS

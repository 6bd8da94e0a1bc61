// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_entry.h"
#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/**
 * MusterBundleReader:
 *
 * Reads a V2 checkpoint of TensorFlow's or muster's: `PREFIX.index` and `PREFIX.data-*-of-*`
 * (docs/checkpoint-format.md), like `tf.train.load_checkpoint`.
 *
 * Opening reads and checks only the index. A tensor's bytes are read, and their CRC32C checked, on
 * request. Damage is DATA_LOSS, which names the file and the tensor; a missing
 * checkpoint or tensor is `NOT_FOUND`; a tensor of a type that muster doesn't support is
 * `UNIMPLEMENTED`. A size in the index is checked against the file before memory is allocated.
 *
 * Reference-counted. Any thread may use a reader.
 */
typedef struct _MusterBundleReader MusterBundleReader;

#define MUSTER_TYPE_BUNDLE_READER (muster_bundle_reader_get_type ())
GType muster_bundle_reader_get_type (void);

/**
 * muster_bundle_reader_open: (constructor)
 * @storage: (nullable): where its files are; `NULL`: local files
 * @prefix: the checkpoint, such as `run/model.ckpt-100`
 * @error: return location for an error
 *
 * Opens a checkpoint and reads its index.
 *
 * Returns: (transfer full): the reader
 */
MusterBundleReader *muster_bundle_reader_open (MusterStorage *storage, const char *prefix,
                                               GError **error);

/**
 * muster_bundle_reader_ref:
 * @self: a reader
 *
 * Takes another reference.
 *
 * Returns: (transfer full): the same reader
 */
MusterBundleReader *muster_bundle_reader_ref (MusterBundleReader *self);

/**
 * muster_bundle_reader_unref:
 * @self: (transfer full) (nullable): a reader
 *
 * Drops a reference. The last one closes the files.
 */
void muster_bundle_reader_unref (MusterBundleReader *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterBundleReader, muster_bundle_reader_unref)

/**
 * muster_bundle_reader_prefix:
 * @self: a reader
 *
 * The prefix that it was opened with.
 *
 * Returns: (transfer none): the checkpoint's prefix
 */
const char *muster_bundle_reader_prefix (MusterBundleReader *self);

/**
 * muster_bundle_reader_n_shards:
 * @self: a reader
 *
 * The number of data files that the index names.
 *
 * Returns: their number
 */
gint32 muster_bundle_reader_n_shards (MusterBundleReader *self);

/**
 * muster_bundle_reader_n_entries:
 * @self: a reader
 *
 * The number of tensors. A partitioned variable counts once, whatever its number of slices.
 *
 * Returns: the number of entries
 */
gsize muster_bundle_reader_n_entries (MusterBundleReader *self);

/**
 * muster_bundle_reader_entry:
 * @self: a reader
 * @index: below [method@BundleReader.n_entries]
 *
 * A tensor by its place in the order of names, which is that of their bytes.
 *
 * Returns: (transfer none): the entry, valid as long as the reader
 */
const MusterBundleEntry *muster_bundle_reader_entry (MusterBundleReader *self, gsize index);

/**
 * muster_bundle_reader_entries: (skip)
 * @self: a reader
 * @n: (out): their number
 *
 * All tensors in name order; in other languages [method@BundleReader.names] and
 * [method@BundleReader.find].
 *
 * Returns: (array length=n) (transfer container): the entries, valid as long as the reader
 */
const MusterBundleEntry **muster_bundle_reader_entries (MusterBundleReader *self, gsize *n);

/**
 * muster_bundle_reader_names:
 * @self: a reader
 *
 * The names of all tensors, in the order of their bytes, as `tf.train.list_variables` gives them.
 * The slices of partitioned variables aren't among them.
 *
 * Returns: (array zero-terminated=1) (transfer full): the names
 */
char **muster_bundle_reader_names (MusterBundleReader *self);

/**
 * muster_bundle_reader_find:
 * @self: a reader
 * @name: a tensor's name
 *
 * The entry of a name.
 *
 * Returns: (transfer none) (nullable): the entry, valid as long as the reader; `NULL` if the
 *   checkpoint has no such tensor
 */
const MusterBundleEntry *muster_bundle_reader_find (MusterBundleReader *self, const char *name);

/**
 * muster_bundle_reader_n_slices:
 * @self: a reader
 * @name: a tensor's name
 *
 * The number of slices of a partitioned variable.
 *
 * Returns: the number; 0 for a tensor that isn't sliced, and for a name that isn't there
 */
gsize muster_bundle_reader_n_slices (MusterBundleReader *self, const char *name);

/**
 * muster_bundle_reader_slice:
 * @self: a reader
 * @name: the name of a partitioned variable
 * @i: below [method@BundleReader.n_slices]
 * @shard: (out): the data file that has it; -1 if the index lacks it
 *
 * A slice of a partitioned variable, as the text `0,3:-`: start and length for each dimension, `-`
 * for all of it.
 *
 * Returns: (transfer full): the slice
 */
char *muster_bundle_reader_slice (MusterBundleReader *self, const char *name, gsize i,
                                  gint32 *shard);

/**
 * muster_bundle_reader_read:
 * @self: a reader
 * @name: a tensor's name
 * @error: return location for an error
 *
 * Reads and checks a whole tensor, with its slices joined.
 *
 * Returns: (transfer full): the tensor
 */
MusterTensor *muster_bundle_reader_read (MusterBundleReader *self, const char *name,
                                         GError **error);

/**
 * muster_bundle_reader_read_slice:
 * @self: a reader
 * @name: a tensor's name
 * @slice: (nullable): TensorFlow's text `0,4:-`: start,length for each dimension, `-` for all of
 *   it, optionally after the shape: `10 4 0,4:-`; `NULL` or empty: the whole tensor
 * @error: return location for an error
 *
 * Reads a part of a tensor. `INVALID_ARGUMENT` if the slice isn't inside its shape.
 *
 * Returns: (transfer full): the part
 */
MusterTensor *muster_bundle_reader_read_slice (MusterBundleReader *self, const char *name,
                                               const char *slice, GError **error);

/**
 * muster_bundle_reader_read_many: (skip)
 * @self: a reader
 * @names: (array length=n): names of tensors
 * @slices: (array length=n) (nullable): a slice of each, as for [method@BundleReader.read_slice];
 *   `NULL` entries: the whole tensor
 * @n: their number
 * @tensors: (array length=n): set to the tensors (transfer full): all of them, or none on failure
 * @cancellable: (nullable): stops the reading
 * @error: return location for an error
 *
 * Reads several tensors, or parts of them, with the files' reads joined and in parallel. In other
 * languages [method@BundleReader.read_all].
 *
 * Returns: `TRUE` if all were read
 */
gboolean muster_bundle_reader_read_many (MusterBundleReader *self, const char *const *names,
                                         const char *const *slices, gsize n, MusterTensor **tensors,
                                         GCancellable *cancellable, GError **error);

/**
 * muster_bundle_reader_read_all:
 * @self: a reader
 * @names: (array zero-terminated=1): names of tensors
 * @slices: (array zero-terminated=1) (nullable): a slice of each, as for
 *   [method@BundleReader.read_slice]; an empty text reads the whole tensor; `NULL`: all whole
 * @n_tensors: (out): their number
 * @cancellable: (nullable): stops the reading
 * @error: return location for an error
 *
 * [method@BundleReader.read_many] for languages that can't fill an array. `INVALID_ARGUMENT` if
 * there aren't as many slices as names.
 *
 * Returns: (array length=n_tensors) (transfer full): the tensors, in the order of @names
 */
MusterTensor **muster_bundle_reader_read_all (MusterBundleReader *self, const char *const *names,
                                              const char *const *slices, gsize *n_tensors,
                                              GCancellable *cancellable, GError **error);

/**
 * muster_bundle_reader_read_entries: (skip)
 * @self: a reader
 * @entries: (array length=n): what this reader's [method@BundleReader.find] or
 *   [method@BundleReader.entry] returned, no copies
 * @slices: (array length=n) (nullable): as for [method@BundleReader.read_many]
 * @n: their number
 * @tensors: (array length=n): set to the tensors (transfer full): all of them, or none on failure
 * @cancellable: (nullable): stops the reading
 * @error: return location for an error
 *
 * [method@BundleReader.read_many] without the search for the names.
 *
 * Returns: `TRUE` if all were read
 */
gboolean muster_bundle_reader_read_entries (MusterBundleReader *self,
                                            const MusterBundleEntry *const *entries,
                                            const char *const *slices, gsize n,
                                            MusterTensor **tensors, GCancellable *cancellable,
                                            GError **error);

/**
 * muster_bundle_reader_verify:
 * @self: a reader
 * @progress: (nullable) (scope call) (closure user_data): called during the work
 * @user_data: for @progress
 * @cancellable: (nullable): stops it
 * @error: return location for an error
 *
 * Reads every byte of the checkpoint, through small buffers, and returns `TRUE` if all are as they
 * were written. It checks the checksum of each tensor of any type, that the bytes between tensors
 * and at the end of a file are zero, that tensors don't overlap, that slices are complete, and all
 * parts of the index. So any changed bit is found (`DATA_LOSS`). A data file without tensors isn't
 * read.
 *
 * Returns: `TRUE` if the checkpoint is intact
 */
gboolean muster_bundle_reader_verify (MusterBundleReader *self, MusterBundleProgress progress,
                                      gpointer user_data, GCancellable *cancellable,
                                      GError **error);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_names.h"
#include "checkpoint/store/storage.h"
#include "graph/tensor.h"

G_BEGIN_DECLS

/**
 * MusterBundleWriter:
 *
 * Writes and publishes one V2 checkpoint, as TensorFlow's `SaveV2` (docs/decisions/0009).
 *
 * Adding a tensor only takes a reference: the tensor mustn't change until
 * [method@BundleWriter.finish], or until the writer is freed. Finish knows every size: it reserves
 * all space before it writes a byte, and writes a large checkpoint to several data files in
 * parallel. They are written and synced under temporary names, then renamed, the index last
 * (docs/checkpoint-format.md): a reader of the prefix sees the old checkpoint or the complete new
 * one. A writer that fails, or is freed before it has finished, removes its temporary files.
 *
 * Reference-counted. One thread.
 */
typedef struct _MusterBundleWriter MusterBundleWriter;

#define MUSTER_TYPE_BUNDLE_WRITER (muster_bundle_writer_get_type ())
GType muster_bundle_writer_get_type (void);

/**
 * muster_bundle_writer_new:
 * @storage: (nullable): where; `NULL`: local files
 * @prefix: the checkpoint, such as `run/model.ckpt-100`
 * @error: return location for an error
 *
 * Begins a checkpoint. Its directory must exist.
 *
 * Returns: (transfer full): the writer
 */
MusterBundleWriter *muster_bundle_writer_new (MusterStorage *storage, const char *prefix,
                                              GError **error);

/**
 * muster_bundle_writer_ref:
 * @self: a writer
 *
 * Takes another reference.
 *
 * Returns: (transfer full): the same writer
 */
MusterBundleWriter *muster_bundle_writer_ref (MusterBundleWriter *self);

/**
 * muster_bundle_writer_free:
 * @self: (transfer full) (nullable): a writer
 *
 * Drops a reference. The last one frees the writer; the files of one that hasn't finished are
 * removed.
 */
void muster_bundle_writer_free (MusterBundleWriter *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterBundleWriter, muster_bundle_writer_free)

/**
 * muster_bundle_writer_add:
 * @self: a writer
 * @name: the tensor's name in the checkpoint
 * @tensor: its value, which mustn't change until the writer has finished
 * @error: return location for an error
 *
 * Adds a tensor. Names may come in any order; a duplicate is `ALREADY_EXISTS`.
 *
 * Returns: `TRUE` if it was added
 */
gboolean muster_bundle_writer_add (MusterBundleWriter *self, const char *name, MusterTensor *tensor,
                                   GError **error);

/**
 * muster_bundle_writer_add_slice:
 * @self: a writer
 * @name: the name of a partitioned variable
 * @slice: as in `SaveV2`: `10 4 0,4:-`, the full shape, then start,length for each dimension
 * @tensor: the part's value, which mustn't change until the writer has finished
 * @error: return location for an error
 *
 * Adds a part of a partitioned variable.
 *
 * Returns: `TRUE` if it was added
 */
gboolean muster_bundle_writer_add_slice (MusterBundleWriter *self, const char *name,
                                         const char *slice, MusterTensor *tensor, GError **error);

/**
 * muster_bundle_writer_add_all: (skip)
 * @self: a writer
 * @names: the names of all tensors
 * @tensors: (array): a tensor for each, in the order of the vector that @names was created from
 * @error: return location for an error
 *
 * Adds many tensors whose names are checked and sorted already. Must be the first addition.
 *
 * Returns: `TRUE` if they were added
 */
gboolean muster_bundle_writer_add_all (MusterBundleWriter *self, MusterBundleNames *names,
                                       MusterTensor *const *tensors, GError **error);

/**
 * muster_bundle_writer_set_n_shards:
 * @self: a writer
 * @n: the number of data files, at most 8; 0, the default, chooses by size and number of
 *   processors: one below a few hundred MiB
 *
 * Sets the number of data files, each written by its own thread.
 */
void muster_bundle_writer_set_n_shards (MusterBundleWriter *self, guint n);

/**
 * muster_bundle_writer_set_cancellable:
 * @self: a writer
 * @cancellable: (nullable): stops the writing
 *
 * When @cancellable is cancelled, [method@BundleWriter.finish] stops within a block with
 * `G_IO_ERROR_CANCELLED`.
 */
void muster_bundle_writer_set_cancellable (MusterBundleWriter *self, GCancellable *cancellable);

/**
 * muster_bundle_writer_finish:
 * @self: a writer
 * @error: return location for an error
 *
 * Writes and publishes the checkpoint. A full store is `G_FILE_ERROR_NOSPC`, with the space needed,
 * the free space and the directory.
 *
 * Returns: `TRUE` if the checkpoint is durable
 */
gboolean muster_bundle_writer_finish (MusterBundleWriter *self, GError **error);

/**
 * muster_bundle_merge:
 * @storage: (nullable): where; `NULL`: local files
 * @parts: (array zero-terminated=1): prefixes of checkpoints
 * @prefix: the checkpoint to be
 * @error: return location for an error
 *
 * Merges several checkpoints into one (`MergeV2Checkpoints`): renames the parts' data files to
 * shards of @prefix and merges their indexes. The parts are gone afterwards.
 *
 * Returns: `TRUE` if the merged checkpoint is durable
 */
gboolean muster_bundle_merge (MusterStorage *storage, const char *const *parts, const char *prefix,
                              GError **error);

G_END_DECLS

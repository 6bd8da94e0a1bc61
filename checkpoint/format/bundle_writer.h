// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_names.h"
#include "checkpoint/store/storage.h"
#include "graph/tensor.h"

G_BEGIN_DECLS

/* MusterBundleWriter writes and publishes one V2 checkpoint (docs/decisions/0009). Adding a tensor
 * only takes a reference: the tensor mustn't change until finish or free. Finish knows every size:
 * it reserves all space before it writes a byte, and writes a large checkpoint to several data
 * files in parallel. They are written and synced under temporary names, then published as described
 * in checkpoint/format/bundle_publish.h: a reader of PREFIX sees the old checkpoint or the complete
 * new one. A writer that fails, or is freed before finish, removes its temporary files. One thread.
 */

typedef struct _MusterBundleWriter MusterBundleWriter;

MusterBundleWriter *muster_bundle_writer_new (MusterStorage *storage, const char *prefix,
                                              GError **error);
void muster_bundle_writer_free (MusterBundleWriter *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterBundleWriter, muster_bundle_writer_free)

/* Adds a tensor. Names may come in any order; a duplicate is ALREADY_EXISTS. */
gboolean muster_bundle_writer_add (MusterBundleWriter *self, const char *name, MusterTensor *tensor,
                                   GError **error);

/* Adds a part of a partitioned variable. slice as in SaveV2: "10 4 0,4:-" (full shape, then
 * start,length for each dimension). */
gboolean muster_bundle_writer_add_slice (MusterBundleWriter *self, const char *name,
                                         const char *slice, MusterTensor *tensor, GError **error);

/* Adds a tensor for each name, in the order of the vector that names was created from. Must be the
 * first addition. */
gboolean muster_bundle_writer_add_all (MusterBundleWriter *self, MusterBundleNames *names,
                                       MusterTensor *const *tensors, GError **error);

/* Sets the number of data files, each written by its own thread: at most 8. 0, the default, chooses
 * by size and number of processors: one below a few hundred MiB. */
void muster_bundle_writer_set_n_shards (MusterBundleWriter *self, guint n);

/* When cancellable is cancelled, finish stops within a block with G_IO_ERROR_CANCELLED. */
void muster_bundle_writer_set_cancellable (MusterBundleWriter *self, GCancellable *cancellable);

/* Writes and publishes. A full store is G_FILE_ERROR_NOSPC, with the space needed, the free space
 * and the directory. */
gboolean muster_bundle_writer_finish (MusterBundleWriter *self, GError **error);

/* Merges several checkpoints into one (MergeV2Checkpoints): renames the parts' data files to shards
 * of PREFIX and merges their indexes. */
gboolean muster_bundle_merge (MusterStorage *storage, const char *const *parts, const char *prefix,
                              GError **error);

G_END_DECLS

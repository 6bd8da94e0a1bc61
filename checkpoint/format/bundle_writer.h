// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_names.h"
#include "checkpoint/store/storage.h"
#include "graph/tensor.h"

G_BEGIN_DECLS

/* MusterBundleWriter writes one V2 checkpoint and publishes it (docs/decisions/0009). Adding a
 * tensor notes it, by a reference: it may not change until finish or free. Finish writes, since by
 * then every size is known: room for all of it is taken before a byte is written, and a large
 * checkpoint goes into several data files at once. They are written and synced under temporary
 * names, then published as checkpoint/format/bundle_publish.h says: a reader of PREFIX sees what
 * was there before, or all of the new one. A writer that fails, or is freed before, takes its
 * temporary files away. One thread. */

typedef struct _MusterBundleWriter MusterBundleWriter;

MusterBundleWriter *muster_bundle_writer_new (MusterStorage *storage, const char *prefix,
                                              GError **error);
void muster_bundle_writer_free (MusterBundleWriter *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterBundleWriter, muster_bundle_writer_free)

/* Adds a tensor; names in any order, each once (ALREADY_EXISTS). */
gboolean muster_bundle_writer_add (MusterBundleWriter *self, const char *name, MusterTensor *tensor,
                                   GError **error);

/* Adds a part of a partitioned variable: slice as in SaveV2, "10 4 0,4:-" (full shape, then
 * start,length each). */
gboolean muster_bundle_writer_add_slice (MusterBundleWriter *self, const char *name,
                                         const char *slice, MusterTensor *tensor, GError **error);

/* Adds a tensor for each of the names, in the order of the vector that they were made from: all of
 * them, before any other. */
gboolean muster_bundle_writer_add_all (MusterBundleWriter *self, MusterBundleNames *names,
                                       MusterTensor *const *tensors, GError **error);

/* Into how many data files, each with a thread of its own: 8 at most; 0, which is the default, is
 * as many as its size and this machine's processors are good for: one, below some hundred MiB. */
void muster_bundle_writer_set_n_shards (MusterBundleWriter *self, guint n);

/* Once it is cancelled finish stops, within a block, with G_IO_ERROR_CANCELLED. */
void muster_bundle_writer_set_cancellable (MusterBundleWriter *self, GCancellable *cancellable);

/* Writes and publishes. A full store is G_FILE_ERROR_NOSPC: it says how much room is needed, how
 * much there is, and where. */
gboolean muster_bundle_writer_finish (MusterBundleWriter *self, GError **error);

/* Makes one checkpoint of several (MergeV2Checkpoints): the data files of the parts are renamed
 * into shards of PREFIX, their indexes merged. */
gboolean muster_bundle_merge (MusterStorage *storage, const char *const *parts, const char *prefix,
                              GError **error);

G_END_DECLS

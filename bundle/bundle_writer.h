// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bundle/storage.h"
#include "graph/tensor.h"

G_BEGIN_DECLS

/* MusterBundleWriter writes one V2 checkpoint of one data shard and publishes it (decision 9): the
 * data file is written and synced under a temporary name, then the index beside it, then both are
 * renamed, data first, and the directory is synced. A reader of PREFIX sees no checkpoint, or all
 * of it. Until finish nothing is at PREFIX; a writer that is freed before that takes its temporary
 * files away. One thread. */

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

/* Publishes. */
gboolean muster_bundle_writer_finish (MusterBundleWriter *self, GError **error);

/* Makes one checkpoint of several (MergeV2Checkpoints): the data files of the parts are renamed
 * into shards of PREFIX, their indexes merged. */
gboolean muster_bundle_merge (MusterStorage *storage, const char *const *parts, const char *prefix,
                              GError **error);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_index.h"
#include "checkpoint/format/bundle_publish.h"

G_BEGIN_DECLS

/* Publishes data files that lie where data says (NULL-terminated, by shard, durable) under an index
 * that isn't written yet; its n_shards is changed as need be. On failure the files lie where they
 * lay. *is_published says whether to has become the new one, which it may have on failure too. */
gboolean muster_bundle_publish_files (MusterStorage *storage, MusterBundleIndex *index,
                                      const char *const *data, const char *to,
                                      gboolean *is_published, GError **error);

/* The data files of a prefix: all there, as long as its index says at least, and durable.
 * (transfer full) their paths by shard. */
char **muster_bundle_sync_data (MusterStorage *storage, const char *prefix, GError **error);

G_END_DECLS

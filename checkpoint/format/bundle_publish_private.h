// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_index.h"
#include "checkpoint/format/bundle_publish.h"

G_BEGIN_DECLS

/* Publishes data files (NULL-terminated, by shard, durable) with an index that isn't written yet;
 * its n_shards is changed if necessary. On failure the files are where they were. *is_published is
 * TRUE if to is the new checkpoint, or may be, which is possible on failure too. */
gboolean muster_bundle_publish_files (MusterStorage *storage, MusterBundleIndex *index,
                                      const char *const *data, const char *to,
                                      gboolean *is_published, GError **error);

/* Checks that all data files of a prefix exist and are as long as its index requires, and syncs
 * them. Returns their paths by shard (transfer full). */
char **muster_bundle_sync_data (MusterStorage *storage, const char *prefix, GError **error);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/**
 * muster_default_storage:
 *
 * Where files are unless a store is given: a path such as `s3://BUCKET/NAME` is in the store of its
 * scheme, any other path is a local file. A scheme without a store is refused by its name. A store
 * is made when its first path is used. It lives as long as the process.
 *
 * Returns: (transfer none): the store
 */
MusterStorage *muster_default_storage (void);

/**
 * muster_default_storage_new_within:
 * @directories: (array zero-terminated=1): local directories, which must exist, and prefixes such
 * as `s3://BUCKET/NAME`
 * @error: return location for an error
 *
 * The same within these directories only. Any other path is `PERMISSION_DENIED`. See
 * [func@local_storage_new_within] for the local ones.
 *
 * Returns: (transfer full): the store
 */
MusterStorage *muster_default_storage_new_within (const char *const *directories, GError **error);

/**
 * MusterStorageFactory: (skip)
 * @error: return location for an error
 *
 * Makes the store of a scheme.
 *
 * Returns: (transfer full): the store
 */
typedef MusterStorage *(*MusterStorageFactory) (GError **error);

/**
 * muster_storage_offer: (skip)
 * @scheme: such as `s3`
 * @factory: makes the store for its paths, once for the process
 *
 * Adds a store to [func@default_storage], before the first path of that scheme is used; S3's is
 * there.
 */
void muster_storage_offer (const char *scheme, MusterStorageFactory factory);

/**
 * muster_storage_is_local:
 * @self: (nullable): a store; `NULL`: [func@default_storage]
 * @path: a path in it
 *
 * Whether a path is one of a local file, which other programs may open and which a working
 * directory and symbolic links have to do with.
 *
 * Returns: `TRUE` for a local file
 */
gboolean muster_storage_is_local (MusterStorage *self, const char *path);

G_END_DECLS

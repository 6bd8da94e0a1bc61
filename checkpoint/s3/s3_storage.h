// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/s3/s3_options.h"
#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/**
 * muster_s3_storage_new:
 * @options: (nullable): where the store is
 * @error: return location for an error
 *
 * A store of the objects of S3, or of a store that is compatible with it (docs/object-stores.md).
 * Its paths are `s3://BUCKET/NAME`. No I/O but the files of AWS's tools. libcurl is loaded at the
 * first one of these: `UNIMPLEMENTED` if it is missing. `INVALID_ARGUMENT` for an endpoint, a
 * region or a profile that can't be.
 *
 * Any thread. Operations end by the deadline of [method@Storage.bound]; without one, a request that
 * fails is retried for @retry_us.
 *
 * Returns: (transfer full): the store
 */
MusterStorage *muster_s3_storage_new (const MusterS3Options *options, GError **error);

G_END_DECLS

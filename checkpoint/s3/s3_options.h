// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

G_BEGIN_DECLS

/**
 * MusterS3Options:
 * @endpoint_url: (nullable): the store's address, such as `https://minio.example:9000`; `NULL`:
 *   `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`, the profile's `endpoint_url`, or else AWS
 * @region: (nullable): the region; `NULL`: `AWS_REGION`, `AWS_DEFAULT_REGION`, the profile's, or
 *   else `us-east-1`
 * @profile: (nullable): a profile of `~/.aws/config` and `~/.aws/credentials`, whose keys are
 *   preferred to the environment's; `NULL`: `AWS_PROFILE`, or else `default`
 * @stall_us: how long a transfer may stay without a byte before it is retried; 0: 30 s
 * @retry_us: how long a failing request is retried if the store has no deadline; 0: 60 s
 * @clock: (nullable): the clock that pauses between retries use
 *
 * Where an S3 store is (docs/object-stores.md). Credentials aren't options: they are found as AWS's
 * tools find them, so that they appear in no command line.
 */
typedef struct {
  const char *endpoint_url;
  const char *region;
  const char *profile;
  gint64 stall_us;
  gint64 retry_us;
  MusterClock *clock;
} MusterS3Options;

#define MUSTER_TYPE_S3_OPTIONS (muster_s3_options_get_type ())
GType muster_s3_options_get_type (void);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/**
 * MusterS3Metrics:
 * @requests: requests that were sent, retries included
 * @bytes_sent: bytes of their bodies
 * @bytes_received: bytes of the answers' bodies
 * @retries_throttled: retries because the store asked for fewer requests (503, 429, 509 or a code)
 * @retries_failed: because it failed (another 5xx, or an answer that isn't the store's)
 * @retries_lost: because the connection couldn't be made, or ended in the middle
 * @retries_stalled: because no byte came
 * @retries_damaged: because bytes had changed on their way
 * @retries_expired: because the store refused the credentials
 * @failures: requests that failed in the end; not those that found no object, or another than a
 *   condition said, and not cancelled ones
 * @buffered_max: the most bytes that were held for uploads at the same time
 *
 * What all S3 stores of this process have done.
 */
typedef struct {
  guint64 requests;
  guint64 bytes_sent;
  guint64 bytes_received;
  guint64 retries_throttled;
  guint64 retries_failed;
  guint64 retries_lost;
  guint64 retries_stalled;
  guint64 retries_damaged;
  guint64 retries_expired;
  guint64 failures;
  guint64 buffered_max;
} MusterS3Metrics;

/**
 * muster_s3_metrics:
 * @metrics: (out caller-allocates): the counts
 *
 * Reads what all S3 stores of this process have done so far. Any thread.
 */
void muster_s3_metrics (MusterS3Metrics *metrics);

G_END_DECLS

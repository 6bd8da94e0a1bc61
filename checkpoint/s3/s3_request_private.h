// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/s3/s3_client_private.h"
#include "checkpoint/s3/s3_operation_private.h"

G_BEGIN_DECLS

/* One operation of S3: signed requests until one succeeds, a failure is final, or the time is over.
 * What is retried, how often and after which pause is decided here. */

/* FALSE with an error, whose text names what failed. The status is set in either case. answer is to
 * be cleared. Any thread. */
gboolean muster_s3_request (MusterS3Client *client, const MusterS3Request *request,
                            const MusterS3Bound *bound, MusterS3Answer *answer, GError **error);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/s3/s3_client_private.h"
#include "checkpoint/s3/s3_operation_private.h"

G_BEGIN_DECLS

/* What a failed attempt means: whether another can help, and what the error says. Nothing else
 * decides by status or code. */

typedef enum {
  MUSTER_S3_SUCCEEDED,
  MUSTER_S3_THROTTLED, /* the store asks for fewer requests */
  MUSTER_S3_FAILED,    /* the store failed */
  MUSTER_S3_LOST,      /* no connection, or it ended */
  MUSTER_S3_STALLED,
  MUSTER_S3_DAMAGED, /* bytes changed on their way */
  MUSTER_S3_EXPIRED, /* other credentials help */
  MUSTER_S3_LATE,    /* the deadline */
  MUSTER_S3_CANCELLED,
  MUSTER_S3_FINAL,
} MusterS3Class;

/* Of an attempt that reads from an offset on; xml is the answer's, or NULL. */
MusterS3Class muster_s3_class_of (const MusterS3Request *request, guint64 from,
                                  const MusterHttpAnswer *answer, const MusterS3Xml *xml);

/* Of a failure with a code, or NULL, and a status: of the token service, too. */
MusterS3Class muster_s3_class_of_code (const char *code, long status);

/* What happened, in a few words, without a secret: "503 SlowDown: Please reduce your request rate."
 * keys are those that the request was signed with. (transfer full) */
char *muster_s3_failure_describe (const MusterHttpAnswer *answer, const MusterS3Xml *xml,
                                  const MusterS3Keys *keys);

/* Sets the error of a failure that is final; what describes it. */
void muster_s3_failure_set (MusterS3Client *client, const MusterS3Request *request,
                            const MusterHttpAnswer *answer, const MusterS3Xml *xml,
                            const char *what, GError **error);

G_END_DECLS

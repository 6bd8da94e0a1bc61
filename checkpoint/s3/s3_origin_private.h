// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/s3/http_private.h"
#include "checkpoint/s3/s3_operation_private.h"

G_BEGIN_DECLS

/* Whose an answer is, and what it proves. Proxies, login pages and gateways without a route answer
 * with any status and any body; only an answer that the store itself has written says anything of
 * an object. Nothing else decides this. */

/* The store's own code of a failure: that of its XML. Without XML, the one that the status stands
 * for, if the answer has a header of S3; never one that says that something is absent. NULL: the
 * answer isn't the store's, or is no failure. xml is the answer's, or NULL. */
const char *muster_s3_code_of (const MusterHttpAnswer *answer, const MusterS3Xml *xml);

/* TRUE if the answer proves that the request was carried out: a read has the bytes from that offset
 * on, a list is whole, a write has an ETag or a header of S3. */
gboolean muster_s3_is_done (const MusterS3Request *request, guint64 from,
                            const MusterHttpAnswer *answer, const MusterS3Xml *xml);

/* TRUE if an object's headers are in the answer: an ETag, or one of S3, and not a page's type. */
gboolean muster_s3_is_of_object (const MusterHttpAnswer *answer);

/* Who answered, for errors: "server 'nginx', page 'Not Found'"; "" if nothing says. It is others'
 * text. (transfer full) */
char *muster_s3_describe_origin (const MusterHttpAnswer *answer);

G_END_DECLS

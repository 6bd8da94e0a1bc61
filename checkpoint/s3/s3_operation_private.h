// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/s3/s3_uri_private.h"
#include "checkpoint/s3/s3_xml_private.h"

G_BEGIN_DECLS

/* An operation of S3 and its result. */

#define MUSTER_S3_HEADERS_MAX 8

typedef struct {
  const char *operation; /* S3's name of it, as in a policy: "PutObject" */
  const char *path;      /* in errors */
  const char *method;
  const MusterS3Uri *uri;
  gboolean is_of_bucket;                      /* without the key */
  const char *query;                          /* (nullable) from muster_s3_query () */
  const char *headers[MUSTER_S3_HEADERS_MAX]; /* "name:value", up to the first NULL */
  const void *body;
  gsize size;
  gboolean is_unsigned; /* the body; a header has a checksum of it */
  /* reads: the bytes from offset on, or fewer at the object's end */
  guint8 *sink; /* (nullable) */
  guint64 offset;
  gsize sink_size;
  gboolean is_pinned; /* a header names the version: where a connection is lost, go on there */
  gsize text_max;     /* of an XML answer; 0: MUSTER_HTTP_TEXT_MAX */
  const char *root;   /* (nullable) the element that an answer with success is, in XML */
} MusterS3Request;

typedef struct {
  char *code;         /* (owned) (nullable) the store's own, of the last failure */
  MusterS3Xml *xml;   /* (owned) (nullable) */
  char *etag;         /* (owned) (nullable) */
  char *mark;         /* (owned) (nullable) the object's MUSTER_S3_MARK */
  gboolean has_sums;  /* of an upload that was begun: the store checks CRC32C */
  guint64 size;       /* the object's */
  gint64 mtime_us;    /* the object's */
  gsize n_read;       /* bytes in the sink */
  gboolean is_mute;   /* a failure in answer to HEAD, which has no body to explain it */
  gboolean is_unsure; /* an attempt before the last may have succeeded, too */
} MusterS3Answer;

/* Metadata that says which writing made an object, so that a writer that lost the answer recognises
 * its own. */
#define MUSTER_S3_MARK "x-amz-meta-muster-write"

static inline void
muster_s3_answer_clear (MusterS3Answer *answer)
{
  g_clear_pointer (&answer->xml, muster_s3_xml_free);
  g_clear_pointer (&answer->code, g_free);
  g_clear_pointer (&answer->etag, g_free);
  g_clear_pointer (&answer->mark, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterS3Answer, muster_s3_answer_clear)

G_END_DECLS

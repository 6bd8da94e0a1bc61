// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* The XML answers of S3 and of its token service. They come from the network: their size is the
 * caller's limit, their depth is bounded here, and what has no XML is an error. */

/* One answer, of any kind: elements that it lacks are NULL or empty. */
typedef struct {
  char *root; /* (owned) the outermost element's name */
  /* lists */
  GPtrArray *keys;     /* (owned) of strings */
  GPtrArray *prefixes; /* (owned) of strings, each with its '/' at the end */
  GPtrArray *uploads;  /* (owned) of MusterS3Pending */
  gboolean is_truncated;
  char *next_token;         /* (owned) */
  char *next_key_marker;    /* (owned) */
  char *next_upload_marker; /* (owned) */
  /* uploads, copies */
  char *upload_id; /* (owned) */
  char *etag;      /* (owned) */
  /* failures: of an element Error */
  char *code;    /* (owned) */
  char *message; /* (owned) */
  char *region;  /* (owned) */
  /* credentials */
  char *access_key_id;     /* (owned) */
  char *secret_access_key; /* (owned) */
  char *session_token;     /* (owned) */
  char *expiration;        /* (owned) */
} MusterS3Xml;

/* An upload that was begun and neither completed nor aborted. */
typedef struct {
  char *key;       /* (owned) (nullable) */
  char *id;        /* (owned) (nullable) */
  char *initiated; /* (owned) (nullable) when, as the store writes it */
} MusterS3Pending;

/* INTERNAL if it isn't well-formed, or nests too deeply. */
MusterS3Xml *muster_s3_xml_parse (const char *text, gsize size, GError **error);
void muster_s3_xml_free (MusterS3Xml *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterS3Xml, muster_s3_xml_free)

G_END_DECLS

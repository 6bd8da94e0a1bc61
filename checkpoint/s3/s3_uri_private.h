// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Paths of object stores, "s3://BUCKET/KEY", and how they are written in a request. */

#define MUSTER_S3_SCHEME "s3://"

typedef struct {
  char *bucket; /* (owned) */
  char *key;    /* (owned) without '/' at either end; "" for the bucket */
} MusterS3Uri;

/* INVALID_ARGUMENT for a path that names no bucket or that no S3 store can have: an empty name, "."
 * or ".." between slashes (servers and proxies would resolve them), control characters, text that
 * isn't UTF-8, a key above 1,024 bytes. */
gboolean muster_s3_uri_parse (const char *path, MusterS3Uri *uri, GError **error);
void muster_s3_uri_clear (MusterS3Uri *uri);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterS3Uri, muster_s3_uri_clear)

/* The key that all files of the directory begin with: "KEY/", or "" for the bucket.
 * (transfer full) */
char *muster_s3_uri_prefix (const MusterS3Uri *uri);

/* Percent-encodes as signatures want it: all but A-Z a-z 0-9 - . _ ~, and '/' in a path.
 * (transfer full) */
char *muster_s3_encode (const char *text, gboolean is_path);

/* "name=value&…" from n pairs that are in the order of their encoded names, which is the order that
 * they are signed in. A NULL value leaves the pair out. (transfer full) */
char *muster_s3_query (const char *const pairs[][2], gsize n);

G_END_DECLS

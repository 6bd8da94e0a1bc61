// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/s3/s3_options.h"

G_BEGIN_DECLS

/* Where the store is and how it is reached: the options, then the environment, then the profile.
 * Fixed once it is made; any thread. */
typedef struct {
  char *endpoint;       /* (owned) (nullable) without '/' at the end; NULL: AWS */
  char *region;         /* (owned) */
  char *profile;        /* (owned) its name */
  GHashTable *settings; /* (owned) the profile's */
  char *authorities;    /* (owned) (nullable) file of certificates */
  gboolean is_chosen;   /* the options name the profile: it comes before the environment's keys */
  gint64 stall_us;
  gint64 retry_us; /* how long a failure is retried where there is no deadline */
} MusterS3Config;

/* INVALID_ARGUMENT for an endpoint that isn't "http://HOST[:PORT]" or "https://…", a profile that
 * doesn't exist, or a region that can't be one. */
MusterS3Config *muster_s3_config_new (const MusterS3Options *options, GError **error);
void muster_s3_config_free (MusterS3Config *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterS3Config, muster_s3_config_free)

/* A setting of the profile, or NULL; an empty one counts as none. */
const char *muster_s3_config_setting (const MusterS3Config *self, const char *name);

/* The profile's settings as its files have them now. NULL if it is in neither. (transfer full) */
GHashTable *muster_s3_config_read_settings (const MusterS3Config *self);

/* The same of such settings. */
const char *muster_s3_setting (GHashTable *settings, const char *name);

/* An environment variable, or NULL; an empty one counts as none. */
const char *muster_s3_env (const char *name);

/* The URL of a key, or of the bucket for "". (transfer full) */
char *muster_s3_config_url (const MusterS3Config *self, const char *bucket, const char *key,
                            const char *query);

/* Whether connections to the store are by TLS. */
gboolean muster_s3_config_is_encrypted (const MusterS3Config *self);

/* What errors call the store: "https://minio:9000", "AWS in eu-central-1". (transfer full) */
char *muster_s3_config_describe (const MusterS3Config *self);

G_END_DECLS

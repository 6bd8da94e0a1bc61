// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/s3/credentials_private.h"

G_BEGIN_DECLS

/* What the storages of one store share: where it is, its credentials, and what is known of it. Any
 * thread. */

/* Whether a bucket's store heeds If-Match and If-None-Match. */
typedef enum {
  MUSTER_S3_UNKNOWN,
  MUSTER_S3_HEEDED,
  MUSTER_S3_IGNORED,
} MusterS3Conditions;

typedef struct {
  gatomicrefcount refs;
  MusterS3Config *config;           /* (owned) */
  MusterS3Credentials *credentials; /* (owned) */
  MusterClock *clock;               /* (owned) */
  GMutex lock;
  GHashTable *conditions; /* (owned) bucket to MusterS3Conditions, guarded by lock */
  GHashTable *uploads;    /* (owned) identifiers of this process's uploads, guarded by lock */
} MusterS3Client;

MusterS3Client *muster_s3_client_new (const MusterS3Options *options, GError **error);
MusterS3Client *muster_s3_client_ref (MusterS3Client *self);
void muster_s3_client_unref (MusterS3Client *self);

MusterS3Conditions muster_s3_client_conditions (MusterS3Client *self, const char *bucket);
void muster_s3_client_set_conditions (MusterS3Client *self, const char *bucket,
                                      MusterS3Conditions conditions);

/* An upload that this process has begun, until it ends. */
void muster_s3_client_add_upload (MusterS3Client *self, const char *id);
void muster_s3_client_remove_upload (MusterS3Client *self, const char *id);
gboolean muster_s3_client_has_upload (MusterS3Client *self, const char *id);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/s3/http_private.h"
#include "checkpoint/s3/s3_config_private.h"

G_BEGIN_DECLS

/* Keys that sign requests, found where AWS's tools look, in their order: the environment, web
 * identity, the profile, the container's service, the machine's. Temporary ones are replaced before
 * they expire, and any that the store refuses are looked up again where they are from. No text that
 * leaves this module has a secret in it. */

typedef struct {
  char *id;          /* (owned) */
  char *secret;      /* (owned) wiped when it is freed */
  char *token;       /* (owned) (nullable) of the session; wiped too */
  gint64 expires_us; /* since 1970; G_MAXINT64: never; 0: at a date that can't be read */
} MusterS3Keys;

void muster_s3_keys_clear (MusterS3Keys *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterS3Keys, muster_s3_keys_clear)

typedef struct _MusterS3Credentials MusterS3Credentials;

/* config is borrowed and must live as long. */
MusterS3Credentials *muster_s3_credentials_new (const MusterS3Config *config);
void muster_s3_credentials_free (MusterS3Credentials *self);

/* The keys, fetched or replaced if necessary. UNAUTHENTICATED, with where was looked, if there are
 * none; UNIMPLEMENTED for a profile that takes a way that muster doesn't have. Any thread: one of
 * them fetches, the others wait. keys is to be cleared. */
gboolean muster_s3_credentials_get (MusterS3Credentials *self, const MusterS3Bound *bound,
                                    MusterS3Keys *keys, GError **error);

/* The store has refused these keys: they are looked up again the next time. FALSE if that can't
 * give others. */
gboolean muster_s3_credentials_expire (MusterS3Credentials *self, const MusterS3Keys *keys);

/* Others' text without the secrets that are in it. The only way of such a text into an error or a
 * log. keys may be NULL. (transfer full) */
char *muster_s3_keys_hide (const MusterS3Keys *self, const char *text);

/* Where the keys are from, for errors: "the environment". (transfer full) */
char *muster_s3_credentials_describe (MusterS3Credentials *self);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/s3/credentials_private.h"

G_BEGIN_DECLS

/* The services that hand out temporary keys. Each is one exchange, tried again a few times. */

/* Of AWS's token service, for the token in a file. */
gboolean muster_s3_keys_from_web_identity (const MusterS3Config *config, const char *token_file,
                                           const char *role, const char *session,
                                           const MusterS3Bound *bound, MusterS3Keys *keys,
                                           GError **error);

/* Of the service that the container's environment names. */
gboolean muster_s3_keys_from_container (const MusterS3Config *config, const MusterS3Bound *bound,
                                        MusterS3Keys *keys, GError **error);

/* Of the machine's metadata service, in its second version. */
gboolean muster_s3_keys_from_machine (const MusterS3Config *config, const MusterS3Bound *bound,
                                      MusterS3Keys *keys, GError **error);

/* Checks and copies keys: they become headers. UNAUTHENTICATED if one is missing, or can't be a
 * key. expires_us is as in MusterS3Keys; what names the source in the error. */
gboolean muster_s3_keys_set (const char *what, const char *id, const char *secret,
                             const char *token, gint64 expires_us, MusterS3Keys *keys,
                             GError **error);

/* From the JSON or XML of a service. what names the service in the error. */
gboolean muster_s3_keys_from_json (const char *what, const char *text, MusterS3Keys *keys,
                                   GError **error);
gboolean muster_s3_keys_from_xml (const char *what, const char *text, gsize size,
                                  MusterS3Keys *keys, GError **error);

G_END_DECLS

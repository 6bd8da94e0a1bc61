// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpc/secret_private.h"

G_BEGIN_DECLS

/* Certificates and keys in PEM form. The paths are for errors, which are INVALID_ARGUMENT. */

/* FALSE if the text isn't one or more certificates. */
gboolean muster_pem_check_certificates (const MusterSecret *pem, const char *path, GError **error);

/* FALSE if the key isn't one without a password, or not that of the first certificate. */
gboolean muster_pem_check_key (const MusterSecret *key, const char *key_path,
                               const MusterSecret *certificate, const char *certificate_path,
                               GError **error);

/* TRUE if the first certificate isn't valid any more. */
gboolean muster_pem_has_expired (const MusterSecret *certificate);

/* When the first certificate ends, in seconds since 1970; 0 if it can't be told. */
gint64 muster_pem_expiry (const MusterSecret *certificate);

G_END_DECLS

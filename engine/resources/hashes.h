// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* TensorFlow's hashes of n bytes, the same on every machine. */

/* Fingerprint64. */
guint64 muster_farm_hash (const void *bytes, guint64 n);
/* Hash64, of its oldest ops: Murmur 2. */
guint64 muster_murmur_hash (const void *bytes, guint64 n);
/* StrongKeyedHash. */
guint64 muster_sip_hash (const guint64 key[2], const void *bytes, guint64 n);

G_END_DECLS

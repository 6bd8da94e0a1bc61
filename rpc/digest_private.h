// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/rope_private.h"

G_BEGIN_DECLS

/* The SHA-256 of a large message, by which it is named instead of sent. */
#define MUSTER_DIGEST_BYTES 32

typedef struct {
  guint8 bytes[MUSTER_DIGEST_BYTES];
} MusterDigest;

/* Of all pieces of the rope, as if they were one. */
MusterDigest muster_digest_of (MusterRope *rope);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* MusterRope is a message on its way out: small pieces written here, and large ones (a tensor's
 * bytes) held by reference, in order. What goes to gRPC or to a file goes piece by piece, uncopied.
 * A plain struct on the stack: g_auto (MusterRope) rope = MUSTER_ROPE_INIT; Not thread-safe. */

typedef struct {
  GByteArray *tail;  /* (owned) (nullable) the piece being written */
  GPtrArray *pieces; /* (owned) (nullable) (element-type GBytes) those before it */
  gsize size;        /* of the pieces, without the tail */
} MusterRope;

#define MUSTER_ROPE_INIT                                                                           \
  {                                                                                                \
    NULL, NULL, 0                                                                                  \
  }

/* The array to write small things to; valid until the next muster_rope_append (). */
GByteArray *muster_rope_tail (MusterRope *self);

/* Adds bytes by reference (small ones are copied into the tail). */
void muster_rope_append (MusterRope *self, GBytes *bytes);

gsize muster_rope_size (const MusterRope *self);

/* Ends writing and gives the pieces: (transfer none), owned by the rope. */
GPtrArray *muster_rope_pieces (MusterRope *self);

/* All of it as one run of bytes; a copy where there is more than one piece. */
GBytes *muster_rope_flatten (MusterRope *self);

void muster_rope_clear (MusterRope *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterRope, muster_rope_clear)

G_END_DECLS

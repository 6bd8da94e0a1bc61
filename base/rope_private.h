// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* MusterRope is a message being written: a list of pieces. Small ones are copied into it, large
 * ones (a tensor's bytes) are held by reference. gRPC and files get it piece by piece, without
 * another copy. A plain struct on the stack: g_auto (MusterRope) rope = MUSTER_ROPE_INIT; Not
 * thread-safe. */

typedef struct {
  GByteArray *tail;  /* (owned) (nullable) the piece being written */
  GPtrArray *pieces; /* (owned) (nullable) (element-type GBytes) the finished ones */
  gsize size;        /* bytes in pieces, without the tail */
} MusterRope;

#define MUSTER_ROPE_INIT                                                                           \
  {                                                                                                \
    NULL, NULL, 0                                                                                  \
  }

/* The array for small pieces. Valid until the next muster_rope_append (). */
GByteArray *muster_rope_tail (MusterRope *self);

/* Adds bytes by reference. Small ones are copied into the tail. */
void muster_rope_append (MusterRope *self, GBytes *bytes);

gsize muster_rope_size (const MusterRope *self);

/* Finishes the tail and returns all pieces: (transfer none), owned by the rope. */
GPtrArray *muster_rope_pieces (MusterRope *self);

/* All bytes as one block. Copies if there is more than one piece. */
GBytes *muster_rope_flatten (MusterRope *self);

/* Whether both have the same bytes, in whatever pieces. */
gboolean muster_rope_equal (MusterRope *a, MusterRope *b);

void muster_rope_clear (MusterRope *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterRope, muster_rope_clear)

G_END_DECLS

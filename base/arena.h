// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* MusterArena allocates memory that is freed all at once: few allocations for thousands of
 * messages. One thread at a time. */

typedef struct _MusterArena MusterArena;

MusterArena *muster_arena_new (void);
gpointer muster_arena_alloc (MusterArena *self, gsize size); /* aligned to 16 bytes; never NULL */
void muster_arena_free (MusterArena *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterArena, muster_arena_free)

/* Like muster_arena_alloc (), for a smaller alignment (a power of two, at most 16). With 1, texts
 * are packed without gaps. */
gpointer muster_arena_take (MusterArena *self, gsize size, gsize alignment);

G_END_DECLS

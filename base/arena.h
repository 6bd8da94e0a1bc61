// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* MusterArena is memory that goes all at once: few allocations for thousands of messages. */

typedef struct _MusterArena MusterArena;

MusterArena *muster_arena_new (void);
gpointer muster_arena_alloc (MusterArena *self, gsize size); /* aligned to 16; never NULL */
void muster_arena_free (MusterArena *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterArena, muster_arena_free)

/* As muster_arena_alloc (), for things that need less alignment (a power of two, at most 16), down
 * to none: texts pack tightly. */
gpointer muster_arena_take (MusterArena *self, gsize size, gsize alignment);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/memory_account_private.h"

G_BEGIN_DECLS

/* MusterArena allocates memory that is freed all at once: few allocations for thousands of
 * messages. It counts in the process's memory (base/memory_account_private.h). One thread at a
 * time. */

typedef struct _MusterArena MusterArena;

MusterArena *muster_arena_new (void); /* counts as a message */
MusterArena *muster_arena_new_for (MusterMemoryUse use);
gpointer muster_arena_alloc (MusterArena *self, gsize size); /* aligned to 16 bytes; never NULL */
void muster_arena_free (MusterArena *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterArena, muster_arena_free)

/* FALSE, with RESOURCE_EXHAUSTED, once the process's limit of memory is reached. Then no more
 * should be allocated; it still is, up to a chunk of 4 MiB. The first 64 KiB are always there, so
 * that a request that frees memory can be read. */
gboolean muster_arena_fits (const MusterArena *self, GError **error);
/* Whether size bytes more fit; if they don't, it doesn't fit any more. For large sizes: they are
 * asked about before they are allocated. */
gboolean muster_arena_has_room (MusterArena *self, gsize size);
/* The bytes that it holds. */
gsize muster_arena_size (const MusterArena *self);

/* Like muster_arena_alloc (), for a smaller alignment (a power of two, at most 16). With 1, texts
 * are packed without gaps. */
gpointer muster_arena_take (MusterArena *self, gsize size, gsize alignment);

G_END_DECLS

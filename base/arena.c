// SPDX-License-Identifier: Apache-2.0
#include "base/arena.h"

#include "base/memory.h"

#include <stdlib.h>

#define FIRST_CHUNK ((gsize)4 << 10)
#define LAST_CHUNK  ((gsize)4 << 20)

struct _MusterArena {
  GSList *chunks; /* (owned) */
  guint8 *at;
  guint8 *end;
  gsize next_size; /* of the chunk to come */
};

MusterArena *
muster_arena_new (void)
{
  MusterArena *self = g_new0 (MusterArena, 1);
  self->next_size = FIRST_CHUNK;
  return self;
}

static guint8 *
new_chunk (MusterArena *self, gsize size)
{
  guint8 *chunk = muster_memory_alloc (size);
  if (chunk == NULL)
    g_error ("no memory for %" G_GSIZE_FORMAT " bytes", size);
  self->chunks = g_slist_prepend (self->chunks, chunk);
  return chunk;
}

gpointer
muster_arena_take (MusterArena *self, gsize size, gsize alignment)
{
  guint8 *start = (guint8 *)(((guintptr)self->at + alignment - 1) & ~(alignment - 1));
  if (self->at != NULL && start <= self->end && size <= (gsize)(self->end - start)) {
    self->at = start + size;
    return start;
  }
  if (size > self->next_size / 4)
    return new_chunk (self, size); /* on its own, so that the open chunk isn't lost */
  start = new_chunk (self, self->next_size);
  self->at = start + size;
  self->end = start + self->next_size;
  self->next_size = MIN (self->next_size * 2, LAST_CHUNK);
  return start;
}

gpointer
muster_arena_alloc (MusterArena *self, gsize size)
{
  return muster_arena_take (self, MAX (size, 1), 16);
}

void
muster_arena_free (MusterArena *self)
{
  if (self == NULL)
    return;
  g_slist_free_full (self->chunks, free);
  g_free (self);
}

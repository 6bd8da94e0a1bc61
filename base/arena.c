// SPDX-License-Identifier: Apache-2.0
#include "base/arena.h"

#include "base/memory.h"

#include <stdlib.h>

#define FIRST_CHUNK ((gsize)4 << 10)
#define LAST_CHUNK  ((gsize)4 << 20)

typedef struct _Chunk Chunk;
struct _Chunk {
  Chunk *next;
  gsize padding; /* keeps what follows aligned to 16 */
};

struct _MusterArena {
  Chunk *chunks; /* (owned) */
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

static Chunk *
allocate_chunk (gsize size)
{
  Chunk *chunk = muster_memory_alloc (size);
  if (chunk == NULL)
    g_error ("no memory for %" G_GSIZE_FORMAT " bytes", size);
  return chunk;
}

static guint8 *
new_chunk (MusterArena *self, gsize size)
{
  Chunk *chunk = allocate_chunk (sizeof (Chunk) + size);
  chunk->next = self->chunks;
  self->chunks = chunk;
  return (guint8 *)(chunk + 1);
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
  start = new_chunk (self, self->next_size - sizeof (Chunk));
  self->at = start + size;
  self->end = start + self->next_size - sizeof (Chunk);
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
  while (self->chunks != NULL) {
    Chunk *chunk = self->chunks;
    self->chunks = chunk->next;
    free (chunk);
  }
  g_free (self);
}

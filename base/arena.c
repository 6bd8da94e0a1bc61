// SPDX-License-Identifier: Apache-2.0
#include "base/arena_private.h"

#include "base/memory_private.h"

#include <stdlib.h>

#define FIRST_CHUNK ((gsize)4 << 10)
#define LAST_CHUNK  ((gsize)4 << 20)

/* Never refused, because small requests need it. */
#define ALWAYS ((gsize)64 << 10)

struct _MusterArena {
  MusterMemoryUse use;
  gsize size;      /* of all chunks */
  GError *refused; /* (owned) (nullable) the limit of memory is reached */
  GSList *chunks;  /* (owned) */
  guint8 *at;
  guint8 *end;
  gsize next_size; /* of the chunk to come */
};

MusterArena *
muster_arena_new (void)
{
  return muster_arena_new_for (MUSTER_MEMORY_MESSAGES);
}

MusterArena *
muster_arena_new_for (MusterMemoryUse use)
{
  MusterArena *self = g_new0 (MusterArena, 1);
  self->use = use;
  self->next_size = FIRST_CHUNK;
  return self;
}

gboolean
muster_arena_fits (const MusterArena *self, GError **error)
{
  if (G_UNLIKELY (self->refused != NULL))
    g_propagate_error (error, g_error_copy (self->refused));
  return self->refused == NULL;
}

gboolean
muster_arena_has_room (MusterArena *self, gsize size)
{
  if (size <= LAST_CHUNK || self->refused != NULL)
    return self->refused == NULL;
  if (muster_memory_take (self->use, size, &self->refused))
    muster_memory_release (self->use, size);
  return self->refused == NULL;
}

gsize
muster_arena_size (const MusterArena *self)
{
  return self->size;
}

static void
count (MusterArena *self, gsize size)
{
  self->size += size;
  if (self->size <= ALWAYS || self->refused != NULL ||
      !muster_memory_take (self->use, size, &self->refused))
    muster_memory_add (self->use, size);
}

static guint8 *
new_chunk (MusterArena *self, gsize size)
{
  guint8 *chunk = muster_memory_alloc (size);
  if (chunk == NULL)
    g_error ("no memory for %" G_GSIZE_FORMAT " bytes", size);
  count (self, size);
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
  muster_memory_release (self->use, self->size);
  g_clear_error (&self->refused);
  g_free (self);
}

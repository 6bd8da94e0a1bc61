// SPDX-License-Identifier: Apache-2.0
#include "base/rope_private.h"

#include "base/memory_private.h"

#include <stdlib.h>
#include <string.h>

/* Below this a copy costs less than one more piece. */
#define COPY_BELOW 1024
/* A small message fits without growing. */
#define TAIL_SIZE 240

GByteArray *
muster_rope_tail (MusterRope *self)
{
  if (self->tail == NULL)
    self->tail = g_byte_array_sized_new (TAIL_SIZE);
  return self->tail;
}

static void
add_piece (MusterRope *self, GBytes *piece)
{
  if (self->pieces == NULL)
    self->pieces = g_ptr_array_new_with_free_func ((GDestroyNotify)g_bytes_unref);
  g_ptr_array_add (self->pieces, piece);
  self->size += g_bytes_get_size (piece);
}

static void
end_tail (MusterRope *self)
{
  GByteArray *tail = g_steal_pointer (&self->tail);
  if (tail == NULL)
    return;
  if (tail->len == 0)
    g_byte_array_unref (tail);
  else
    add_piece (self, g_byte_array_free_to_bytes (tail));
}

void
muster_rope_append (MusterRope *self, GBytes *bytes)
{
  const gsize size = g_bytes_get_size (bytes);
  if (size == 0)
    return;
  if (size < COPY_BELOW) {
    g_byte_array_append (muster_rope_tail (self), g_bytes_get_data (bytes, NULL), (guint)size);
    return;
  }
  end_tail (self);
  add_piece (self, g_bytes_ref (bytes));
}

gsize
muster_rope_size (const MusterRope *self)
{
  return self->size + (self->tail != NULL ? self->tail->len : 0);
}

GPtrArray *
muster_rope_pieces (MusterRope *self)
{
  end_tail (self);
  if (self->pieces == NULL)
    self->pieces = g_ptr_array_new_with_free_func ((GDestroyNotify)g_bytes_unref);
  return self->pieces;
}

GBytes *
muster_rope_flatten (MusterRope *self)
{
  GPtrArray *pieces = muster_rope_pieces (self);
  if (pieces->len == 1)
    return g_bytes_ref (g_ptr_array_index (pieces, 0));
  guint8 *flat = muster_memory_alloc (self->size);
  if (flat == NULL)
    g_error ("not enough memory for %" G_GSIZE_FORMAT " bytes", self->size);
  guint8 *at = flat;
  for (guint i = 0; i < pieces->len; i++) {
    gsize size;
    gconstpointer data = g_bytes_get_data (g_ptr_array_index (pieces, i), &size);
    memcpy (at, data, size);
    at += size;
  }
  return g_bytes_new_with_free_func (flat, self->size, free, flat);
}

/* The rest of a rope's pieces. */
typedef struct {
  const GPtrArray *pieces;
  guint next;
  const guint8 *data;
  gsize size;
} Rest;

/* FALSE at the end. */
static gboolean
fill (Rest *self)
{
  while (self->size == 0 && self->next < self->pieces->len)
    self->data = g_bytes_get_data (self->pieces->pdata[self->next++], &self->size);
  return self->size > 0;
}

gboolean
muster_rope_equal (MusterRope *a, MusterRope *b)
{
  Rest one = {.pieces = muster_rope_pieces (a)}, other = {.pieces = muster_rope_pieces (b)};
  if (a->size != b->size)
    return FALSE;
  while (fill (&one) && fill (&other)) {
    const gsize n = MIN (one.size, other.size);
    if (memcmp (one.data, other.data, n) != 0)
      return FALSE;
    one = (Rest){one.pieces, one.next, one.data + n, one.size - n};
    other = (Rest){other.pieces, other.next, other.data + n, other.size - n};
  }
  return TRUE;
}

void
muster_rope_clear (MusterRope *self)
{
  g_clear_pointer (&self->tail, g_byte_array_unref);
  g_clear_pointer (&self->pieces, g_ptr_array_unref);
  self->size = 0;
}

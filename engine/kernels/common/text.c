// SPDX-License-Identifier: Apache-2.0
/* Buffers for text that grow within the kernel's budget, and string tensors made from them. */
#include "engine/kernels/common/text.h"

#include "base/protowire_private.h"

#include <string.h>

#define MIN_CAPACITY 64

/* The number of bytes validated or converted at a time. */
#define PIECE     4096
#define MAX_MARKS 256 /* maximum bytes of combining marks after it */

void
muster_text_clear (MusterText *self)
{
  if (self->data != NULL)
    muster_budget_release (self->budget, self->capacity);
  g_clear_pointer (&self->data, g_free);
  g_clear_error (&self->error);
  self->size = self->capacity = 0;
}

gboolean
muster_text_check (MusterText *self, GError **error)
{
  if (!self->failed)
    return TRUE;
  if (self->error != NULL)
    g_propagate_error (error, g_steal_pointer (&self->error));
  else
    (void)muster_budget_refuse (self->budget, self->size, error);
  return FALSE;
}

/* Grows by half, so that appending has constant amortised cost; near the limit, by half of what is
 * left. */
static gboolean
grow (MusterText *self, gsize needed)
{
  const gsize left = muster_budget_left (self->budget);
  const gsize more = needed - self->capacity;
  gsize capacity = MAX (MAX (needed, MIN_CAPACITY), self->capacity + self->capacity / 2);
  if (capacity - self->capacity > left)
    capacity = more < left ? needed + (left - more) / 2 : needed;
  if (!muster_budget_grow (self->budget, (gpointer *)&self->data, self->capacity, capacity,
                           &self->error))
    return FALSE;
  self->capacity = capacity;
  return TRUE;
}

char *
muster_text_extend (MusterText *self, gsize n)
{
  gsize needed;
  char *end;
  if (G_UNLIKELY (self->failed))
    return NULL;
  if (!g_size_checked_add (&needed, self->size, n))
    needed = G_MAXSIZE;
  if ((needed > self->capacity || self->data == NULL) && !grow (self, needed)) {
    self->failed = TRUE;
    return NULL;
  }
  end = self->data + self->size;
  self->size = needed;
  return end;
}

void
muster_text_append (MusterText *self, const void *data, gsize size)
{
  char *end = muster_text_extend (self, size);
  if (end != NULL && size > 0)
    memcpy (end, data, size);
}

void
muster_text_append_string (MusterText *self, MusterString string)
{
  muster_text_append (self, string.data, string.size);
}

void
muster_text_put (MusterText *self, const char *text)
{
  muster_text_append (self, text, strlen (text));
}

void
muster_text_put_n (MusterText *self, char c, gsize n)
{
  char *end = muster_text_extend (self, n);
  if (end != NULL)
    memset (end, c, n);
}

/* The end of the piece that begins at from, not within a character nor before a combining mark; no
 * language uses many marks on a character. */
static gsize
end_of_piece (MusterString string, gsize from)
{
  gsize end = from + MIN (PIECE, string.size - from);
  for (int i = 0; i < MAX_MARKS && end < string.size; i++, end++) {
    const gunichar c =
        g_utf8_get_char_validated (string.data + end, (gssize)MIN (string.size - end, 6));
    const gboolean is_within = (string.data[end] & 0xc0) == 0x80;
    if (!is_within && (c >= (gunichar)-2 || !g_unichar_ismark (c)))
      break;
  }
  return end;
}

void
muster_text_append_valid (MusterText *self, MusterString string,
                          char *(*change) (const char *text, gssize size))
{
  for (gsize from = 0, end; from < string.size && !self->failed; from = end) {
    end = end_of_piece (string, from);
    g_autofree char *valid = g_utf8_make_valid (string.data + from, (gssize)(end - from));
    g_autofree char *changed = change != NULL ? change (valid, -1) : NULL;
    muster_text_put (self, changed != NULL ? changed : valid);
  }
}

void
muster_text_put_head (MusterText *self, guint32 number, gsize size)
{
  guint8 head[2 * MUSTER_PROTO_VARINT_MAX];
  muster_text_append (self, head, (gsize)(muster_proto_store_head (head, number, size) - head));
}

gsize
muster_text_head_size (guint32 number, gsize size)
{
  return muster_proto_varint_size ((guint64)number << 3) + muster_proto_varint_size (size);
}

gboolean
muster_text_end (MusterText *self, MusterKernel *k, int i, GError **error)
{
  const MusterString string = {self->data, self->size};
  return muster_text_check (self, error) &&
         muster_kernel_output_strings (k, i, 0, NULL, &string, error);
}

char *
muster_kernel_copy_string (MusterKernel *k, MusterString string, GError **error)
{
  char *copy = muster_budget_alloc (muster_kernel_budget (k), string.size + 1, 1, error);
  if (copy == NULL)
    return NULL;
  if (string.size > 0)
    memcpy (copy, string.data, string.size);
  copy[string.size] = '\0';
  return copy;
}

#define MAX_NAME ((gsize)1 << 20)

char *
muster_kernel_copy_name (MusterKernel *k, MusterString string, GError **error)
{
  if (string.size <= MAX_NAME)
    return muster_kernel_copy_string (k, string, error);
  muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
               "A name of %" G_GSIZE_FORMAT " bytes is too long: the maximum is %" G_GSIZE_FORMAT,
               string.size, MAX_NAME);
  return NULL;
}

gboolean
muster_kernel_check_path (MusterKernel *k, const char *path, GError **error)
{
  g_autoptr (GError) refused = NULL;
  return path[0] == '\0' ||
         muster_storage_check_path (muster_kernel_storage (k), "path", path, &refused) ||
         muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED, "%s", refused->message);
}

// SPDX-License-Identifier: Apache-2.0
#include "graph/npy_private.h"

#include "base/error.h"

#include <string.h>

#define UNIT 4 /* bytes of a character of NumPy's str */

/* The bytes of an element, without the zeros that fill it up. */
static gsize
length_of (const guint8 *element, gsize width)
{
  while (width > 0 && element[width - 1] == 0)
    width--;
  return width;
}

/* Appends a str, which is UTF-32, as UTF-8. */
static gboolean
append_text (GString *all, const guint8 *element, gsize width)
{
  gsize n = (length_of (element, width) + UNIT - 1) / UNIT;
  for (; n > 0; n--, element += UNIT) {
    guint32 character;
    memcpy (&character, element, UNIT);
    character = GUINT32_FROM_LE (character);
    if (character > 0x10ffff || (character >= 0xd800 && character < 0xe000))
      return FALSE;
    g_string_append_unichar (all, character);
  }
  return TRUE;
}

/* The elements of UTF-32, one behind the other in *all; NULL if one isn't text. */
static MusterString *
read_texts (const guint8 *data, gsize width, gsize n, GString *all)
{
  g_autofree MusterString *strings = g_new0 (MusterString, n + 1);
  for (gsize i = 0; i < n; i++) {
    const gsize before = all->len;
    if (!append_text (all, data + i * width, width))
      return NULL;
    strings[i].size = all->len - before;
  }
  const char *at = all->str;
  for (gsize i = 0; i < n; at += strings[i++].size)
    strings[i].data = at;
  return g_steal_pointer (&strings);
}

static MusterString *
read_bytes (const guint8 *data, gsize width, gsize n)
{
  MusterString *strings = g_new0 (MusterString, n + 1);
  for (gsize i = 0; i < n; i++)
    strings[i] =
        (MusterString){(const char *)data + i * width, length_of (data + i * width, width)};
  return strings;
}

/* Counts elements of that width; FALSE unless they have size bytes together. */
static gboolean
count_elements (int n_dims, const gint64 *dims, gsize width, gsize size, gsize *n)
{
  gsize needed = width;
  if (muster_shape_n_elements (n_dims, dims) < 0)
    return FALSE;
  for (int d = 0; d < n_dims; d++)
    if (__builtin_mul_overflow (needed, (gsize)dims[d], &needed))
      return FALSE;
  *n = needed / width;
  return needed == size;
}

MusterTensor *
muster_npy_read_strings (const MusterNpyStrings *type, int n_dims, const gint64 *dims,
                         GBytes *elements, GError **error)
{
  gsize size, n;
  const guint8 *data = g_bytes_get_data (elements, &size);
  g_autoptr (GString) all = g_string_new (NULL);
  if (!count_elements (n_dims, dims, type->width, size, &n)) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "its strings have %" G_GSIZE_FORMAT " bytes, which isn't what its shape needs",
                 size);
    return NULL;
  }
  g_autofree MusterString *strings =
      type->is_text ? read_texts (data, type->width, n, all) : read_bytes (data, type->width, n);
  if (strings == NULL) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "one of its strings isn't Unicode");
    return NULL;
  }
  return muster_tensor_new_strings (n_dims, dims, strings);
}

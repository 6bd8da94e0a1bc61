// SPDX-License-Identifier: Apache-2.0
/* Slices of tensors: their text form ("10 20 0,5:-"), intersections, copies between two slices
 * of one tensor, and the keys under which a checkpoint stores them. */
#include "checkpoint/format/slice_private.h"

#include "base/error.h"
#include "base/require_private.h"

#include <string.h>

static gboolean
parse_number (const char *text, gint64 *value)
{
  return g_ascii_string_to_signed (text, 10, 0, G_MAXINT64, value, NULL);
}

static gboolean
parse_extent (const char *text, MusterExtent *extent)
{
  if (g_str_equal (text, "-")) {
    *extent = (MusterExtent){.start = 0, .length = MUSTER_ALL};
    return TRUE;
  }
  g_auto (GStrv) numbers = g_strsplit (text, ",", 3);
  return g_strv_length (numbers) == 2 && parse_number (numbers[0], &extent->start) &&
         parse_number (numbers[1], &extent->length) && extent->length > 0 &&
         extent->length <= G_MAXINT64 - extent->start;
}

/* words: the sizes of the shape, if any, and the extents. */
static gboolean
parse_words (MusterSliceSpec *self, char **words)
{
  const guint n_words = g_strv_length (words);
  g_auto (GStrv) extents = g_strsplit (words[n_words - 1], ":", MUSTER_MAX_DIMS + 1);
  self->n_dims = (int)g_strv_length (extents);
  self->has_shape = n_words > 1;
  if (self->n_dims == 0 || self->n_dims > MUSTER_MAX_DIMS ||
      (self->has_shape && n_words - 1 != (guint)self->n_dims))
    return FALSE;
  for (int d = 0; d < self->n_dims; d++)
    if (!parse_extent (extents[d], &self->extents[d]) ||
        (self->has_shape && !parse_number (words[d], &self->dims[d])))
      return FALSE;
  return TRUE;
}

gboolean
muster_slice_spec_parse (MusterSliceSpec *self, const char *text, GError **error)
{
  muster_require (error, FALSE, self, text);
  g_auto (GStrv) words = g_strsplit (text, " ", MUSTER_MAX_DIMS + 2);
  if (words[0] != NULL && parse_words (self, words))
    return TRUE;
  return muster_fail (
      error, MUSTER_ERROR_INVALID_ARGUMENT,
      "invalid slice '%s': give the sizes of the whole tensor, then start,length for "
      "each dimension or '-' for all of it, as in '10 4 0,5:-'",
      text);
}

gboolean
muster_slice_resolve (int n_dims, const gint64 *dims, const MusterExtent *slice,
                      MusterExtent *resolved)
{
  g_return_val_if_fail (n_dims <= 0 || (dims != NULL && slice != NULL && resolved != NULL), FALSE);
  for (int d = 0; d < n_dims; d++) {
    MusterExtent extent = slice[d];
    if (extent.length == MUSTER_ALL && extent.start == 0)
      extent.length = dims[d];
    if (extent.start < 0 || extent.length < 0 || extent.start > dims[d] ||
        extent.length > dims[d] - extent.start)
      return FALSE;
    resolved[d] = extent;
  }
  return TRUE;
}

gboolean
muster_slice_is_whole (int n_dims, const gint64 *dims, const MusterExtent *slice)
{
  g_return_val_if_fail (n_dims <= 0 || (dims != NULL && slice != NULL), FALSE);
  for (int d = 0; d < n_dims; d++)
    if (slice[d].start != 0 || slice[d].length != dims[d])
      return FALSE;
  return TRUE;
}

gint64
muster_slice_volume (int n_dims, const MusterExtent *slice)
{
  g_return_val_if_fail (n_dims <= 0 || slice != NULL, -1);
  gint64 lengths[MUSTER_MAX_DIMS];
  for (int d = 0; d < n_dims; d++)
    lengths[d] = slice[d].length;
  return muster_shape_n_elements (n_dims, lengths);
}

gboolean
muster_slice_intersect (int n_dims, const MusterExtent *a, const MusterExtent *b,
                        MusterExtent *common)
{
  g_return_val_if_fail (n_dims <= 0 || (a != NULL && b != NULL && common != NULL), FALSE);
  for (int d = 0; d < n_dims; d++) {
    const gint64 start = MAX (a[d].start, b[d].start);
    const gint64 end = MIN (a[d].start + a[d].length, b[d].start + b[d].length);
    if (end <= start)
      return FALSE;
    common[d] = (MusterExtent){.start = start, .length = end - start};
  }
  return TRUE;
}

/* Computes the distance of neighbours in each dimension of a slice's array, and the start of
 * `at` in it; both in elements. */
static gint64
strides_of (int n_dims, const MusterExtent *slice, const MusterExtent *at, gint64 *strides)
{
  gint64 stride = 1, offset = 0;
  for (int d = n_dims - 1; d >= 0; d--) {
    strides[d] = stride;
    offset += (at[d].start - slice[d].start) * stride;
    stride *= slice[d].length;
  }
  return offset;
}

gboolean
muster_slice_is_run (int n_dims, const MusterExtent *part, const MusterExtent *whole,
                     gint64 *offset)
{
  g_return_val_if_fail (offset != NULL, FALSE);
  g_return_val_if_fail (n_dims <= 0 || (part != NULL && whole != NULL), FALSE);
  gint64 strides[MUSTER_MAX_DIMS];
  int d = 0;
  while (d < n_dims && part[d].length == 1)
    d++;
  for (d++; d < n_dims; d++)
    if (part[d].length != whole[d].length)
      return FALSE;
  *offset = strides_of (n_dims, whole, part, strides);
  return TRUE;
}

/* Steps to the next run of `common`, like an odometer over the dimensions before n_outer. */
static gboolean
step (int n_outer, const MusterExtent *common, gint64 *at, const gint64 *from_strides, gint64 *from,
      const gint64 *to_strides, gint64 *to)
{
  for (int d = n_outer - 1; d >= 0; d--) {
    *from += from_strides[d];
    *to += to_strides[d];
    if (++at[d] < common[d].length)
      return TRUE;
    *from -= at[d] * from_strides[d];
    *to -= at[d] * to_strides[d];
    at[d] = 0;
  }
  return FALSE;
}

void
muster_slice_copy (int n_dims, const MusterExtent *common, const MusterExtent *from,
                   const void *from_data, const MusterExtent *to, void *to_data, gsize element_size)
{
  g_return_if_fail (from_data != NULL && to_data != NULL);
  g_return_if_fail (n_dims <= 0 || (common != NULL && from != NULL && to != NULL));
  gint64 from_strides[MUSTER_MAX_DIMS], to_strides[MUSTER_MAX_DIMS], at[MUSTER_MAX_DIMS] = {0};
  if (muster_slice_volume (n_dims, common) <= 0)
    return;
  /* The last dimensions that both slices have completely make one run. */
  gsize run = element_size;
  int n_outer = n_dims;
  while (n_outer > 0) {
    const int d = --n_outer;
    run *= (gsize)common[d].length;
    if (common[d].length != from[d].length || common[d].length != to[d].length)
      break;
  }
  gint64 source = strides_of (n_dims, from, common, from_strides);
  gint64 target = strides_of (n_dims, to, common, to_strides);
  do
    memcpy ((char *)to_data + (gsize)target * element_size,
            (const char *)from_data + (gsize)source * element_size, run);
  while (step (n_outer, common, at, from_strides, &source, to_strides, &target));
}

/* Keys are in Google's "ordered code", whose bytes sort like the values. A text: NUL and 0xff
 * are escaped by a byte after them, and NUL 1 ends it. */
static void
append_text (GByteArray *key, const char *text)
{
  for (const char *at = text; *at != '\0'; at++) {
    g_byte_array_append (key, (const guint8 *)at, 1);
    if ((guint8)*at == 0xff)
      g_byte_array_append (key, (const guint8 *)"\0", 1);
  }
  g_byte_array_append (key, (const guint8 *)"\0\1", 2);
}

/* A number from 0: the number of its bytes, then these, the highest first. */
static void
append_count (GByteArray *key, guint8 value)
{
  const guint8 bytes[2] = {1, value};
  if (value == 0)
    g_byte_array_append (key, &value, 1);
  else
    g_byte_array_append (key, bytes, 2);
}

/* A number with a sign: big-endian in as few bytes as leave room for a head of as many one bits as
 * there are bytes; the head, and with it the number's sign, is inverted for negative ones. */
static void
append_signed (GByteArray *key, gint64 value)
{
  const guint64 size_of = (guint64)(value < 0 ? ~value : value);
  const guint bits = size_of == 0 ? 0 : 64 - (guint)__builtin_clzll (size_of);
  const guint length = bits / 7 + 1;
  const guint16 head = (guint16)(0xffffu << (16 - length));
  guint8 bytes[10];
  memset (bytes, value < 0 ? 0xff : 0, 2);
  for (int i = 0; i < 8; i++)
    bytes[2 + i] = (guint8)((guint64)value >> (56 - 8 * i));
  guint8 *first = bytes + sizeof bytes - length;
  first[0] ^= (guint8)(head >> 8);
  if (length > 1)
    first[1] ^= (guint8)head;
  g_byte_array_append (key, first, length);
}

void
muster_slice_append_key (GByteArray *key, const char *name, int n_dims, const MusterExtent *slice)
{
  g_return_if_fail (key != NULL && name != NULL && (n_dims <= 0 || slice != NULL));
  append_count (key, 0);
  append_text (key, name);
  append_count (key, (guint8)n_dims);
  for (int d = 0; d < n_dims; d++) {
    append_signed (key, slice[d].start);
    append_signed (key, slice[d].length);
  }
}

char *
muster_slice_to_string (int n_dims, const MusterExtent *slice)
{
  g_return_val_if_fail (n_dims <= 0 || slice != NULL, NULL);
  GString *text = g_string_new (NULL);
  for (int d = 0; d < n_dims; d++) {
    if (d > 0)
      g_string_append_c (text, ':');
    if (slice[d].length == MUSTER_ALL)
      g_string_append_c (text, '-');
    else
      g_string_append_printf (text, "%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT, slice[d].start,
                              slice[d].length);
  }
  return g_string_free (text, FALSE);
}

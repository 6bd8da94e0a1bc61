// SPDX-License-Identifier: Apache-2.0
/* Strings in a data file: all lengths as varints, their checksum, then the texts. The check
 * takes the bytes in any pieces. */
#include "checkpoint/format/bundle_strings_private.h"

#include "base/crc32c_private.h"
#include "base/protowire_private.h"

static guint32
extend_by_length (guint32 crc, guint64 length)
{
  const guint64 wide = GUINT64_TO_LE (length);
  const guint32 narrow = GUINT32_TO_LE ((guint32)length);
  return length <= G_MAXUINT32 ? muster_crc32c_extend (crc, &narrow, sizeof narrow)
                               : muster_crc32c_extend (crc, &wide, sizeof wide);
}

guint32
muster_strings_encode (const MusterTensor *tensor, GByteArray *head)
{
  const gint64 n = muster_tensor_n_elements (tensor);
  guint32 crc = 0;
  for (gint64 i = 0; i < n; i++) {
    const gsize size = muster_tensor_string (tensor, i).size;
    muster_proto_put_varint (head, size);
    crc = extend_by_length (crc, size);
  }
  const guint32 stored = GUINT32_TO_LE (muster_crc32c_mask (crc));
  g_byte_array_append (head, (const guint8 *)&stored, sizeof stored);
  crc = muster_crc32c_extend (crc, &stored, sizeof stored);
  for (gint64 i = 0; i < n; i++) {
    const MusterString text = muster_tensor_string (tensor, i);
    crc = muster_crc32c_extend (crc, text.data, text.size);
  }
  return crc;
}

/* Reads a length. Only the shortest encoding is valid, so that no other bytes have the same
 * meaning. */
static gboolean
read_length (MusterProtoReader *reader, guint64 *length)
{
  const guint8 *start = reader->at;
  return muster_proto_read_varint (reader, length) &&
         (reader->at == start + 1 || reader->at[-1] != 0);
}

gboolean
muster_strings_decode (const guint8 *data, gsize size, gint64 n_elements, guint32 masked_crc,
                       MusterString *strings)
{
  MusterProtoReader reader = muster_proto_reader (data, size);
  guint32 crc = 0, stored;
  for (gint64 i = 0; i < n_elements; i++) {
    guint64 length;
    if (!read_length (&reader, &length) || length > size)
      return FALSE;
    strings[i].size = (gsize)length;
    crc = extend_by_length (crc, length);
  }
  if ((gsize)(reader.end - reader.at) < sizeof stored)
    return FALSE;
  memcpy (&stored, reader.at, sizeof stored);
  if (muster_crc32c_unmask (GUINT32_FROM_LE (stored)) != crc)
    return FALSE;
  crc = muster_crc32c_extend (crc, &stored, sizeof stored);
  reader.at += sizeof stored;
  crc = muster_crc32c_extend (crc, reader.at, (gsize)(reader.end - reader.at));
  for (gint64 i = 0; i < n_elements; i++) {
    if (strings[i].size > (gsize)(reader.end - reader.at))
      return FALSE;
    strings[i].data = (const char *)reader.at;
    reader.at += strings[i].size;
  }
  return muster_proto_at_end (&reader) && muster_crc32c_mask (crc) == masked_crc;
}

void
muster_strings_check_init (MusterStringsCheck *self, MusterDType dtype, gint64 n_elements)
{
  *self = (MusterStringsCheck){.is_variant = dtype == MUSTER_VARIANT, .n_left = n_elements};
}

static gboolean
end_length (MusterStringsCheck *self)
{
  const guint64 wide = GUINT64_TO_LE (self->length);
  if (!g_uint64_checked_add (&self->texts_left, self->texts_left, self->length))
    return FALSE;
  self->crc = self->is_variant ? muster_crc32c_extend (self->crc, &wide, sizeof wide)
                               : extend_by_length (self->crc, self->length);
  self->length = 0;
  self->shift = 0;
  self->has_length = TRUE;
  self->n_left--;
  return TRUE;
}

/* Takes one byte of a length. */
static gboolean
feed_length (MusterStringsCheck *self, guint8 byte)
{
  const guint64 bits = byte & 0x7f;
  if (self->shift > 63 || (bits << self->shift) >> self->shift != bits ||
      (byte == 0 && self->shift > 0))
    return FALSE;
  self->length |= bits << self->shift;
  self->shift += 7;
  return byte >= 0x80 || end_length (self);
}

static gboolean
feed_stored (MusterStringsCheck *self, guint8 byte)
{
  guint32 stored;
  self->stored[self->n_stored++] = byte;
  if (self->n_stored < sizeof stored)
    return TRUE;
  memcpy (&stored, self->stored, sizeof stored);
  if (muster_crc32c_unmask (GUINT32_FROM_LE (stored)) != self->crc)
    return FALSE;
  self->crc = muster_crc32c_extend (self->crc, &stored, sizeof stored);
  return TRUE;
}

static gsize
feed_text (MusterStringsCheck *self, const guint8 *data, gsize size)
{
  const gsize n = (gsize)MIN (size, self->texts_left);
  self->crc = muster_crc32c_extend (self->crc, data, n);
  self->texts_left -= n;
  return n;
}

static gboolean
feed_variants (MusterStringsCheck *self, const guint8 *data, gsize size)
{
  for (gsize at = 0; at < size;) {
    if (!self->has_length) {
      if (self->n_left == 0 || !feed_length (self, data[at++]))
        return FALSE;
    } else if (self->texts_left > 0) {
      at += feed_text (self, data + at, size - at);
    } else if (!feed_stored (self, data[at++])) {
      return FALSE;
    } else if (self->n_stored == sizeof self->stored) {
      self->n_stored = 0;
      self->has_length = FALSE;
    }
  }
  return TRUE;
}

gboolean
muster_strings_check_feed (MusterStringsCheck *self, const guint8 *data, gsize size)
{
  gsize at = 0;
  if (self->is_variant)
    return feed_variants (self, data, size);
  for (; at < size && self->n_left > 0; at++)
    if (!feed_length (self, data[at]))
      return FALSE;
  for (; at < size && self->n_stored < sizeof self->stored; at++)
    if (!feed_stored (self, data[at]))
      return FALSE;
  return feed_text (self, data + at, size - at) == size - at;
}

gboolean
muster_strings_check_end (const MusterStringsCheck *self, guint32 masked_crc)
{
  const gboolean is_complete = self->is_variant ? !self->has_length && self->shift == 0
                                                : self->n_stored == sizeof self->stored;
  return is_complete && self->n_left == 0 && self->texts_left == 0 &&
         muster_crc32c_mask (self->crc) == masked_crc;
}

// SPDX-License-Identifier: Apache-2.0
#include "bundle/bundle_strings.h"

#include "base/protowire.h"
#include "bundle/crc32c.h"

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

gboolean
muster_strings_decode (const guint8 *data, gsize size, gint64 n_elements, guint32 masked_crc,
                       MusterString *strings)
{
  MusterProtoReader reader = muster_proto_reader (data, size);
  guint32 crc = 0, stored;
  for (gint64 i = 0; i < n_elements; i++) {
    guint64 length;
    if (!muster_proto_read_varint (&reader, &length) || length > size)
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

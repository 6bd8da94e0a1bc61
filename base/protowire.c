// SPDX-License-Identifier: Apache-2.0
/* Reads and writes protobuf's wire format: varints, lengths, fields. */
#include "base/protowire_private.h"

static __attribute__ ((noinline)) gboolean
read_long_varint (MusterProtoReader *self, guint64 *value)
{
  const guint8 *at = self->at;
  guint64 result = 0;
  for (int shift = 0; shift < 70 && at < self->end; shift += 7) {
    const guint8 byte = *at++;
    result |= (guint64)(byte & 0x7f) << shift;
    if (byte < 0x80) {
      self->at = at;
      *value = result;
      return TRUE;
    }
  }
  return FALSE;
}

/* Most varints are one byte long. */
static inline gboolean
read_varint (MusterProtoReader *self, guint64 *value)
{
  if (G_UNLIKELY (self->at >= self->end || *self->at >= 0x80))
    return read_long_varint (self, value);
  *value = *self->at++;
  return TRUE;
}

gboolean
muster_proto_read_varint (MusterProtoReader *self, guint64 *value)
{
  return read_varint (self, value);
}

static inline gboolean
read_fixed (MusterProtoReader *self, gsize size, guint64 *value)
{
  if ((gsize)(self->end - self->at) < size)
    return FALSE;
  if (size == 4) {
    guint32 half;
    memcpy (&half, self->at, sizeof half);
    *value = GUINT32_FROM_LE (half);
  } else {
    guint64 whole;
    memcpy (&whole, self->at, sizeof whole);
    *value = GUINT64_FROM_LE (whole);
  }
  self->at += size;
  return TRUE;
}

static inline gboolean
read_bytes (MusterProtoReader *self, MusterProtoField *field)
{
  guint64 size;
  if (!read_varint (self, &size) || size > (gsize)(self->end - self->at))
    return FALSE;
  field->data = self->at;
  field->size = size;
  self->at += size;
  return TRUE;
}

static inline gboolean
read_value (MusterProtoReader *self, MusterProtoField *field)
{
  switch (field->type) {
  case MUSTER_WIRE_VARINT:
    return read_varint (self, &field->value);
  case MUSTER_WIRE_FIXED64:
    return read_fixed (self, 8, &field->value);
  case MUSTER_WIRE_BYTES:
    return read_bytes (self, field);
  case MUSTER_WIRE_FIXED32:
    return read_fixed (self, 4, &field->value);
  default:
    return FALSE;
  }
}

gboolean
muster_proto_read_field (MusterProtoReader *self, MusterProtoField *field)
{
  MusterProtoReader ahead = *self;
  guint64 tag;
  if (muster_proto_at_end (self) || !read_varint (&ahead, &tag) || tag > G_MAXUINT32 ||
      tag >> 3 == 0)
    return FALSE;
  *field = (MusterProtoField){.number = (guint32)(tag >> 3), .type = tag & 7};
  if (!read_value (&ahead, field))
    return FALSE; /* self doesn't move, so that it isn't at the end */
  *self = ahead;
  return TRUE;
}

static void
append (GByteArray *out, const guint8 *bytes, const guint8 *end)
{
  g_byte_array_append (out, bytes, (guint)(end - bytes));
}

void
muster_proto_put_varint (GByteArray *out, guint64 value)
{
  guint8 bytes[MUSTER_PROTO_VARINT_MAX];
  append (out, bytes, muster_proto_store_varint (bytes, value));
}

void
muster_proto_put_uint (GByteArray *out, guint32 number, guint64 value)
{
  guint8 bytes[2 * MUSTER_PROTO_VARINT_MAX];
  append (out, bytes, muster_proto_store_uint (bytes, number, value));
}

void
muster_proto_put_bytes (GByteArray *out, guint32 number, const void *data, gsize size)
{
  g_return_if_fail (size <= G_MAXUINT32);
  muster_proto_put_head (out, number, size);
  if (size > 0)
    g_byte_array_append (out, data, (guint)size);
}

void
muster_proto_put_string (GByteArray *out, guint32 number, const char *text)
{
  if (text != NULL && *text != '\0')
    muster_proto_put_bytes (out, number, text, strlen (text));
}

void
muster_proto_put_head (GByteArray *out, guint32 number, gsize size)
{
  guint8 bytes[2 * MUSTER_PROTO_VARINT_MAX];
  append (out, bytes, muster_proto_store_head (bytes, number, size));
}

gsize
muster_proto_varint_size (guint64 value)
{
  gsize n = 1;
  while (value >= 0x80) {
    value >>= 7;
    n++;
  }
  return n;
}

gsize
muster_proto_field_size (guint32 number, gsize size)
{
  return muster_proto_varint_size ((guint64)number << 3) + muster_proto_varint_size (size) + size;
}

void
muster_proto_put_float (GByteArray *out, guint32 number, float value)
{
  guint32 bits;
  memcpy (&bits, &value, sizeof bits);
  bits = GUINT32_TO_LE (bits);
  muster_proto_put_varint (out, (guint64)number << 3 | MUSTER_WIRE_FIXED32);
  g_byte_array_append (out, (const guint8 *)&bits, sizeof bits);
}

void
muster_proto_put_double (GByteArray *out, guint32 number, double value)
{
  guint64 bits;
  memcpy (&bits, &value, sizeof bits);
  bits = GUINT64_TO_LE (bits);
  muster_proto_put_varint (out, (guint64)number << 3 | MUSTER_WIRE_FIXED64);
  g_byte_array_append (out, (const guint8 *)&bits, sizeof bits);
}

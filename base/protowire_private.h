// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>
#include <string.h>

G_BEGIN_DECLS

/* Reads and writes protobuf's wire format for the few messages that are frequent or large (a
 * tensor, a step), without a schema, copies or allocations. A reader goes through a range of bytes
 * that the caller keeps alive. Every length is checked against the remaining bytes before use. */

typedef struct {
  const guint8 *at;
  const guint8 *end;
} MusterProtoReader;

enum {
  MUSTER_WIRE_VARINT = 0,
  MUSTER_WIRE_FIXED64 = 1,
  MUSTER_WIRE_BYTES = 2,
  MUSTER_WIRE_FIXED32 = 5
};

/* One field: its number, its wire type and its value. */
typedef struct {
  guint32 number;
  guint8 type;
  guint64 value;      /* VARINT, FIXED64 and FIXED32: the number */
  const guint8 *data; /* BYTES: the first (not owned) */
  gsize size;         /* BYTES: their number */
} MusterProtoField;

static inline MusterProtoReader
muster_proto_reader (const void *data, gsize size)
{
  const guint8 *start = data; /* may be NULL if size is 0 */
  return (MusterProtoReader){.at = start, .end = size > 0 ? start + size : start};
}

static inline gboolean
muster_proto_at_end (const MusterProtoReader *self)
{
  return self->at >= self->end;
}

/* Reads a varint. FALSE if it extends past the end or is longer than ten bytes. */
gboolean muster_proto_read_varint (MusterProtoReader *self, guint64 *value);

/* Reads the next field. FALSE at the end and on malformed bytes; muster_proto_at_end () is TRUE
 * only in the first case. Groups are malformed. */
gboolean muster_proto_read_field (MusterProtoReader *self, MusterProtoField *field);

/* Each function appends to a GByteArray. number is the field's. */
void muster_proto_put_varint (GByteArray *out, guint64 value);
void muster_proto_put_uint (GByteArray *out, guint32 number, guint64 value); /* omitted if 0 */
void muster_proto_put_bytes (GByteArray *out, guint32 number, const void *data, gsize size);
void muster_proto_put_string (GByteArray *out, guint32 number,
                              const char *text); /* omitted if NULL or "" */
/* Fixed-width numbers. 0 is written too. */
void muster_proto_put_float (GByteArray *out, guint32 number, float value);
void muster_proto_put_double (GByteArray *out, guint32 number, double value);
/* Writes the tag and the length; the caller appends size bytes. */
void muster_proto_put_head (GByteArray *out, guint32 number, gsize size);
gsize muster_proto_varint_size (guint64 value);
/* The size of a whole field of size bytes: with its tag and length. */
gsize muster_proto_field_size (guint32 number, gsize size);

/* The functions below write to memory that the caller has made large enough. Each returns the end
 * of what it wrote. */
#define MUSTER_PROTO_VARINT_MAX 10

static inline guint8 *
muster_proto_store_varint (guint8 *at, guint64 value)
{
  for (; value >= 0x80; value >>= 7)
    *at++ = (guint8)(value | 0x80);
  *at++ = (guint8)value;
  return at;
}

static inline guint8 *
muster_proto_store_tag (guint8 *at, guint32 number, guint8 type)
{
  return muster_proto_store_varint (at, (guint64)number << 3 | type);
}

/* Omitted if 0. */
static inline guint8 *
muster_proto_store_uint (guint8 *at, guint32 number, guint64 value)
{
  return value == 0 ? at
                    : muster_proto_store_varint (
                          muster_proto_store_tag (at, number, MUSTER_WIRE_VARINT), value);
}

static inline guint8 *
muster_proto_store_head (guint8 *at, guint32 number, gsize size)
{
  return muster_proto_store_varint (muster_proto_store_tag (at, number, MUSTER_WIRE_BYTES), size);
}

G_END_DECLS

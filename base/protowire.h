// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>
#include <string.h>

G_BEGIN_DECLS

/* Reading and writing protobuf's wire format by hand, for the few messages that are hot or large (a
 * tensor, a step): no schema, no copy, no allocation. A reader walks a range of bytes that the
 * caller keeps alive; every length is checked against what is left before it is trusted. */

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

/* One field: its number, its wire type, and what it holds. */
typedef struct {
  guint32 number;
  guint8 type;
  guint64 value;      /* VARINT, FIXED64 and FIXED32: the number */
  const guint8 *data; /* BYTES: where they start (not owned) */
  gsize size;         /* BYTES: how many */
} MusterProtoField;

static inline MusterProtoReader
muster_proto_reader (const void *data, gsize size)
{
  const guint8 *start = data; /* NULL where there is nothing, to which C adds nothing either */
  return (MusterProtoReader){.at = start, .end = size > 0 ? start + size : start};
}

static inline gboolean
muster_proto_at_end (const MusterProtoReader *self)
{
  return self->at >= self->end;
}

/* Reads a varint; FALSE if it runs past the end or over ten bytes. */
gboolean muster_proto_read_varint (MusterProtoReader *self, guint64 *value);

/* Reads the next field; FALSE at the end and on malformed bytes (the two differ by
 * muster_proto_at_end (): at the end nothing is left). Groups are malformed. */
gboolean muster_proto_read_field (MusterProtoReader *self, MusterProtoField *field);

/* Writing: each appends to a GByteArray. The number is the field's. */
void muster_proto_put_varint (GByteArray *out, guint64 value);
void muster_proto_put_uint (GByteArray *out, guint32 number, guint64 value); /* skipped when 0 */
void muster_proto_put_bytes (GByteArray *out, guint32 number, const void *data, gsize size);
void muster_proto_put_string (GByteArray *out, guint32 number,
                              const char *text); /* skipped when NULL or "" */
/* Fixed-width numbers; written also where they are 0. */
void muster_proto_put_float (GByteArray *out, guint32 number, float value);
void muster_proto_put_double (GByteArray *out, guint32 number, double value);
/* The tag and the length alone: the caller adds size bytes after it. */
void muster_proto_put_head (GByteArray *out, guint32 number, gsize size);
gsize muster_proto_varint_size (guint64 value);

/* Writing where there is room for it, which the caller sees to: each gives where it ends. */
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

/* Skipped when 0. */
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

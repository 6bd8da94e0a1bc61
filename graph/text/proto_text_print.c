// SPDX-License-Identifier: Apache-2.0
/* Prints a message in protobuf's text form, along its descriptor. */
#include "base/error.h"
#include "base/protowire_private.h"
#include "base/unpack_private.h"
#include "graph/text/proto_text_private.h"

#include <string.h>

/* The bytes were checked along the descriptor before, so their nesting is limited. */

static gboolean print_message (GString *out, const ProtobufCMessageDescriptor *descriptor,
                               MusterProtoReader reader, int depth, GError **error);

static void
print_quoted (GString *out, const guint8 *data, gsize size)
{
  g_string_append_c (out, '"');
  for (gsize i = 0; i < size; i++) {
    if (data[i] == '"' || data[i] == '\\')
      g_string_append_printf (out, "\\%c", data[i]);
    else if (data[i] >= ' ' && data[i] < 0x7f)
      g_string_append_c (out, (char)data[i]);
    else
      g_string_append_printf (out, "\\%03o", data[i]);
  }
  g_string_append_c (out, '"');
}

static void
print_real (GString *out, double value, const char *format)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  if (value != value)
    g_string_append (out, "nan");
  else
    g_string_append (out, g_ascii_formatd (text, sizeof text, format, value));
}

static void
print_enum (GString *out, const ProtobufCEnumDescriptor *descriptor, gint32 number)
{
  const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value (descriptor, number);
  if (value != NULL)
    g_string_append (out, value->name);
  else
    g_string_append_printf (out, "%d", number);
}

static gint64
unzigzag (guint64 value)
{
  return (gint64)(value >> 1) ^ -(gint64)(value & 1);
}

static void
print_number (GString *out, const ProtobufCFieldDescriptor *field, guint64 bits)
{
  const guint32 low = (guint32)bits;
  float single;
  double real;
  switch (field->type) {
  case PROTOBUF_C_TYPE_BOOL:
    g_string_append (out, bits != 0 ? "true" : "false");
    break;
  case PROTOBUF_C_TYPE_ENUM:
    print_enum (out, field->descriptor, (gint32)low);
    break;
  case PROTOBUF_C_TYPE_FLOAT:
    memcpy (&single, &low, sizeof single);
    print_real (out, (double)single, "%.9g");
    break;
  case PROTOBUF_C_TYPE_DOUBLE:
    memcpy (&real, &bits, sizeof real);
    print_real (out, real, "%.17g");
    break;
  case PROTOBUF_C_TYPE_INT32:
  case PROTOBUF_C_TYPE_SFIXED32:
    g_string_append_printf (out, "%d", (gint32)low);
    break;
  case PROTOBUF_C_TYPE_UINT32:
  case PROTOBUF_C_TYPE_FIXED32:
    g_string_append_printf (out, "%u", low);
    break;
  case PROTOBUF_C_TYPE_SINT32:
  case PROTOBUF_C_TYPE_SINT64:
    g_string_append_printf (out, "%" G_GINT64_FORMAT, unzigzag (bits));
    break;
  case PROTOBUF_C_TYPE_INT64:
  case PROTOBUF_C_TYPE_SFIXED64:
    g_string_append_printf (out, "%" G_GINT64_FORMAT, (gint64)bits);
    break;
  default:
    g_string_append_printf (out, "%" G_GUINT64_FORMAT, bits);
  }
}

static void
begin_line (GString *out, const char *name, int depth)
{
  g_string_append_printf (out, "%*s%s", 2 * depth, "", name);
}

static void
print_field (GString *out, const ProtobufCFieldDescriptor *field, guint64 bits, int depth)
{
  begin_line (out, field->name, depth);
  g_string_append (out, ": ");
  print_number (out, field, bits);
  g_string_append_c (out, '\n');
}

/* Numbers that stand in a row. */
static void
print_packed (GString *out, const ProtobufCFieldDescriptor *field, const MusterProtoField *packed,
              int depth)
{
  const gboolean is_wide = field->type == PROTOBUF_C_TYPE_DOUBLE ||
                           field->type == PROTOBUF_C_TYPE_FIXED64 ||
                           field->type == PROTOBUF_C_TYPE_SFIXED64;
  const gboolean is_fixed = is_wide || field->type == PROTOBUF_C_TYPE_FLOAT ||
                            field->type == PROTOBUF_C_TYPE_FIXED32 ||
                            field->type == PROTOBUF_C_TYPE_SFIXED32;
  const gsize width = is_wide ? 8 : 4;
  MusterProtoReader reader = muster_proto_reader (packed->data, packed->size);
  while (!muster_proto_at_end (&reader)) {
    guint64 bits = 0;
    if (is_fixed && (gsize)(reader.end - reader.at) >= width) {
      memcpy (&bits, reader.at, width);
      bits = GUINT64_FROM_LE (bits);
      reader.at += width;
    } else if (is_fixed || !muster_proto_read_varint (&reader, &bits)) {
      return;
    }
    print_field (out, field, bits, depth);
  }
}

static gboolean
print_value (GString *out, const ProtobufCFieldDescriptor *known, const MusterProtoField *field,
             int depth, GError **error)
{
  if (known->type == PROTOBUF_C_TYPE_MESSAGE) {
    begin_line (out, known->name, depth);
    g_string_append (out, " {\n");
    if (!print_message (out, known->descriptor, muster_proto_reader (field->data, field->size),
                        depth + 1, error))
      return FALSE;
    begin_line (out, "}\n", depth);
  } else if (known->type == PROTOBUF_C_TYPE_STRING || known->type == PROTOBUF_C_TYPE_BYTES) {
    begin_line (out, known->name, depth);
    g_string_append (out, ": ");
    print_quoted (out, field->data, field->size);
    g_string_append_c (out, '\n');
  } else if (field->type == MUSTER_WIRE_BYTES) {
    print_packed (out, known, field, depth);
  } else {
    print_field (out, known, field->value, depth);
  }
  return TRUE;
}

static gboolean
print_message (GString *out, const ProtobufCMessageDescriptor *descriptor, MusterProtoReader reader,
               int depth, GError **error)
{
  MusterProtoField field;
  while (muster_proto_read_field (&reader, &field)) {
    const ProtobufCFieldDescriptor *known =
        protobuf_c_message_descriptor_get_field (descriptor, field.number);
    if (known == NULL) {
      return muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED,
                          "Writing text: unknown field %u in %s; write it as binary", field.number,
                          descriptor->short_name);
    }
    if (!print_value (out, known, &field, depth, error))
      return FALSE;
  }
  return TRUE;
}

GString *
muster_proto_text_print (const ProtobufCMessageDescriptor *descriptor, const void *data, gsize size,
                         GError **error)
{
  g_autoptr (GString) out = g_string_new (NULL);
  if (!muster_unpack_check (descriptor, data, size, descriptor->short_name, error) ||
      !print_message (out, descriptor, muster_proto_reader (data, size), 0, error))
    return NULL;
  return g_steal_pointer (&out);
}

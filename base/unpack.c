// SPDX-License-Identifier: Apache-2.0
#include "base/unpack_private.h"

#include "base/arena_private.h"
#include "base/error.h"
#include "base/hash_private.h"
#include "base/protowire_private.h"

#include <string.h>

/* One pass along a message's descriptor both checks and unpacks. protobuf-c's own unpacking limits
 * nothing, loses numbers when a message comes in parts, and would be a second pass. Without a
 * message to fill, the pass only checks. */

/* A message that was unpacked, and the bytes that it came from. Depth counts, as it is bounded. */
typedef struct {
  const ProtobufCMessageDescriptor *descriptor;
  const guint8 *data; /* NULL: empty */
  gsize size;
  int depth;
  ProtobufCMessage *message;
} Shared;

/* Each place holds the last one that fell to it. */
#define N_SHARED      4096
#define LEAST_SHARING ((gsize)64 << 10) /* bytes of the whole: less isn't worth the table */
#define MOST_SHARED   256 /* bytes: longer ones are rarely the same, and cost more to compare */

typedef struct {
  const char *what;
  GError **error;
  MusterArena *arena; /* (nullable) when only checking */
  Shared *shared;     /* (nullable) */
  gboolean is_part;   /* of bytes that live as long as the arena */
} Walk;

static gboolean walk_message (Walk *walk, const ProtobufCMessageDescriptor *descriptor,
                              MusterProtoReader reader, ProtobufCMessage *message, int depth);

static gboolean
fits (Walk *walk)
{
  return walk->arena == NULL || muster_arena_fits (walk->arena, walk->error);
}

/* Returns whether as much again would fit, without an error. */
static gboolean
has_room (Walk *walk, gsize size)
{
  return walk->arena == NULL || muster_arena_has_room (walk->arena, size);
}

static gboolean
refuse_field (Walk *walk, const ProtobufCMessageDescriptor *descriptor,
              const ProtobufCFieldDescriptor *field, const char *why)
{
  if (!fits (walk))
    return FALSE; /* with that error */
  if (field != NULL)
    muster_fail (walk->error, MUSTER_ERROR_INVALID_ARGUMENT, "Reading the %s: field '%s' of %s %s",
                 walk->what, field->name, descriptor->name, why);
  else
    muster_fail (walk->error, MUSTER_ERROR_INVALID_ARGUMENT, "Reading the %s: %s %s", walk->what,
                 descriptor->name, why);
  return FALSE;
}

/* Fields mostly come in order, and repeated ones in a row: *hint is the index found last. */
static const ProtobufCFieldDescriptor *
find_field (const ProtobufCMessageDescriptor *descriptor, guint32 number, guint *hint)
{
  for (guint i = *hint; i < descriptor->n_fields && i < *hint + 2; i++)
    if (descriptor->fields[i].id == number) {
      *hint = i;
      return &descriptor->fields[i];
    }
  for (guint i = 0; i < descriptor->n_fields; i++)
    if (descriptor->fields[i].id == number) {
      *hint = i;
      return &descriptor->fields[i];
    }
  return NULL;
}

static guint8
wire_type_of (ProtobufCType type)
{
  switch (type) {
  case PROTOBUF_C_TYPE_SFIXED32:
  case PROTOBUF_C_TYPE_FIXED32:
  case PROTOBUF_C_TYPE_FLOAT:
    return MUSTER_WIRE_FIXED32;
  case PROTOBUF_C_TYPE_SFIXED64:
  case PROTOBUF_C_TYPE_FIXED64:
  case PROTOBUF_C_TYPE_DOUBLE:
    return MUSTER_WIRE_FIXED64;
  case PROTOBUF_C_TYPE_STRING:
  case PROTOBUF_C_TYPE_BYTES:
  case PROTOBUF_C_TYPE_MESSAGE:
    return MUSTER_WIRE_BYTES;
  default:
    return MUSTER_WIRE_VARINT;
  }
}

/* ASCII, which names are, eight bytes at a time. */
gboolean
muster_is_text (const guint8 *data, gsize size)
{
  const guint64 ones = 0x0101010101010101u, highs = 0x8080808080808080u;
  gsize i = 0;
  for (; i + 8 <= size; i += 8) {
    guint64 word;
    memcpy (&word, data + i, sizeof word);
    if (((word | (word - ones)) & highs) != 0)
      break; /* a byte above 127, or a zero byte */
  }
  while (i < size && data[i] != 0 && data[i] < 0x80)
    i++;
  return i == size || g_utf8_validate_len ((const char *)data + i, size - i, NULL);
}

/* --- filling a message in --- */

static gsize
element_size (ProtobufCType type)
{
  switch (type) {
  case PROTOBUF_C_TYPE_BOOL:
    return sizeof (protobuf_c_boolean);
  case PROTOBUF_C_TYPE_INT64:
  case PROTOBUF_C_TYPE_SINT64:
  case PROTOBUF_C_TYPE_UINT64:
  case PROTOBUF_C_TYPE_SFIXED64:
  case PROTOBUF_C_TYPE_FIXED64:
  case PROTOBUF_C_TYPE_DOUBLE:
    return 8;
  case PROTOBUF_C_TYPE_STRING:
  case PROTOBUF_C_TYPE_MESSAGE:
    return sizeof (gpointer);
  case PROTOBUF_C_TYPE_BYTES:
    return sizeof (ProtobufCBinaryData);
  default:
    return 4;
  }
}

/* Appends an element to an array of n. Its capacity is the next power of two, at least 2, so it
 * needn't be stored. */
static gpointer
add_element (Walk *walk, gpointer *array, gsize n, gsize size)
{
  if (n == 0 || (n >= 2 && (n & (n - 1)) == 0)) {
    gpointer larger = muster_arena_take (walk->arena, MAX (n * 2, 2) * size, 8);
    if (n > 0)
      memcpy (larger, *array, n * size);
    *array = larger;
  }
  return (guint8 *)*array + n * size;
}

/* The place of the field's value. A oneof that held another field is cleared first. */
static gpointer
field_address (Walk *walk, const ProtobufCFieldDescriptor *field, ProtobufCMessage *message)
{
  guint8 *base = (guint8 *)message;
  gpointer member = base + field->offset;
  const gsize size = element_size (field->type);
  if (field->label == PROTOBUF_C_LABEL_REPEATED) {
    size_t *n = (size_t *)(gpointer)(base + field->quantifier_offset);
    gpointer element = add_element (walk, member, *n, size);
    *n += 1;
    if (field->type == PROTOBUF_C_TYPE_MESSAGE)
      *(gpointer *)element = NULL;
    return element;
  }
  if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
    guint32 *which = (guint32 *)(gpointer)(base + field->quantifier_offset);
    if (*which != field->id)
      memset (member, 0, size);
    *which = field->id;
  } else if (field->label == PROTOBUF_C_LABEL_OPTIONAL && field->quantifier_offset != 0) {
    *(protobuf_c_boolean *)(gpointer)(base + field->quantifier_offset) = TRUE;
  }
  return member;
}

static void
store_number (ProtobufCType type, guint64 value, gpointer place)
{
  switch (type) {
  case PROTOBUF_C_TYPE_BOOL:
    *(protobuf_c_boolean *)place = value != 0;
    break;
  case PROTOBUF_C_TYPE_SINT32:
    *(guint32 *)place = (guint32)value >> 1 ^ (0 - ((guint32)value & 1));
    break;
  case PROTOBUF_C_TYPE_SINT64:
    *(guint64 *)place = value >> 1 ^ (0 - (value & 1));
    break;
  default:
    if (element_size (type) == 8)
      *(guint64 *)place = value;
    else
      *(guint32 *)place = (guint32)value;
  }
}

static guint8 *
copy_bytes (Walk *walk, const MusterProtoField *value)
{
  guint8 *copy = muster_arena_take (walk->arena, value->size + 1, 1);
  if (value->size > 0)
    memcpy (copy, value->data, value->size);
  copy[value->size] = '\0';
  return copy;
}

/* Kept with its tag and length, so that packing writes it back. */
static void
keep_unknown (Walk *walk, const MusterProtoField *value, const guint8 *start, const guint8 *end,
              ProtobufCMessage *message)
{
  gpointer fields = message->unknown_fields;
  ProtobufCMessageUnknownField *kept =
      add_element (walk, &fields, message->n_unknown_fields, sizeof (ProtobufCMessageUnknownField));
  message->unknown_fields = fields;
  message->n_unknown_fields++;
  while ((*start++ & 0x80) != 0)
    continue; /* the tag */
  const MusterProtoField raw = {.data = start, .size = (gsize)(end - start)};
  *kept = (ProtobufCMessageUnknownField){
      .tag = value->number,
      .wire_type = (ProtobufCWireType)value->type,
      .len = raw.size,
      .data = copy_bytes (walk, &raw),
  };
}

/* --- the walk --- */

static gboolean
walk_packed (Walk *walk, const ProtobufCFieldDescriptor *known, const MusterProtoField *field,
             ProtobufCMessage *message)
{
  const guint8 wire_type = wire_type_of (known->type);
  const gsize width = wire_type == MUSTER_WIRE_FIXED32 ? 4 : 8;
  guint64 value = 0;
  MusterProtoReader reader = muster_proto_reader (field->data, field->size);
  if (message != NULL && !has_room (walk, field->size * sizeof value))
    return FALSE;
  while (!muster_proto_at_end (&reader)) {
    if (wire_type == MUSTER_WIRE_VARINT) {
      if (!muster_proto_read_varint (&reader, &value))
        return FALSE;
    } else {
      if ((gsize)(reader.end - reader.at) < width)
        return FALSE;
      memcpy (&value, reader.at, width);
      value = GUINT64_FROM_LE (value);
      reader.at += width;
    }
    if (message != NULL)
      store_number (known->type, value, field_address (walk, known, message));
  }
  return TRUE;
}

/* Returns the place of a message with the same bytes, if there was one. */
static Shared *
shared_place (const Walk *walk, const MusterProtoField *field)
{
  return &walk->shared[muster_hash_bytes (field->data, field->size, 0) % N_SHARED];
}

static gboolean
is_same (const Shared *shared, const ProtobufCMessageDescriptor *descriptor,
         const MusterProtoField *field, int depth)
{
  return shared->data != NULL && shared->descriptor == descriptor && shared->depth == depth &&
         shared->size == field->size && memcmp (shared->data, field->data, field->size) == 0;
}

/* Elements of repeated fields aren't merged with anything, so that equal ones can be one. */
static gboolean
may_share (const Walk *walk, const ProtobufCFieldDescriptor *known, const MusterProtoField *field,
           int depth)
{
  return walk->shared != NULL && depth > 0 && known->label == PROTOBUF_C_LABEL_REPEATED &&
         field->size <= MOST_SHARED;
}

static gpointer
new_message (Walk *walk, const ProtobufCMessageDescriptor *descriptor)
{
  ProtobufCMessage *message = muster_arena_take (walk->arena, descriptor->sizeof_message, 8);
  descriptor->message_init (message);
  return message;
}

/* Parts of a message that is not repeated are merged: the second fills in what the first made. */
static gboolean
walk_submessage (Walk *walk, const ProtobufCFieldDescriptor *known, const MusterProtoField *field,
                 ProtobufCMessage *message, int depth)
{
  const ProtobufCMessageDescriptor *descriptor = known->descriptor;
  ProtobufCMessage *inner = NULL;
  Shared *shared = NULL;
  if (message != NULL) {
    ProtobufCMessage **place = field_address (walk, known, message);
    shared = may_share (walk, known, field, depth) ? shared_place (walk, field) : NULL;
    if (shared != NULL && is_same (shared, descriptor, field, depth)) {
      *place = shared->message;
      return TRUE;
    }
    if (*place == NULL)
      *place = new_message (walk, descriptor);
    inner = *place;
  }
  if (!walk_message (walk, descriptor, muster_proto_reader (field->data, field->size), inner,
                     depth + 1))
    return FALSE;
  if (shared != NULL)
    *shared = (Shared){descriptor, field->data, field->size, depth, inner};
  return TRUE;
}

static gboolean
walk_field (Walk *walk, const ProtobufCMessageDescriptor *descriptor,
            const ProtobufCFieldDescriptor *known, const MusterProtoField *field,
            ProtobufCMessage *message, int depth)
{
  if (field->type != wire_type_of (known->type)) {
    if (known->label != PROTOBUF_C_LABEL_REPEATED || field->type != MUSTER_WIRE_BYTES)
      return refuse_field (walk, descriptor, known, "has the wrong wire type");
    return walk_packed (walk, known, field, message) ||
           refuse_field (walk, descriptor, known, "is malformed");
  }
  if (known->type == PROTOBUF_C_TYPE_MESSAGE) {
    if (depth >= MUSTER_MAX_DEPTH)
      return refuse_field (walk, descriptor, known, "is nested too deeply");
    return walk_submessage (walk, known, field, message, depth);
  }
  if (known->type == PROTOBUF_C_TYPE_STRING && !muster_is_text (field->data, field->size))
    return refuse_field (walk, descriptor, known, "is not text (UTF-8 without a NUL)");
  if (message == NULL)
    return TRUE;
  gpointer place = field_address (walk, known, message);
  if (known->type == PROTOBUF_C_TYPE_BYTES && walk->is_part) {
    *(ProtobufCBinaryData *)place =
        (ProtobufCBinaryData){.len = field->size, .data = (guint8 *)field->data};
    return TRUE;
  }
  if (field->type == MUSTER_WIRE_BYTES && !has_room (walk, field->size))
    return fits (walk);
  if (known->type == PROTOBUF_C_TYPE_STRING)
    *(char **)place = (char *)copy_bytes (walk, field);
  else if (known->type == PROTOBUF_C_TYPE_BYTES)
    *(ProtobufCBinaryData *)place =
        (ProtobufCBinaryData){.len = field->size, .data = copy_bytes (walk, field)};
  else
    store_number (known->type, field->value, place);
  return TRUE;
}

static gboolean
walk_message (Walk *walk, const ProtobufCMessageDescriptor *descriptor, MusterProtoReader reader,
              ProtobufCMessage *message, int depth)
{
  guint hint = 0;
  MusterProtoField field;
  for (;;) {
    const guint8 *start = reader.at;
    if (!muster_proto_read_field (&reader, &field))
      break;
    const ProtobufCFieldDescriptor *known = find_field (descriptor, field.number, &hint);
    if (known == NULL && message != NULL)
      keep_unknown (walk, &field, start, reader.at, message);
    else if (known != NULL && !walk_field (walk, descriptor, known, &field, message, depth))
      return FALSE;
    if (!fits (walk))
      return FALSE;
  }
  if (!muster_proto_at_end (&reader))
    return refuse_field (walk, descriptor, NULL, "is malformed or truncated");
  return TRUE;
}

gboolean
muster_unpack_check (const ProtobufCMessageDescriptor *descriptor, const void *data, gsize size,
                     const char *what, GError **error)
{
  Walk walk = {.what = what, .error = error};
  return walk_message (&walk, descriptor, muster_proto_reader (data, size), NULL, 0);
}

gpointer
muster_unpack (const ProtobufCMessageDescriptor *descriptor, const void *data, gsize size,
               MusterArena *arena, const char *what, GError **error)
{
  Walk walk = {.what = what, .error = error, .arena = arena};
  ProtobufCMessage *message = new_message (&walk, descriptor);
  if (!walk_message (&walk, descriptor, muster_proto_reader (data, size), message, 0))
    return NULL;
  return message;
}

/* --- parts of a large message --- */

struct _MusterUnpacker {
  MusterArena *arena; /* (not owned) */
  const char *what;   /* (not owned) */
  Shared *shared;     /* (owned) (nullable) */
};

MusterUnpacker *
muster_unpacker_new (MusterArena *arena, const char *what, gsize size)
{
  MusterUnpacker *self = g_new (MusterUnpacker, 1);
  *self = (MusterUnpacker){arena, what, NULL};
  if (size >= LEAST_SHARING)
    self->shared = g_new0 (Shared, N_SHARED);
  return self;
}

void
muster_unpacker_free (MusterUnpacker *self)
{
  if (self == NULL)
    return;
  g_free (self->shared);
  g_free (self);
}

gboolean
muster_unpacker_add (MusterUnpacker *self, ProtobufCMessage *message, const void *data, gsize size,
                     int depth, GError **error)
{
  Walk walk = {.what = self->what,
               .error = error,
               .arena = self->arena,
               .shared = self->shared,
               .is_part = TRUE};
  return walk_message (&walk, message->descriptor, muster_proto_reader (data, size), message,
                       depth);
}

gboolean
muster_unpacker_check (MusterUnpacker *self, const ProtobufCMessageDescriptor *descriptor,
                       const void *data, gsize size, int depth)
{
  Walk walk = {.what = self->what};
  return walk_message (&walk, descriptor, muster_proto_reader (data, size), NULL, depth);
}

GBytes *
muster_pack (const ProtobufCMessage *message)
{
  const gsize size = protobuf_c_message_get_packed_size (message);
  guint8 *packed = g_malloc (MAX (size, 1));
  protobuf_c_message_pack (message, packed);
  return g_bytes_new_take (packed, size);
}

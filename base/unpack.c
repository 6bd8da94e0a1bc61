// SPDX-License-Identifier: Apache-2.0
#include "base/unpack.h"

#include "base/error.h"
#include "base/protowire.h"

/* --- the arena --- */

#define FIRST_CHUNK ((gsize)4 << 10)
#define LAST_CHUNK  ((gsize)1 << 20)

typedef struct _Chunk Chunk;
struct _Chunk {
  Chunk *next;
  gsize padding; /* keeps what follows aligned to 16 */
};

struct _MusterArena {
  Chunk *chunks; /* (owned) */
  guint8 *at;
  guint8 *end;
  gsize next_size; /* of the chunk to come */
  gsize budget;    /* what unpacking may still take */
};

MusterArena *
muster_arena_new (void)
{
  MusterArena *self = g_new0 (MusterArena, 1);
  self->next_size = FIRST_CHUNK;
  return self;
}

static guint8 *
new_chunk (MusterArena *self, gsize size)
{
  Chunk *chunk = g_malloc (sizeof (Chunk) + size);
  chunk->next = self->chunks;
  self->chunks = chunk;
  return (guint8 *)(chunk + 1);
}

static gpointer
arena_take (MusterArena *self, gsize size, gsize alignment)
{
  guint8 *start = (guint8 *)(((guintptr)self->at + alignment - 1) & ~(alignment - 1));
  if (self->at != NULL && start <= self->end && size <= (gsize)(self->end - start)) {
    self->at = start + size;
    return start;
  }
  if (size > self->next_size / 4)
    return new_chunk (self, size); /* on its own, so that the open chunk isn't lost */
  start = new_chunk (self, self->next_size);
  self->at = start + size;
  self->end = start + self->next_size;
  self->next_size = MIN (self->next_size * 2, LAST_CHUNK);
  return start;
}

gpointer
muster_arena_alloc (MusterArena *self, gsize size)
{
  return arena_take (self, MAX (size, 1), 16);
}

void
muster_arena_free (MusterArena *self)
{
  if (self == NULL)
    return;
  while (self->chunks != NULL) {
    Chunk *chunk = self->chunks;
    self->chunks = chunk->next;
    g_free (chunk);
  }
  g_free (self);
}

/* --- the walk --- */

typedef struct {
  const char *what;
  GError **error;
} Walk;

static gboolean walk_message (Walk *walk, const ProtobufCMessageDescriptor *descriptor,
                              MusterProtoReader reader, int depth);

static gboolean
refuse (Walk *walk, const ProtobufCMessageDescriptor *descriptor,
        const ProtobufCFieldDescriptor *field, const char *why)
{
  if (field != NULL)
    g_set_error (walk->error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                 "Reading the %s: field '%s' of %s %s", walk->what, field->name, descriptor->name,
                 why);
  else
    g_set_error (walk->error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, "Reading the %s: %s %s",
                 walk->what, descriptor->name, why);
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

/* UTF-8 without NUL; ASCII, which names are, eight bytes at a time. */
static gboolean
is_text (const guint8 *data, gsize size)
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

static gboolean
packed_is_well_formed (const MusterProtoField *field, guint8 wire_type)
{
  if (wire_type == MUSTER_WIRE_FIXED32)
    return field->size % 4 == 0;
  if (wire_type == MUSTER_WIRE_FIXED64)
    return field->size % 8 == 0;
  MusterProtoReader reader = muster_proto_reader (field->data, field->size);
  guint64 value;
  while (!muster_proto_at_end (&reader))
    if (!muster_proto_read_varint (&reader, &value))
      return FALSE;
  return TRUE;
}

static gboolean
walk_field (Walk *walk, const ProtobufCMessageDescriptor *descriptor,
            const ProtobufCFieldDescriptor *known, const MusterProtoField *field, int depth)
{
  const guint8 wire_type = wire_type_of (known->type);
  if (field->type != wire_type) {
    if (known->label != PROTOBUF_C_LABEL_REPEATED || field->type != MUSTER_WIRE_BYTES)
      return refuse (walk, descriptor, known, "is of another type than its number says");
    if (!packed_is_well_formed (field, wire_type))
      return refuse (walk, descriptor, known, "is malformed");
  } else if (known->type == PROTOBUF_C_TYPE_STRING) {
    if (!is_text (field->data, field->size))
      return refuse (walk, descriptor, known, "is not text (UTF-8 without a NUL)");
  } else if (known->type == PROTOBUF_C_TYPE_MESSAGE) {
    if (depth >= MUSTER_MAX_DEPTH)
      return refuse (walk, descriptor, known, "nests too deep");
    return walk_message (walk, known->descriptor, muster_proto_reader (field->data, field->size),
                         depth + 1);
  }
  return TRUE;
}

static gboolean
walk_message (Walk *walk, const ProtobufCMessageDescriptor *descriptor, MusterProtoReader reader,
              int depth)
{
  guint hint = 0;
  MusterProtoField field;
  while (muster_proto_read_field (&reader, &field)) {
    const ProtobufCFieldDescriptor *known = find_field (descriptor, field.number, &hint);
    if (known != NULL && !walk_field (walk, descriptor, known, &field, depth))
      return FALSE;
  }
  if (!muster_proto_at_end (&reader))
    return refuse (walk, descriptor, NULL, "is malformed or cut short");
  return TRUE;
}

gboolean
muster_unpack_check (const ProtobufCMessageDescriptor *descriptor, const void *data, gsize size,
                     const char *what, GError **error)
{
  Walk walk = {.what = what, .error = error};
  return walk_message (&walk, descriptor, muster_proto_reader (data, size), 0);
}

/* --- unpacking --- */

/* An empty sub-message is two bytes on the wire and a struct here; nothing honest costs more than
 * that. What costs more is a message split into very many parts that are merged one by one. */
#define BUDGET_PER_BYTE 256
#define BUDGET_AT_LEAST ((gsize)64 << 10)

static void *
allocate (void *data, size_t size)
{
  MusterArena *arena = data;
  const gsize taken = (MAX (size, 1) + 7) & ~(gsize)7;
  if (taken > arena->budget)
    return NULL;
  arena->budget -= taken;
  return arena_take (arena, taken, 8);
}

static void
leave_to_arena (void *data G_GNUC_UNUSED, void *pointer G_GNUC_UNUSED)
{
}

gpointer
muster_unpack (const ProtobufCMessageDescriptor *descriptor, const void *data, gsize size,
               MusterArena *arena, const char *what, GError **error)
{
  if (!muster_unpack_check (descriptor, data, size, what, error))
    return NULL;
  if (!g_size_checked_mul (&arena->budget, size, BUDGET_PER_BYTE))
    arena->budget = G_MAXSIZE / 2;
  arena->budget += BUDGET_AT_LEAST;
  ProtobufCAllocator allocator = {
      .alloc = allocate, .free = leave_to_arena, .allocator_data = arena};
  ProtobufCMessage *message = protobuf_c_message_unpack (descriptor, &allocator, size, data);
  if (message == NULL)
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                 "Reading the %s: %s is malformed, or is split into too many parts", what,
                 descriptor->name);
  return message;
}

GBytes *
muster_pack (const ProtobufCMessage *message)
{
  const gsize size = protobuf_c_message_get_packed_size (message);
  guint8 *packed = g_malloc (MAX (size, 1));
  protobuf_c_message_pack (message, packed);
  return g_bytes_new_take (packed, size);
}

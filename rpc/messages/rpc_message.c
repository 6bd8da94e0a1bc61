// SPDX-License-Identifier: Apache-2.0
/* A message in gRPC's pieces: bytes of it without a copy where they are large, and a reader of
 * its fields. */
#include "rpc/messages/rpc_message_private.h"

#include "base/protowire_private.h"
#include "graph/buffer_pool_private.h"
#include "rpc/grpc_private.h"

#include <string.h>

MusterRpcMessage *
muster_rpc_message_new (MusterRope *rope)
{
  return muster_grpc_buffer_from_rope (rope);
}

void
muster_rpc_message_free (MusterRpcMessage *self)
{
  if (self != NULL)
    grpc_byte_buffer_destroy (self);
}

static const grpc_slice_buffer *
slices_of (const MusterRpcMessage *self)
{
  return &self->data.raw.slice_buffer;
}

gsize
muster_rpc_message_size (const MusterRpcMessage *self)
{
  return slices_of (self)->length;
}

/* --- bytes --- */

/* Up to this size a message is copied as it is. */
#define BULK_FROM 65536
/* The elements of a tensor are at most the third inside one another: feed, tensor, content. */
#define BULK_DEPTH 3
/* Fields that are looked at on each of these levels. */
#define BULK_FIELDS 1000

/* Reads on until a field that has more than size bytes. */
static gboolean
find_larger (MusterRpcReader *reader, gsize size, MusterRpcField *field)
{
  for (guint i = 0; i < BULK_FIELDS && muster_rpc_reader_next (reader, field); i++)
    if (field->type == MUSTER_WIRE_BYTES && field->size > size)
      return TRUE;
  return FALSE;
}

/* Where the innermost field begins that is more than half of the message; 0 if there is none below
 * the message's own. A graph isn't a tensor, and is rarely one large node. */
static gsize
find_bulk (const MusterRpcMessage *self)
{
  const gsize half = muster_rpc_message_size (self) / 2;
  gsize end = muster_rpc_message_size (self), start = 0;
  MusterRpcReader reader;
  MusterRpcField field;
  muster_rpc_reader_init (&reader, self);
  for (guint depth = 1; depth <= BULK_DEPTH && find_larger (&reader, half, &field); depth++) {
    end -= reader.left;
    start = depth > 1 ? end - field.size : 0;
    muster_rpc_reader_enter (&reader, &field);
  }
  return start;
}

typedef struct {
  guint8 *buffer;
  gsize size;
} Pooled;

static void
pooled_free (gpointer data)
{
  Pooled *self = data;
  muster_buffer_free (self->buffer, self->size);
  g_free (self);
}

/* Frees each piece as soon as it is copied, so that a large message isn't held twice. */
static void
move_pieces (grpc_slice_buffer *slices, guint8 *at)
{
  while (slices->count > 0) {
    grpc_slice slice = grpc_slice_buffer_take_first (slices);
    memcpy (at, GRPC_SLICE_START_PTR (slice), GRPC_SLICE_LENGTH (slice));
    at += GRPC_SLICE_LENGTH (slice);
    grpc_slice_unref (slice);
  }
}

static GBytes *
gather_around (MusterRpcMessage *self, gsize bulk, GError **error)
{
  const gsize size = muster_rpc_message_size (self);
  const gsize before =
      (MUSTER_BUFFER_ALIGNMENT - bulk % MUSTER_BUFFER_ALIGNMENT) % MUSTER_BUFFER_ALIGNMENT;
  guint8 *buffer = muster_buffer_try_alloc (before + size, error);
  if (buffer == NULL)
    return NULL;
  move_pieces (&self->data.raw.slice_buffer, buffer + before);
  const Pooled pooled = {buffer, before + size};
  return g_bytes_new_with_free_func (buffer + before, size, pooled_free,
                                     g_memdup2 (&pooled, sizeof pooled));
}

GBytes *
muster_rpc_message_take_bytes (MusterRpcMessage *self, gboolean *is_counted, GError **error)
{
  const gboolean may_be_bulk =
      slices_of (self)->count > 1 && muster_rpc_message_size (self) > BULK_FROM;
  const gsize bulk = may_be_bulk ? find_bulk (self) : 0;
  if (is_counted != NULL)
    *is_counted = bulk > 0;
  return bulk > 0 ? gather_around (self, bulk, error) : muster_grpc_buffer_take_bytes (self, error);
}

/* --- reading --- */

void
muster_rpc_reader_init (MusterRpcReader *self, const MusterRpcMessage *message)
{
  self->message = message;
  self->piece = 0;
  self->at = 0;
  self->left = muster_rpc_message_size (message);
  self->is_malformed = FALSE;
}

/* The rest of the current piece, if not empty. */
static const guint8 *
rest_of_piece (MusterRpcReader *self, gsize *size)
{
  const grpc_slice_buffer *slices = slices_of (self->message);
  while (self->at == GRPC_SLICE_LENGTH (slices->slices[self->piece])) {
    self->piece++;
    self->at = 0;
  }
  const grpc_slice *slice = &slices->slices[self->piece];
  *size = GRPC_SLICE_LENGTH (*slice) - self->at;
  return GRPC_SLICE_START_PTR (*slice) + self->at;
}

static void
advance (MusterRpcReader *self, gsize size)
{
  self->at += size;
  self->left -= size;
}

/* Skips size bytes, which must be there, and copies them unless out is NULL. */
static void
take (MusterRpcReader *self, gsize size, guint8 *out)
{
  while (size > 0) {
    gsize n;
    const guint8 *data = rest_of_piece (self, &n);
    n = MIN (n, size);
    if (out != NULL) {
      memcpy (out, data, n);
      out += n;
    }
    advance (self, n);
    size -= n;
  }
}

static gboolean
read_varint (MusterRpcReader *self, guint64 *value)
{
  guint8 bytes[MUSTER_PROTO_VARINT_MAX];
  gsize n = 0;
  do {
    if (self->left == 0 || n == sizeof bytes)
      return FALSE;
    take (self, 1, &bytes[n]);
  } while (bytes[n++] >= 0x80);
  MusterProtoReader reader = muster_proto_reader (bytes, n);
  return muster_proto_read_varint (&reader, value);
}

/* If the field's bytes are in one piece, points to them. */
static void
read_bytes (MusterRpcReader *self, MusterRpcField *field)
{
  gsize n = 0;
  const guint8 *data = field->size > 0 ? rest_of_piece (self, &n) : self->scratch;
  if (field->size > MUSTER_RPC_PEEK) {
    take (self, field->size, NULL);
  } else if (n >= field->size) {
    field->data = data;
    advance (self, field->size);
  } else {
    take (self, field->size, self->scratch);
    field->data = self->scratch;
  }
}

/* Reads the size of a field's value, and its length if it has one. */
static gboolean
read_size (MusterRpcReader *self, MusterRpcField *field, guint64 *size)
{
  switch (field->type) {
  case MUSTER_WIRE_VARINT:
    *size = 0;
    return read_varint (self, &field->value);
  case MUSTER_WIRE_FIXED64:
    *size = 8;
    return TRUE;
  case MUSTER_WIRE_FIXED32:
    *size = 4;
    return TRUE;
  case MUSTER_WIRE_BYTES:
    return read_varint (self, size);
  default:
    return FALSE;
  }
}

static gboolean
read_field (MusterRpcReader *self, MusterRpcField *field)
{
  guint64 tag, size;
  if (!read_varint (self, &tag) || tag > G_MAXUINT32 || tag >> 3 == 0)
    return FALSE;
  *field = (MusterRpcField){.number = (guint32)(tag >> 3), .type = tag & 7};
  if (!read_size (self, field, &size) || size > self->left)
    return FALSE;
  field->size = size;
  if (field->type == MUSTER_WIRE_BYTES)
    read_bytes (self, field);
  else
    take (self, field->size, NULL);
  return TRUE;
}

gboolean
muster_rpc_reader_next (MusterRpcReader *self, MusterRpcField *field)
{
  if (self->left == 0 || self->is_malformed)
    return FALSE;
  self->is_malformed = !read_field (self, field);
  return !self->is_malformed;
}

void
muster_rpc_reader_enter (MusterRpcReader *self, const MusterRpcField *field)
{
  const grpc_slice_buffer *slices = slices_of (self->message);
  gsize back = field->size;
  while (back > self->at) {
    back -= self->at;
    self->piece--;
    self->at = GRPC_SLICE_LENGTH (slices->slices[self->piece]);
  }
  self->at -= back;
  self->left = field->size;
}

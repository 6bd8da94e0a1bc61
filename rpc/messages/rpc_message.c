// SPDX-License-Identifier: Apache-2.0
#include "rpc/messages/rpc_message.h"

#include "base/protowire.h"
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

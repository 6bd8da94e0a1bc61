// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"
#include "base/rope_private.h"

G_BEGIN_DECLS

/* MusterRpcMessage is a message in the pieces in which it was received, so that it can be sent on
 * without a copy. MusterRpcReader reads its fields across the pieces. One thread. */

typedef struct grpc_byte_buffer MusterRpcMessage;

/* From the rope's pieces, large ones by reference (transfer full). */
MusterRpcMessage *muster_rpc_message_new (MusterRope *rope);
void muster_rpc_message_free (MusterRpcMessage *self);

gsize muster_rpc_message_size (const MusterRpcMessage *self);

/* Converts a message to bytes: without a copy if it is one piece, otherwise with one, after which
 * the message is empty. If the most of it is one field of a field, as a tensor's elements in a step
 * are, those are aligned for any use, in a buffer of the tensors' pool, which counts it
 * (graph/buffer_pool_private.h): is_counted (nullable) becomes TRUE. NULL with RESOURCE_EXHAUSTED
 * if there isn't enough memory. */
GBytes *muster_rpc_message_take_bytes (MusterRpcMessage *self, gboolean *is_counted,
                                       GError **error);

/* Byte fields up to this size can be read; larger ones are skipped. */
#define MUSTER_RPC_PEEK 1024

/* A plain struct on the stack; it borrows the message. */
typedef struct {
  const MusterRpcMessage *message; /* (not owned) */
  gsize piece;                     /* index of the current piece … */
  gsize at;                        /* … and the position in it */
  gsize left;                      /* bytes of the message not read yet */
  gboolean is_malformed;
  guint8 scratch[MUSTER_RPC_PEEK]; /* a field that spans two pieces */
} MusterRpcReader;

typedef struct {
  guint32 number;
  guint8 type;   /* base/protowire_private.h */
  guint64 value; /* VARINT */
  gsize size;    /* BYTES: their number … */
  const guint8
      *data; /* … and the first, until the next field is read; NULL if over MUSTER_RPC_PEEK */
} MusterRpcField;

void muster_rpc_reader_init (MusterRpcReader *self, const MusterRpcMessage *message);

/* Reads the next field. FALSE at the end, and if the message is_malformed. */
gboolean muster_rpc_reader_next (MusterRpcReader *self, MusterRpcField *field);

/* Goes back to the beginning of the BYTES that were just read, to read the fields in them and
 * nothing after them. */
void muster_rpc_reader_enter (MusterRpcReader *self, const MusterRpcField *field);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"
#include "base/rope.h"

G_BEGIN_DECLS

/* MusterRpcMessage is a message in the pieces in which it came, so that it can go out again without
 * a copy; and a reader that peeks at its fields over the seams between the pieces. One thread. */

typedef struct grpc_byte_buffer MusterRpcMessage;

/* The rope's pieces, large ones by reference; (transfer full). */
MusterRpcMessage *muster_rpc_message_new (MusterRope *rope);
void muster_rpc_message_free (MusterRpcMessage *self);

gsize muster_rpc_message_size (const MusterRpcMessage *self);

/* All of it as one run of bytes, (transfer full): a copy where it is in more than one piece.
 * RESOURCE_EXHAUSTED where there isn't the memory. */
GBytes *muster_rpc_message_bytes (const MusterRpcMessage *self, GError **error);

/* Fields of bytes up to this size can be looked at; larger ones are only passed over. */
#define MUSTER_RPC_PEEK 1024

/* A plain struct on the stack, which borrows the message. */
typedef struct {
  const MusterRpcMessage *message; /* (not owned) */
  gsize piece;                     /* which one is read, … */
  gsize at;                        /* … and where in it */
  gsize left;                      /* bytes of the message that haven't been read */
  gboolean is_malformed;
  guint8 scratch[MUSTER_RPC_PEEK]; /* a field that lies over a seam */
} MusterRpcReader;

typedef struct {
  guint32 number;
  guint8 type;        /* base/protowire.h */
  guint64 value;      /* VARINT */
  gsize size;         /* BYTES: how many … */
  const guint8 *data; /* … and where, until the next field is read; NULL if over MUSTER_RPC_PEEK */
} MusterRpcField;

void muster_rpc_reader_init (MusterRpcReader *self, const MusterRpcMessage *message);

/* Reads the message's next field; FALSE at the end, and where it is_malformed. */
gboolean muster_rpc_reader_next (MusterRpcReader *self, MusterRpcField *field);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unpack_private.h"
#include "rpc/client/rpc_client_private.h"

G_BEGIN_DECLS

/* Packs a small message into a rope. */
void muster_remote_pack (MusterRope *out, const ProtobufCMessage *message);

/* A nullable text as a message's field, which is never NULL. */
static inline char *
muster_remote_string (const char *nullable)
{
  return (char *)(nullable != NULL ? nullable : "");
}

/* Opens a stream without a deadline. notify is called as of muster_rpc_stream_set_notify (). */
MusterRpcStream *muster_remote_open (MusterRpcClient *client, const char *method,
                                     const ProtobufCMessage *message, MusterRpcStreamNotify notify,
                                     gpointer data, GError **error);

/* Calls a method and unpacks its response into arena. NULL with the call's error, or INTERNAL if
 * the response is malformed. The result is freed with the arena. */
gpointer muster_remote_call (MusterRpcClient *client, const char *method, MusterRope *request,
                             const ProtobufCMessageDescriptor *answer, MusterArena *arena,
                             const MusterRpcOptions *options, GCancellable *cancellable,
                             GError **error);

G_END_DECLS

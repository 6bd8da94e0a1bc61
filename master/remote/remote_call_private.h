// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unpack.h"
#include "rpc/client/rpc_client.h"

G_BEGIN_DECLS

/* Packs a small message into a rope. */
void muster_remote_pack (MusterRope *out, const ProtobufCMessage *message);

/* Calls a method and unpacks its response into arena. NULL with the call's error, or INTERNAL if
 * the response is malformed. The result is freed with the arena. */
gpointer muster_remote_call (MusterRpcClient *client, const char *method, MusterRope *request,
                             const ProtobufCMessageDescriptor *answer, MusterArena *arena,
                             const MusterRpcOptions *options, GCancellable *cancellable,
                             GError **error);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unpack.h"
#include "rpc/server/rpc_server.h"
#include "server/core/types.h"

G_BEGIN_DECLS

/* What every service does: its methods are entered, their requests unpacked and answered. */

/* Of TensorFlow's MasterService. */
#define MUSTER_MASTER_SERVICE(name) "/tensorflow.MasterService/" name

/* Enters a method, "/package.Service/Name". */
void muster_server_add_method (MusterServer *self, const char *path, MusterRpcHandler handler);

/* Answers with a packed message. */
void muster_server_reply (MusterRpcCall *call, const ProtobufCMessage *message);

/* Unpacks a request, or ends the call and returns NULL. */
gpointer muster_server_unpack (MusterRpcCall *call, GBytes *request,
                               const ProtobufCMessageDescriptor *descriptor, MusterArena *arena);

/* A text as a message's field, which is never NULL; borrowed. */
char *muster_server_text (const char *text);

/* A timeout as TensorFlow's messages have it; 0 (or less): none. */
gint64 muster_server_from_milliseconds (gint64 timeout_ms);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unpack_private.h"
#include "rpc/server/rpc_server_private.h"
#include "server/core/types.h"

G_BEGIN_DECLS

/* What all services share: registering methods, unpacking requests and replying. */

/* Of TensorFlow's MasterService. */
#define MUSTER_MASTER_SERVICE(name) "/tensorflow.MasterService/" name

/* Registers a method, "/package.Service/Name". */
void muster_server_add_method (MusterServer *self, const char *path, MusterRpcHandler handler);

/* Logs a call by which an administrator acts: `what` such as "Reset", with the model that it is
 * about (nullable), who called, and error, if it was refused or failed (nullable). */
void muster_server_audit (MusterRpcCall *call, const char *what, const char *model,
                          const GError *error);

/* Why a gateway can't use its master; NULL: it can, or is none. FALSE: nothing has changed. */
gboolean muster_server_set_master_failure (MusterServer *self, const char *failure);
/* (transfer full) (nullable) */
char *muster_server_master_failure (MusterServer *self);

/* Why a server that stops refuses and ends calls. (transfer full) */
GError *muster_server_stopping_error (void);

/* Replies with a packed message. */
void muster_server_reply (MusterRpcCall *call, const ProtobufCMessage *message);

/* Unpacks a request, or ends the call and returns NULL. */
gpointer muster_server_unpack (MusterRpcCall *call, GBytes *request,
                               const ProtobufCMessageDescriptor *descriptor, MusterArena *arena);

/* A text for a message's field, which is never NULL; borrowed. */
char *muster_server_text (const char *text);

/* Converts a timeout in TensorFlow's messages; 0 (or less): none. */
gint64 muster_server_from_milliseconds (gint64 timeout_ms);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpc/client/rpc_client_private.h"
#include "rpc/messages/rpc_message_private.h"
#include "rpc/server/rpc_server_private.h"

G_BEGIN_DECLS

/* Forwards calls to another server. Messages pass unchanged and uncopied in both directions, with
 * deadline, cancellation, status and status details. No thread waits for the answer; it arrives on
 * a thread of the server, like a call. Any thread. */

/* The outcome of a forwarded call. */
typedef struct _MusterRpcProxied MusterRpcProxied;

/* Called once for each forwarded call, on any thread. Must not block, and must answer the call. */
typedef void (*MusterRpcProxiedFunc) (MusterRpcCall *call, MusterRpcProxied *passed,
                                      gpointer user_data);

typedef struct {
  const char *method; /* "/package.Service/Name"; static */
  /* TRUE: the call continues when its caller disconnects or times out, until deadline_us (on
   * muster_system_clock (); MUSTER_WAIT_FOREVER: no limit) or until the server stops. FALSE: the
   * caller's deadline and cancellation apply, and deadline_us is ignored. */
  gboolean outlives_caller;
  gint64 deadline_us;
  const MusterRpcHeader *headers; /* like MusterRpcOptions */
  gsize n_headers;
} MusterRpcProxyOptions;

/* Forwards a call to client's server; request is (transfer full). If the caller has already
 * disconnected, nothing is sent and the outcome is CANCELLED. */
void muster_rpc_call_proxy (MusterRpcCall *self, MusterRpcClient *client, MusterRpcMessage *request,
                            const MusterRpcProxyOptions *options, MusterRpcProxiedFunc passed,
                            gpointer user_data);

/* The call's error, or NULL if it was answered. If the server can't be reached, the text names it
 * and the cause, as in muster_rpc_client_call (); a status of that server keeps its text, unless it
 * is muster_rpc_proxy_refusal (). */
const GError *muster_rpc_proxied_error (const MusterRpcProxied *self);

/* An error of a call to the server at address, by a gateway, as its own clients should read it:
 * they can't change what the gateway shows that server. (transfer full) (nullable): it isn't about
 * that. */
GError *muster_rpc_proxy_refusal (const GError *error, const char *address);
/* The response, or NULL if there is an error; borrowed. */
const MusterRpcMessage *muster_rpc_proxied_response (const MusterRpcProxied *self);

/* Answers the call with the outcome. */
void muster_rpc_call_finish_proxied (MusterRpcCall *self, MusterRpcProxied *passed);

/* TRUE if the caller has disconnected or its deadline has passed. */
gboolean muster_rpc_call_is_gone (MusterRpcCall *self);

G_END_DECLS

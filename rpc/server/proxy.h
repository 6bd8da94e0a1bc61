// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpc/client/rpc_client.h"
#include "rpc/messages/rpc_message.h"
#include "rpc/server/rpc_server.h"

G_BEGIN_DECLS

/* Calls that a server passes on to another one: the messages go through as the pieces in which they
 * came, both ways, with deadline, cancellation, status and its details. No thread waits for the
 * answer: it comes to one of the server's, as a call does. Any thread. */

/* How a call ended that was passed on. */
typedef struct _MusterRpcProxied MusterRpcProxied;

/* Is called once for each call that was passed on, on some thread: it must not block, and it must
 * answer the call. */
typedef void (*MusterRpcProxiedFunc) (MusterRpcCall *call, MusterRpcProxied *passed,
                                      gpointer user_data);

typedef struct {
  const char *method; /* "/package.Service/Name"; static */
  /* The call goes on where its caller goes away or runs out of time, until deadline_us (on
   * muster_system_clock (); MUSTER_WAIT_FOREVER: none) or the server's stop. Else the caller's
   * deadline and cancellation are the call's, and deadline_us isn't looked at. */
  gboolean outlives_caller;
  gint64 deadline_us;
  const MusterRpcHeader *headers; /* as of MusterRpcOptions */
  gsize n_headers;
} MusterRpcProxyOptions;

/* Passes a call on to the server of client; request is (transfer full). A caller that has gone
 * already is passed CANCELLED, and nothing is sent. */
void muster_rpc_call_proxy (MusterRpcCall *self, MusterRpcClient *client, MusterRpcMessage *request,
                            const MusterRpcProxyOptions *options, MusterRpcProxiedFunc passed,
                            gpointer user_data);

/* The error that it ended with, NULL where it was answered. Of a server that can't be reached it
 * says which and why, as muster_rpc_client_call () does; what that server says itself it says
 * here. */
const GError *muster_rpc_proxied_error (const MusterRpcProxied *self);
/* The answer, NULL where there is an error; borrowed. */
const MusterRpcMessage *muster_rpc_proxied_response (const MusterRpcProxied *self);

/* Answers the call with what came. */
void muster_rpc_call_finish_proxied (MusterRpcCall *self, MusterRpcProxied *passed);

/* TRUE once nobody would hear an answer: the caller has gone, or its deadline has passed. */
gboolean muster_rpc_call_is_gone (MusterRpcCall *self);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"
#include "base/rope.h"
#include "rpc/client/rpc_client.h"
#include "rpc/credentials.h"
#include "rpc/messages/rpc_message.h"

G_BEGIN_DECLS

/* MusterRpcServer answers gRPC calls. A few threads take calls off one completion queue and run the
 * method's handler on the spot; a handler that is about to block says so (base/blocking.h), so that
 * another thread takes over without delay, and one that can't answer at once may keep its
 * MusterRpcCall and answer from any thread later. A call is answered exactly once (streams: any
 * number of messages, then the end). A method nobody registered is UNIMPLEMENTED. Status texts are
 * cut to 4 KB and made valid UTF-8, as HTTP/2 and TensorFlow's client need. Messages may have up to
 * 2 GiB; compressed ones are refused, since a small one may hide a large one. */

typedef struct _MusterRpcServer MusterRpcServer;
typedef struct _MusterRpcCall MusterRpcCall;

/* request is the message's bytes, valid for as long as it is held (g_bytes_ref). */
typedef void (*MusterRpcHandler) (MusterRpcCall *call, GBytes *request, gpointer user_data);
/* request is (transfer full): the message as it came. The handler must not block. */
typedef void (*MusterRpcMessageHandler) (MusterRpcCall *call, MusterRpcMessage *request,
                                         gpointer user_data);

MusterRpcServer *muster_rpc_server_new (void);
/* One for which a request over so many bytes is RESOURCE_EXHAUSTED, and no handler sees it. 2 GiB
 * at most, which is the default. */
MusterRpcServer *muster_rpc_server_new_with_max_request (gsize n_bytes);
/* Stops it if it runs. */
void muster_rpc_server_free (MusterRpcServer *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterRpcServer, muster_rpc_server_free)

/* Before start. method is "/package.Service/Name". */
void muster_rpc_server_add_method (MusterRpcServer *self, const char *method,
                                   MusterRpcHandler handler, gpointer user_data);
/* The same, for a method that is called without a token as well: health. */
void muster_rpc_server_add_open_method (MusterRpcServer *self, const char *method,
                                        MusterRpcHandler handler, gpointer user_data);

/* The same, for a handler that takes the message as it came. */
void muster_rpc_server_add_message_method (MusterRpcServer *self, const char *method,
                                           MusterRpcMessageHandler handler, gpointer user_data);

/* Listens on HOST:PORT; port 0 takes a free one. credentials is (nullable), and each address may
 * have its own. Returns the port, or 0 with UNAVAILABLE ("address in use") or INVALID_ARGUMENT. */
int muster_rpc_server_listen (MusterRpcServer *self, const char *address,
                              MusterRpcCredentials *credentials, GError **error);

void muster_rpc_server_start (MusterRpcServer *self);

/* A connection to the server from within its process, for a look at itself: it needs no port and
 * shows neither certificate nor token. After start; let it go before stop. */
MusterRpcClient *muster_rpc_server_connect (MusterRpcServer *self, GError **error);

/* Takes no new calls, cancels those that are open after grace_us, and joins the threads.
 * Idempotent. */
void muster_rpc_server_stop (MusterRpcServer *self, gint64 grace_us);

/* The handler holds the call until it has answered; hold another reference to use it afterwards. */
MusterRpcCall *muster_rpc_call_ref (MusterRpcCall *self);
void muster_rpc_call_unref (MusterRpcCall *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterRpcCall, muster_rpc_call_unref)

/* The caller's deadline on muster_system_clock (), or MUSTER_WAIT_FOREVER. */
gint64 muster_rpc_call_deadline_us (MusterRpcCall *self);
/* The same, or the end of a timeout that begins now, where that is earlier; 0: none. */
gint64 muster_rpc_call_deadline_within (MusterRpcCall *self, gint64 timeout_us);

/* Is cancelled when the caller goes away, gives up or runs out of time, or the server stops.
 * Borrowed. */
GCancellable *muster_rpc_call_cancellable (MusterRpcCall *self);

/* What the caller sent as a header of that key (lower-case): printable ASCII, of the first if there
 * are several. NULL if there is none, or it is something else. Borrowed from the call. */
const char *muster_rpc_call_header (MusterRpcCall *self, const char *key);

/* A unary answer; the pieces go out uncopied. */
void muster_rpc_call_reply (MusterRpcCall *self, MusterRope *reply);
/* Ends a call, unary or stream, with a status (NULL: OK, for a stream). */
void muster_rpc_call_finish (MusterRpcCall *self, const GError *error);
/* One message of a stream; they are queued and go out in order. */
void muster_rpc_call_send (MusterRpcCall *self, MusterRope *message);

G_END_DECLS

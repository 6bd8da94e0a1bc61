// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"
#include "base/rope_private.h"
#include "rpc/client/rpc_client_private.h"
#include "rpc/credentials.h"
#include "rpc/messages/rpc_message_private.h"

G_BEGIN_DECLS

/* MusterRpcServer answers gRPC calls. A few threads take calls from one completion queue and run
 * the method's handler. A handler that is about to block calls muster_about_to_block ()
 * (base/blocking_private.h), so that another thread takes over at once. A handler may also keep its
 * MusterRpcCall and answer later from any thread. Each call is answered once (streams: any number
 * of messages, then the end). Unregistered methods are UNIMPLEMENTED. Status texts are cut to 4 KB
 * and made valid UTF-8, as HTTP/2 and TensorFlow's client require. Messages may have up to 2 GiB;
 * compressed ones are refused, since a small one may expand to a large one. */

typedef struct _MusterRpcServer MusterRpcServer;
typedef struct _MusterRpcCall MusterRpcCall;

/* request is the message; reference it (g_bytes_ref) to keep it. */
typedef void (*MusterRpcHandler) (MusterRpcCall *call, GBytes *request, gpointer user_data);
/* request is the message in its pieces (transfer full). The handler must not block. */
typedef void (*MusterRpcMessageHandler) (MusterRpcCall *call, MusterRpcMessage *request,
                                         gpointer user_data);

/* FALSE with the error that the caller gets: a request of so many bytes reaches no handler. */
typedef gboolean (*MusterRpcAdmit) (gsize n_bytes, gpointer data, GError **error);

/* Whether others than one client use the server: what they hold of its memory, they may release. */
typedef gboolean (*MusterRpcIsShared) (gpointer data);

MusterRpcServer *muster_rpc_server_new (void);
/* 0 is the default, given beside each. */
typedef struct {
  MusterRpcAdmit admit;        /* none: all requests; gRPC has received the whole message by then */
  MusterRpcIsShared is_shared; /* none: never */
  gpointer data;               /* (not owned) for both */
  guint streams; /* 64,000: calls of one connection at a time; a client that opens more, since it
                    ignores the settings, loses the connection */
  guint bare;    /* 2,048: calls of all connections that have no message yet, or need no token; over
                    it, the connection with the most of them is ended */
} MusterRpcServerLimits;

MusterRpcServer *muster_rpc_server_new_with_limits (const MusterRpcServerLimits *limits);
/* Stops the server if it runs. */
void muster_rpc_server_free (MusterRpcServer *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterRpcServer, muster_rpc_server_free)

/* Before start. method is "/package.Service/Name". */
void muster_rpc_server_add_method (MusterRpcServer *self, const char *method,
                                   MusterRpcHandler handler, gpointer user_data);
/* The same for a method that needs no token, such as health checks. */
void muster_rpc_server_add_open_method (MusterRpcServer *self, const char *method,
                                        MusterRpcHandler handler, gpointer user_data);

/* The same for a handler that takes the message in its pieces. */
void muster_rpc_server_add_message_method (MusterRpcServer *self, const char *method,
                                           MusterRpcMessageHandler handler, gpointer user_data);

/* Sets the role that callers of a method need, before start: a call of a caller below it is
 * PERMISSION_DENIED before its request is read. Default: MUSTER_ROLE_RUN. */
void muster_rpc_server_require (MusterRpcServer *self, const char *method, MusterRole role);

/* Listens on HOST:PORT; port 0 selects a free one. credentials is (nullable); each address may have
 * its own. Returns the port, or 0 with UNAVAILABLE ("address already in use") or INVALID_ARGUMENT.
 *
 * unix:/PATH is a Unix socket, which has neither TLS nor tokens: credentials are ignored, and only
 * the user of this process and those of muster_rpc_server_allow_users () may connect. Returns 1. */
int muster_rpc_server_listen (MusterRpcServer *self, const char *address,
                              MusterRpcCredentials *credentials, GError **error);

/* Users that may connect to Unix sockets, beside this process's. Before listening. */
void muster_rpc_server_allow_users (MusterRpcServer *self, const guint32 *users, gsize n_users);

void muster_rpc_server_start (MusterRpcServer *self);

/* A connection to the server from its own process, without a port, certificate or token. Only after
 * start; release it before stop. */
MusterRpcClient *muster_rpc_server_connect (MusterRpcServer *self, GError **error);

/* Refuses new calls, cancels open ones after grace_us, and joins the threads. Idempotent. */
void muster_rpc_server_stop (MusterRpcServer *self, gint64 grace_us);

/* How many calls are open, and how many connections were ended since they had too many. */
guint muster_rpc_server_n_calls (MusterRpcServer *self);
guint64 muster_rpc_server_n_ended (MusterRpcServer *self);

/* A call is held until its handler has answered it. To use it afterwards, take a reference. */
MusterRpcCall *muster_rpc_call_ref (MusterRpcCall *self);
void muster_rpc_call_unref (MusterRpcCall *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterRpcCall, muster_rpc_call_unref)

/* The caller's deadline on muster_system_clock (), or MUSTER_WAIT_FOREVER. */
gint64 muster_rpc_call_deadline_us (MusterRpcCall *self);
/* The same, or the end of a timeout that begins now, where that is earlier; 0: none. */
gint64 muster_rpc_call_deadline_within (MusterRpcCall *self, gint64 timeout_us);

/* Cancelled when the caller disconnects, cancels or times out, or the server stops. Borrowed. */
GCancellable *muster_rpc_call_cancellable (MusterRpcCall *self);
/* For what outlives the caller: cancelled only when the server stops, after its grace. Borrowed. */
GCancellable *muster_rpc_call_stop_cancellable (MusterRpcCall *self);

/* The value of the caller's header with that key (lower-case), printable ASCII; the first if there
 * are several. NULL if there is none or it isn't printable ASCII, and for "authorization". Borrowed
 * from the call. */
const char *muster_rpc_call_header (MusterRpcCall *self, const char *key);

/* The caller's role: at least the one that the method requires. MUSTER_ROLE_ADMIN on an address
 * without tokens and without roles for certificates. */
MusterRole muster_rpc_call_role (MusterRpcCall *self);
/* The caller's address, such as "127.0.0.1:4711" or "unix:…"; it stays the same for all calls of
 * one connection. Borrowed from the call. */
const char *muster_rpc_call_peer (MusterRpcCall *self);
/* What tells the caller from others, however it connects: its token and its certificate; "" where
 * neither is required. (transfer full) */
char *muster_rpc_call_caller (MusterRpcCall *self);
/* The caller for a log: its address, the name in its certificate and the line of its token, as far
 * as there are any. (transfer full) */
char *muster_rpc_call_describe (MusterRpcCall *self);

/* Counts bytes in the process's memory as the call's, until it is gone. Over the limit of memory, a
 * few are counted too: RESOURCE_EXHAUSTED if they are many. Before the call is answered. */
gboolean muster_rpc_call_count_memory (MusterRpcCall *self, gsize n_bytes, GError **error);

/* Answers a unary call. The pieces aren't copied. */
void muster_rpc_call_reply (MusterRpcCall *self, MusterRope *reply);
/* Ends a unary call or a stream with a status (NULL: OK, for a stream). If this thread was refused
 * memory for it that others hold, the caller is told that it may call again. */
void muster_rpc_call_finish (MusterRpcCall *self, const GError *error);
/* The same for a call that can't be read, or that its caller isn't allowed: it is logged. */
void muster_rpc_call_refuse (MusterRpcCall *self, const GError *error);
/* Sends a message of a stream. Messages are queued and sent in order. */
void muster_rpc_call_send (MusterRpcCall *self, MusterRope *message);
/* The same for a stream of states, of which a later one replaces those before: a caller that reads
 * them more slowly than they come gets the first few and the newest. One thread at a time. */
void muster_rpc_call_send_state (MusterRpcCall *self, MusterRope *state);

G_END_DECLS

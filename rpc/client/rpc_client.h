// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "base/rope.h"
#include "rpc/credentials.h"
#include "rpc/server_state.h"

G_BEGIN_DECLS

/* MusterRpcClient is a connection to a gRPC server, and MusterRpcStream a server's stream on it:
 * the gRPC C core wrapped once. A unary call blocks its thread on its own completion queue, since a
 * hop to another thread costs more than the call; streams are read by one thread of the client's.
 * Every call has a deadline and can be cancelled. Any thread may call.
 *
 * Statuses come back as MUSTER_ERROR with the server's text; a call whose cancellable was cancelled
 * is G_IO_ERROR_CANCELLED; one that ran out of time is DEADLINE_EXCEEDED and says what was missing
 * (no TCP connection, no answer). */

typedef struct _MusterRpcClient MusterRpcClient;
typedef struct _MusterRpcStream MusterRpcStream;

/* No connection is made yet. address is HOST:PORT; credentials is (nullable). */
MusterRpcClient *muster_rpc_client_new (const char *address, MusterRpcCredentials *credentials);
MusterRpcClient *muster_rpc_client_ref (MusterRpcClient *self);
void muster_rpc_client_unref (MusterRpcClient *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterRpcClient, muster_rpc_client_unref)

const char *muster_rpc_client_address (MusterRpcClient *self);

/* What goes with a call beside its request. */
typedef struct {
  const char *key;   /* lower-case letters, digits and "-_."; not "grpc-...", not "...-bin" */
  const char *value; /* printable ASCII */
} MusterRpcHeader;

typedef struct {
  gint64 deadline_us; /* on muster_system_clock (); 0 is an error, MUSTER_WAIT_FOREVER none */
  /* Wait for a server that isn't there yet, until the deadline; else such a call is UNAVAILABLE at
   * once. */
  gboolean wait_for_ready;
  /* At most 16, of 4 KiB together; others are INVALID_ARGUMENT. The server sees each by
   * muster_rpc_call_header (). */
  const MusterRpcHeader *headers;
  gsize n_headers;
} MusterRpcOptions;

/* One request, one answer. method is "/package.Service/Name". The request's pieces go out uncopied.
 * Returns the answer's bytes (transfer full). */
GBytes *muster_rpc_client_call (MusterRpcClient *self, const char *method, MusterRope *request,
                                const MusterRpcOptions *options, GCancellable *cancellable,
                                GError **error);

/* Sends a request whose answer doesn't matter, and returns at once. It ends within timeout_us, by
 * which it may keep the connection from being closed. */
void muster_rpc_client_send_and_forget (MusterRpcClient *self, const char *method,
                                        MusterRope *request, gint64 timeout_us);

/* Whether a call could reach the server now. Without a connection this probes the server's port
 * (rpc/client/reach_probe.h) and, where somebody listens, has the channel connect at once and waits
 * for it: until deadline_us, and a second at most. Who listens and says nothing is probed again
 * only after 20 s. UP also where that couldn't be found out, as with a slow name service. */
MusterServerState muster_rpc_client_reach (MusterRpcClient *self, gint64 deadline_us,
                                           GCancellable *cancellable);

/* Opens a stream of answers to one request. */
MusterRpcStream *muster_rpc_client_open (MusterRpcClient *self, const char *method,
                                         MusterRope *request, const MusterRpcOptions *options,
                                         GError **error);

/* The next message, waiting for it. NULL without an error at the stream's regular end, NULL with
 * one where it broke. */
GBytes *muster_rpc_stream_next (MusterRpcStream *self, GCancellable *cancellable, GError **error);

/* The same, waiting until deadline_us at most: then NULL with DEADLINE_EXCEEDED, and the stream
 * goes on. 0 only looks. */
GBytes *muster_rpc_stream_next_until (MusterRpcStream *self, gint64 deadline_us,
                                      GCancellable *cancellable, GError **error);

/* Ends it from this side: next () gives the messages that came before, then a copy of why. Any
 * thread, while it isn't freed. */
void muster_rpc_stream_end (MusterRpcStream *self, const GError *why);

/* Has notify called whenever next () may have something new, on a thread of the client's and under
 * the stream's lock: it must not wait, nor call the stream. NULL ends that, as freeing does; once
 * it has returned, notify isn't called any more. */
typedef void (*MusterRpcStreamNotify) (gpointer user_data);
void muster_rpc_stream_set_notify (MusterRpcStream *self, MusterRpcStreamNotify notify,
                                   gpointer user_data);

/* Cancels and frees it. */
void muster_rpc_stream_free (MusterRpcStream *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterRpcStream, muster_rpc_stream_free)

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "base/rope_private.h"
#include "rpc/credentials.h"
#include "rpc/server_state.h"

G_BEGIN_DECLS

/* MusterRpcClient is a connection to a gRPC server, and MusterRpcStream a server's stream on it.
 * They wrap gRPC's C core. A unary call blocks its thread on its own completion queue, since a
 * switch to another thread costs more than the call; streams are read by a thread of the client.
 * Every call has a deadline and can be cancelled. Any thread may call.
 *
 * A failed call returns MUSTER_ERROR with the server's text, G_IO_ERROR_CANCELLED if its
 * cancellable was cancelled, or DEADLINE_EXCEEDED with what was missing (no TCP connection, no
 * answer). */

typedef struct _MusterRpcClient MusterRpcClient;
typedef struct _MusterRpcStream MusterRpcStream;

/* Doesn't connect yet. address is HOST:PORT or unix:/PATH; credentials is (nullable). */
MusterRpcClient *muster_rpc_client_new (const char *address, MusterRpcCredentials *credentials);
MusterRpcClient *muster_rpc_client_ref (MusterRpcClient *self);
void muster_rpc_client_unref (MusterRpcClient *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterRpcClient, muster_rpc_client_unref)

const char *muster_rpc_client_address (MusterRpcClient *self);

/* A header of a call. */
typedef struct {
  const char *key; /* lower-case letters, digits and "-_."; must not begin with "grpc-" or end with
                      "-bin" */
  const char *value; /* printable ASCII */
} MusterRpcHeader;

/* A caller's own name for a request: it is in the log of both ends, at DEBUG, and of a gateway. */
#define MUSTER_REQUEST_HEADER "x-request-id"

typedef struct {
  gint64 deadline_us; /* on muster_system_clock (); 0 is an error, MUSTER_WAIT_FOREVER no limit */
  /* TRUE waits until the deadline for a server that can't be reached. FALSE fails with UNAVAILABLE
   * at once. */
  gboolean wait_for_ready;
  /* At most 16, with 4 KiB in total; otherwise INVALID_ARGUMENT. The server reads them with
   * muster_rpc_call_header (). */
  const MusterRpcHeader *headers;
  gsize n_headers;
} MusterRpcOptions;

/* Sends a request and waits for the response. method is "/package.Service/Name". The request isn't
 * copied. Returns the response's bytes (transfer full). */
GBytes *muster_rpc_client_call (MusterRpcClient *self, const char *method, MusterRope *request,
                                const MusterRpcOptions *options, GCancellable *cancellable,
                                GError **error);

/* Sends a request and returns at once; the response is ignored. The call ends within timeout_us and
 * may keep the connection open until then. */
void muster_rpc_client_send_and_forget (MusterRpcClient *self, const char *method,
                                        MusterRope *request, gint64 timeout_us);

/* FALSE before the first call, which connects by itself. */
gboolean muster_rpc_client_has_channel (MusterRpcClient *self);

/* Returns whether a call could reach the server now. Without a connection it probes the server's
 * port (rpc/client/reach_probe_private.h). If the port accepts connections, it makes the channel
 * connect and waits for that, until deadline_us and at most a second. A server that accepts
 * connections but doesn't answer is probed again after 20 s. UP also if the result is inconclusive,
 * as with a slow name service. */
MusterServerState muster_rpc_client_reach (MusterRpcClient *self, gint64 deadline_us,
                                           GCancellable *cancellable);

/* Opens a stream of responses to one request. */
MusterRpcStream *muster_rpc_client_open (MusterRpcClient *self, const char *method,
                                         MusterRope *request, const MusterRpcOptions *options,
                                         GError **error);

/* Waits for the next message. NULL without an error at the regular end of the stream, NULL with an
 * error if it broke. At deadline_us NULL with DEADLINE_EXCEEDED, and the stream continues. With 0
 * it doesn't wait. */
GBytes *muster_rpc_stream_next_until (MusterRpcStream *self, gint64 deadline_us,
                                      GCancellable *cancellable, GError **error);

/* Ends the stream from this side. next () returns the messages that came before, then a copy of
 * why. Any thread, until the stream is freed. */
void muster_rpc_stream_end (MusterRpcStream *self, const GError *why);

/* Sets a function that is called when next () may have a result. It runs on a thread of the client
 * and under the stream's lock: it must not block or call the stream. NULL removes it, as freeing
 * does; after that has returned, notify isn't called any more. */
typedef void (*MusterRpcStreamNotify) (gpointer user_data);
void muster_rpc_stream_set_notify (MusterRpcStream *self, MusterRpcStreamNotify notify,
                                   gpointer user_data);

/* Cancels and frees the stream. */
void muster_rpc_stream_free (MusterRpcStream *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterRpcStream, muster_rpc_stream_free)

G_END_DECLS

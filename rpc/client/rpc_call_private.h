// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpc/client/reach_probe_private.h"
#include "rpc/client/rpc_client_private.h"
#include "rpc/credentials_private.h"
#include "rpc/grpc_private.h"

G_BEGIN_DECLS

/* What unary calls and streams share of a client. */

/* A gRPC channel. Each call holds the one that it began on: gRPC may never end a call whose channel
 * is destroyed while it connects. */
typedef struct {
  gatomicrefcount refs;
  grpc_channel *channel; /* (owned) */
  guint version;         /* of the files of credentials that it uses */
  guint n_heard;         /* atomic: answers and messages */
  GMutex lock;
  GQueue open;      /* guarded by lock: (element-type grpc_call) */
  gboolean is_dead; /* guarded by lock */
} MusterRpcChannel;

MusterRpcChannel *muster_rpc_channel_ref (MusterRpcChannel *self);
void muster_rpc_channel_unref (MusterRpcChannel *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterRpcChannel, muster_rpc_channel_unref)

/* From enter to leave, open->data is a call that fails if the channel's connection is found dead.
 */
void muster_rpc_channel_enter (MusterRpcChannel *self, GList *open);
void muster_rpc_channel_leave (MusterRpcChannel *self, GList *open);
void muster_rpc_channel_fail (grpc_call *call);

static inline void
muster_rpc_channel_note_heard (MusterRpcChannel *self)
{
  __atomic_fetch_add (&self->n_heard, 1, __ATOMIC_RELAXED);
}

/* After how much silence a connection is examined, by a call on it that any server answers. If that
 * isn't answered within answer_us, the same call is made on another connection. If it is answered
 * there, and still not on the first, that is dead: its calls fail with UNAVAILABLE, and the other
 * takes its place. A server that is silent on both keeps its connection. */
typedef struct {
  gint64 call_us;   /* of a unary call */
  gint64 stream_us; /* of a stream, and from an answer to the next question */
  gint64 answer_us;
  gint64 again_us; /* of the last question: a server that was stopped until then answers soon */
} MusterRpcSilence;

extern const MusterRpcSilence muster_rpc_silence; /* 5, 15, 3 and 1 s */

struct _MusterRpcClient {
  gatomicrefcount refs;
  char *address;
  MusterRpcCredentials *credentials; /* (owned) (nullable) */
  gboolean is_token_exposed;         /* no call is allowed: it would send the token in plain text */
  GMutex channel_lock;
  MusterRpcChannel *channel; /* (owned) (nullable) guarded by channel_lock, from the first call on;
                                whether it is there is also read without the lock */

  GMutex lock;
  GPtrArray *idle; /* guarded by lock: (element-type grpc_completion_queue) for unary calls */
  /* Guarded by lock: the queue of streams and of calls without a response (nullable), created with
   * the first of them. Its thread owns it, and ends when the client is freed and the queue empty.
   */
  grpc_completion_queue *pump;

  /* Silence (rpc_silence.c) */
  MusterRpcSilence silence; /* constant, but for tests */
  gboolean is_examined;     /* guarded by lock */
  gint64 examine_us;        /* guarded by lock: no examination before */

  /* Reconnecting (rpc_reach.c); guarded by lock. */
  MusterReachProber prober;
  gboolean is_down; /* the last attempt failed; also read without the lock */
  int down_why;
  gint64 probe_answered_us;
  gint64 nudged_us;
  gboolean is_polled; /* the channel is being polled, by `polled`, until polled_until_us at most */
  gint64 polled_until_us;
  MusterRpcTag polled; /* constant: gRPC hands it to another thread */
  GCond changed;       /* signals changes of is_polled */
};

/* A client without credentials on an existing channel (transfer full). address is for messages. */
MusterRpcClient *muster_rpc_client_new_over (grpc_channel *channel, const char *address);

/* The channel: another one after certificate, key or authorities were replaced. Created on first
 * use, since gRPC's threads wake about five times a second. (transfer full) */
MusterRpcChannel *muster_rpc_client_hold_channel (MusterRpcClient *self);
/* Another channel (transfer full). is_apart: it shares no connection with others. */
MusterRpcChannel *muster_rpc_client_open_channel (MusterRpcClient *self, gboolean is_apart);
gboolean muster_rpc_client_is_connected (MusterRpcClient *self);

/* FALSE with UNAVAILABLE if there is no channel and nothing listens at the address. */
gboolean muster_rpc_client_probe_first (MusterRpcClient *self, const MusterRpcOptions *options,
                                        GCancellable *cancellable, GError **error);

grpc_completion_queue *muster_rpc_client_pump (MusterRpcClient *self);

/* For a new client. */
void muster_rpc_client_init_reach (MusterRpcClient *self);
/* Notes that a call failed without a connection. */
void muster_rpc_client_note_unreachable (MusterRpcClient *self);
/* Notes that a call was answered. */
void muster_rpc_client_note_answer (MusterRpcClient *self, MusterRpcChannel *channel);
/* Notes that nothing has come on a channel for long. Doesn't wait. */
void muster_rpc_client_note_silence (MusterRpcClient *self, MusterRpcChannel *channel);

/* A call that isn't started. Free it with grpc_call_unref (), then the channel. */
grpc_call *muster_rpc_channel_new_call (MusterRpcChannel *self, const char *method,
                                        gint64 deadline_us, gint64 now_us,
                                        grpc_completion_queue *queue);

/* FALSE for invalid options, a request that is too large, or a deadline that has passed. */
gboolean muster_rpc_client_check (MusterRpcClient *self, const MusterRope *request,
                                  const MusterRpcOptions *options, gint64 now_us, GError **error);

#define MUSTER_RPC_MAX_HEADERS 16

/* The token and the headers of a call. Must live until its first batch has started. */
typedef struct {
  grpc_metadata items[1 + MUSTER_RPC_MAX_HEADERS];
  gsize n_items;
} MusterRpcMetadata;

/* FALSE with INVALID_ARGUMENT for headers that gRPC doesn't accept. */
gboolean muster_rpc_headers_check (const MusterRpcOptions *options, GError **error);

void muster_rpc_metadata_init (MusterRpcMetadata *self, MusterRpcClient *client,
                               const MusterRpcOptions *options);
void muster_rpc_metadata_clear (MusterRpcMetadata *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterRpcMetadata, muster_rpc_metadata_clear)

/* The first operations of each call: SEND_INITIAL_METADATA, SEND_MESSAGE, SEND_CLOSE_FROM_CLIENT.
 */
void muster_rpc_client_opening_ops (grpc_op ops[3], MusterRpcMetadata *metadata,
                                    grpc_byte_buffer *request, gboolean wait_for_ready);

/* How a call ended. */
typedef struct {
  grpc_status_code status;
  grpc_slice text;
  gint64 started_us;
  gint64 deadline_us;
} MusterRpcOutcome;

/* How the error of a call that got no answer begins; the address and the cause follow. */
#define MUSTER_NO_ANSWER_FROM "no answer from "

/* Extracts the cause from gRPC's text for a call that got no answer. *code becomes UNAVAILABLE, or
 * UNAUTHENTICATED for an invalid server certificate. Borrowed from text, or static. */
const char *muster_rpc_cause (const char *text, MusterRpcCredentials *credentials,
                              MusterError *code);

/* TRUE if gRPC's text reports that no connection was established. */
gboolean muster_rpc_is_unconnected (const char *text);

/* TRUE if text is gRPC's for a connection that ended during the call. */
gboolean muster_rpc_is_end (const char *text);

/* The state of a unary call, set by gRPC. Must be zero initially. */
typedef struct {
  MusterRpcChannel *channel; /* (owned) */
  grpc_call *call;           /* (owned) */
  GList open;                /* in the channel's list, while there is the call */
  grpc_byte_buffer *request; /* (owned) */
  grpc_byte_buffer *answer;  /* (owned) (nullable) */
  grpc_metadata_array initial, trailing;
  MusterRpcOutcome outcome;
  const char *cause; /* (owned) (nullable) gRPC's own description of the failure */
} MusterRpcUnary;

/* Starts a unary call; channel, call and request are (transfer full). tag is done when self is
 * filled in. */
void muster_rpc_unary_start (MusterRpcUnary *self, MusterRpcClient *client,
                             MusterRpcChannel *channel, grpc_call *call, grpc_byte_buffer *request,
                             const MusterRpcOptions *options, gpointer tag);
/* After its end: frees the call before the rest. */
void muster_rpc_unary_drop_call (MusterRpcUnary *self);
void muster_rpc_unary_clear (MusterRpcUnary *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterRpcUnary, muster_rpc_unary_clear)

/* A call that a server had no memory for. Zero at first. */
typedef struct {
  gint64 give_up_us;
  gint64 pause_us; /* before the next try, at most */
} MusterRpcRefused;

/* TRUE, after a pause and with a warning, if a call that has ended may be made again: the server
 * says that it did nothing and that others use its memory. FALSE from the call's deadline on, after
 * ten minutes, and if it is cancelled. */
gboolean muster_rpc_refused_wait (MusterRpcRefused *self, MusterRpcClient *client,
                                  const char *method, const MusterRpcUnary *unary,
                                  GCancellable *cancellable);

/* Sets *error from an outcome that isn't OK. */
void muster_rpc_client_set_error (MusterRpcClient *self, const MusterRpcOutcome *outcome,
                                  GCancellable *cancellable, GError **error);

G_END_DECLS

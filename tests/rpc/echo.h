// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpc/client/rpc_client_private.h"
#include "rpc/server/rpc_server_private.h"

G_BEGIN_DECLS

/* A server in this process and a client of it, over loopback. Its methods: Echo answers with the
 * request; Fail with `failure`; Wait not at all, but tells of its calls; Count (decimal number)
 * streams so many messages "0", "1", …; Open streams one message and stays open, as Wait. */
typedef struct {
  MusterRpcServer *server;
  MusterRpcClient *client;
  char *address;
  GMutex lock;
  GError *failure;      /* guarded by lock: set by echo_fail_with () */
  GAsyncQueue *arrived; /* of calls that wait (MusterRpcCall, transfer full) */
  GAsyncQueue *gone;    /* of those whose caller has gone */
} Echo;

void echo_start (Echo *self);
void echo_clear (Echo *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Echo, echo_clear)

/* What Fail, and Count at its end, answer from now on. */
void echo_fail_with (Echo *self, int code, const char *text);

/* Options with the bound that every wait of a test has: half a minute. */
MusterRpcOptions echo_options (void);
MusterRpcOptions echo_options_for (gint64 timeout_us);

/* Calls with text, within half a minute. */
GBytes *echo_call (Echo *self, const char *method, const char *text, GCancellable *cancellable,
                   GError **error);

/* The next waiting call to arrive; NULL after half a minute. */
MusterRpcCall *echo_pop (GAsyncQueue *queue);

/* A call on a thread of its own; joined by echo_join (), which gives its error. */
typedef struct {
  Echo *echo;
  const char *method;
  MusterRpcOptions options;
  GCancellable *cancellable;
  GThread *thread;
  GError *error;
} EchoThread;

void echo_thread_start (EchoThread *self, Echo *echo, const char *method);
/* Of Wait; the call as it arrived, NULL after half a minute. */
MusterRpcCall *echo_thread_start_waiting (EchoThread *self, Echo *echo);
/* The same in two steps, with options of one's own set between them. */
void echo_thread_prepare (EchoThread *self, Echo *echo, const char *method);
void echo_thread_run (EchoThread *self);
GError *echo_thread_join (EchoThread *self);

G_END_DECLS

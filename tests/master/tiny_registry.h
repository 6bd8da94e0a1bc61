// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unpack_private.h"
#include "rpc/server/rpc_server_private.h"

G_BEGIN_DECLS

/* The server's side of claims, as a test scripts it: what is asked lies in queues, and each claim
 * is granted at once, its stream open until the test ends it. */
typedef struct {
  GMutex lock;
  /* guarded by lock */
  gint64 lease_us;
  gboolean is_mute; /* claims are never answered */
  int refuse_claim; /* 0, or the code that claims end with */
  int refuse_announce;
  int holds_announce; /* an announcement isn't answered before something is in `answer` */

  GAsyncQueue *asked;     /* (element-type utf8) "digits worker:0 epoch=0 tiny ready take_over" */
  GAsyncQueue *open;      /* (element-type MusterRpcCall) of claims */
  GAsyncQueue *announced; /* (element-type utf8) "epoch=1 restoring step=3 durable=2 p detail" */
  GAsyncQueue *left;      /* something for each claim that was cancelled */
  GAsyncQueue *answer;    /* something for each announcement that is held */
} TinyRegistry;

void tiny_registry_add (TinyRegistry *self, MusterRpcServer *server);
/* Ends the claims that are open, before the server goes; clear is for afterwards. */
void tiny_registry_stop (TinyRegistry *self);
void tiny_registry_clear (TinyRegistry *self);

/* Each waits for it; half a minute at most. */
char *tiny_registry_pop (GAsyncQueue *queue); /* (transfer full) */
/* Ends the oldest open claim. */
void tiny_registry_end_claim (TinyRegistry *self, int code, const char *text);

void tiny_registry_set (TinyRegistry *self, int *which, int value);

/* For the methods of a test's server: the request, which must be valid, and a failure. */
gpointer tiny_unpack (const ProtobufCMessageDescriptor *descriptor, GBytes *request,
                      MusterArena *arena);
void tiny_fail (MusterRpcCall *call, int code, const char *text);

G_END_DECLS

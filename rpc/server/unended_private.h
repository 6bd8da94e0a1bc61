// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

G_BEGIN_DECLS

/* What gRPC keeps of requests that haven't ended: until all of a request is there, nobody but gRPC
 * has it, and it has no limit. Their bytes count in the process's memory (MUSTER_MEMORY_MESSAGES).
 * Where none is left, or others are refused memory while such requests stall, the connections that
 * hold most for longest are ended, by bytes times seconds: who sends a large request in one go
 * holds less than who leaves one lying. An eighth of the limit is left to them. Any thread. */

/* Those of one connection. */
typedef struct _MusterUnended MusterUnended;

/* One of its requests; zeroed at first. */
typedef struct {
  gsize n_bytes;
  double moment; /* each of these bytes times when it came, in seconds */
} MusterUnendedRequest;

/* fd is the connection's socket, -1 if it isn't known: then it can't be ended. ended is called for
 * one that is, with a lock held. */
MusterUnended *muster_unended_new (int fd, MusterClock *clock,
                                   void (*ended) (int fd, const char *why));
void muster_unended_free (MusterUnended *self);

/* More bytes of a request. FALSE if the connection was ended, now or before. */
gboolean muster_unended_add (MusterUnended *self, MusterUnendedRequest *request, gsize n_bytes);
/* The request is whole, or gRPC has dropped it. */
void muster_unended_remove (MusterUnended *self, MusterUnendedRequest *request);

G_END_DECLS

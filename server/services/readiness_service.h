// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/core/sessions.h"
#include "server/core/types.h"

G_BEGIN_DECLS

/* /muster.Readiness: Watch. */

typedef struct _MusterReadinessService MusterReadinessService;

MusterReadinessService *muster_readiness_service_new (MusterServer *server);
void muster_readiness_service_free (MusterReadinessService *self);
void muster_readiness_service_enter (MusterReadinessService *self);
/* Ends the watches of a session that was closed or reset. */
void muster_readiness_service_session_gone (MusterReadinessService *self, MusterServed *served);
/* Ends all watches, and accepts no more. Idempotent. */
void muster_readiness_service_stop (MusterReadinessService *self);

/* A waiting client, for Status. */
typedef struct {
  char *task;  /* (owned) "worker:3"; "" if unknown */
  char *who;   /* (owned) "HOST:PID"; "" if unknown */
  char *model; /* (owned) "" if only the two ops decide */
  gint64 age_us;
  const char
      *waits_for; /* static: "gate", "ready", or "" after it was told that the model is ready */
  char *why;      /* (owned) the last reason sent; "" before, and when ready */
} MusterWaiting;

/* (transfer full) (element-type MusterWaiting) the longest waiting first, at most max. */
GPtrArray *muster_readiness_service_waiters (MusterReadinessService *self, guint max);
guint muster_readiness_service_n_watchers (MusterReadinessService *self);

G_END_DECLS

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
/* Ends all watches, and takes no more. Idempotent. */
void muster_readiness_service_stop (MusterReadinessService *self);

/* Who waits here, as Status lists it. */
typedef struct {
  char *task;  /* (owned) "worker:3"; "" where it didn't say */
  char *who;   /* (owned) "HOST:PID"; "" likewise */
  char *model; /* (owned) "" where the two ops alone decide */
  gint64 age_us;
  const char *waits_for; /* static: "gate", "ready", or "" for one that was told that it is ready */
  char *why;             /* (owned) as it was told last; "" before, and when ready */
} MusterWaiting;

void muster_waiting_free (MusterWaiting *self);

/* (transfer full) (element-type MusterWaiting) the longest waiting first, at most max of them. */
GPtrArray *muster_readiness_service_waiters (MusterReadinessService *self, guint max);
guint muster_readiness_service_n_watchers (MusterReadinessService *self);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpc/server/rpc_server_private.h"
#include "server/core/types.h"

G_BEGIN_DECLS

/* Calls of Status that wait for a change: of a chief or its phase, of a job's members, or that the
 * server drains; not of steps and batches. Any thread. */

typedef struct _MusterStatusWatch MusterStatusWatch;

/* Answers a call; not called any more after a stop. */
typedef void (*MusterStatusAnswer) (MusterRpcCall *call, MusterServer *server);

MusterStatusWatch *muster_status_watch_new (MusterServer *server, MusterStatusAnswer answer);
void muster_status_watch_free (MusterStatusWatch *self);

/* Something has changed. Doesn't block. */
void muster_status_watch_note (MusterStatusWatch *self);
/* How much has changed so far, from 1. */
gint64 muster_status_watch_n_changes (MusterStatusWatch *self);

/* Answers the call once there are other than `after` changes, or after wait_us. At once, if too
 * many calls wait already. */
void muster_status_watch_add (MusterStatusWatch *self, MusterRpcCall *call, gint64 after,
                              gint64 wait_us);

/* Answers all, and lets none wait any more. Idempotent. */
void muster_status_watch_stop (MusterStatusWatch *self);

G_END_DECLS

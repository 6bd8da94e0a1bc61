// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ready/hub_private.h"

G_BEGIN_DECLS

/* MusterReadinessTracker records in the registry whether a prepared model is ready. It subscribes
 * to the hub, with its own session of the chief's graph, so that the result outlives the chief's
 * session. The session is created and closed on a thread pool; nothing waits for it. If it can't be
 * created, or is lost, the model counts as not ready. Any thread. */

typedef struct _MusterReadinessTracker MusterReadinessTracker;

/* What the trackers of a server share. */
typedef struct {
  MusterMaster *master;
  MusterReadinessHub *hub;
  MusterChiefRegistry *registry;
  GThreadPool *pool; /* of muster_readiness_tracker_work () */
} MusterReadinessTracking;

/* The pool's function. */
void muster_readiness_tracker_work (gpointer follower, gpointer tracking);

/* ready_op NULL: ready as long as its session exists. tracking must outlive it. */
MusterReadinessTracker *muster_readiness_tracker_new (const MusterReadinessTracking *tracking,
                                                      const char *model, gint64 epoch,
                                                      MusterGraph *graph, const char *ready_op);
/* After it has returned, the registry isn't changed any more. */
void muster_readiness_tracker_stop (MusterReadinessTracker *self);

/* TRUE after a failure: then create another tracker. */
gboolean muster_readiness_tracker_has_failed (MusterReadinessTracker *self);

G_END_DECLS

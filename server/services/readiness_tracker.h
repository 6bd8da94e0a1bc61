// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ready/hub.h"

G_BEGIN_DECLS

/* MusterReadinessTracker keeps the board told whether a prepared model is ready: it asks the hub,
 * in a session of its own over the chief's graph, so that the answer outlives the chief's session.
 * The session is made and closed by a pool's threads, and nobody waits for it. Where it can't be
 * made, or is lost, the model counts as not ready. Any thread. */

typedef struct _MusterReadinessTracker MusterReadinessTracker;

/* What followers of one server share. */
typedef struct {
  MusterMaster *master;
  MusterReadinessHub *hub;
  MusterChiefRegistry *registry;
  GThreadPool *pool; /* of muster_readiness_tracker_work () */
} MusterReadinessTracking;

/* The pool's function. */
void muster_readiness_tracker_work (gpointer follower, gpointer tracking);

/* ready_op NULL: ready as long as its session lives. following outlives it. */
MusterReadinessTracker *muster_readiness_tracker_new (const MusterReadinessTracking *tracking,
                                                      const char *model, gint64 epoch,
                                                      MusterGraph *graph, const char *ready_op);
/* Once it has returned the board isn't told any more. */
void muster_readiness_tracker_stop (MusterReadinessTracker *self);

/* TRUE once it has failed: only another one would tell. */
gboolean muster_readiness_tracker_has_failed (MusterReadinessTracker *self);

G_END_DECLS

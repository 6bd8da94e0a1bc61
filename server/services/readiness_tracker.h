// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ready/hub.h"

G_BEGIN_DECLS

/* MusterFollower keeps the board told whether a prepared model is ready: it asks the hub, in a
 * session of its own over the chief's graph, so that the answer outlives the chief's session. The
 * session is made and closed by a pool's threads, and nobody waits for it. Where it can't be made,
 * or is lost, the model counts as not ready. Any thread. */

typedef struct _MusterFollower MusterFollower;

/* What followers of one server share. */
typedef struct {
  MusterMaster *master;
  MusterReadinessHub *hub;
  MusterBoard *board;
  GThreadPool *pool; /* of muster_follower_work () */
} MusterFollowing;

/* The pool's function. */
void muster_follower_work (gpointer follower, gpointer following);

/* ready_op NULL: ready as long as its session lives. following outlives it. */
MusterFollower *muster_follower_new (const MusterFollowing *following, const char *model,
                                     gint64 epoch, MusterGraph *graph, const char *ready_op);
/* Once it has returned the board isn't told any more. */
void muster_follower_stop (MusterFollower *self);

/* TRUE once it has failed: only another one would tell. */
gboolean muster_follower_has_failed (MusterFollower *self);

G_END_DECLS

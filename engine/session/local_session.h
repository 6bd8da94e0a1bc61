// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"
#include "engine/resources/resources.h"
#include "engine/run/graph_cache.h"
#include "engine/session/session_config.h"
#include "master/session.h"

G_BEGIN_DECLS

/* The one device of a master in this process. */
#define MUSTER_LOCAL_DEVICE "/job:localhost/replica:0/task:0/device:CPU:0"

/* A session of the local master. It runs steps on their callers' threads; a step that parks blocks
 * its caller, not the engine. */

#define MUSTER_TYPE_LOCAL_SESSION (muster_local_session_get_type ())
G_DECLARE_FINAL_TYPE (MusterLocalSession, muster_local_session, MUSTER, LOCAL_SESSION,
                      MusterSession)

/* What all sessions of a master share. Counted. */
typedef struct {
  gatomicrefcount refs;
  MusterResources *resources;
  MusterGraphCache *graphs;
  MusterStorage *storage; /* (owned) of checkpoints */
  gsize max_op_bytes;     /* what one run of an op may allocate */
  GMutex lock;
  GPtrArray
      *sessions; /* (element-type MusterLocalSession) (not owned) open ones; guarded by lock */
  GRecMutex watchers_lock; /* held while they are called: one that is gone isn't called any more */
  GArray *watchers;        /* guarded by watchers_lock */
  gulong last_watcher;
} MusterLocalShared;

MusterLocalShared *muster_local_shared_new (MusterStorage *storage, gsize max_op_bytes);
MusterLocalShared *muster_local_shared_ref (MusterLocalShared *self);
void muster_local_shared_unref (MusterLocalShared *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterLocalShared, muster_local_shared_unref)

/* Tells who watches that variables went from no value to a value or back. */
void muster_local_shared_tell (MusterLocalShared *self);

MusterSession *muster_local_session_new (MusterLocalShared *shared, MusterGraph *graph,
                                         const MusterSessionConfig *config, GError **error);

/* Ends it after a reset: its steps and whatever it is asked from now on get ABORTED. */
void muster_local_session_forget (MusterLocalSession *self);

G_END_DECLS

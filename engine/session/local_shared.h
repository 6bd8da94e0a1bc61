// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"
#include "engine/resources/resources.h"
#include "engine/run/graph_cache.h"
#include "master/master.h"

G_BEGIN_DECLS

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

/* Calls callback, whenever variables went from no value to a value or back, until its number is
 * given to unwatch: not after that has returned. */
gulong muster_local_shared_watch (MusterLocalShared *self, MusterReadinessChanged callback,
                                  gpointer user_data);
void muster_local_shared_unwatch (MusterLocalShared *self, gulong id);

/* Tells who watches that variables went from no value to a value or back. */
void muster_local_shared_notify (MusterLocalShared *self);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"
#include "engine/resources/resources.h"
#include "engine/run/graph_cache.h"
#include "master/master.h"

G_BEGIN_DECLS

/* What all sessions of a master share. Reference-counted. */
typedef struct {
  gatomicrefcount refs;
  MusterResources *resources;
  MusterGraphCache *graphs;
  MusterStorage *storage; /* (owned) for checkpoints */
  gsize max_op_bytes;     /* maximum memory of one run of an op */
  GMutex lock;
  GPtrArray
      *sessions; /* (element-type MusterLocalSession) (not owned) open ones; guarded by lock */
  GRecMutex watchers_lock; /* held during the calls, so that a removed watcher isn't called */
  GArray *watchers;        /* guarded by watchers_lock */
  gulong last_watcher;
} MusterLocalShared;

MusterLocalShared *muster_local_shared_new (MusterStorage *storage, gsize max_op_bytes);
MusterLocalShared *muster_local_shared_ref (MusterLocalShared *self);
void muster_local_shared_unref (MusterLocalShared *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterLocalShared, muster_local_shared_unref)

/* Calls callback when a variable has gained or lost its value, until muster_local_shared_unwatch ()
 * has returned. */
gulong muster_local_shared_watch (MusterLocalShared *self, MusterReadinessChanged callback,
                                  gpointer user_data);
void muster_local_shared_unwatch (MusterLocalShared *self, gulong id);

/* Notifies the watchers that a variable has gained or lost its value. */
void muster_local_shared_notify (MusterLocalShared *self);

G_END_DECLS

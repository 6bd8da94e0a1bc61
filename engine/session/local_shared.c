// SPDX-License-Identifier: Apache-2.0
#include "engine/session/local_shared.h"

#include "checkpoint/stores/default_storage.h"

/* A listener for readiness. */
typedef struct {
  gulong id;
  MusterReadinessChanged callback;
  gpointer user_data;
} Watcher;

MusterLocalShared *
muster_local_shared_new (MusterStorage *storage, gsize max_op_bytes)
{
  MusterLocalShared *self = g_new0 (MusterLocalShared, 1);
  g_atomic_ref_count_init (&self->refs);
  self->resources = muster_resources_new ();
  self->graphs = muster_graph_cache_new ();
  self->storage = g_object_ref (storage != NULL ? storage : muster_default_storage ());
  self->max_op_bytes = max_op_bytes;
  g_mutex_init (&self->lock);
  self->sessions = g_ptr_array_new ();
  g_rec_mutex_init (&self->watchers_lock);
  self->watchers = g_array_new (FALSE, FALSE, sizeof (Watcher));
  return self;
}

MusterLocalShared *
muster_local_shared_ref (MusterLocalShared *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_local_shared_unref (MusterLocalShared *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->refs))
    return;
  muster_graph_cache_free (self->graphs);
  muster_resources_unref (self->resources);
  g_object_unref (self->storage);
  g_ptr_array_unref (self->sessions);
  g_array_unref (self->watchers);
  g_rec_mutex_clear (&self->watchers_lock);
  g_mutex_clear (&self->lock);
  g_free (self);
}

void
muster_local_shared_notify (MusterLocalShared *self)
{
  g_autoptr (GRecMutexLocker) locker = g_rec_mutex_locker_new (&self->watchers_lock);
  for (guint i = 0; i < self->watchers->len; i++) {
    const Watcher watcher = g_array_index (self->watchers, Watcher, i);
    watcher.callback (watcher.user_data);
  }
}

gulong
muster_local_shared_watch (MusterLocalShared *self, MusterReadinessChanged callback,
                           gpointer user_data)
{
  g_autoptr (GRecMutexLocker) locker = g_rec_mutex_locker_new (&self->watchers_lock);
  const Watcher watcher = {
      .id = ++self->last_watcher, .callback = callback, .user_data = user_data};
  g_array_append_val (self->watchers, watcher);
  return watcher.id;
}

void
muster_local_shared_unwatch (MusterLocalShared *self, gulong id)
{
  g_autoptr (GRecMutexLocker) locker = g_rec_mutex_locker_new (&self->watchers_lock);
  for (guint i = 0; i < self->watchers->len; i++) {
    if (g_array_index (self->watchers, Watcher, i).id != id)
      continue;
    g_array_remove_index (self->watchers, i);
    return;
  }
}

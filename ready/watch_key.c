// SPDX-License-Identifier: Apache-2.0
#include "ready/watch_key_private.h"

#include "base/hash_private.h"

MusterWatchKey *
muster_watch_key_new (const MusterWatchKey *what, gint64 now_us)
{
  MusterWatchKey *self = g_new0 (MusterWatchKey, 1);
  self->graph = what->graph != NULL ? muster_graph_ref (what->graph) : NULL;
  if (what->graph == NULL && what->session != NULL)
    self->session = g_object_ref (what->session);
  self->gate_op = g_strdup (what->gate_op);
  self->ready_op = g_strdup (what->ready_op);
  self->model = g_strdup (what->model);
  self->link.data = self;
  self->is_stale = TRUE;
  self->has_graph_changed = TRUE;
  muster_poll_plan_init (&self->polls, now_us);
  return self;
}

/* The seed is an address, so that no client can make questions that all collide. */
static guint
hash_text (const char *text)
{
  static const char seed;
  return text != NULL ? (guint)muster_hash_bytes (text, strlen (text), (guint64)(guintptr)&seed)
                      : 0;
}

guint
muster_watch_key_hash (gconstpointer data)
{
  const MusterWatchKey *watch_key = data;
  guint hash = watch_key->graph != NULL ? (guint)muster_graph_hash (watch_key->graph)
                                        : g_direct_hash (watch_key->session);
  hash = hash * 31 + hash_text (watch_key->gate_op);
  hash = hash * 31 + hash_text (watch_key->ready_op);
  return hash * 31 + hash_text (watch_key->model);
}

gboolean
muster_watch_key_equal (gconstpointer a, gconstpointer b)
{
  const MusterWatchKey *one = a;
  const MusterWatchKey *other = b;
  if (g_strcmp0 (one->gate_op, other->gate_op) != 0 ||
      g_strcmp0 (one->ready_op, other->ready_op) != 0 || g_strcmp0 (one->model, other->model) != 0)
    return FALSE;
  if (one->graph == NULL || other->graph == NULL)
    return one->graph == other->graph && one->session == other->session;
  return muster_graph_equal (one->graph, other->graph);
}

void
muster_watch_key_free (gpointer data)
{
  MusterWatchKey *watch_key = data;
  g_clear_pointer (&watch_key->graph, muster_graph_unref);
  g_clear_object (&watch_key->session);
  g_free (watch_key->gate_op);
  g_free (watch_key->ready_op);
  g_free (watch_key->model);
  muster_ready_op_clear (&watch_key->gate);
  muster_ready_op_clear (&watch_key->ready);
  muster_readiness_clear (&watch_key->ops);
  muster_readiness_clear (&watch_key->current);
  g_free (watch_key->difference);
  g_free (watch_key);
}

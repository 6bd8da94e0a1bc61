// SPDX-License-Identifier: Apache-2.0
#include "server/gateway/gateway_private.h"

#include "base/memory_account_private.h"

/* Lives as long as the last session with a graph in it. */
struct _MusterGatewayGraphs {
  gatomicrefcount refs;
  GMutex lock;
  GHashTable *
      uses; /* (owned) MusterGraph (owned) -> the number of sessions that use it; guarded by lock */
};

static guint
graph_hash (gconstpointer graph)
{
  return (guint)muster_graph_hash ((MusterGraph *)graph);
}

static gboolean
graph_equal (gconstpointer a, gconstpointer b)
{
  return a == b || muster_graph_equal ((MusterGraph *)a, (MusterGraph *)b);
}

MusterGatewayGraphs *
muster_gateway_graphs_new (void)
{
  MusterGatewayGraphs *self = g_new0 (MusterGatewayGraphs, 1);
  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->uses =
      g_hash_table_new_full (graph_hash, graph_equal, (GDestroyNotify)muster_graph_unref, NULL);
  return self;
}

void
muster_gateway_graphs_unref (MusterGatewayGraphs *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->refs))
    return;
  g_hash_table_unref (self->uses);
  g_mutex_clear (&self->lock);
  g_free (self);
}

/* Adds a use of a graph in the table. Call with the lock held. */
static void
add_use (MusterGatewayGraphs *self, MusterGraph *graph)
{
  guint n = GPOINTER_TO_UINT (g_hash_table_lookup (self->uses, graph));
  g_hash_table_insert (self->uses, muster_graph_ref (graph), GUINT_TO_POINTER (n + 1));
}

/* Counts the graph in the process's memory, once for all its sessions. */
static gboolean
count_graph (MusterGraph *graph, GError **error)
{
  return muster_memory_take (MUSTER_MEMORY_GRAPHS, g_bytes_get_size (muster_graph_bytes (graph)),
                             error);
}

MusterGraph *
muster_gateway_graphs_get (MusterGatewayGraphs *self, GBytes *bytes, GError **error)
{
  g_autoptr (MusterGraph) fresh = muster_graph_new (bytes);
  gpointer known;
  (void)muster_graph_hash (fresh); /* computed here, outside the lock */
  g_mutex_lock (&self->lock);
  gboolean is_known = g_hash_table_lookup_extended (self->uses, fresh, &known, NULL);
  MusterGraph *graph =
      is_known || count_graph (fresh, error) ? muster_graph_ref (is_known ? known : fresh) : NULL;
  if (graph != NULL)
    add_use (self, graph);
  g_mutex_unlock (&self->lock);
  return graph;
}

void
muster_gateway_graphs_release (MusterGatewayGraphs *self, MusterGraph *graph)
{
  g_mutex_lock (&self->lock);
  guint n = GPOINTER_TO_UINT (g_hash_table_lookup (self->uses, graph));
  if (n > 1)
    g_hash_table_insert (self->uses, muster_graph_ref (graph), GUINT_TO_POINTER (n - 1));
  else if (g_hash_table_remove (self->uses, graph))
    muster_memory_release (MUSTER_MEMORY_GRAPHS, g_bytes_get_size (muster_graph_bytes (graph)));
  g_mutex_unlock (&self->lock);
  muster_graph_unref (graph);
}

/* One session's use of a graph. */
typedef struct {
  MusterGatewayGraphs *graphs; /* (owned) */
  MusterGraph *graph;          /* (owned) */
} Use;

static void
on_session_gone (gpointer data, GObject *session G_GNUC_UNUSED)
{
  Use *use = data;
  muster_gateway_graphs_release (use->graphs, use->graph);
  muster_gateway_graphs_unref (use->graphs);
  g_free (use);
}

void
muster_gateway_graphs_keep (MusterGatewayGraphs *self, MusterSession *session, MusterGraph *graph)
{
  Use *use = g_new (Use, 1);
  g_atomic_ref_count_inc (&self->refs);
  *use = (Use){self, muster_graph_ref (graph)};
  g_mutex_lock (&self->lock);
  add_use (self, graph);
  g_mutex_unlock (&self->lock);
  g_object_weak_ref (G_OBJECT (session), on_session_gone, use);
}

guint
muster_gateway_graphs_size (MusterGatewayGraphs *self)
{
  g_mutex_lock (&self->lock);
  guint n = g_hash_table_size (self->uses);
  g_mutex_unlock (&self->lock);
  return n;
}

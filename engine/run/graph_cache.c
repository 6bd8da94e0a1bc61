// SPDX-License-Identifier: Apache-2.0
#include "engine/run/graph_cache.h"

#include "base/error.h"
#include "base/memory_account_private.h"

/* The number of unused programs to keep: the next worker often sends the same graph. */
#define MAX_IDLE 2

typedef struct {
  MusterProgram *program; /* (owned) */
  guint64 hash;
  gsize n_bytes; /* of the graph, counted in the process's memory */
  guint n_users;
  guint64 left; /* clock when n_users became 0 */
} Entry;

struct _MusterGraphCache {
  GMutex lock;
  GArray *entries; /* (owned) of Entry; guarded by lock */
  guint64 clock;   /* guarded by lock */
};

MusterGraphCache *
muster_graph_cache_new (void)
{
  MusterGraphCache *self = g_new0 (MusterGraphCache, 1);
  g_mutex_init (&self->lock);
  self->entries = g_array_new (FALSE, FALSE, sizeof (Entry));
  return self;
}

/* With the lock held. */
static void
remove_entry (MusterGraphCache *self, guint i)
{
  const Entry entry = g_array_index (self->entries, Entry, i);
  g_array_remove_index_fast (self->entries, i);
  muster_memory_release (MUSTER_MEMORY_GRAPHS, entry.n_bytes);
  muster_program_unref (entry.program);
}

void
muster_graph_cache_free (MusterGraphCache *self)
{
  if (self == NULL)
    return;
  while (self->entries->len > 0)
    remove_entry (self, 0);
  g_array_unref (self->entries);
  g_mutex_clear (&self->lock);
  g_free (self);
}

/* With the lock held. */
static Entry *
find (MusterGraphCache *self, MusterGraph *graph, guint64 hash)
{
  for (guint i = 0; i < self->entries->len; i++) {
    Entry *entry = &g_array_index (self->entries, Entry, i);
    if (entry->hash == hash && muster_graph_equal (muster_program_graph (entry->program), graph))
      return entry;
  }
  return NULL;
}

/* With the lock held. FALSE if there are no programs without users. */
static gboolean
remove_idle (MusterGraphCache *self)
{
  const guint n = self->entries->len;
  for (guint i = n; i > 0; i--)
    if (g_array_index (self->entries, Entry, i - 1).n_users == 0)
      remove_entry (self, i - 1);
  return self->entries->len < n;
}

/* With the lock held: the graph's bytes, and its nodes as they are parsed, count in the process's
 * memory. */
static Entry *
try_add (MusterGraphCache *self, MusterGraph *graph, guint64 hash, GError **error)
{
  const gsize n_bytes = muster_graph_size (graph);
  if (!muster_memory_take (MUSTER_MEMORY_GRAPHS, n_bytes, error))
    return NULL;
  if (!muster_graph_parse (graph, error)) {
    muster_memory_release (MUSTER_MEMORY_GRAPHS, n_bytes);
    return NULL;
  }
  const Entry added = {.program = muster_program_new (graph), .hash = hash, .n_bytes = n_bytes};
  g_array_append_val (self->entries, added);
  return &g_array_index (self->entries, Entry, self->entries->len - 1);
}

/* With the lock held. */
static Entry *
add (MusterGraphCache *self, MusterGraph *graph, guint64 hash, GError **error)
{
  g_autoptr (GError) failed = NULL;
  Entry *entry = try_add (self, graph, hash, &failed);
  if (entry != NULL)
    return entry;
  if (muster_error_is (failed, MUSTER_ERROR_RESOURCE_EXHAUSTED) && remove_idle (self))
    return try_add (self, graph, hash, error);
  g_propagate_error (error, g_steal_pointer (&failed));
  return NULL;
}

MusterProgram *
muster_graph_cache_acquire (MusterGraphCache *self, MusterGraph *graph, GError **error)
{
  const guint64 hash = muster_graph_hash (graph);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  Entry *entry = find (self, graph, hash);
  /* With the lock held, so that a graph that a hundred workers send at once is parsed once. */
  if (entry == NULL)
    entry = add (self, graph, hash, error);
  if (entry == NULL)
    return NULL;
  entry->n_users++;
  return muster_program_ref (entry->program);
}

/* With the lock held: if there are too many unused programs, frees the one unused for longest. */
static void
drop_idle (MusterGraphCache *self)
{
  guint n_idle = 0, oldest = 0;
  for (guint i = 0; i < self->entries->len; i++) {
    const Entry *entry = &g_array_index (self->entries, Entry, i);
    if (entry->n_users > 0)
      continue;
    if (n_idle++ == 0 || entry->left < g_array_index (self->entries, Entry, oldest).left)
      oldest = i;
  }
  if (n_idle <= MAX_IDLE)
    return;
  remove_entry (self, oldest);
}

void
muster_graph_cache_release (MusterGraphCache *self, MusterProgram *program)
{
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->entries->len; i++) {
    Entry *entry = &g_array_index (self->entries, Entry, i);
    if (entry->program != program)
      continue;
    if (--entry->n_users == 0)
      entry->left = ++self->clock;
    break;
  }
  drop_idle (self);
  g_mutex_unlock (&self->lock);
  muster_program_unref (program);
}

// SPDX-License-Identifier: Apache-2.0
#include "engine/run/graph_cache.h"

/* The number of unused programs to keep: the next worker often sends the same graph. */
#define MAX_IDLE 2

typedef struct {
  MusterProgram *program; /* (owned) */
  guint64 hash;
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

void
muster_graph_cache_free (MusterGraphCache *self)
{
  if (self == NULL)
    return;
  for (guint i = 0; i < self->entries->len; i++)
    muster_program_unref (g_array_index (self->entries, Entry, i).program);
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

MusterProgram *
muster_graph_cache_acquire (MusterGraphCache *self, MusterGraph *graph, GError **error)
{
  const guint64 hash = muster_graph_hash (graph);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  Entry *entry = find (self, graph, hash);
  if (entry == NULL) {
    /* With the lock held, so that a graph that a hundred workers send at once is parsed once. */
    if (!muster_graph_parse (graph, error))
      return NULL;
    const Entry added = {.program = muster_program_new (graph), .hash = hash};
    g_array_append_val (self->entries, added);
    entry = &g_array_index (self->entries, Entry, self->entries->len - 1);
  }
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
  muster_program_unref (g_array_index (self->entries, Entry, oldest).program);
  g_array_remove_index_fast (self->entries, oldest);
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

// SPDX-License-Identifier: Apache-2.0
#include "graph/graph.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/require.h"
#include "base/rope.h"
#include "base/unpack.h"
#include "graph/graph_nodes.h"

#include <string.h>

/* A slot of the table of names: the top half of a name's hash, and its node's index + 1. Open
 * addressing, at most half full, so that a look costs one cache line and no allocation. */
typedef struct {
  guint32 hash;
  guint32 index; /* 0: empty */
} Slot;

/* An input of a node, looked up. */
typedef struct {
  guint32 node;
  gint32 output; /* -1: control */
} Input;

/* Maximum depth of extensions of extensions: a lookup may search each. */
#define MAX_DEPTH 8

struct _MusterGraph {
  gint ref_count; /* atomic */

  /* What an extension is made of, so that the nodes it extends needn't be parsed again. */
  MusterGraph *origin; /* (owned) (nullable) */
  GBytes *extra;       /* (owned) (nullable) the bytes after origin's */
  guint depth;         /* how many origins there are below */

  GMutex lock;   /* held while one of the following is created */
  GBytes *bytes; /* atomic, (owned) (nullable) for an extension until asked for */
  gint has_hash; /* atomic; once set, hash is constant */
  guint64 hash;

  GMutex parsing;                  /* held while all of the following is created */
  gint is_parsed;                  /* atomic; once set, all that follows is constant */
  GError *verdict;                 /* (owned) (nullable) */
  MusterArena *arena;              /* (owned) (nullable) holds def */
  const MusterGraph *base;         /* (nullable) origin, where its nodes are this one's first */
  gsize n_base;                    /* how many those are */
  guint64 seed;                    /* of the names' hashes, and of base's */
  const Tensorflow__GraphDef *def; /* (nullable) for a malformed graph; the nodes after them */
  Slot *slots;                     /* of def's nodes, in the arena as are the following */
  gsize n_slots;                   /* a power of two */
  guint32 *first_input;            /* by def's node: its first in inputs */
  Input *inputs;
};

G_DEFINE_BOXED_TYPE (MusterGraph, muster_graph, muster_graph_ref, muster_graph_unref)

static MusterGraph *
new_graph (void)
{
  MusterGraph *self = g_new0 (MusterGraph, 1);
  self->ref_count = 1;
  g_mutex_init (&self->lock);
  g_mutex_init (&self->parsing);
  return self;
}

MusterGraph *
muster_graph_new (GBytes *bytes)
{
  g_return_val_if_fail (bytes != NULL, NULL);
  MusterGraph *self = new_graph ();
  self->bytes = g_bytes_ref (bytes);
  return self;
}

MusterGraph *
muster_graph_ref (MusterGraph *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  g_atomic_int_inc (&self->ref_count);
  return self;
}

void
muster_graph_unref (MusterGraph *self)
{
  if (self == NULL || !g_atomic_int_dec_and_test (&self->ref_count))
    return;
  g_mutex_clear (&self->lock);
  g_mutex_clear (&self->parsing);
  g_clear_pointer (&self->bytes, g_bytes_unref);
  g_clear_error (&self->verdict);
  muster_arena_free (self->arena);
  g_clear_pointer (&self->extra, g_bytes_unref);
  g_clear_pointer (&self->origin, muster_graph_unref);
  g_free (self);
}

void
muster_graph_put (MusterGraph *self, MusterRope *rope)
{
  GBytes *bytes = g_atomic_pointer_get (&self->bytes);
  if (bytes != NULL) {
    muster_rope_append (rope, bytes);
    return;
  }
  muster_graph_put (self->origin, rope);
  muster_rope_append (rope, self->extra);
}

GBytes *
muster_graph_bytes (MusterGraph *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  if (g_atomic_pointer_get (&self->bytes) != NULL)
    return self->bytes;
  g_mutex_lock (&self->lock);
  if (self->bytes == NULL) {
    g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
    muster_graph_put (self, &rope);
    g_atomic_pointer_set (&self->bytes, muster_rope_flatten (&rope));
  }
  g_mutex_unlock (&self->lock);
  return self->bytes;
}

guint64
muster_graph_hash (MusterGraph *self)
{
  g_return_val_if_fail (self != NULL, 0);
  if (g_atomic_int_get (&self->has_hash))
    return self->hash;
  gsize size;
  gconstpointer data = g_bytes_get_data (muster_graph_bytes (self), &size);
  g_mutex_lock (&self->lock);
  if (!self->has_hash) {
    self->hash = muster_hash_bytes (data, size, 0);
    g_atomic_int_set (&self->has_hash, TRUE);
  }
  g_mutex_unlock (&self->lock);
  return self->hash;
}

gboolean
muster_graph_equal (MusterGraph *a, MusterGraph *b)
{
  g_return_val_if_fail (a != NULL && b != NULL, FALSE);
  if (a == b)
    return TRUE;
  GBytes *one = muster_graph_bytes (a), *other = muster_graph_bytes (b);
  return g_bytes_get_size (one) == g_bytes_get_size (other) &&
         muster_graph_hash (a) == muster_graph_hash (b) && g_bytes_equal (one, other);
}

/* --- the table of names --- */

/* The seed is an address: the graph's author can't know it and so can't make names collide. */
static guint64
hash_name (const MusterGraph *self, const char *name, gsize size)
{
  return muster_hash_bytes (name, size, self->seed);
}

static void
fetch_slot (const MusterGraph *self, guint64 hash)
{
  for (; self != NULL; self = self->base)
    __builtin_prefetch (&self->slots[hash & (self->n_slots - 1)], 1);
}

/* The slot that holds the name, or the empty one where it belongs. */
static Slot *
find_slot (const MusterGraph *self, guint64 hash, const char *name, gsize size)
{
  const guint32 tag = (guint32)(hash >> 32);
  for (gsize i = hash & (self->n_slots - 1);; i = (i + 1) & (self->n_slots - 1)) {
    Slot *slot = &self->slots[i];
    if (slot->index == 0)
      return slot;
    if (slot->hash != tag)
      continue;
    const char *other = self->def->node[slot->index - 1]->name;
    if (strncmp (other, name, size) == 0 && strlen (other) == size)
      return slot;
  }
}

static gssize
find (const MusterGraph *self, guint64 hash, const char *name, gsize size)
{
  for (; self != NULL; self = self->base) {
    const Slot *slot = find_slot (self, hash, name, size);
    if (slot->index != 0)
      return (gssize)(self->n_base + slot->index - 1);
  }
  return -1;
}

static const Tensorflow__NodeDef *
node_at (const MusterGraph *self, gsize index)
{
  while (index < self->n_base)
    self = self->base;
  return self->def->node[index - self->n_base];
}

static gboolean
enter (MusterGraph *self, gsize i, guint64 hash, GError **error)
{
  const char *name = self->def->node[i]->name;
  const gsize size = strlen (name);
  if (size == 0) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "Reading the graph: node %" G_GSIZE_FORMAT " (a '%s') has no name",
                        self->n_base + i, self->def->node[i]->op);
  }
  Slot *slot = find_slot (self, hash, name, size);
  if (slot->index != 0 || (self->base != NULL && find (self->base, hash, name, size) >= 0)) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "Reading the graph: two nodes are named '%s'", name);
  }
  *slot = (Slot){(guint32)(hash >> 32), (guint32)i + 1};
  return TRUE;
}

/* A large table doesn't fit the processor's caches: the slots of the next names are fetched while
 * this one's is filled. */
static gboolean
fill_table (MusterGraph *self, GError **error)
{
  guint64 hashes[16];
  const gsize n = self->def->n_node, ahead = G_N_ELEMENTS (hashes);
  self->n_slots = 16;
  while (self->n_slots < n * 2)
    self->n_slots *= 2;
  self->slots = muster_arena_alloc (self->arena, self->n_slots * sizeof (Slot));
  memset (self->slots, 0, self->n_slots * sizeof (Slot));
  for (gsize i = 0; i < n + ahead; i++) {
    guint64 *hash = &hashes[i % ahead];
    if (i >= ahead && !enter (self, i - ahead, *hash, error))
      return FALSE;
    if (i >= n)
      continue;
    const char *name = self->def->node[i]->name;
    *hash = hash_name (self, name, strlen (name));
    fetch_slot (self, *hash);
  }
  return TRUE;
}

/* The node's name within an input: where it starts and how long it is; the output's number, or -1
 * for a control input. */
static int
split_input (const char *input, const char **name, gsize *size)
{
  *name = input;
  *size = strlen (input);
  if (input[0] == '^') {
    *name = input + 1;
    *size -= 1;
    return -1;
  }
  gsize colon = *size;
  gint64 number = 0;
  while (colon > 0 && g_ascii_isdigit (input[colon - 1]))
    colon--;
  if (colon == *size || colon < 2 || input[colon - 1] != ':' || *size - colon > 9)
    return 0; /* no number, or one that is part of the name */
  for (gsize i = colon; i < *size; i++)
    number = number * 10 + (input[i] - '0');
  *size = colon - 1;
  return (int)number;
}

/* Where the inputs of the nodes before were, the first few apart. */
#define TRAILS 4
typedef struct {
  guint32 last, step; /* the last one's node, and how far after the one before */
} Trail;

static gboolean
is_named (const MusterGraph *self, guint32 index, const char *name, gsize size)
{
  if (index >= self->n_base + self->def->n_node)
    return FALSE;
  const char *other = node_at (self, index)->name;
  return strncmp (other, name, size) == 0 && other[size] == '\0';
}

/* In a large graph a table lookup reads cold memory. Most inputs are where they are expected: at
 * the same distance as the last ones, or just before their node. */
static gssize
find_expected (const MusterGraph *self, gsize node, Trail *trail, const char *name, gsize size)
{
  const guint32 near[] = {trail->last + trail->step, (guint32)node - 1, (guint32)node - 2};
  gssize found = -1;
  for (gsize i = 0; i < G_N_ELEMENTS (near) && found < 0; i++)
    if (is_named (self, near[i], name, size))
      found = near[i];
  if (found < 0)
    found = find (self, hash_name (self, name, size), name, size);
  if (found >= 0)
    *trail = (Trail){(guint32)found, (guint32)found - trail->last};
  return found;
}

static gboolean
find_input (MusterGraph *self, gsize index, gsize i, Trail *trails, Input *input, GError **error)
{
  const Tensorflow__NodeDef *node = self->def->node[index];
  const char *name;
  gsize size;
  input->output = split_input (node->input[i], &name, &size);
  const gssize found = size > 0 ? find_expected (self, self->n_base + index,
                                                 &trails[MIN (i, TRAILS - 1)], name, size)
                                : -1;
  if (found >= 0) {
    input->node = (guint32)found;
    return TRUE;
  }
  return muster_fail (
      error, MUSTER_ERROR_INVALID_ARGUMENT,
      "Reading the graph: node '%s' has the input '%s', but the graph has no such node", node->name,
      node->input[i]);
}

/* Following edges then needs no names. */
static gboolean
find_inputs (MusterGraph *self, GError **error)
{
  const Tensorflow__GraphDef *def = self->def;
  Trail trails[TRAILS] = {0};
  gsize n = 0;
  for (gsize i = 0; i < def->n_node; i++)
    n += def->node[i]->n_input;
  self->first_input = muster_arena_alloc (self->arena, def->n_node * sizeof (guint32));
  self->inputs = muster_arena_alloc (self->arena, n * sizeof (Input));
  n = 0;
  for (gsize i = 0; i < def->n_node; i++) {
    self->first_input[i] = (guint32)n;
    for (gsize j = 0; j < def->node[i]->n_input; j++)
      if (!find_input (self, i, j, trails, &self->inputs[n++], error))
        return FALSE;
  }
  return TRUE;
}

/* --- parsing --- */

/* An extension's own nodes where its origin is well formed by itself, all of it otherwise. */
static GBytes *
bytes_to_parse (MusterGraph *self)
{
  self->seed = (guint64)(guintptr)self;
  if (self->origin == NULL || !muster_graph_parse (self->origin, NULL))
    return muster_graph_bytes (self);
  self->base = self->origin;
  self->seed = self->base->seed;
  self->n_base = muster_graph_n_nodes (self->origin);
  return self->extra;
}

static gboolean
parse (MusterGraph *self, GBytes *bytes, GError **error)
{
  gsize size;
  gconstpointer data = g_bytes_get_data (bytes, &size);
  self->arena = muster_arena_new_for (MUSTER_MEMORY_GRAPHS);
  self->def = muster_unpack_const (&tensorflow__graph_def__descriptor, data, size, self->arena,
                                   "graph", error);
  if (self->def == NULL)
    return FALSE;
  return fill_table (self, error) && find_inputs (self, error) &&
         muster_arena_fits (self->arena, error);
}

/* Nothing of a malformed graph is accessible. */
static void
forget (MusterGraph *self)
{
  self->def = NULL;
  g_clear_pointer (&self->arena, muster_arena_free);
}

/* FALSE if there isn't enough memory now, which is no verdict. */
static gboolean
parse_once (MusterGraph *self, GError **error)
{
  g_autoptr (GError) verdict = NULL;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->parsing);
  if (self->is_parsed)
    return TRUE;
  if (!parse (self, bytes_to_parse (self), &verdict))
    forget (self);
  if (muster_error_is (verdict, MUSTER_ERROR_RESOURCE_EXHAUSTED)) {
    g_propagate_error (error, g_steal_pointer (&verdict));
    return FALSE;
  }
  self->verdict = g_steal_pointer (&verdict);
  g_atomic_int_set (&self->is_parsed, TRUE);
  return TRUE;
}

gboolean
muster_graph_parse (MusterGraph *self, GError **error)
{
  muster_require (error, FALSE, self);
  if (!g_atomic_int_get (&self->is_parsed) && !parse_once (self, error))
    return FALSE;
  if (self->verdict == NULL)
    return TRUE;
  if (error != NULL)
    *error = g_error_copy (self->verdict);
  return FALSE;
}

gsize
muster_graph_n_nodes (MusterGraph *self)
{
  g_return_val_if_fail (self != NULL, 0);
  return muster_graph_parse (self, NULL) ? self->n_base + self->def->n_node : 0;
}

gboolean
muster_graph_has_node (MusterGraph *self, const char *name)
{
  g_return_val_if_fail (self != NULL && name != NULL, FALSE);
  return muster_graph_find (self, name, strlen (name)) >= 0;
}

const Tensorflow__NodeDef *
muster_graph_node (MusterGraph *self, gsize index)
{
  return index < muster_graph_n_nodes (self) ? node_at (self, index) : NULL;
}

gssize
muster_graph_find (MusterGraph *self, const char *name, gsize name_size)
{
  if (name_size == 0 || !muster_graph_parse (self, NULL))
    return -1;
  return find (self, hash_name (self, name, name_size), name, name_size);
}

const Tensorflow__NodeDef *
muster_graph_find_node (MusterGraph *self, const char *name)
{
  const gssize index = muster_graph_find (self, name, strlen (name));
  return index >= 0 ? node_at (self, (gsize)index) : NULL;
}

gsize
muster_graph_input (MusterGraph *self, gsize node, gsize i, int *output)
{
  const MusterGraph *graph = self;
  while (node < graph->n_base)
    graph = graph->base;
  const Input *input = &graph->inputs[graph->first_input[node - graph->n_base] + i];
  *output = input->output;
  return input->node;
}

/* In one piece, without an origin. */
static void
flatten (MusterGraph *self)
{
  (void)muster_graph_bytes (self);
  g_clear_pointer (&self->extra, g_bytes_unref);
  g_clear_pointer (&self->origin, muster_graph_unref);
  self->depth = 0;
}

MusterGraph *
muster_graph_extended (MusterGraph *self, MusterGraph *extra)
{
  g_return_val_if_fail (self != NULL && extra != NULL, NULL);
  GBytes *more = muster_graph_bytes (extra);
  if (g_bytes_get_size (more) == 0)
    return muster_graph_ref (self);
  MusterGraph *both = new_graph ();
  both->origin = muster_graph_ref (self);
  both->extra = g_bytes_ref (more);
  both->depth = self->depth + 1;
  if (both->depth > MAX_DEPTH)
    flatten (both);
  return both;
}

MusterGraph *
muster_graph_added (MusterGraph *self, MusterGraph *before)
{
  if (self->origin == before)
    return muster_graph_new (self->extra);
  const gsize size = g_bytes_get_size (muster_graph_bytes (before));
  GBytes *bytes = muster_graph_bytes (self);
  g_autoptr (GBytes) added = g_bytes_new_from_bytes (bytes, size, g_bytes_get_size (bytes) - size);
  return muster_graph_new (added);
}

int
muster_graph_split_input (const char *input, char **name)
{
  g_return_val_if_fail (input != NULL && name != NULL, 0);
  const char *start;
  gsize size;
  const int output = split_input (input, &start, &size);
  *name = g_strndup (start, size);
  return output;
}

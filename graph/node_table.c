// SPDX-License-Identifier: Apache-2.0
/* The nodes of a graph by name and by index, with their inputs resolved to indices, so that
 * following an edge needs no name. */
#include "graph/node_table_private.h"

#include "base/error.h"
#include "base/hash_private.h"
#include "base/protowire_private.h"

#include <string.h>

/* --- names --- */

static guint64
hash_name (const MusterNodeTable *self, const char *name, gsize size)
{
  return muster_hash_bytes (name, size, self->seed);
}

static void
fetch_slot (const MusterNodeTable *self, guint64 hash)
{
  for (; self != NULL; self = self->base)
    __builtin_prefetch (&self->slots[hash & (self->n_slots - 1)], 1);
}

static gboolean
is_named (const MusterNode *node, const char *name, gsize size)
{
  return strncmp (node->name, name, size) == 0 && node->name[size] == '\0';
}

static guint32
index_of (const MusterNodeTable *self, guint32 slot)
{
  return (slot & (guint32)(self->n_slots - 1)) - 1;
}

/* The part of a name's hash that its slot has. */
static guint32
tag_of (const MusterNodeTable *self, guint64 hash)
{
  return (guint32)(hash >> 32) & ~(guint32)(self->n_slots - 1);
}

/* The slot that holds the name, or the empty one where it belongs. */
static guint32 *
find_slot (const MusterNodeTable *self, guint64 hash, const char *name, gsize size)
{
  const guint32 tag = tag_of (self, hash);
  for (gsize i = hash & (self->n_slots - 1);; i = (i + 1) & (self->n_slots - 1)) {
    guint32 *slot = &self->slots[i];
    if (*slot == 0 || (tag_of (self, (guint64)*slot << 32) == tag &&
                       is_named (&self->nodes[index_of (self, *slot)], name, size)))
      return slot;
  }
}

static gssize
find (const MusterNodeTable *self, guint64 hash, const char *name, gsize size)
{
  for (; self != NULL; self = self->base) {
    const guint32 slot = *find_slot (self, hash, name, size);
    if (slot != 0)
      return (gssize)(self->n_base + index_of (self, slot));
  }
  return -1;
}

gssize
muster_node_table_find (const MusterNodeTable *self, const char *name, gsize size)
{
  return find (self, hash_name (self, name, size), name, size);
}

const MusterNode *
muster_node_table_at (const MusterNodeTable *self, gsize index)
{
  while (index < self->n_base)
    self = self->base;
  return &self->nodes[index - self->n_base];
}

static gboolean
enter (MusterNodeTable *self, gsize i, guint64 hash, GError **error)
{
  const char *name = self->nodes[i].name;
  const gsize size = strlen (name);
  if (size == 0) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "Reading the graph: node %" G_GSIZE_FORMAT " (a '%s') has no name",
                        self->n_base + i, self->nodes[i].kind->op);
  }
  guint32 *slot = find_slot (self, hash, name, size);
  if (*slot != 0 || (self->base != NULL && find (self->base, hash, name, size) >= 0)) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "Reading the graph: two nodes are named '%s'", name);
  }
  *slot = tag_of (self, hash) | ((guint32)i + 1);
  return TRUE;
}

static gboolean
make_slots (MusterNodeTable *self, GError **error)
{
  self->n_slots = 16;
  while (self->n_slots < self->n_nodes * 2)
    self->n_slots *= 2;
  const gsize size = self->n_slots * sizeof (guint32);
  if (!muster_arena_has_room (self->arena, size))
    return muster_arena_fits (self->arena, error);
  self->slots = memset (muster_arena_alloc (self->arena, size), 0, size);
  return TRUE;
}

/* A large table doesn't fit the processor's caches: the slots of the next names are fetched while
 * this one's is filled. */
static gboolean
fill_table (MusterNodeTable *self, GError **error)
{
  guint64 hashes[16];
  const gsize n = self->n_nodes, ahead = G_N_ELEMENTS (hashes);
  if (!make_slots (self, error))
    return FALSE;
  for (gsize i = 0; i < n + ahead; i++) {
    guint64 *hash = &hashes[i % ahead];
    if (i >= ahead && !enter (self, i - ahead, *hash, error))
      return FALSE;
    if (i >= n)
      continue;
    *hash = hash_name (self, self->nodes[i].name, strlen (self->nodes[i].name));
    fetch_slot (self, *hash);
  }
  return TRUE;
}

/* --- inputs --- */

gint32
muster_node_input_split (const char *input, const char **name, gsize *size)
{
  *name = input;
  if (*size > 0 && input[0] == '^') {
    *name = input + 1;
    *size -= 1;
    return MUSTER_NODE_CONTROL;
  }
  gsize colon = *size;
  gint32 number = 0;
  while (colon > 0 && g_ascii_isdigit (input[colon - 1]))
    colon--;
  if (colon == *size || colon < 2 || input[colon - 1] != ':' || *size - colon > 9)
    return 0; /* no number, or one that is part of the name */
  for (gsize i = colon; i < *size; i++)
    number = number * 10 + (input[i] - '0');
  *size = colon - 1;
  return number > 0 ? number : MUSTER_NODE_ZERO;
}

/* The distances of the inputs of the nodes before, separately for the first few inputs. */
#define TRAILS 4
typedef struct {
  guint32 last, step; /* the last one's node, and how far after the one before */
} Trail;

/* In a large graph a table lookup reads cold memory. Most inputs are where they are expected: at
 * the same distance as the last ones, or just before their node. */
static gssize
find_expected (const MusterNodeTable *self, gsize node, Trail *trail, const char *name, gsize size)
{
  const guint32 near[] = {trail->last + trail->step, (guint32)node - 1, (guint32)node - 2};
  gssize found = -1;
  for (gsize i = 0; i < G_N_ELEMENTS (near) && found < 0; i++)
    if (near[i] < self->n_base + self->n_nodes &&
        is_named (muster_node_table_at (self, near[i]), name, size))
      found = near[i];
  if (found < 0)
    found = muster_node_table_find (self, name, size);
  if (found >= 0)
    *trail = (Trail){(guint32)found, (guint32)found - trail->last};
  return found;
}

static gboolean
find_input (const MusterNodeTable *self, gsize index, gsize i, const guint8 *end, Trail *trails,
            GError **error)
{
  const MusterNode *node = &self->nodes[index];
  const guint8 *start = muster_node_input_raw (&node->inputs[i]);
  MusterProtoReader reader = muster_proto_reader (start, (gsize)(end - start));
  MusterProtoField field;
  (void)muster_proto_read_field (&reader, &field); /* which worked before */
  const char *name, *text = (const char *)field.data;
  gsize size = field.size;
  const gint32 output = muster_node_input_split (text, &name, &size);
  const gssize found = size > 0 ? find_expected (self, self->n_base + index,
                                                 &trails[MIN (i, TRAILS - 1)], name, size)
                                : -1;
  if (found < 0)
    return muster_fail (
        error, MUSTER_ERROR_INVALID_ARGUMENT,
        "Reading the graph: node '%s' has the input '%.*s', but the graph has no such node",
        node->name, (int)MIN (field.size, G_MAXINT), text);
  node->inputs[i] = (MusterNodeInput){(guint32)found, output};
  return TRUE;
}

/* Following edges then needs no names. */
static gboolean
find_inputs (const MusterNodeTable *self, const guint8 *end, GError **error)
{
  Trail trails[TRAILS] = {0};
  for (gsize i = 0; i < self->n_nodes; i++)
    for (gsize j = 0; j < self->nodes[i].n_input; j++)
      if (!find_input (self, i, j, end, trails, error))
        return FALSE;
  return TRUE;
}

/* --- the table --- */

gboolean
muster_node_table_read (MusterNodeTable *self, const MusterNodeTable *base, GBytes *bytes,
                        GError **error)
{
  gsize size;
  const guint8 *data = g_bytes_get_data (bytes, &size);
  /* The seed is an address: the graph's author can't know it and so can't make names collide. */
  *self = (MusterNodeTable){.arena = muster_arena_new_for (MUSTER_MEMORY_GRAPHS),
                            .base = base,
                            .n_base = base != NULL ? base->n_base + base->n_nodes : 0,
                            .seed = base != NULL ? base->seed : (guint64)(guintptr)self};
  if (muster_node_table_read_nodes (self, data, size, error) && fill_table (self, error) &&
      find_inputs (self, size > 0 ? data + size : data, error) &&
      muster_arena_fits (self->arena, error))
    return TRUE;
  muster_node_table_clear (self);
  return FALSE;
}

void
muster_node_table_clear (MusterNodeTable *self)
{
  g_clear_pointer (&self->arena, muster_arena_free);
  self->nodes = NULL;
  self->n_base = self->n_nodes = 0;
}

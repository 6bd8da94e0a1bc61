// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/arena_private.h"
#include "graph/node_private.h"

#include <string.h>

G_BEGIN_DECLS

/* MusterNodeTable is what a graph knows of its nodes: a few words for each beside the graph's
 * bytes, which it points into. Constant once it was read. */

typedef struct _MusterNodeTable MusterNodeTable;

struct _MusterNodeTable {
  MusterArena *arena;          /* (owned) holds all of it */
  const MusterNodeTable *base; /* (not owned) (nullable) whose nodes are this one's first */
  gsize n_base;                /* how many those are */
  guint64 seed;                /* of the names' hashes, and of base's */
  MusterNode *nodes;           /* those after base's */
  gsize n_nodes;
  guint32 *slots; /* by name: 1 + the index in nodes, in the bits below n_slots, and some of the
                     name's hash above; 0: empty. Open addressing, at most half full, so that a look
                     costs one cache line and no allocation */
  gsize n_slots;  /* a power of two */
};

/* Reads the nodes that bytes, a GraphDef, has after those of base. bytes must live as long as the
 * table. The errors are those of muster_graph_parse (), or RESOURCE_EXHAUSTED. */
gboolean muster_node_table_read (MusterNodeTable *self, const MusterNodeTable *base, GBytes *bytes,
                                 GError **error);
void muster_node_table_clear (MusterNodeTable *self);

/* Reads the nodes alone, without their names' table and inputs, for muster_node_table_read (). */
gboolean muster_node_table_read_nodes (MusterNodeTable *self, const void *data, gsize size,
                                       GError **error);

/* The index of the node of a name, or -1. */
gssize muster_node_table_find (const MusterNodeTable *self, const char *name, gsize size);
const MusterNode *muster_node_table_at (const MusterNodeTable *self, gsize index);

/* An input that isn't looked up yet: the field that has it. */
static inline const guint8 *
muster_node_input_raw (const MusterNodeInput *input)
{
  const guint8 *start;
  memcpy (&start, input, sizeof start);
  return start;
}

static inline void
muster_node_input_set_raw (MusterNodeInput *input, const guint8 *start)
{
  G_STATIC_ASSERT (sizeof start <= sizeof *input);
  memcpy (input, &start, sizeof start);
}

/* The node's name within an input of size bytes: where it starts and, in *size, how long it is.
 * Returns the output: MusterNodeInput's. */
gint32 muster_node_input_split (const char *input, const char **name, gsize *size);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
/* A .meta file: read, and asked for all that it tells. */
#include "base/protowire_private.h"
#include "base/unpack_private.h"
#include "graph/graph_nodes_private.h"
#include "graph/meta_graph/meta_graph.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

#define GRAPH_FIELD 2 /* of a MetaGraphDef */
#define MAX_NODE    300
#define MAX_NODES   20

static gsize
length_of (const char *text)
{
  return text != NULL ? strlen (text) : 0;
}

static gsize
read_variables (MusterMetaGraph *meta_graph)
{
  gsize n, sum = 0;
  const MusterVariableInfo *variables = muster_meta_graph_variables (meta_graph, &n);
  for (gsize i = 0; i < n; i++) {
    const MusterVariableInfo *v = &variables[i];
    sum += strlen (v->name) + strlen (v->device) + length_of (v->initializer);
    sum += length_of (v->snapshot) + length_of (v->full_name) + length_of (v->slice);
    for (int d = 0; d < v->n_dims; d++)
      sum += (gsize)v->dims[d];
  }
  return sum;
}

static gsize
read_savers (MusterMetaGraph *meta_graph)
{
  gsize n, sum = 0;
  const MusterSaverInfo *first = muster_meta_graph_saver (meta_graph);
  const MusterSaverInfo *savers = muster_meta_graph_savers (meta_graph, &n);
  if (first != NULL)
    sum += length_of (first->filename_tensor);
  for (gsize i = 0; i < n; i++)
    sum += length_of (savers[i].filename_tensor) + length_of (savers[i].save_tensor) +
           length_of (savers[i].restore_op);
  return sum;
}

const gsize muster_fuzz_n_picks = 0;

int
LLVMFuzzerTestOneInput (const guint8 *data, gsize size)
{
  static const char *const keys[] = {"init_op",    "local_init_op", "ready_op",
                                     "summary_op", "global_step",   "variables",
                                     "savers",     "train_op",      "ready_for_local_init_op"};
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = g_bytes_new_static (data, size);
  g_autoptr (MusterMetaGraph) meta_graph = muster_meta_graph_new (bytes, &error);
  g_assert_true ((meta_graph == NULL) == (error != NULL));
  if (meta_graph == NULL)
    return 0;
  gsize sum = read_variables (meta_graph) + read_savers (meta_graph);
  for (gsize i = 0; i < G_N_ELEMENTS (keys); i++) {
    const char *const *items = muster_meta_graph_collection (meta_graph, keys[i]);
    sum += length_of (muster_meta_graph_op (meta_graph, keys[i]));
    for (; items != NULL && *items != NULL; items++)
      sum += strlen (*items);
  }
  g_assert_true (g_bytes_equal (muster_meta_graph_bytes (meta_graph), bytes));
  return sum == G_MAXSIZE; /* it isn't; but all of it was read */
}

/* Nodes that need no other, the small ones. */
static GBytes *
few_nodes (MusterGraph *graph)
{
  g_autofree MusterNodeBytes *nodes = muster_graph_node_bytes (graph);
  GByteArray *few = g_byte_array_new ();
  guint n = 0;
  for (gsize i = 0; i < muster_graph_n_nodes (graph) && n < MAX_NODES; i++) {
    if (muster_graph_node (graph, i)->n_input > 0 || nodes[i].size > MAX_NODE)
      continue;
    muster_proto_put_bytes (few, 1, nodes[i].data, nodes[i].size);
    n++;
  }
  return g_byte_array_free_to_bytes (few);
}

/* All that a .meta file says around its graph, which is left small. */
static void
seed_file (const char *path)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) meta_graph = muster_meta_graph_load (path, &error);
  g_assert_no_error (error);
  g_autoptr (GBytes) nodes = few_nodes (muster_meta_graph_graph (meta_graph));
  gsize size, nodes_size;
  const guint8 *data = g_bytes_get_data (muster_meta_graph_bytes (meta_graph), &size);
  const guint8 *nodes_data = g_bytes_get_data (nodes, &nodes_size);
  MusterProtoReader reader = muster_proto_reader (data, size);
  g_autoptr (GByteArray) seed = g_byte_array_new ();
  MusterProtoField field;
  for (const guint8 *start = data; muster_proto_read_field (&reader, &field); start = reader.at)
    if (field.number == GRAPH_FIELD)
      muster_proto_put_bytes (seed, GRAPH_FIELD, nodes_data, nodes_size);
    else if (reader.at - start <= 2000)
      g_byte_array_append (seed, start, (guint)(reader.at - start));
  muster_fuzz_seed (NULL, seed->data, seed->len);
}

void
muster_fuzz_seeds (void)
{
  seed_file ("tests/fixtures/digits.meta");
  seed_file ("tests/fixtures/mlp_adam_ref.meta");
  seed_file ("tests/fixtures/mlp_ftrl_resource.meta");
}

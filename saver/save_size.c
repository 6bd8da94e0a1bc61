// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_nodes.h"
#include "saver/saver_private.h"

/* Index, side file and names: little beside any checkpoint. */
#define BESIDE_BYTES (64 * 1024)

static guint64
bytes_of (const MusterVariableInfo *variable)
{
  guint64 bytes = muster_dtype_size (variable->dtype);

  for (int i = 0; i < variable->n_dims; i++)
    if (variable->dims[i] < 0 || __builtin_mul_overflow (bytes, (guint64)variable->dims[i], &bytes))
      return 0; /* not known */
  return variable->n_dims >= 0 ? bytes : 0;
}

/* The nodes that the save op needs. */
static GHashTable *
reach (MusterGraph *graph, const char *op)
{
  g_autoptr (GHashTable) reached = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GPtrArray) open = g_ptr_array_new ();
  g_autofree char *first = NULL;

  muster_graph_split_input (op, &first);
  const Tensorflow__NodeDef *node = muster_graph_find_node (graph, first);
  if (node != NULL)
    g_ptr_array_add (open, (gpointer)node);
  while (open->len > 0) {
    node = g_ptr_array_remove_index_fast (open, open->len - 1);
    if (!g_hash_table_add (reached, node->name))
      continue;
    for (gsize i = 0; i < node->n_input; i++) {
      g_autofree char *name = NULL;
      muster_graph_split_input (node->input[i], &name);
      const Tensorflow__NodeDef *input = muster_graph_find_node (graph, name);
      if (input != NULL && !g_hash_table_contains (reached, input->name))
        g_ptr_array_add (open, (gpointer)input);
    }
  }
  return g_steal_pointer (&reached);
}

static guint64
count_variables (MusterSaver *self)
{
  g_autoptr (GHashTable) reached =
      reach (muster_meta_graph_graph (self->meta_graph), self->info.save_tensor);
  guint64 bytes = 0;
  gsize n;
  const MusterVariableInfo *variables = muster_meta_graph_variables (self->meta_graph, &n);

  for (gsize i = 0; i < n; i++)
    if (g_hash_table_contains (reached, variables[i].name) &&
        __builtin_add_overflow (bytes, bytes_of (&variables[i]), &bytes))
      return 0;
  return bytes < G_MAXINT64 ? bytes : 0;
}

guint64
muster_saver_count_graph (MusterSaver *self)
{
  guint64 bytes = BESIDE_BYTES + (self->is_empty ? 0 : count_variables (self));

  if (self->directory.with_meta_graph)
    bytes += g_bytes_get_size (muster_meta_graph_bytes (self->meta_graph));
  return bytes;
}

guint64
muster_saver_estimate (MusterSaver *self, const GPtrArray *tensors)
{
  guint64 outside = 0;

  g_mutex_lock (&self->directory.lock);
  guint64 last = self->directory.last_bytes;
  g_mutex_unlock (&self->directory.lock);
  for (guint i = 0; tensors != NULL && i < tensors->len; i++)
    outside += muster_tensor_n_bytes (((const MusterNamedTensor *)tensors->pdata[i])->tensor);
  return MAX (self->graph_bytes + outside, last);
}

guint64
muster_saver_estimate_bytes (MusterSaver *self)
{
  g_return_val_if_fail (MUSTER_IS_SAVER (self), 0);
  return self->is_empty ? 0 : muster_saver_estimate (self, NULL);
}

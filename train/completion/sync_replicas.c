// SPDX-License-Identifier: Apache-2.0
/* Recognises a SyncReplicasOptimizer by what its ops do, since they are in no collection: the
 * update, the queue of tokens, a replica's train op. */
#include "train/completion/sync_replicas_private.h"

#include "graph/graph_builder.h"
#include "graph/graph_nodes_private.h"
#include "graph/graph_walk_private.h"
#include "graph/meta_graph/meta_graph_edit.h"
#include "train/completion/global_step_private.h"
#include "train/completion/queue_runner_def_private.h"

#include <string.h>

#define PREFIX "muster/sync/"

void
muster_sync_replicas_clear (MusterSyncReplicas *self)
{
  g_clear_pointer (&self->update, g_free);
  g_clear_pointer (&self->train, g_free);
  g_clear_pointer (&self->token, g_free);
  g_clear_pointer (&self->queue, g_free);
  g_clear_pointer (&self->local, g_ptr_array_unref);
  g_clear_pointer (&self->takes, g_array_unref);
}

static const char *
op_of (MusterGraph *graph, gsize node)
{
  return muster_graph_node (graph, node)->kind->op;
}

static gboolean
is_op (MusterGraph *graph, gsize node, const char *const *ops)
{
  return g_strv_contains (ops, op_of (graph, node));
}

static gboolean
takes_gradients (MusterGraph *graph, gsize node)
{
  static const char *const ops[] = {"AccumulatorTakeGradient", "ResourceAccumulatorTakeGradient",
                                    "SparseAccumulatorTakeGradient", NULL};
  return is_op (graph, node, ops);
}

static gboolean
applies_a_gradient (MusterGraph *graph, gsize node)
{
  static const char *const ops[] = {"AccumulatorApplyGradient", "ResourceAccumulatorApplyGradient",
                                    "SparseAccumulatorApplyGradient", NULL};
  return is_op (graph, node, ops);
}

/* --- finding --- */

/* The accumulators that an op takes gradients from before it puts tokens into a queue. */
static gboolean
read_update (MusterSyncReplicas *self, MusterGraph *graph, gsize node)
{
  static const char *const ops[] = {"QueueEnqueueManyV2", "QueueEnqueueMany", NULL};
  if (!is_op (graph, node, ops))
    return FALSE;
  g_autofree guint8 *needed = g_malloc0 (muster_graph_n_nodes (graph));
  g_autoptr (GArray) takes = g_array_new (FALSE, FALSE, sizeof (gsize));
  muster_graph_mark_needed (graph, node, needed);
  for (gsize i = 0; i < muster_graph_n_nodes (graph); i++)
    if (needed[i] && takes_gradients (graph, i))
      g_array_append_val (takes, i);
  if (takes->len == 0)
    return FALSE;
  self->update = g_strdup (muster_graph_node (graph, node)->name);
  self->takes = g_steal_pointer (&takes);
  return TRUE;
}

/* The whole number that a constant input has, such as how many gradients are taken; fallback for
 * any other. */
static gint64
constant_of (MusterGraph *graph, gsize node, gsize input, gint64 fallback)
{
  const gssize origin = muster_graph_origin (graph, node, input);
  g_autoptr (MusterTensor) tensor =
      origin >= 0 ? muster_node_constant (muster_graph_node (graph, (gsize)origin)) : NULL;
  double number;

  if (tensor == NULL || muster_tensor_n_elements (tensor) != 1 ||
      !muster_tensor_get_double (tensor, &number, NULL) || number < 1 || number > G_MAXINT32)
    return fallback;
  return (gint64)number;
}

/* The step of a replica assigns the token that it takes to a variable of its own. */
static gboolean
read_train (MusterSyncReplicas *self, MusterGraph *graph, gsize update)
{
  static const char *const dequeues[] = {"QueueDequeueV2", "QueueDequeue", NULL};
  static const char *const assigns[] = {"Assign", "AssignVariableOp", NULL};
  const gssize queue = muster_graph_origin (graph, update, 0);
  for (gsize i = 0; i < muster_graph_n_nodes (graph); i++) {
    const gssize token = is_op (graph, i, assigns) ? muster_graph_origin (graph, i, 1) : -1;
    if (token < 0 || !is_op (graph, (gsize)token, dequeues) ||
        muster_graph_origin (graph, (gsize)token, 0) != queue)
      continue;
    self->train = g_strdup (muster_graph_node (graph, i)->name);
    self->token = g_strconcat (muster_graph_node (graph, (gsize)token)->name, ":0", NULL);
    self->queue = g_strdup (muster_graph_node (graph, (gsize)queue)->name);
    return TRUE;
  }
  return FALSE;
}

/* Each gradient is applied with the step that it is of. */
static void
read_local (MusterSyncReplicas *self, MusterGraph *graph)
{
  self->local = g_ptr_array_new_with_free_func (g_free);
  for (gsize i = 0; i < muster_graph_n_nodes (graph); i++) {
    const MusterNode *node = muster_graph_node (graph, i);
    int output;
    if (!applies_a_gradient (graph, i) || node->n_input < 2)
      continue;
    const gsize from = muster_node_input (node, 1, &output);
    g_autofree char *tensor =
        g_strdup_printf ("%s:%d", muster_graph_node (graph, from)->name, MAX (output, 0));
    if (!g_ptr_array_find_with_equal_func (self->local, tensor, g_str_equal, NULL))
      g_ptr_array_add (self->local, g_steal_pointer (&tensor));
  }
}

static gboolean
is_run_by_a_queue_runner (MusterMetaGraph *meta_graph, const char *op)
{
  g_autoptr (GPtrArray) runners = muster_queue_runners_of (meta_graph, NULL);
  for (guint i = 0; runners != NULL && i < runners->len; i++) {
    const MusterQueueRunner *runner = runners->pdata[i];
    if (g_ptr_array_find_with_equal_func (runner->enqueues, op, g_str_equal, NULL))
      return TRUE;
  }
  return FALSE;
}

/* What the chief runs: the tokens, and with variable_averages the op that averages after them,
 * which no other one runs. */
static void
read_averages (MusterSyncReplicas *self, MusterGraph *graph, gsize update)
{
  const gsize n = muster_graph_n_nodes (graph);
  g_autofree guint8 *dependents = g_malloc0 (n + 1);
  g_autofree guint8 *inner = g_malloc0 (n + 1);
  const gssize token = muster_graph_find_named (graph, self->token);

  dependents[update] = TRUE;
  muster_graph_mark_following (graph, dependents, NULL, NULL);
  for (gsize i = 0; i < n; i++)
    for (gsize k = 0; k < muster_graph_node (graph, i)->n_input; k++)
      inner[muster_node_input (muster_graph_node (graph, i), k, NULL)] = TRUE;
  for (gsize i = 0; i < n; i++) {
    g_autofree guint8 *needed = NULL;
    gboolean writes = FALSE;
    if (!dependents[i] || inner[i] || i == update)
      continue;
    needed = g_malloc0 (n + 1);
    muster_graph_mark_needed (graph, i, needed);
    for (gsize k = 0; k < n; k++)
      writes |= needed[k] && dependents[k] && k != update && muster_graph_writes (graph, k);
    if (writes && !needed[token]) {
      g_free (self->update);
      self->update = g_strdup (muster_graph_node (graph, i)->name);
      return;
    }
  }
}

gboolean
muster_sync_replicas_find (MusterMetaGraph *meta_graph, MusterSyncReplicas *self)
{
  MusterGraph *graph = muster_meta_graph_graph (meta_graph);
  for (gsize i = 0; i < muster_graph_n_nodes (graph); i++) {
    if (!read_update (self, graph, i))
      continue;
    if (read_train (self, graph, i)) {
      read_averages (self, graph, i);
      self->n_tokens = constant_of (graph, g_array_index (self->takes, gsize, 0), 1, 1);
      self->is_run = is_run_by_a_queue_runner (meta_graph, self->update);
      read_local (self, graph);
      return TRUE;
    }
    muster_sync_replicas_clear (self);
  }
  return FALSE;
}

gboolean
muster_sync_replicas_takes_token (const MusterSyncReplicas *self, MusterGraph *graph,
                                  const char *name)
{
  g_autofree guint8 *needed = g_malloc0 (muster_graph_n_nodes (graph) + 1);

  muster_graph_mark_needs (graph, name, needed);
  return needed[muster_graph_find_named (graph, self->token)];
}

/* --- adding --- */

typedef struct {
  MusterGraphBuilder *builder; /* (owned) */
  MusterGraph *graph;          /* (not owned) */
  const MusterVariableInfo *step;
} Nodes;

/* The global step, as the accumulators and the queue have it: int64. */
static void
add_step (const Nodes *self)
{
  muster_graph_builder_node (self->builder, self->step->is_resource ? "ReadVariableOp" : "Identity",
                             PREFIX "step");
  muster_graph_builder_input (self->builder, self->step->name);
  muster_graph_builder_attr_type (self->builder, self->step->is_resource ? "dtype" : "T",
                                  self->step->dtype);
  muster_graph_builder_device (self->builder, self->step->device);
  muster_graph_builder_node (self->builder, "Cast", PREFIX "step/int64");
  muster_graph_builder_input (self->builder, PREFIX "step");
  muster_graph_builder_attr_type (self->builder, "SrcT", self->step->dtype);
  muster_graph_builder_attr_type (self->builder, "DstT", MUSTER_INT64);
  muster_graph_builder_device (self->builder, self->step->device);
}

static void
add_count (const Nodes *self, const MusterNode *accumulator, guint i)
{
  g_autofree char *name = g_strdup_printf (MUSTER_SYNC_COUNT "_%u", i);

  muster_graph_builder_node (self->builder,
                             g_str_has_prefix (accumulator->kind->op, "Resource")
                                 ? "ResourceAccumulatorNumAccumulated"
                                 : "AccumulatorNumAccumulated",
                             name);
  muster_graph_builder_input (self->builder, accumulator->name);
  muster_graph_builder_device (self->builder, accumulator->kind->device);
}

/* Gradients of an earlier step than an accumulator's are dropped. */
static void
add_begin (const Nodes *self, const GArray *takes)
{
  g_autoptr (GPtrArray) ops = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < takes->len; i++) {
    const gsize take = g_array_index (takes, gsize, i);
    const gssize accumulator = muster_graph_origin (self->graph, take, 0);
    char *name = g_strdup_printf (PREFIX "begin_%u", i);
    if (accumulator < 0) {
      g_free (name);
      continue;
    }
    const MusterNode *node = muster_graph_node (self->graph, (gsize)accumulator);
    muster_graph_builder_node (self->builder,
                               g_str_has_prefix (node->kind->op, "Resource")
                                   ? "ResourceAccumulatorSetGlobalStep"
                                   : "AccumulatorSetGlobalStep",
                               name);
    muster_graph_builder_input (self->builder, node->name);
    muster_graph_builder_input (self->builder, PREFIX "step/int64");
    muster_graph_builder_device (self->builder, node->kind->device);
    add_count (self, node, i);
    g_ptr_array_add (ops, name);
  }
  g_ptr_array_add (ops, NULL);
  muster_graph_builder_group (self->builder, MUSTER_SYNC_BEGIN, (const char *const *)ops->pdata);
}

static void
binary (const Nodes *self, const char *op, const char *name, const char *a, const char *b)
{
  muster_graph_builder_node (self->builder, op, name);
  muster_graph_builder_input (self->builder, a);
  muster_graph_builder_input (self->builder, b);
  muster_graph_builder_attr_type (self->builder, "T", MUSTER_INT32);
}

/* Adds what the queue lacks: it may outlive a chief, and its tokens with it. */
static void
add_tokens (const Nodes *self, const MusterSyncReplicas *sync)
{
  const MusterNode *queue = muster_graph_find_node (self->graph, sync->queue);
  const gboolean is_resource = g_str_has_suffix (queue->kind->op, "V2");
  g_autoptr (MusterTensor) n = muster_tensor_new_int32 ((gint32)sync->n_tokens);
  g_autoptr (MusterTensor) zero = muster_tensor_new_int32 (0);
  muster_graph_builder_node (self->builder, is_resource ? "QueueSizeV2" : "QueueSize",
                             PREFIX "size");
  muster_graph_builder_input (self->builder, queue->name);
  muster_graph_builder_device (self->builder, queue->kind->device);
  muster_graph_builder_constant (self->builder, PREFIX "n", n);
  muster_graph_builder_constant (self->builder, PREFIX "zero", zero);
  binary (self, "Sub", PREFIX "lack", PREFIX "n", PREFIX "size");
  binary (self, "Maximum", PREFIX "missing", PREFIX "lack", PREFIX "zero");
  muster_graph_builder_node (self->builder, "Pack", PREFIX "shape");
  muster_graph_builder_input (self->builder, PREFIX "missing");
  muster_graph_builder_attr_type (self->builder, "T", MUSTER_INT32);
  muster_graph_builder_attr_int (self->builder, "N", 1);
  muster_graph_builder_attr_int (self->builder, "axis", 0);
  muster_graph_builder_node (self->builder, "Fill", PREFIX "fill");
  muster_graph_builder_input (self->builder, PREFIX "shape");
  muster_graph_builder_input (self->builder, PREFIX "step");
  muster_graph_builder_attr_type (self->builder, "T", self->step->dtype);
  muster_graph_builder_attr_type (self->builder, "index_type", MUSTER_INT32);
  muster_graph_builder_node (self->builder, is_resource ? "QueueEnqueueManyV2" : "QueueEnqueueMany",
                             MUSTER_SYNC_TOKENS);
  muster_graph_builder_input (self->builder, queue->name);
  muster_graph_builder_input (self->builder, PREFIX "fill");
  muster_graph_builder_attr_types (self->builder, "Tcomponents", &self->step->dtype, 1);
  muster_graph_builder_attr_int (self->builder, "timeout_ms", -1);
  muster_graph_builder_device (self->builder, queue->kind->device);
}

MusterMetaGraph *
muster_sync_replicas_add (const MusterSyncReplicas *self, MusterMetaGraph *meta_graph,
                          GError **error)
{
  MusterGraph *graph = muster_meta_graph_graph (meta_graph);
  const MusterVariableInfo *step = muster_global_step_of (meta_graph);
  if (step == NULL || muster_graph_has_node (graph, MUSTER_SYNC_TOKENS))
    return muster_meta_graph_ref (meta_graph);
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new_extension ();
  const Nodes nodes = {builder, graph, step};
  add_step (&nodes);
  add_begin (&nodes, self->takes);
  add_tokens (&nodes, self);
  g_autoptr (MusterGraph) extra = muster_graph_builder_end (builder, error);
  if (extra == NULL)
    return NULL;
  g_autoptr (MusterGraph) whole = muster_graph_extended (graph, extra);
  return muster_meta_graph_with_variables (meta_graph, whole, NULL, 0, NULL, 0, error);
}

// SPDX-License-Identifier: Apache-2.0
#include "engine/run/trace.h"

#include "base/clock.h"
#include "base/protowire_private.h"
#include "engine/run/slots.h"
#include "graph/run_metadata_private.h"
#include "graph/run_options_private.h"

/* NodeOutput, TensorDescription, TensorShapeProto and its Dim, AllocationDescription */
enum {
  OUTPUT_SLOT = 1,
  OUTPUT_TENSOR = 3,
  TENSOR_DTYPE = 1,
  TENSOR_SHAPE = 2,
  TENSOR_ALLOCATION = 4,
  SHAPE_DIM = 2,
  DIM_SIZE = 1,
  ALLOCATION_REQUESTED = 1,
  ALLOCATION_ALLOCATOR = 3,
  ALLOCATION_POINTER = 6,
};

/* GraphDef */
enum { GRAPH_NODE = 1 };

struct _MusterTrace {
  gboolean wants_stats;
  gboolean wants_graph;
  GByteArray *nodes; /* (owned) fields of a DeviceStepStats */
  GByteArray *node;  /* (owned) the current one */
  GByteArray *part;  /* (owned) a nested message of the current one */
  gint64 to_wall_us; /* added to monotonic times for wall-clock ones */
};

MusterTrace *
muster_trace_new (GBytes *options)
{
  gboolean wants_stats = FALSE, wants_graph = FALSE;
  MusterProtoField field;
  if (G_LIKELY (options == NULL))
    return NULL;
  MusterProtoReader reader =
      muster_proto_reader (g_bytes_get_data (options, NULL), g_bytes_get_size (options));
  while (muster_proto_read_field (&reader, &field)) {
    if (field.number == MUSTER_RUN_OPTIONS_TRACE_LEVEL && field.type == MUSTER_WIRE_VARINT)
      wants_stats = field.value != 0;
    if (field.number == MUSTER_RUN_OPTIONS_OUTPUT_PARTITION_GRAPHS &&
        field.type == MUSTER_WIRE_VARINT)
      wants_graph = field.value != 0;
  }
  if (!wants_stats && !wants_graph)
    return NULL;
  MusterTrace *self = g_new0 (MusterTrace, 1);
  MusterClock *clock = muster_system_clock ();
  self->wants_stats = wants_stats;
  self->wants_graph = wants_graph;
  self->nodes = g_byte_array_new ();
  self->node = g_byte_array_new ();
  self->part = g_byte_array_new ();
  self->to_wall_us = muster_clock_wall_us (clock) - muster_clock_now_us (clock);
  return self;
}

void
muster_trace_free (MusterTrace *self)
{
  if (self == NULL)
    return;
  g_byte_array_unref (self->nodes);
  g_byte_array_unref (self->node);
  g_byte_array_unref (self->part);
  g_free (self);
}

/* "sum = AddV2(x, y)", from which timelines are drawn. */
static char *
label_of (MusterGraph *graph, const MusterNode *def)
{
  GString *label = g_string_new (NULL);
  g_string_append_printf (label, "%s = %s(", def->name, def->kind->op);
  for (gsize i = 0; i < def->n_input; i++) {
    g_autofree char *input = muster_graph_input_text (graph, def, i);
    g_string_append_printf (label, "%s%s", i > 0 ? ", " : "", input);
  }
  g_string_append_c (label, ')');
  return g_string_free (label, FALSE);
}

static void
put_shape (GByteArray *out, MusterTensor *tensor)
{
  g_autoptr (GByteArray) shape = g_byte_array_new ();
  g_autoptr (GByteArray) dim = g_byte_array_new ();
  const gint64 *dims = muster_tensor_dims (tensor);
  for (int i = 0; i < muster_tensor_n_dims (tensor); i++) {
    g_byte_array_set_size (dim, 0);
    muster_proto_put_uint (dim, DIM_SIZE, (guint64)dims[i]);
    muster_proto_put_bytes (shape, SHAPE_DIM, dim->data, dim->len);
  }
  muster_proto_put_bytes (out, TENSOR_SHAPE, shape->data, shape->len);
}

/* Writes the tensor's description to self->part. */
static void
describe (MusterTrace *self, MusterTensor *tensor)
{
  g_autoptr (GByteArray) allocation = g_byte_array_new ();
  const gsize bytes = muster_tensor_n_bytes (tensor);
  muster_proto_put_uint (allocation, ALLOCATION_REQUESTED, bytes);
  muster_proto_put_string (allocation, ALLOCATION_ALLOCATOR, "cpu");
  muster_proto_put_uint (allocation, ALLOCATION_POINTER,
                         (guint64)(guintptr)muster_tensor_data (tensor));
  g_byte_array_set_size (self->part, 0);
  muster_proto_put_uint (self->part, TENSOR_DTYPE, muster_tensor_dtype (tensor));
  put_shape (self->part, tensor);
  muster_proto_put_bytes (self->part, TENSOR_ALLOCATION, allocation->data, allocation->len);
}

static void
put_outputs (MusterTrace *self, const MusterRun *run, const MusterPlanNode *node)
{
  for (guint32 i = 0; i < node->n_outputs; i++) {
    const MusterSlot *slot = &run->slots[node->first_output + i];
    g_autoptr (GByteArray) output = g_byte_array_new ();
    if (slot->kind != MUSTER_SLOT_TENSOR)
      continue;
    describe (self, slot->value);
    muster_proto_put_uint (output, OUTPUT_SLOT, i);
    muster_proto_put_bytes (output, OUTPUT_TENSOR, self->part->data, self->part->len);
    muster_proto_put_bytes (self->node, MUSTER_NODE_OUTPUT, output->data, output->len);
  }
}

void
muster_trace_add (MusterTrace *self, const MusterRun *run, guint32 position, gint64 started_us)
{
  const guint64 took_us = (guint64)(muster_clock_now_us (muster_system_clock ()) - started_us);
  const guint64 at_us = (guint64)(started_us + self->to_wall_us);
  const MusterPlanNode *node = &run->plan->nodes[position];
  g_autofree char *label = label_of (run->plan->graph, node->def);

  if (!self->wants_stats)
    return;
  g_byte_array_set_size (self->node, 0);
  muster_proto_put_string (self->node, MUSTER_NODE_NAME, node->def->name);
  muster_proto_put_uint (self->node, MUSTER_NODE_START_US, at_us);
  muster_proto_put_uint (self->node, MUSTER_NODE_OP_END_US, took_us);
  muster_proto_put_uint (self->node, MUSTER_NODE_ALL_END_US, took_us);
  put_outputs (self, run, node);
  muster_proto_put_string (self->node, MUSTER_NODE_LABEL, label);
  muster_proto_put_uint (self->node, MUSTER_NODE_SCHEDULED_US, at_us);
  muster_proto_put_uint (self->node, MUSTER_NODE_START_NS, at_us * 1000);
  muster_proto_put_uint (self->node, MUSTER_NODE_OP_END_NS, took_us * 1000);
  muster_proto_put_uint (self->node, MUSTER_NODE_ALL_END_NS, took_us * 1000);
  muster_proto_put_uint (self->node, MUSTER_NODE_SCHEDULED_NS, at_us * 1000);
  muster_proto_put_bytes (self->nodes, MUSTER_DEVICE_NODE, self->node->data, self->node->len);
}

static void
put_stats (GByteArray *metadata, const MusterTrace *self, const char *device)
{
  g_autoptr (GByteArray) stats = g_byte_array_new ();
  g_autoptr (GByteArray) all = g_byte_array_new ();
  muster_proto_put_string (all, MUSTER_DEVICE_NAME, device);
  g_byte_array_append (all, self->nodes->data, self->nodes->len);
  muster_proto_put_bytes (stats, MUSTER_STATS_DEVICE, all->data, all->len);
  muster_proto_put_bytes (metadata, MUSTER_METADATA_STEP_STATS, stats->data, stats->len);
}

/* The step's nodes as they are in the graph. All are on the one device. */
static void
put_graph (GByteArray *metadata, const MusterPlan *plan)
{
  g_autoptr (GByteArray) graph = g_byte_array_new ();
  g_autofree MusterNodeBytes *nodes = muster_graph_node_bytes (plan->graph);
  for (guint32 i = 0; i < plan->n_nodes; i++) {
    const MusterNodeBytes *node = &nodes[plan->nodes[i].graph_index];
    muster_proto_put_bytes (graph, GRAPH_NODE, node->data, node->size);
  }
  muster_proto_put_bytes (metadata, MUSTER_METADATA_PARTITION_GRAPH, graph->data, graph->len);
}

GBytes *
muster_trace_end (MusterTrace *self, const MusterPlan *plan, const char *device)
{
  GByteArray *metadata = g_byte_array_new ();
  if (self->wants_stats)
    put_stats (metadata, self, device);
  if (self->wants_graph)
    put_graph (metadata, plan);
  return g_byte_array_free_to_bytes (metadata);
}

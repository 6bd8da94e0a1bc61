// SPDX-License-Identifier: Apache-2.0
#include "engine/trace.h"

#include "base/clock.h"
#include "base/protowire.h"

/* tensorflow.RunOptions, RunMetadata, StepStats, DeviceStepStats and NodeExecStats */
enum {
  OPTION_TRACE_LEVEL = 1,
  METADATA_STEP_STATS = 1,
  STATS_DEVICE = 1,
  DEVICE_NAME = 1,
  DEVICE_NODE = 2,
  NODE_NAME = 1,
  NODE_START_US = 2,
  NODE_OP_END_US = 4,
  NODE_ALL_END_US = 5,
  NODE_LABEL = 8,
};

struct _MusterTrace {
  GByteArray *nodes; /* (owned) fields of a DeviceStepStats */
  GByteArray *node;  /* (owned) the one being written */
  gint64 to_wall_us; /* from the monotonic clock */
};

MusterTrace *
muster_trace_new (GBytes *options)
{
  guint64 level = 0;
  MusterProtoField field;

  if (G_LIKELY (options == NULL))
    return NULL;
  MusterProtoReader reader =
      muster_proto_reader (g_bytes_get_data (options, NULL), g_bytes_get_size (options));
  while (muster_proto_read_field (&reader, &field))
    if (field.number == OPTION_TRACE_LEVEL && field.type == MUSTER_WIRE_VARINT)
      level = field.value;
  if (level == 0)
    return NULL;
  MusterTrace *self = g_new0 (MusterTrace, 1);
  MusterClock *clock = muster_system_clock ();
  self->nodes = g_byte_array_new ();
  self->node = g_byte_array_new ();
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
  g_free (self);
}

void
muster_trace_add (MusterTrace *self, const MusterPlanNode *node, gint64 started_us)
{
  const gint64 took_us = muster_clock_now_us (muster_system_clock ()) - started_us;
  g_autofree char *label = g_strdup_printf ("%s = %s()", node->def->name, node->def->op);

  g_byte_array_set_size (self->node, 0);
  muster_proto_put_string (self->node, NODE_NAME, node->def->name);
  muster_proto_put_uint (self->node, NODE_START_US, (guint64)(started_us + self->to_wall_us));
  muster_proto_put_uint (self->node, NODE_OP_END_US, (guint64)took_us);
  muster_proto_put_uint (self->node, NODE_ALL_END_US, (guint64)took_us);
  muster_proto_put_string (self->node, NODE_LABEL, label);
  muster_proto_put_bytes (self->nodes, DEVICE_NODE, self->node->data, self->node->len);
}

GBytes *
muster_trace_end (MusterTrace *self, const char *device)
{
  g_autoptr (GByteArray) stats = g_byte_array_new ();
  g_autoptr (GByteArray) all = g_byte_array_new ();
  GByteArray *metadata = g_byte_array_new ();

  muster_proto_put_string (all, DEVICE_NAME, device);
  g_byte_array_append (all, self->nodes->data, self->nodes->len);
  muster_proto_put_bytes (stats, STATS_DEVICE, all->data, all->len);
  muster_proto_put_bytes (metadata, METADATA_STEP_STATS, stats->data, stats->len);

  return g_byte_array_free_to_bytes (metadata);
}

// SPDX-License-Identifier: Apache-2.0
#include "train/hooks/timeline.h"

#include "base/protowire.h"
#include "base/require.h"

/* Two bytes of metadata may be an event, which takes a hundred. */
#define MOST_EVENTS 1000000

/* tensorflow.RunMetadata, StepStats, DeviceStepStats and NodeExecStats */
enum {
  METADATA_STEP_STATS = 1,
  STATS_DEVICE = 1,
  DEVICE_NAME = 1,
  DEVICE_NODE = 2,
  NODE_NAME = 1,
  NODE_START_US = 2,
  NODE_OP_END_US = 4,
  NODE_ALL_END_US = 5,
  NODE_LABEL = 8,
  NODE_THREAD = 10,
};

typedef struct {
  GString *json; /* (owned) */
  guint n_devices;
  guint n_events;
} Timeline;

/* A JSON string of any bytes. */
static void
put_text (GString *json, const MusterProtoField *text)
{
  g_autofree char *valid = text->data != NULL
                               ? g_utf8_make_valid ((const char *)text->data, (gssize)text->size)
                               : g_strdup ("");

  g_string_append_c (json, '"');
  for (const char *at = valid; *at; at++) {
    if (*at == '"' || *at == '\\')
      g_string_append_c (json, '\\');
    if ((guchar)*at < ' ')
      g_string_append_printf (json, "\\u%04x", (guint)(guchar)*at);
    else
      g_string_append_c (json, *at);
  }
  g_string_append_c (json, '"');
}

static void
begin_event (Timeline *self)
{
  g_string_append (self->json, self->n_events++ > 0 ? ",\n" : "\n");
}

static void
put_device (Timeline *self, const MusterProtoField *name)
{
  begin_event (self);
  g_string_append_printf (self->json,
                          "{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": %u, \"args\": "
                          "{\"name\": ",
                          self->n_devices);
  put_text (self->json, name);
  g_string_append (self->json, "}}");
}

/* "conv = Conv2D(x, w)": the op. */
static MusterProtoField
op_of (const MusterProtoField *label)
{
  MusterProtoField op = {0};
  const char *text = (const char *)label->data;
  const char *equals = label->size > 0 ? g_strstr_len (text, (gssize)label->size, " = ") : NULL;

  if (equals == NULL)
    return op;
  const guint8 *end = label->data + label->size;
  op.data = (const guint8 *)equals + strlen (" = ");
  const guint8 *paren = memchr (op.data, '(', (gsize)(end - op.data));
  op.size = (gsize)((paren != NULL ? paren : end) - op.data);
  return op;
}

static gboolean
put_node (Timeline *self, const MusterProtoField *node)
{
  MusterProtoReader reader = muster_proto_reader (node->data, node->size);
  MusterProtoField field, name = {0}, label = {0};
  guint64 numbers[NODE_THREAD + 1] = {0};

  while (muster_proto_read_field (&reader, &field)) {
    if (field.type == MUSTER_WIRE_VARINT && field.number <= NODE_THREAD)
      numbers[field.number] = field.value;
    else if (field.type == MUSTER_WIRE_BYTES && field.number == NODE_NAME)
      name = field;
    else if (field.type == MUSTER_WIRE_BYTES && field.number == NODE_LABEL)
      label = field;
  }
  if (!muster_proto_at_end (&reader) || self->n_events >= MOST_EVENTS)
    return FALSE;
  MusterProtoField op = op_of (&label);
  gint64 duration = (gint64)MAX (numbers[NODE_ALL_END_US], numbers[NODE_OP_END_US]);
  begin_event (self);
  g_string_append (self->json, "{\"ph\": \"X\", \"cat\": \"Op\", \"name\": ");
  put_text (self->json, op.size > 0 ? &op : &name);
  g_string_append_printf (self->json,
                          ", \"pid\": %u, \"tid\": %u, \"ts\": %" G_GINT64_FORMAT
                          ", \"dur\": %" G_GINT64_FORMAT ", \"args\": {\"name\": ",
                          self->n_devices, (guint)numbers[NODE_THREAD],
                          (gint64)numbers[NODE_START_US], MAX (duration, 0));
  put_text (self->json, &name);
  g_string_append (self->json, "}}");
  return TRUE;
}

static gboolean
put_stats (Timeline *self, const MusterProtoField *device)
{
  MusterProtoReader reader = muster_proto_reader (device->data, device->size);
  MusterProtoField field;

  self->n_devices++;
  while (muster_proto_read_field (&reader, &field)) {
    if (field.type != MUSTER_WIRE_BYTES)
      continue;
    if (field.number == DEVICE_NAME && self->n_events < MOST_EVENTS)
      put_device (self, &field);
    else if (field.number == DEVICE_NODE && !put_node (self, &field))
      return FALSE;
  }
  return muster_proto_at_end (&reader);
}

static gboolean
read_stats (Timeline *self, const MusterProtoField *stats)
{
  MusterProtoReader reader = muster_proto_reader (stats->data, stats->size);
  MusterProtoField field;

  while (muster_proto_read_field (&reader, &field))
    if (field.number == STATS_DEVICE && field.type == MUSTER_WIRE_BYTES &&
        !put_stats (self, &field))
      return FALSE;
  return muster_proto_at_end (&reader);
}

char *
muster_timeline_of (GBytes *metadata, GError **error)
{
  muster_require (error, NULL, metadata);

  MusterProtoReader reader =
      muster_proto_reader (g_bytes_get_data (metadata, NULL), g_bytes_get_size (metadata));
  g_autoptr (GString) json = g_string_new ("{\"traceEvents\": [");
  Timeline self = {.json = json};
  MusterProtoField field;
  gboolean is_well = TRUE;

  while (is_well && muster_proto_read_field (&reader, &field))
    if (field.number == METADATA_STEP_STATS && field.type == MUSTER_WIRE_BYTES)
      is_well = read_stats (&self, &field);
  if (!is_well || !muster_proto_at_end (&reader)) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "the run metadata is invalid, truncated or has more than %d nodes", MOST_EVENTS);
    return NULL;
  }
  if (self.n_devices == 0)
    return NULL;
  g_string_append (json, "\n]}\n");
  return g_string_free (g_steal_pointer (&json), FALSE);
}

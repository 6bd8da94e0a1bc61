// SPDX-License-Identifier: Apache-2.0
/* Turns a step's RunMetadata into a trace in Chrome's format, event by event, because a tree of
 * all events would take a kilobyte each. */
#include "train/hooks/timeline_private.h"

#include "base/protowire_private.h"
#include "base/require_private.h"
#include "graph/run_metadata_private.h"

#include <json-glib/json-glib.h>

/* Two bytes of metadata can encode an event, whose JSON takes a hundred bytes. */
#define MOST_EVENTS 1000000

/* Events are built one at a time, as a tree of all would take a kilobyte each. */
typedef struct {
  GString *json;            /* (owned) */
  JsonBuilder *event;       /* (owned) */
  JsonGenerator *generator; /* (owned) */
  guint n_devices;
  guint n_events;
} Timeline;

/* Writes a string that may contain any bytes. */
static void
put_text (Timeline *self, const char *name, const MusterProtoField *text)
{
  g_autofree char *valid = text->data != NULL
                               ? g_utf8_make_valid ((const char *)text->data, (gssize)text->size)
                               : g_strdup ("");

  for (char *at = valid; *at != '\0'; at++)
    if (*at == '\x1f') /* the one control character that json-glib doesn't escape */
      *at = ' ';
  json_builder_set_member_name (self->event, name);
  json_builder_add_string_value (self->event, valid);
}

static void
put_word (Timeline *self, const char *name, const char *word)
{
  json_builder_set_member_name (self->event, name);
  json_builder_add_string_value (self->event, word);
}

static void
put_number (Timeline *self, const char *name, gint64 number)
{
  json_builder_set_member_name (self->event, name);
  json_builder_add_int_value (self->event, number);
}

/* Ends the event with the name of its subject. */
static void
end_event (Timeline *self, const MusterProtoField *name)
{
  json_builder_set_member_name (self->event, "args");
  json_builder_begin_object (self->event);
  put_text (self, "name", name);
  json_builder_end_object (self->event);
  json_builder_end_object (self->event);
  g_autoptr (JsonNode) root = json_builder_get_root (self->event);
  g_string_append (self->json, self->n_events++ > 0 ? ",\n" : "\n");
  json_generator_set_root (self->generator, root);
  json_generator_to_gstring (self->generator, self->json);
  json_builder_reset (self->event);
}

static void
put_device (Timeline *self, const MusterProtoField *name)
{
  json_builder_begin_object (self->event);
  put_word (self, "name", "process_name");
  put_word (self, "ph", "M");
  put_number (self, "pid", self->n_devices);
  end_event (self, name);
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
  guint64 numbers[MUSTER_NODE_THREAD + 1] = {0};
  while (muster_proto_read_field (&reader, &field)) {
    if (field.type == MUSTER_WIRE_VARINT && field.number <= MUSTER_NODE_THREAD)
      numbers[field.number] = field.value;
    else if (field.type == MUSTER_WIRE_BYTES && field.number == MUSTER_NODE_NAME)
      name = field;
    else if (field.type == MUSTER_WIRE_BYTES && field.number == MUSTER_NODE_LABEL)
      label = field;
  }
  if (!muster_proto_at_end (&reader) || self->n_events >= MOST_EVENTS)
    return FALSE;
  MusterProtoField op = op_of (&label);
  gint64 duration = (gint64)MAX (numbers[MUSTER_NODE_ALL_END_US], numbers[MUSTER_NODE_OP_END_US]);
  json_builder_begin_object (self->event);
  put_word (self, "ph", "X");
  put_word (self, "cat", "Op");
  put_text (self, "name", op.size > 0 ? &op : &name);
  put_number (self, "pid", self->n_devices);
  put_number (self, "tid", (guint)numbers[MUSTER_NODE_THREAD]);
  put_number (self, "ts", (gint64)numbers[MUSTER_NODE_START_US]);
  put_number (self, "dur", MAX (duration, 0));
  end_event (self, &name);
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
    if (field.number == MUSTER_DEVICE_NAME && self->n_events < MOST_EVENTS)
      put_device (self, &field);
    else if (field.number == MUSTER_DEVICE_NODE && !put_node (self, &field))
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
    if (field.number == MUSTER_STATS_DEVICE && field.type == MUSTER_WIRE_BYTES &&
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
  g_autoptr (GString) json = g_string_new ("{\"traceEvents\":[");
  g_autoptr (JsonBuilder) event = json_builder_new ();
  g_autoptr (JsonGenerator) generator = json_generator_new ();
  Timeline self = {.json = json, .event = event, .generator = generator};
  MusterProtoField field;
  gboolean is_well = TRUE;

  while (is_well && muster_proto_read_field (&reader, &field))
    if (field.number == MUSTER_METADATA_STEP_STATS && field.type == MUSTER_WIRE_BYTES)
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

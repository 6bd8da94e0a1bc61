// SPDX-License-Identifier: Apache-2.0
/* Reads the queue runners of a collection: a thread for each enqueue op, and the errors that end
 * it. */
#include "train/completion/queue_runner_def_private.h"

#include "base/error.h"
#include "base/protowire_private.h"
#include "base/require_private.h"

#include <string.h>

#define COLLECTION "queue_runners"
/* Each enqueue op has a thread. */
#define MOST_ENQUEUE_OPS 1024

/* tensorflow.MetaGraphDef, its map's entries, CollectionDef, BytesList and QueueRunnerDef */
enum {
  META_COLLECTION = 4,
  ENTRY_KEY = 1,
  ENTRY_VALUE = 2,
  COLLECTION_BYTES = 2,
  LIST_VALUE = 1,
  RUNNER_QUEUE = 1,
  RUNNER_ENQUEUE = 2,
  RUNNER_CLOSE = 3,
  RUNNER_CANCEL = 4,
  RUNNER_CLOSED_BY = 5,
};

static MusterQueueRunner *
runner_new (void)
{
  MusterQueueRunner *self = g_new0 (MusterQueueRunner, 1);
  g_atomic_ref_count_init (&self->refs);
  self->enqueues = g_ptr_array_new_with_free_func (g_free);
  return self;
}

void
muster_queue_runner_unref (MusterQueueRunner *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->refs))
    return;
  g_free (self->queue);
  g_ptr_array_unref (self->enqueues);
  g_free (self->close);
  g_free (self->cancel);
  g_free (self);
}

/* --- reading --- */

/* Returns NULL if the text isn't UTF-8 or contains a NUL. */
static char *
text_of (const MusterProtoField *field)
{
  if (field->type != MUSTER_WIRE_BYTES || memchr (field->data, '\0', field->size) != NULL ||
      !g_utf8_validate_len ((const char *)field->data, field->size, NULL))
    return NULL;
  return g_strndup ((const char *)field->data, field->size);
}

static void
add_code (MusterQueueRunner *self, guint64 code)
{
  if (code < 32)
    self->closed_by |= 1u << code;
}

/* Packed or unpacked. */
static gboolean
read_codes (MusterQueueRunner *self, const MusterProtoField *field)
{
  MusterProtoReader reader = muster_proto_reader (field->data, field->size);
  guint64 code;
  if (field->type == MUSTER_WIRE_VARINT)
    add_code (self, field->value);
  else if (field->type != MUSTER_WIRE_BYTES)
    return FALSE;
  else
    while (!muster_proto_at_end (&reader)) {
      if (!muster_proto_read_varint (&reader, &code))
        return FALSE;
      add_code (self, code);
    }
  return TRUE;
}

static gboolean
read_name (char **name, const MusterProtoField *field)
{
  g_free (*name);
  *name = text_of (field);
  return *name != NULL;
}

static gboolean
read_field (MusterQueueRunner *self, const MusterProtoField *field)
{
  char *enqueue;
  switch (field->number) {
  case RUNNER_QUEUE:
    return read_name (&self->queue, field);
  case RUNNER_ENQUEUE:
    enqueue = text_of (field);
    if (enqueue != NULL)
      g_ptr_array_add (self->enqueues, enqueue);
    return enqueue != NULL;
  case RUNNER_CLOSE:
    return read_name (&self->close, field);
  case RUNNER_CANCEL:
    return read_name (&self->cancel, field);
  case RUNNER_CLOSED_BY:
    return read_codes (self, field);
  default:
    return TRUE;
  }
}

static gboolean
check_op (const MusterQueueRunner *self, MusterGraph *graph, const char *op, GError **error)
{
  if (op == NULL || !*op || muster_graph_has_node (graph, op))
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "Collection '" COLLECTION
                      "': the graph has no op '%s', which the runner of '%s' "
                      "names",
                      op, self->queue != NULL ? self->queue : "");
}

static gboolean
check_ops (const MusterQueueRunner *self, MusterGraph *graph, GError **error)
{
  for (guint i = 0; i < self->enqueues->len; i++)
    if (!check_op (self, graph, self->enqueues->pdata[i], error))
      return FALSE;
  return check_op (self, graph, self->close, error) && check_op (self, graph, self->cancel, error);
}

/* field is a QueueRunnerDef. */
static gboolean
read_runner (GPtrArray *runners, const MusterProtoField *field, GError **error)
{
  g_autoptr (MusterQueueRunner) self = runner_new ();
  MusterProtoReader reader = muster_proto_reader (field->data, field->size);
  MusterProtoField part;
  gboolean is_well = field->type == MUSTER_WIRE_BYTES;
  while (is_well && muster_proto_read_field (&reader, &part))
    is_well = read_field (self, &part);
  if (!is_well || !muster_proto_at_end (&reader) || self->enqueues->len > MOST_ENQUEUE_OPS) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "Collection '" COLLECTION
                        "': item %u isn't a QueueRunnerDef of at most %d enqueue "
                        "ops",
                        runners->len, MOST_ENQUEUE_OPS);
  }
  if (self->closed_by == 0)
    add_code (self, MUSTER_ERROR_OUT_OF_RANGE);
  g_ptr_array_add (runners, g_steal_pointer (&self));
  return TRUE;
}

/* Finds the last field with that number; FALSE if there is none. */
static gboolean
find (const MusterProtoField *message, guint32 number, MusterProtoField *found)
{
  MusterProtoReader reader = muster_proto_reader (message->data, message->size);
  MusterProtoField field;
  gboolean is_found = FALSE;
  while (message->type == MUSTER_WIRE_BYTES && muster_proto_read_field (&reader, &field))
    if (field.number == number && field.type == MUSTER_WIRE_BYTES) {
      *found = field;
      is_found = TRUE;
    }
  return is_found;
}

/* entry is one of the meta graph's collections. */
static gboolean
read_collection (GPtrArray *runners, const MusterProtoField *entry, GError **error)
{
  MusterProtoField key, value, list, item;
  if (!find (entry, ENTRY_KEY, &key) || key.size != strlen (COLLECTION) ||
      memcmp (key.data, COLLECTION, key.size) != 0 || !find (entry, ENTRY_VALUE, &value) ||
      !find (&value, COLLECTION_BYTES, &list))
    return TRUE;
  MusterProtoReader reader = muster_proto_reader (list.data, list.size);
  while (muster_proto_read_field (&reader, &item))
    if (item.number == LIST_VALUE && !read_runner (runners, &item, error))
      return FALSE;
  return TRUE;
}

GPtrArray *
muster_queue_runners_of (MusterMetaGraph *meta_graph, GError **error)
{
  muster_require (error, NULL, meta_graph);

  g_autoptr (GPtrArray) runners =
      g_ptr_array_new_with_free_func ((GDestroyNotify)muster_queue_runner_unref);
  MusterProtoField field;

  if (muster_meta_graph_collection (meta_graph, COLLECTION) == NULL)
    return g_steal_pointer (&runners);
  GBytes *bytes = muster_meta_graph_bytes (meta_graph);
  MusterProtoReader reader =
      muster_proto_reader (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes));
  while (muster_proto_read_field (&reader, &field))
    if (field.number == META_COLLECTION && !read_collection (runners, &field, error))
      return NULL;
  for (guint i = 0; i < runners->len; i++)
    if (!check_ops (runners->pdata[i], muster_meta_graph_graph (meta_graph), error))
      return NULL;
  return g_steal_pointer (&runners);
}

MusterQueueRunner *
muster_queue_runner_new (const char *queue, const char *enqueue)
{
  MusterQueueRunner *self = runner_new ();
  self->queue = g_strdup (queue);
  g_ptr_array_add (self->enqueues, g_strdup (enqueue));
  add_code (self, MUSTER_ERROR_OUT_OF_RANGE);
  return self;
}

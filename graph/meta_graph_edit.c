// SPDX-License-Identifier: Apache-2.0
#include "graph/meta_graph_edit.h"

#include "base/protowire.h"
#include "base/rope.h"
#include "graph/meta_graph_edit_private.h"

#include <string.h>

enum { FIELD_GRAPH = 2 };

gboolean
muster_meta_graph_edit_begin (MusterMetaGraphEdit *self, MusterMetaGraph *meta_graph,
                              GError **error)
{
  gsize size;
  gconstpointer data = g_bytes_get_data (muster_meta_graph_bytes (meta_graph), &size);
  self->arena = muster_arena_new ();
  self->def = muster_unpack (&tensorflow__meta_graph_def__descriptor, data, size, self->arena,
                             "meta graph", error);
  if (self->def == NULL)
    return FALSE;
  self->def->graph_def.len = 0;
  return TRUE;
}

MusterMetaGraph *
muster_meta_graph_edit_end (MusterMetaGraphEdit *self, GBytes *graph, GError **error)
{
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  g_autoptr (GBytes) rest = muster_pack (&self->def->base);
  muster_proto_put_head (muster_rope_tail (&rope), FIELD_GRAPH, g_bytes_get_size (graph));
  muster_rope_append (&rope, graph);
  muster_rope_append (&rope, rest);
  g_autoptr (GBytes) bytes = muster_rope_flatten (&rope);
  return muster_meta_graph_new (bytes, error);
}

void
muster_meta_graph_edit_clear (MusterMetaGraphEdit *self)
{
  g_clear_pointer (&self->arena, muster_arena_free);
}

char *
muster_meta_graph_edit_copy (MusterMetaGraphEdit *self, const char *text)
{
  const gsize size = strlen (text) + 1;
  return memcpy (muster_arena_alloc (self->arena, size), text, size);
}

ProtobufCBinaryData
muster_meta_graph_edit_pack (MusterMetaGraphEdit *self, const ProtobufCMessage *message)
{
  const gsize size = protobuf_c_message_get_packed_size (message);
  guint8 *data = muster_arena_alloc (self->arena, MAX (size, 1));
  protobuf_c_message_pack (message, data);
  return (ProtobufCBinaryData){.len = size, .data = data};
}

Tensorflow__CollectionDef *
muster_meta_graph_edit_collection (MusterMetaGraphEdit *self, const char *key)
{
  for (gsize i = self->def->n_collection_def; i > 0; i--)
    if (strcmp (self->def->collection_def[i - 1]->key, key) == 0)
      return self->def->collection_def[i - 1]->value;
  return NULL;
}

/* --- savers --- */

static Tensorflow__SaverDef *
saver_def (MusterMetaGraphEdit *self, const MusterSaverInfo *info)
{
  Tensorflow__SaverDef *def = muster_arena_alloc (self->arena, sizeof *def);
  tensorflow__saver_def__init (def);
  def->filename_tensor_name = muster_meta_graph_edit_copy (self, info->filename_tensor);
  def->save_tensor_name = muster_meta_graph_edit_copy (self, info->save_tensor);
  def->restore_op_name = muster_meta_graph_edit_copy (self, info->restore_op);
  def->max_to_keep = info->max_to_keep;
  def->sharded = info->sharded;
  def->keep_checkpoint_every_n_hours = info->keep_every_n_hours;
  def->version = info->version;
  return def;
}

/* The collection "savers" as a list of messages, made where it isn't there. */
static Tensorflow__CollectionDef__BytesList *
savers_list (MusterMetaGraphEdit *self)
{
  Tensorflow__CollectionDef *collection = muster_meta_graph_edit_collection (self, "savers");
  if (collection == NULL) {
    Tensorflow__MetaGraphDef__CollectionDefEntry *entry =
        muster_arena_alloc (self->arena, sizeof *entry);
    tensorflow__meta_graph_def__collection_def_entry__init (entry);
    entry->key = muster_meta_graph_edit_copy (self, "savers");
    entry->value = collection = muster_arena_alloc (self->arena, sizeof *collection);
    tensorflow__collection_def__init (collection);
    const gsize n = self->def->n_collection_def;
    Tensorflow__MetaGraphDef__CollectionDefEntry **entries =
        muster_arena_alloc (self->arena, (n + 1) * sizeof (gpointer));
    if (n > 0)
      memcpy (entries, self->def->collection_def, n * sizeof (gpointer));
    entries[n] = entry;
    self->def->collection_def = entries;
    self->def->n_collection_def = n + 1;
  }
  if (collection->kind_case != TENSORFLOW__COLLECTION_DEF__KIND_BYTES_LIST) {
    collection->kind_case = TENSORFLOW__COLLECTION_DEF__KIND_BYTES_LIST;
    collection->bytes_list = muster_arena_alloc (self->arena, sizeof *collection->bytes_list);
    tensorflow__collection_def__bytes_list__init (collection->bytes_list);
  }
  return collection->bytes_list;
}

static void
collect_saver (MusterMetaGraphEdit *self, const Tensorflow__SaverDef *def)
{
  Tensorflow__CollectionDef__BytesList *list = savers_list (self);
  const ProtobufCBinaryData item = muster_meta_graph_edit_pack (self, &def->base);
  for (gsize i = 0; i < list->n_value; i++) {
    const ProtobufCBinaryData *old = &list->value[i];
    if (old->len == item.len && memcmp (old->data, item.data, item.len) == 0)
      return;
  }
  ProtobufCBinaryData *values =
      muster_arena_alloc (self->arena, (list->n_value + 1) * sizeof *values);
  if (list->n_value > 0)
    memcpy (values, list->value, list->n_value * sizeof *values);
  values[list->n_value++] = item;
  list->value = values;
}

MusterMetaGraph *
muster_meta_graph_with_saver (MusterMetaGraph *self, MusterGraph *graph,
                              const MusterSaverInfo *saver, gboolean collect, GError **error)
{
  g_auto (MusterMetaGraphEdit) edit = {0};
  if (!muster_meta_graph_edit_begin (&edit, self, error))
    return NULL;
  if (edit.def->saver_def != NULL && saver != NULL)
    collect_saver (&edit, edit.def->saver_def);
  edit.def->saver_def = saver != NULL ? saver_def (&edit, saver) : NULL;
  if (collect && saver != NULL)
    collect_saver (&edit, edit.def->saver_def);
  return muster_meta_graph_edit_end (&edit, muster_graph_bytes (graph), error);
}

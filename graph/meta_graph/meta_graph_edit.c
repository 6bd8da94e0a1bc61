// SPDX-License-Identifier: Apache-2.0
/* Makes a meta graph from another: with another graph, a saver, variables or an op in a
 * collection. Everything else stays, also what muster doesn't know. */
#include "graph/meta_graph/meta_graph_edit.h"

#include "base/protowire_private.h"
#include "base/require_private.h"
#include "base/rope_private.h"
#include "graph/meta_graph/meta_graph_edit_private.h"

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

/* A new one, empty. */
static Tensorflow__CollectionDef *
add_collection (MusterMetaGraphEdit *self, const char *key)
{
  Tensorflow__MetaGraphDef__CollectionDefEntry *entry =
      muster_arena_alloc (self->arena, sizeof *entry);
  tensorflow__meta_graph_def__collection_def_entry__init (entry);
  entry->key = muster_meta_graph_edit_copy (self, key);
  entry->value = muster_arena_alloc (self->arena, sizeof *entry->value);
  tensorflow__collection_def__init (entry->value);
  const gsize n = self->def->n_collection_def;
  Tensorflow__MetaGraphDef__CollectionDefEntry **entries =
      muster_arena_alloc (self->arena, (n + 1) * sizeof (gpointer));
  if (n > 0)
    memcpy (entries, self->def->collection_def, n * sizeof (gpointer));
  entries[n] = entry;
  self->def->collection_def = entries;
  self->def->n_collection_def = n + 1;
  return entry->value;
}

static void
set_bytes_list (MusterMetaGraphEdit *self, Tensorflow__CollectionDef *collection)
{
  collection->kind_case = TENSORFLOW__COLLECTION_DEF__KIND_BYTES_LIST;
  collection->bytes_list = muster_arena_alloc (self->arena, sizeof *collection->bytes_list);
  tensorflow__collection_def__bytes_list__init (collection->bytes_list);
}

static void
drop_collection (MusterMetaGraphEdit *self, const char *key)
{
  gsize kept = 0;
  for (gsize i = 0; i < self->def->n_collection_def; i++)
    if (strcmp (self->def->collection_def[i]->key, key) != 0)
      self->def->collection_def[kept++] = self->def->collection_def[i];
  self->def->n_collection_def = kept;
}

static void
add_bytes (MusterMetaGraphEdit *self, Tensorflow__CollectionDef__BytesList *list,
           ProtobufCBinaryData item)
{
  ProtobufCBinaryData *values =
      muster_arena_alloc (self->arena, (list->n_value + 1) * sizeof *values);
  if (list->n_value > 0)
    memcpy (values, list->value, list->n_value * sizeof *values);
  values[list->n_value++] = item;
  list->value = values;
}

static void
add_name (MusterMetaGraphEdit *self, Tensorflow__CollectionDef__NodeList *list, const char *name)
{
  char **values = muster_arena_alloc (self->arena, (list->n_value + 1) * sizeof *values);
  if (list->n_value > 0)
    memcpy (values, list->value, list->n_value * sizeof *values);
  values[list->n_value++] = muster_meta_graph_edit_copy (self, name);
  list->value = values;
}

/* The collection "savers" as a list of messages, made where it isn't there. */
static Tensorflow__CollectionDef__BytesList *
savers_list (MusterMetaGraphEdit *self)
{
  Tensorflow__CollectionDef *collection = muster_meta_graph_edit_collection (self, "savers");
  if (collection == NULL)
    collection = add_collection (self, "savers");
  if (collection->kind_case != TENSORFLOW__COLLECTION_DEF__KIND_BYTES_LIST)
    set_bytes_list (self, collection);
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
  add_bytes (self, list, item);
}

MusterMetaGraph *
muster_meta_graph_with_saver (MusterMetaGraph *self, MusterGraph *graph,
                              const MusterSaverInfo *saver, gboolean collect, GError **error)
{
  muster_require (error, NULL, self, graph);
  if (saver != NULL)
    muster_require (error, NULL, saver->filename_tensor, saver->save_tensor, saver->restore_op);
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

/* --- variables and ops --- */

static char *
output_of (MusterMetaGraphEdit *self, const char *op)
{
  g_autofree char *tensor = g_strconcat (op, ":0", NULL);
  return muster_meta_graph_edit_copy (self, tensor);
}

static ProtobufCBinaryData
variable_def (MusterMetaGraphEdit *self, const MusterVariableInfo *info)
{
  Tensorflow__VariableDef def = TENSORFLOW__VARIABLE_DEF__INIT;
  def.variable_name = output_of (self, info->name);
  if (info->initializer != NULL)
    def.initializer_name = muster_meta_graph_edit_copy (self, info->initializer);
  if (info->snapshot != NULL)
    def.snapshot_name = muster_meta_graph_edit_copy (self, info->snapshot);
  def.is_resource = info->is_resource;
  return muster_meta_graph_edit_pack (self, &def.base);
}

static void
collect_variable (MusterMetaGraphEdit *self, Tensorflow__CollectionDef *collection,
                  const MusterVariableInfo *info)
{
  if (collection->kind_case == TENSORFLOW__COLLECTION_DEF__KIND_NODE_LIST)
    add_name (self, collection->node_list, output_of (self, info->name));
  else if (collection->kind_case == TENSORFLOW__COLLECTION_DEF__KIND_BYTES_LIST)
    add_bytes (self, collection->bytes_list, variable_def (self, info));
}

static void
set_op (MusterMetaGraphEdit *self, const MusterCollectedOp *op)
{
  drop_collection (self, op->key);
  if (op->op == NULL)
    return;
  Tensorflow__CollectionDef *collection = add_collection (self, op->key);
  collection->kind_case = TENSORFLOW__COLLECTION_DEF__KIND_NODE_LIST;
  collection->node_list = muster_arena_alloc (self->arena, sizeof *collection->node_list);
  tensorflow__collection_def__node_list__init (collection->node_list);
  add_name (self, collection->node_list, op->op);
}

MusterMetaGraph *
muster_meta_graph_with_variables (MusterMetaGraph *self, MusterGraph *graph,
                                  const MusterVariableInfo *variables, gsize n,
                                  const MusterCollectedOp *ops, gsize n_ops, GError **error)
{
  muster_require (error, NULL, self, graph);
  muster_require_array (error, NULL, variables, n);
  muster_require_array (error, NULL, ops, n_ops);
  for (gsize i = 0; i < n; i++)
    muster_require (error, NULL, variables[i].name);
  for (gsize i = 0; i < n_ops; i++)
    muster_require (error, NULL, ops[i].key);
  g_auto (MusterMetaGraphEdit) edit = {0};
  if (!muster_meta_graph_edit_begin (&edit, self, error))
    return NULL;
  Tensorflow__CollectionDef *collection = muster_meta_graph_edit_collection (&edit, "variables");
  if (collection == NULL && muster_meta_graph_edit_collection (&edit, "local_variables") != NULL) {
    collection = add_collection (&edit, "variables");
    set_bytes_list (&edit, collection);
  }
  for (gsize i = 0; collection != NULL && i < n; i++)
    collect_variable (&edit, collection, &variables[i]);
  for (gsize i = 0; i < n_ops; i++)
    set_op (&edit, &ops[i]);
  return muster_meta_graph_edit_end (&edit, muster_graph_bytes (graph), error);
}

MusterMetaGraph *
muster_meta_graph_with_op (MusterMetaGraph *self, const char *key, const char *op, GError **error)
{
  muster_require (error, NULL, self, key);
  MusterGraph *graph = muster_meta_graph_graph (self);
  const MusterCollectedOp collected = {key, op};
  g_autofree char *node = NULL;
  if (op != NULL &&
      (muster_graph_split_input (op, &node) < 0 || !muster_graph_has_node (graph, node))) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "'%s' for the collection '%s' isn't an op of the graph", op, key);
    return NULL;
  }
  return muster_meta_graph_with_variables (self, graph, NULL, 0, &collected, 1, error);
}

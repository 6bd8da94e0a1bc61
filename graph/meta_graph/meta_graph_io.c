// SPDX-License-Identifier: Apache-2.0
/* Exports and imports meta graphs as TensorFlow's functions of these names do: a scope, values
 * from outside, nodes of other savers, default attributes. */
#include "graph/meta_graph/meta_graph_io.h"

#include "base/error.h"
#include "base/protowire_private.h"
#include "base/require_private.h"
#include "graph/graph_nodes_private.h"
#include "graph/meta_graph/meta_graph_scope_private.h"
#include "graph/meta_graph/op_list_private.h"
#include "graph/proto/meta_graph_text.pb-c.h"
#include "graph/text/proto_text_private.h"

#include <string.h>

enum { META_INFO_STRIPPED_DEFAULT_ATTRS = 7 };

/* --- the nodes of other savers --- */

/* "a/b" of "a/b/c", "" of "c". */
static char *
scope_of (const char *name)
{
  const char *slash = strrchr (name, '/');
  return g_strndup (name, slash != NULL ? (gsize)(slash - name) : 0);
}

static gboolean
saves_or_restores (const char *op)
{
  static const char *const ops[] = {
      "SaveV2",    "Save",    "SaveSlice",    "LegacySave",    "LegacySaveSlice",
      "RestoreV2", "Restore", "RestoreSlice", "LegacyRestore", "LegacyRestoreSlice"};
  for (gsize i = 0; i < G_N_ELEMENTS (ops); i++)
    if (strcmp (ops[i], op) == 0)
      return TRUE;
  return FALSE;
}

static void
keep_scope_of (GHashTable *scopes, const char *tensor)
{
  g_autofree char *name = NULL;
  (void)muster_graph_split_input (tensor, &name);
  g_autofree char *scope = scope_of (name);
  g_hash_table_remove (scopes, scope);
}

static gboolean
is_in_scope (GHashTable *scopes, const char *name)
{
  g_autofree char *scope = scope_of (name);
  while (*scope != '\0') {
    if (g_hash_table_contains (scopes, scope))
      return TRUE;
    char *slash = strrchr (scope, '/');
    *(slash != NULL ? slash : scope) = '\0';
  }
  return FALSE;
}

/* A set of names, borrowed from the graph. */
static GHashTable *
find_extraneous (const Tensorflow__GraphDef *graph, const Tensorflow__SaverDef *saver)
{
  g_autoptr (GHashTable) scopes = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  GHashTable *found = g_hash_table_new (g_str_hash, g_str_equal);
  for (gsize i = 0; i < graph->n_node; i++)
    if (saves_or_restores (graph->node[i]->op))
      g_hash_table_add (scopes, scope_of (graph->node[i]->name));
  if (saver != NULL) {
    keep_scope_of (scopes, saver->save_tensor_name);
    keep_scope_of (scopes, saver->restore_op_name);
  }
  for (gsize i = 0; i < graph->n_node; i++)
    if (is_in_scope (scopes, graph->node[i]->name))
      g_hash_table_add (found, graph->node[i]->name);
  return found;
}

/* The collection "savers" keeps the meta graph's own, if that was in it. */
static void
keep_own_saver (MusterMetaGraphEdit *edit)
{
  Tensorflow__CollectionDef *savers = muster_meta_graph_edit_collection (edit, "savers");
  if (savers == NULL || savers->kind_case != TENSORFLOW__COLLECTION_DEF__KIND_BYTES_LIST)
    return;
  savers->bytes_list->n_value = 0;
  if (edit->def->saver_def == NULL)
    return;
  savers->bytes_list->n_value = 1;
  savers->bytes_list->value = muster_arena_alloc (edit->arena, sizeof (ProtobufCBinaryData));
  savers->bytes_list->value[0] = muster_meta_graph_edit_pack (edit, &edit->def->saver_def->base);
}

/* --- attributes --- */

static void
strip_node (const MusterOpList *ops, Tensorflow__NodeDef *node)
{
  gsize n = 0;
  for (gsize i = 0; i < node->n_attr; i++)
    if (!muster_op_list_is_default (ops, node, node->attr[i]))
      node->attr[n++] = node->attr[i];
  node->n_attr = n;
}

/* Records it in the MetaInfoDef; a repeated field is merged. */
static void
note_stripped (MusterMetaGraphEdit *edit)
{
  g_autoptr (GByteArray) info = g_byte_array_new ();
  g_byte_array_append (info, edit->def->meta_info_def.data, (guint)edit->def->meta_info_def.len);
  muster_proto_put_uint (info, META_INFO_STRIPPED_DEFAULT_ATTRS, 1);
  guint8 *data = muster_arena_alloc (edit->arena, info->len);
  memcpy (data, info->data, info->len);
  edit->def->meta_info_def = (ProtobufCBinaryData){.len = info->len, .data = data};
}

/* --- values from outside --- */

/* A placeholder for each, of the type that its first user takes. */
typedef struct {
  MusterArena *arena;
  const MusterOpList *ops;
  GHashTable *made; /* (owned) a set of names */
  GPtrArray *nodes; /* (owned) those made */
} Unbound;

static Tensorflow__NodeDef *
new_placeholder (Unbound *self, const char *name, MusterDType dtype)
{
  Tensorflow__NodeDef *node = muster_arena_alloc (self->arena, sizeof *node);
  Tensorflow__NodeDef__AttrEntry *attr = muster_arena_alloc (self->arena, sizeof *attr);
  Tensorflow__NodeDef__AttrEntry **attrs = muster_arena_alloc (self->arena, sizeof *attrs);
  Tensorflow__AttrValue *value = muster_arena_alloc (self->arena, sizeof *value);
  tensorflow__node_def__init (node);
  tensorflow__node_def__attr_entry__init (attr);
  tensorflow__attr_value__init (value);
  node->name = (char *)name;
  node->op = (char *)"Placeholder";
  value->value_case = TENSORFLOW__ATTR_VALUE__VALUE_TYPE;
  value->type = (gint32)dtype;
  attr->key = (char *)"dtype";
  attr->value = value;
  attrs[0] = attr;
  node->n_attr = 1;
  node->attr = attrs;
  return node;
}

static gboolean
bind_inputs (Unbound *self, const Tensorflow__NodeDef *node, GError **error)
{
  for (gsize i = 0; i < node->n_input; i++) {
    const char *name = node->input[i];
    if (!g_str_has_prefix (name, MUSTER_UNBOUND) || !g_hash_table_add (self->made, (gpointer)name))
      continue;
    const MusterDType dtype = muster_op_list_input_dtype (self->ops, node, i);
    if (dtype == MUSTER_INVALID) {
      return muster_fail (
          error, MUSTER_ERROR_INVALID_ARGUMENT,
          "Node '%s' takes a value from outside the scope, and the meta graph's op list "
          "doesn't say which type a '%s' takes there",
          node->name, node->op);
    }
    g_ptr_array_add (self->nodes, new_placeholder (self, name, dtype % MUSTER_REF));
  }
  return TRUE;
}

static void
unbound_clear (Unbound *self)
{
  g_hash_table_unref (self->made);
  g_ptr_array_unref (self->nodes);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Unbound, unbound_clear)

static gboolean
add_unbound (MusterMetaGraphEdit *edit, const MusterOpList *ops, Tensorflow__GraphDef *graph,
             GError **error)
{
  g_auto (Unbound)
      unbound = {edit->arena, ops, g_hash_table_new (g_str_hash, g_str_equal), g_ptr_array_new ()};
  for (gsize i = 0; i < graph->n_node; i++)
    if (!bind_inputs (&unbound, graph->node[i], error))
      return FALSE;
  if (unbound.nodes->len == 0)
    return TRUE;
  Tensorflow__NodeDef **nodes =
      muster_arena_alloc (edit->arena, (graph->n_node + unbound.nodes->len) * sizeof (gpointer));
  memcpy (nodes, unbound.nodes->pdata, unbound.nodes->len * sizeof (gpointer));
  memcpy (nodes + unbound.nodes->len, graph->node, graph->n_node * sizeof (gpointer));
  graph->node = nodes;
  graph->n_node += unbound.nodes->len;
  return TRUE;
}

/* --- all of it --- */

/* Export and import in one: a graph may leave one scope and enter another. */
typedef struct {
  MusterExport out;
  const char *to;
} Change;

static void
change_nodes (const MusterScopeMove *move, const Change *change, const MusterOpList *ops,
              Tensorflow__GraphDef *graph)
{
  gsize n = 0;
  for (gsize i = 0; i < graph->n_node; i++) {
    Tensorflow__NodeDef *node = graph->node[i];
    if (!muster_scope_move_keeps (move, node->name))
      continue;
    if (change->out.clear_devices)
      node->device = (char *)"";
    if (change->out.strip_default_attrs)
      strip_node (ops, node);
    if (move->from != NULL || move->to != NULL)
      muster_scope_move_node (move, node);
    graph->node[n++] = node;
  }
  graph->n_node = n;
}

static gboolean
change_all (MusterMetaGraphEdit *edit, const Change *change, Tensorflow__GraphDef *graph,
            GError **error)
{
  g_auto (MusterOpList) ops = {0};
  g_autoptr (GHashTable) gone = NULL;
  if (!muster_op_list_init (&ops, &edit->def->meta_info_def, edit->arena, error))
    return FALSE;
  if (change->out.clear_extraneous_savers) {
    gone = find_extraneous (graph, edit->def->saver_def);
    keep_own_saver (edit);
  }
  const MusterScopeMove move = {edit, change->out.export_scope, change->to, gone};
  change_nodes (&move, change, &ops, graph);
  if (change->out.strip_default_attrs)
    note_stripped (edit);
  if (edit->def->saver_def != NULL && !muster_scope_move_saver (&move, edit->def->saver_def))
    edit->def->saver_def = NULL;
  return muster_scope_move_collections (&move, error) && add_unbound (edit, &ops, graph, error);
}

static MusterMetaGraph *
apply (MusterMetaGraph *self, const Change *change, GError **error)
{
  g_auto (MusterMetaGraphEdit) edit = {0};
  gsize size;
  gconstpointer data =
      g_bytes_get_data (muster_graph_bytes (muster_meta_graph_graph (self)), &size);
  if (!muster_meta_graph_edit_begin (&edit, self, error))
    return NULL;
  Tensorflow__GraphDef *graph =
      muster_unpack (&tensorflow__graph_def__descriptor, data, size, edit.arena, "graph", error);
  if (graph == NULL || !change_all (&edit, change, graph, error))
    return NULL;
  g_autoptr (GBytes) bytes = muster_pack (&graph->base);
  return muster_meta_graph_edit_end (&edit, bytes, error);
}

/* A scope as names have it: without a '/' at its end. */
static char *
scope_name (const char *scope)
{
  gsize size = scope != NULL ? strlen (scope) : 0;
  while (size > 0 && scope[size - 1] == '/')
    size--;
  return size > 0 ? g_strndup (scope, size) : NULL;
}

MusterMetaGraph *
muster_meta_graph_export (MusterMetaGraph *self, const MusterExport *how, GError **error)
{
  muster_require (error, NULL, self);
  g_autofree char *scope = scope_name (how != NULL ? how->export_scope : NULL);
  if (how == NULL || (!how->clear_devices && !how->clear_extraneous_savers &&
                      !how->strip_default_attrs && scope == NULL))
    return muster_meta_graph_ref (self);
  Change change = {*how, NULL};
  change.out.export_scope = scope;
  MusterMetaGraph *exported = apply (self, &change, error);
  if (exported == NULL)
    g_prefix_error (error, "Exporting the meta graph: ");
  return exported;
}

static gboolean
check_scope (const char *scope, GError **error)
{
  if (g_ascii_isalnum (*scope) || *scope == '.') {
    const char *at = scope;
    while (g_ascii_isalnum (*at) || (*at != '\0' && strchr ("_.\\-/", *at) != NULL))
      at++;
    if (*at == '\0')
      return TRUE;
  }
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "'%s' is not a valid scope name",
                      scope);
}

MusterMetaGraph *
muster_meta_graph_import (MusterMetaGraph *self, const MusterImport *how, GError **error)
{
  muster_require (error, NULL, self);
  g_autofree char *scope = scope_name (how != NULL ? how->import_scope : NULL);
  if (how == NULL || (!how->clear_devices && scope == NULL))
    return muster_meta_graph_ref (self);
  const Change change = {{.clear_devices = how->clear_devices}, scope};
  MusterMetaGraph *imported = NULL;
  if (scope == NULL || check_scope (scope, error))
    imported = apply (self, &change, error);
  if (imported == NULL)
    g_prefix_error (error, "Importing the meta graph: ");
  return imported;
}

/* --- files --- */

static gboolean
write_file (const char *path, gconstpointer data, gsize size, GError **error)
{
  return g_file_set_contents_full (path, data, (gssize)size,
                                   G_FILE_SET_CONTENTS_CONSISTENT | G_FILE_SET_CONTENTS_DURABLE,
                                   0666, error);
}

gboolean
muster_export_meta_graph (MusterMetaGraph *self, const MusterExport *how, const char *path,
                          gboolean as_text, GError **error)
{
  muster_require (error, FALSE, self, path);
  g_autoptr (MusterMetaGraph) exported = muster_meta_graph_export (self, how, error);
  if (exported == NULL)
    return FALSE;
  gsize size;
  gconstpointer data = g_bytes_get_data (muster_meta_graph_bytes (exported), &size);
  if (!as_text)
    return write_file (path, data, size, error);
  g_autoptr (GString) text =
      muster_proto_text_print (&tensorflow_text__meta_graph_def__descriptor, data, size, error);
  return text != NULL && write_file (path, text->str, text->len, error);
}

MusterMetaGraph *
muster_import_meta_graph (const char *path, const MusterImport *how, GError **error)
{
  muster_require (error, NULL, path);
  g_autoptr (MusterMetaGraph) read = muster_meta_graph_load (path, error);
  MusterMetaGraph *imported = read != NULL ? muster_meta_graph_import (read, how, error) : NULL;
  if (read != NULL && imported == NULL)
    g_prefix_error (error, "Importing '%s': ", path);
  return imported;
}

GString *
muster_graph_print (MusterGraph *self, GError **error)
{
  muster_require (error, NULL, self);
  gsize size;
  const void *data = g_bytes_get_data (muster_graph_bytes (self), &size);
  return muster_proto_text_print (&tensorflow_text__graph_def__descriptor, data, size, error);
}

// SPDX-License-Identifier: Apache-2.0
/* Moves names from one scope to another: in nodes, their inputs and classes, collections and
 * savers. */
#include "graph/meta_graph/meta_graph_scope_private.h"

#include <string.h>

/* Returns the name below the old scope, or NULL if it isn't there. */
static const char *
strip_scope (const MusterScopeMove *self, const char *name)
{
  if (self->from == NULL)
    return name;
  const gsize size = strlen (self->from);
  if (strncmp (name, self->from, size) != 0 || name[size] != '/' || name[size + 1] == '\0')
    return NULL;
  return name + size + 1;
}

/* The new name of "x", "x:0", "^x" or "loc:@x", in the edit's arena; NULL if it is removed. */
static char *
move_name (const MusterScopeMove *self, const char *name)
{
  const gsize mark = *name == '^' ? 1 : g_str_has_prefix (name, "loc:@") ? 5 : 0;
  const char *rest = strip_scope (self, name + mark);
  if (rest == NULL)
    return NULL;
  g_autoptr (GString) moved = g_string_new_len (name, (gssize)mark);
  if (self->to != NULL)
    g_string_append_printf (moved, "%s/", self->to);
  g_string_append (moved, rest);
  return muster_meta_graph_edit_copy (self->edit, moved->str);
}

gboolean
muster_scope_move_keeps (const MusterScopeMove *self, const char *node)
{
  return strip_scope (self, node) != NULL &&
         (self->gone == NULL || !g_hash_table_contains (self->gone, node));
}

/* --- nodes --- */

static char *
unbound (const MusterScopeMove *self, const char *input)
{
  g_autofree char *name = NULL;
  const int output = muster_graph_split_input (input, &name);
  g_autofree char *renamed = output > 0 ? g_strdup_printf (MUSTER_UNBOUND "%s_%d", name, output)
                                        : g_strconcat (MUSTER_UNBOUND, name, NULL);
  return muster_meta_graph_edit_copy (self->edit, renamed);
}

static void
move_class (const MusterScopeMove *self, Tensorflow__AttrValue *class)
{
  if (class == NULL || class->value_case != TENSORFLOW__ATTR_VALUE__VALUE_LIST)
    return;
  gsize kept = 0;
  for (gsize i = 0; i < class->list->n_s; i++) {
    const ProtobufCBinaryData old = class->list->s[i];
    g_autofree char *text = g_strndup ((const char *)old.data, old.len);
    char *moved = move_name (self, text);
    if (moved != NULL)
      class->list->s[kept++] =
          (ProtobufCBinaryData){.len = strlen (moved), .data = (guint8 *)moved};
  }
  class->list->n_s = kept;
}

void
muster_scope_move_node (const MusterScopeMove *self, Tensorflow__NodeDef *node)
{
  gsize kept = 0;
  node->name = move_name (self, node->name);
  for (gsize i = 0; i < node->n_input; i++) {
    char *moved = move_name (self, node->input[i]);
    if (moved == NULL && *node->input[i] == '^')
      continue; /* nothing outside can be waited for */
    node->input[kept++] = moved != NULL ? moved : unbound (self, node->input[i]);
  }
  node->n_input = kept;
  for (gsize i = 0; i < node->n_attr; i++)
    if (strcmp (node->attr[i]->key, "_class") == 0)
      move_class (self, node->attr[i]->value);
}

/* --- collections --- */

/* A field that contains a name; an empty one stays empty. FALSE if it is removed. */
static gboolean
move_field (const MusterScopeMove *self, char **field)
{
  if (**field == '\0')
    return TRUE;
  char *moved = move_name (self, *field);
  if (moved != NULL)
    *field = moved;
  return moved != NULL;
}

gboolean
muster_scope_move_saver (const MusterScopeMove *self, Tensorflow__SaverDef *saver)
{
  return move_field (self, &saver->filename_tensor_name) &&
         move_field (self, &saver->save_tensor_name) && move_field (self, &saver->restore_op_name);
}

static gboolean
move_variable (const MusterScopeMove *self, Tensorflow__VariableDef *variable)
{
  char **const others[] = {&variable->initializer_name, &variable->snapshot_name,
                           &variable->initial_value_name};
  if (!move_field (self, &variable->variable_name))
    return FALSE;
  for (gsize i = 0; i < G_N_ELEMENTS (others); i++)
    if (!move_field (self, others[i]))
      *others[i] = muster_meta_graph_edit_copy (self->edit, "");
  return variable->save_slice_info_def == NULL ||
         move_field (self, &variable->save_slice_info_def->full_name);
}

static gboolean
move_queue_runner (const MusterScopeMove *self, Tensorflow__QueueRunnerDef *runner)
{
  gboolean moved = move_field (self, &runner->queue_name) &&
                   move_field (self, &runner->close_op_name) &&
                   move_field (self, &runner->cancel_op_name);
  for (gsize i = 0; i < runner->n_enqueue_op_name; i++)
    moved = moved && move_field (self, &runner->enqueue_op_name[i]);
  return moved;
}

typedef enum { TEXT, VARIABLE, SAVER, QUEUE_RUNNER, IMMOVABLE } ItemKind;

static ItemKind
kind_of (const char *key)
{
  static const struct {
    const char *key;
    ItemKind kind;
  } kinds[] = {
      {"variables", VARIABLE},
      {"local_variables", VARIABLE},
      {"trainable_variables", VARIABLE},
      {"model_variables", VARIABLE},
      {"moving_average_variables", VARIABLE},
      {"metric_variables", VARIABLE},
      {"global_step", VARIABLE},
      {"savers", SAVER},
      {"queue_runners", QUEUE_RUNNER},
      {"cond_context", IMMOVABLE},
      {"while_context", IMMOVABLE},
  };
  for (gsize i = 0; i < G_N_ELEMENTS (kinds); i++)
    if (strcmp (kinds[i].key, key) == 0)
      return kinds[i].kind;
  return TEXT;
}

/* Returns TRUE with *moved, TRUE without it if the item is left out, or FALSE with an error. */
static gboolean
move_item (const MusterScopeMove *self, ItemKind kind, ProtobufCBinaryData *item, gboolean *kept,
           GError **error)
{
  const ProtobufCMessageDescriptor *const descriptors[] = {
      [VARIABLE] = &tensorflow__variable_def__descriptor,
      [SAVER] = &tensorflow__saver_def__descriptor,
      [QUEUE_RUNNER] = &tensorflow__queue_runner_def__descriptor,
  };
  *kept = FALSE;
  if (kind == IMMOVABLE)
    return TRUE;
  if (kind == TEXT) {
    g_autofree char *text = g_strndup ((const char *)item->data, item->len);
    char *moved = move_name (self, text);
    if (moved != NULL)
      *item = (ProtobufCBinaryData){.len = strlen (moved), .data = (guint8 *)moved};
    *kept = moved != NULL;
    return TRUE;
  }
  gpointer message = muster_unpack (descriptors[kind], item->data, item->len, self->edit->arena,
                                    "meta graph's collection", error);
  if (message == NULL)
    return FALSE;
  *kept = kind == VARIABLE ? move_variable (self, message)
          : kind == SAVER  ? muster_scope_move_saver (self, message)
                           : move_queue_runner (self, message);
  *item = muster_meta_graph_edit_pack (self->edit, message);
  return TRUE;
}

static gboolean
move_bytes (const MusterScopeMove *self, ItemKind kind, Tensorflow__CollectionDef__BytesList *list,
            GError **error)
{
  gsize n = 0;
  for (gsize i = 0; i < list->n_value; i++) {
    ProtobufCBinaryData item = list->value[i];
    gboolean kept;
    if (!move_item (self, kind, &item, &kept, error))
      return FALSE;
    if (kept)
      list->value[n++] = item;
  }
  list->n_value = n;
  return TRUE;
}

static void
move_names (const MusterScopeMove *self, Tensorflow__CollectionDef__NodeList *list)
{
  gsize n = 0;
  for (gsize i = 0; i < list->n_value; i++) {
    g_autofree char *node = NULL;
    (void)muster_graph_split_input (list->value[i], &node);
    if (muster_scope_move_keeps (self, node))
      list->value[n++] = move_name (self, list->value[i]);
  }
  list->n_value = n;
}

/* Returns FALSE with an error; *kept is FALSE for a collection of which nothing is left. */
static gboolean
move_collection (const MusterScopeMove *self, const char *key,
                 Tensorflow__CollectionDef *collection, gboolean *kept, GError **error)
{
  *kept = TRUE;
  if (collection == NULL)
    return TRUE;
  if (collection->kind_case == TENSORFLOW__COLLECTION_DEF__KIND_NODE_LIST) {
    move_names (self, collection->node_list);
    *kept = collection->node_list->n_value > 0;
  } else if (collection->kind_case == TENSORFLOW__COLLECTION_DEF__KIND_BYTES_LIST &&
             (self->from != NULL || self->to != NULL)) {
    if (!move_bytes (self, kind_of (key), collection->bytes_list, error))
      return FALSE;
    *kept = collection->bytes_list->n_value > 0;
  }
  return TRUE;
}

gboolean
muster_scope_move_collections (const MusterScopeMove *self, GError **error)
{
  Tensorflow__MetaGraphDef *def = self->edit->def;
  gsize n = 0;
  for (gsize i = 0; i < def->n_collection_def; i++) {
    Tensorflow__MetaGraphDef__CollectionDefEntry *entry = def->collection_def[i];
    gboolean kept;
    if (!move_collection (self, entry->key, entry->value, &kept, error)) {
      g_prefix_error (error, "Collection '%s': ", entry->key);
      return FALSE;
    }
    if (kept)
      def->collection_def[n++] = entry;
  }
  def->n_collection_def = n;
  return TRUE;
}

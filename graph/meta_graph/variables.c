// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "graph/graph_nodes.h"
#include "graph/meta_graph/meta_graph_private.h"

#include <string.h>

void
muster_variables_init (MusterVariables *self, MusterGraph *graph, MusterArena *arena)
{
  self->graph = graph;
  self->arena = arena;
  self->globals = g_array_new (FALSE, TRUE, sizeof (MusterVariableInfo));
  self->locals = g_array_new (FALSE, TRUE, sizeof (MusterVariableInfo));
  self->trainable = g_hash_table_new (g_str_hash, g_str_equal);
  self->infos = g_array_new (FALSE, TRUE, sizeof (MusterVariableInfo));
}

static const char *
keep (MusterVariables *self, const char *text, gsize size)
{
  char *copy = muster_arena_alloc (self->arena, size + 1);
  memcpy (copy, text, size);
  copy[size] = '\0';
  return copy;
}

/* A tensor's name less its output. */
static const char *
op_of (MusterVariables *self, const char *tensor)
{
  const char *colon = strrchr (tensor, ':');
  return colon != NULL ? keep (self, tensor, (gsize)(colon - tensor)) : tensor;
}

static const char *
or_null (const char *text)
{
  return text != NULL && *text != '\0' ? text : NULL;
}

/* dtype, shape, device and kind, as the variable's node has them. */
static void
look_at_node (MusterVariables *self, MusterVariableInfo *info)
{
  const Tensorflow__NodeDef *node = muster_graph_find_node (self->graph, info->name);
  gint64 dims[MUSTER_MAX_DIMS];
  info->n_dims = -1;
  info->device = "";
  if (node == NULL)
    return;
  info->dtype = muster_node_dtype (node, "dtype", MUSTER_INVALID);
  info->device = node->device;
  info->is_resource = strcmp (node->op, "VarHandleOp") == 0;
  const int n_dims = muster_node_shape (node, "shape", dims, MUSTER_MAX_DIMS);
  if (n_dims < 0 || n_dims > MUSTER_MAX_DIMS)
    return;
  gint64 *kept = muster_arena_alloc (self->arena, (gsize)n_dims * sizeof *kept);
  memcpy (kept, dims, (gsize)n_dims * sizeof *kept);
  info->n_dims = n_dims;
  info->dims = kept;
}

/* Where a part of a partitioned variable lies: "10 4 0,5:0,4". NULL for what can't be one. */
static const char *
slice_text (MusterVariables *self, const Tensorflow__SaveSliceInfoDef *def)
{
  g_autoptr (GString) shape = g_string_new (NULL);
  g_autoptr (GString) extents = g_string_new (NULL);
  const gsize n = def->n_full_shape;
  if (n == 0 || n > MUSTER_MAX_DIMS || def->n_var_offset != n || def->n_var_shape != n)
    return NULL;
  for (gsize i = 0; i < n; i++) {
    const gint64 full = def->full_shape[i], start = def->var_offset[i], size = def->var_shape[i];
    if (full < 0 || start < 0 || size < 0 || start > full || size > full - start)
      return NULL;
    g_string_append_printf (shape, "%" G_GINT64_FORMAT " ", full);
    g_string_append_printf (extents, "%s%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT, i > 0 ? ":" : "",
                            start, size);
  }
  g_string_append (shape, extents->str);
  return keep (self, shape->str, shape->len);
}

static gboolean
take_slice (MusterVariables *self, MusterVariableInfo *info,
            const Tensorflow__SaveSliceInfoDef *def, GError **error)
{
  if (def == NULL || *def->full_name == '\0')
    return TRUE;
  info->full_name = def->full_name;
  info->slice = slice_text (self, def);
  if (info->slice != NULL)
    return TRUE;
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
               "Variable '%s' is said to be a part of '%s' that can't be: its shape, offset and "
               "full shape don't go together",
               info->name, def->full_name);
  return FALSE;
}

gboolean
muster_variables_add (MusterVariables *self, const char *key, const MusterVariableSource *source,
                      GError **error)
{
  const gboolean is_local = strcmp (key, "local_variables") == 0;
  const char *name = op_of (self, source->tensor);
  if (strcmp (key, "trainable_variables") == 0)
    g_hash_table_add (self->trainable, (gpointer)name);
  if (!is_local && strcmp (key, "variables") != 0)
    return TRUE;
  MusterVariableInfo info = {.name = name, .is_local = is_local};
  self->has_collections = TRUE;
  if (source->def != NULL) {
    info.initializer = or_null (source->def->initializer_name);
    info.snapshot = or_null (source->def->snapshot_name);
    info.is_resource = source->def->is_resource != 0;
    if (!take_slice (self, &info, source->def->save_slice_info_def, error))
      return FALSE;
  }
  const gboolean says_resource = info.is_resource;
  look_at_node (self, &info);
  info.is_resource = info.is_resource || says_resource;
  g_array_append_val (is_local ? self->locals : self->globals, info);
  return TRUE;
}

/* The name of a node beside the variable, if the graph has it. */
static const char *
sibling (MusterVariables *self, const char *name, const char *suffix, const char *output)
{
  g_autofree char *node = g_strconcat (name, suffix, NULL);
  if (!muster_graph_has_node (self->graph, node))
    return NULL;
  g_autofree char *full = g_strconcat (node, output, NULL);
  return keep (self, full, strlen (full));
}

static void
add_from_nodes (MusterVariables *self)
{
  for (gsize i = 0; i < muster_graph_n_nodes (self->graph); i++) {
    const Tensorflow__NodeDef *node = muster_graph_node (self->graph, i);
    if (strcmp (node->op, "VariableV2") != 0 && strcmp (node->op, "Variable") != 0 &&
        strcmp (node->op, "VarHandleOp") != 0)
      continue;
    MusterVariableInfo info = {.name = node->name};
    look_at_node (self, &info);
    info.initializer = sibling (self, node->name, "/Assign", "");
    info.snapshot = info.is_resource ? sibling (self, node->name, "/Read/ReadVariableOp", ":0")
                                     : sibling (self, node->name, "/read", ":0");
    g_array_append_val (self->globals, info);
  }
}

static void
move_each_once (MusterVariables *self, const GArray *from, GHashTable *seen)
{
  for (guint i = 0; i < from->len; i++) {
    MusterVariableInfo info = g_array_index (from, MusterVariableInfo, i);
    if (!g_hash_table_add (seen, (gpointer)info.name))
      continue;
    info.is_trainable = g_hash_table_contains (self->trainable, info.name);
    g_array_append_val (self->infos, info);
  }
}

void
muster_variables_finish (MusterVariables *self)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  if (!self->has_collections)
    add_from_nodes (self);
  move_each_once (self, self->globals, seen);
  move_each_once (self, self->locals, seen);
  g_clear_pointer (&self->globals, g_array_unref);
  g_clear_pointer (&self->locals, g_array_unref);
  g_clear_pointer (&self->trainable, g_hash_table_unref);
}

void
muster_variables_clear (MusterVariables *self)
{
  g_clear_pointer (&self->globals, g_array_unref);
  g_clear_pointer (&self->locals, g_array_unref);
  g_clear_pointer (&self->trainable, g_hash_table_unref);
  g_clear_pointer (&self->infos, g_array_unref);
}

// SPDX-License-Identifier: Apache-2.0
/* A MetaGraphDef: its graph, the variables that its collections and its nodes tell of, and its
 * savers. It is read once; edits make another one. */
#include "graph/meta_graph/meta_graph.h"

#include "base/error.h"
#include "base/protowire_private.h"
#include "base/require_private.h"
#include "base/rope_private.h"
#include "base/unpack_private.h"
#include "graph/graph_nodes_private.h"
#include "graph/positioned_step_private.h"
#include "graph/proto/meta_graph.pb-c.h"

#include <string.h>

/* MetaGraphDef's fields that are taken out by hand. */
enum { FIELD_META_INFO = 1, FIELD_GRAPH = 2 };

/* Collects a meta graph's variables from its collections, which may be in any order in the file,
 * and orders them at the end: global ones, then local ones. Without any collection of variables:
 * the graph's variable nodes. */

typedef struct {
  MusterGraph *graph;    /* (not owned) */
  MusterArena *arena;    /* (not owned) */
  GArray *globals;       /* (owned) (element-type MusterVariableInfo) until finish () */
  GArray *locals;        /* (owned) until finish () */
  GHashTable *trainable; /* (owned) a set of names, until finish () */
  gboolean has_collections;
  GArray *infos; /* (owned) the outcome */
} MusterVariables;

/* What a collection records of one variable. */
typedef struct {
  const char *tensor;                 /* "dense/kernel:0" */
  const Tensorflow__VariableDef *def; /* (nullable) where the collection has names only */
} MusterVariableSource;

struct _MusterMetaGraph {
  gint ref_count;     /* atomic */
  MusterGraph *graph; /* (owned) */
  MusterArena *arena; /* (owned) everything below lives in it, or is borrowed from graph */

  GMutex lock;
  GBytes *bytes; /* (owned) guarded by lock; NULL until requested, if created rather than read */

  GHashTable *collections; /* (owned) key -> const char *const * */
  MusterVariables variables;
  const MusterSaverInfo *saver; /* (nullable) */
  GArray *savers;               /* (owned) (element-type MusterSaverInfo) of the collection */
};

G_DEFINE_BOXED_TYPE (MusterMetaGraph, muster_meta_graph, muster_meta_graph_ref,
                     muster_meta_graph_unref)

/* --- its variables --- */

static void
variables_init (MusterVariables *self, MusterGraph *graph, MusterArena *arena)
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
read_node (MusterVariables *self, MusterVariableInfo *info)
{
  const MusterNode *node = muster_graph_find_node (self->graph, info->name);
  gint64 dims[MUSTER_MAX_DIMS];
  info->n_dims = -1;
  info->device = "";
  if (node == NULL)
    return;
  info->dtype = muster_node_dtype (node, "dtype", MUSTER_INVALID);
  info->device = node->kind->device;
  info->is_resource = strcmp (node->kind->op, "VarHandleOp") == 0;
  const int n_dims = muster_node_shape (node, "shape", dims, MUSTER_MAX_DIMS);
  if (n_dims < 0 || n_dims > MUSTER_MAX_DIMS)
    return;
  gint64 *kept = muster_arena_alloc (self->arena, (gsize)n_dims * sizeof *kept);
  memcpy (kept, dims, (gsize)n_dims * sizeof *kept);
  info->n_dims = n_dims;
  info->dims = kept;
}

/* Returns the place of a part in a partitioned variable: "10 4 0,5:0,4". NULL if it can't be
 * one. */
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
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "Variable '%s' can't be a part of '%s': its shape, offset and "
                      "full shape don't match",
                      info->name, def->full_name);
}

static gboolean
variables_add (MusterVariables *self, const char *key, const MusterVariableSource *source,
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
  read_node (self, &info);
  info.is_resource = info.is_resource || says_resource;
  g_array_append_val (is_local ? self->locals : self->globals, info);
  return TRUE;
}

/* The name of a node beside the variable, if the graph has it. */
static const char *
sibling (MusterVariables *self, const char *name, const char *suffix, const char *output)
{
  g_autofree char *of_node = g_strconcat (name, suffix, NULL);
  const MusterNode *node = muster_graph_find_node (self->graph, of_node);
  if (node == NULL || *output == '\0')
    return node != NULL ? node->name : NULL;
  g_autofree char *full = g_strconcat (of_node, output, NULL);
  return keep (self, full, strlen (full));
}

static void
add_from_nodes (MusterVariables *self)
{
  for (gsize i = 0; i < muster_graph_n_nodes (self->graph); i++) {
    const MusterNode *node = muster_graph_node (self->graph, i);
    if (strcmp (node->kind->op, "VariableV2") != 0 && strcmp (node->kind->op, "Variable") != 0 &&
        (strcmp (node->kind->op, "VarHandleOp") != 0 || muster_is_positions_own (node->name)))
      continue;
    MusterVariableInfo info = {.name = node->name};
    read_node (self, &info);
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

static void
variables_finish (MusterVariables *self)
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

static void
variables_clear (MusterVariables *self)
{
  g_clear_pointer (&self->globals, g_array_unref);
  g_clear_pointer (&self->locals, g_array_unref);
  g_clear_pointer (&self->trainable, g_hash_table_unref);
  g_clear_pointer (&self->infos, g_array_unref);
}

/* --- the file --- */

static MusterMetaGraph *
new_empty (void)
{
  MusterMetaGraph *self = g_new0 (MusterMetaGraph, 1);
  self->ref_count = 1;
  g_mutex_init (&self->lock);
  self->arena = muster_arena_new ();
  self->collections = g_hash_table_new (g_str_hash, g_str_equal);
  self->savers = g_array_new (FALSE, TRUE, sizeof (MusterSaverInfo));
  return self;
}

/* Takes the graph's bytes out, without a copy if they are in one piece, and leaves the rest,
 * which is small, in *rest. */
static GBytes *
extract_graph (GBytes *bytes, GByteArray *rest, GError **error)
{
  gsize size;
  const guint8 *data = g_bytes_get_data (bytes, &size);
  g_auto (MusterRope) graph = MUSTER_ROPE_INIT;
  MusterProtoReader reader = muster_proto_reader (data, size);
  MusterProtoField field;
  for (;;) {
    const guint8 *start = reader.at;
    if (!muster_proto_read_field (&reader, &field))
      break;
    if (field.number == FIELD_GRAPH && field.type == MUSTER_WIRE_BYTES) {
      g_autoptr (GBytes) piece =
          g_bytes_new_from_bytes (bytes, (gsize)(field.data - data), field.size);
      muster_rope_append (&graph, piece); /* parts of a message merge by standing in a row */
    } else if (field.number != FIELD_META_INFO) {
      g_byte_array_append (rest, start, (guint)(reader.at - start));
    }
  }
  if (!muster_proto_at_end (&reader)) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "Reading the meta graph: it is malformed or truncated");
    return NULL;
  }
  return muster_rope_flatten (&graph);
}

/* --- collections --- */

/* Returns TRUE for the collections that TensorFlow writes as VariableDef. */
static gboolean
holds_variables (const char *key)
{
  static const char *const keys[] = {
      "variables",       "local_variables",          "trainable_variables",
      "model_variables", "moving_average_variables", "metric_variables",
      "global_step",
  };
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++)
    if (strcmp (keys[i], key) == 0)
      return TRUE;
  return FALSE;
}

static const char *
keep_text (MusterArena *arena, const guint8 *data, gsize size)
{
  g_autofree char *valid = NULL;
  if (!g_utf8_validate_len ((const char *)data, size, NULL)) {
    valid = g_utf8_make_valid ((const char *)data, (gssize)size);
    data = (const guint8 *)valid;
    size = strlen (valid);
  }
  char *text = muster_arena_alloc (arena, size + 1);
  if (size > 0)
    memcpy (text, data, size);
  text[size] = '\0';
  return text;
}

static const char *
print_item (MusterArena *arena, const Tensorflow__CollectionDef *collection, gsize i)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  if (collection->kind_case == TENSORFLOW__COLLECTION_DEF__KIND_INT64_LIST)
    g_snprintf (text, sizeof text, "%" G_GINT64_FORMAT, collection->int64_list->value[i]);
  else
    g_ascii_formatd (text, sizeof text, "%.9g", collection->float_list->value[i]);
  return keep_text (arena, (const guint8 *)text, strlen (text));
}

static gsize
n_items (const Tensorflow__CollectionDef *collection)
{
  switch (collection->kind_case) {
  case TENSORFLOW__COLLECTION_DEF__KIND_NODE_LIST:
    return collection->node_list->n_value;
  case TENSORFLOW__COLLECTION_DEF__KIND_BYTES_LIST:
    return collection->bytes_list->n_value;
  case TENSORFLOW__COLLECTION_DEF__KIND_INT64_LIST:
    return collection->int64_list->n_value;
  case TENSORFLOW__COLLECTION_DEF__KIND_FLOAT_LIST:
    return collection->float_list->n_value;
  default:
    return 0;
  }
}

/* An item's name. For a collection of variables, what it contains about the variable is recorded
 * too. */
static const char *
read_item (MusterMetaGraph *self, const char *key, const Tensorflow__CollectionDef *collection,
           gsize i, GError **error)
{
  const gboolean are_variables = holds_variables (key);
  MusterVariableSource source = {0};
  if (collection->kind_case == TENSORFLOW__COLLECTION_DEF__KIND_NODE_LIST) {
    source.tensor = collection->node_list->value[i];
  } else if (collection->kind_case == TENSORFLOW__COLLECTION_DEF__KIND_BYTES_LIST) {
    const ProtobufCBinaryData item = collection->bytes_list->value[i];
    if (!are_variables)
      return keep_text (self->arena, item.data, item.len);
    const Tensorflow__VariableDef *def =
        muster_unpack (&tensorflow__variable_def__descriptor, item.data, item.len, self->arena,
                       "meta graph's variable", error);
    if (def == NULL)
      return NULL;
    source.tensor = def->variable_name;
    source.def = def;
  } else {
    return print_item (self->arena, collection, i);
  }
  if (are_variables && !variables_add (&self->variables, key, &source, error))
    return NULL;
  return source.tensor;
}

static gboolean
read_collection (MusterMetaGraph *self, const char *key,
                 const Tensorflow__CollectionDef *collection, GError **error)
{
  const gsize n = n_items (collection);
  const char **items = muster_arena_alloc (self->arena, (n + 1) * sizeof *items);
  for (gsize i = 0; i < n; i++) {
    items[i] = read_item (self, key, collection, i, error);
    if (items[i] == NULL) {
      g_prefix_error (error, "Collection '%s': ", key);
      return FALSE;
    }
  }
  items[n] = NULL;
  g_hash_table_replace (self->collections, (gpointer)key, items);
  return TRUE;
}

static MusterSaverInfo
saver_info (const Tensorflow__SaverDef *def)
{
  return (MusterSaverInfo){
      .filename_tensor = def->filename_tensor_name,
      .save_tensor = def->save_tensor_name,
      .restore_op = def->restore_op_name,
      .max_to_keep = def->max_to_keep,
      .sharded = def->sharded != 0,
      .keep_every_n_hours = def->keep_checkpoint_every_n_hours,
      .version = def->version,
  };
}

static gboolean
read_saver_collection (MusterMetaGraph *self, const Tensorflow__CollectionDef *collection,
                       GError **error)
{
  if (collection->kind_case != TENSORFLOW__COLLECTION_DEF__KIND_BYTES_LIST)
    return TRUE;
  g_array_set_size (self->savers, 0); /* of two entries with one key the last counts */
  for (gsize i = 0; i < collection->bytes_list->n_value; i++) {
    const ProtobufCBinaryData item = collection->bytes_list->value[i];
    const Tensorflow__SaverDef *def = muster_unpack (&tensorflow__saver_def__descriptor, item.data,
                                                     item.len, self->arena, "saver", error);
    if (def == NULL) {
      g_prefix_error (error, "Collection 'savers': ");
      return FALSE;
    }
    const MusterSaverInfo info = saver_info (def);
    g_array_append_val (self->savers, info);
  }
  return TRUE;
}

/* A meta graph that was exported without its saver may still have one in a collection. */
static gboolean
read_savers (MusterMetaGraph *self, const Tensorflow__MetaGraphDef *def, GError **error)
{
  for (gsize i = 0; i < def->n_collection_def; i++) {
    const Tensorflow__MetaGraphDef__CollectionDefEntry *entry = def->collection_def[i];
    if (strcmp (entry->key, "savers") == 0 && entry->value != NULL &&
        !read_saver_collection (self, entry->value, error))
      return FALSE;
  }
  if (def->saver_def != NULL) {
    MusterSaverInfo *own = muster_arena_alloc (self->arena, sizeof *own);
    *own = saver_info (def->saver_def);
    self->saver = own;
  } else if (self->savers->len > 0) {
    self->saver = &g_array_index (self->savers, MusterSaverInfo, 0);
  }
  return TRUE;
}

/* --- making one --- */

static gboolean
read_rest (MusterMetaGraph *self, const GByteArray *rest, GError **error)
{
  const Tensorflow__MetaGraphDef *def =
      muster_unpack (&tensorflow__meta_graph_def__descriptor, rest->data, rest->len, self->arena,
                     "meta graph", error);
  if (def == NULL)
    return FALSE;
  variables_init (&self->variables, self->graph, self->arena);
  for (gsize i = 0; i < def->n_collection_def; i++) {
    const Tensorflow__MetaGraphDef__CollectionDefEntry *entry = def->collection_def[i];
    if (entry->value != NULL && !read_collection (self, entry->key, entry->value, error))
      return FALSE;
  }
  variables_finish (&self->variables);
  return read_savers (self, def, error);
}

MusterMetaGraph *
muster_meta_graph_new (GBytes *bytes, GError **error)
{
  muster_require (error, NULL, bytes);
  g_autoptr (GByteArray) rest = g_byte_array_new ();
  g_autoptr (GBytes) graph_bytes = extract_graph (bytes, rest, error);
  if (graph_bytes == NULL)
    return NULL;
  g_autoptr (MusterMetaGraph) self = new_empty ();
  self->bytes = g_bytes_ref (bytes);
  self->graph = muster_graph_new (graph_bytes);
  if (!muster_graph_parse (self->graph, error) || !read_rest (self, rest, error))
    return NULL;
  return g_steal_pointer (&self);
}

MusterMetaGraph *
muster_meta_graph_new_for_graph (MusterGraph *graph)
{
  g_return_val_if_fail (graph != NULL, NULL);
  MusterMetaGraph *self = new_empty ();
  self->graph = muster_graph_ref (graph);
  variables_init (&self->variables, self->graph, self->arena);
  variables_finish (&self->variables);
  return self;
}

MusterMetaGraph *
muster_meta_graph_ref (MusterMetaGraph *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  g_atomic_int_inc (&self->ref_count);
  return self;
}

void
muster_meta_graph_unref (MusterMetaGraph *self)
{
  if (self == NULL || !g_atomic_int_dec_and_test (&self->ref_count))
    return;
  g_mutex_clear (&self->lock);
  variables_clear (&self->variables);
  g_clear_pointer (&self->graph, muster_graph_unref);
  g_clear_pointer (&self->bytes, g_bytes_unref);
  g_hash_table_unref (self->collections);
  g_array_unref (self->savers);
  muster_arena_free (self->arena);
  g_free (self);
}

static GBytes *
make_bytes (MusterGraph *graph)
{
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  GBytes *bytes = muster_graph_bytes (graph);
  muster_proto_put_head (muster_rope_tail (&rope), FIELD_GRAPH, g_bytes_get_size (bytes));
  muster_rope_append (&rope, bytes);
  return muster_rope_flatten (&rope);
}

GBytes *
muster_meta_graph_bytes (MusterMetaGraph *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  g_mutex_lock (&self->lock);
  if (self->bytes == NULL)
    self->bytes = make_bytes (self->graph);
  GBytes *bytes = self->bytes;
  g_mutex_unlock (&self->lock);
  return bytes;
}

MusterGraph *
muster_meta_graph_graph (MusterMetaGraph *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->graph;
}

const char *const *
muster_meta_graph_collection (MusterMetaGraph *self, const char *key)
{
  g_return_val_if_fail (self != NULL && key != NULL, NULL);
  return g_hash_table_lookup (self->collections, key);
}

const char *
muster_meta_graph_op (MusterMetaGraph *self, const char *key)
{
  g_return_val_if_fail (self != NULL && key != NULL, NULL);
  const char *const *items = muster_meta_graph_collection (self, key);
  return items != NULL ? items[0] : NULL;
}

const MusterVariableInfo *
muster_meta_graph_variables (MusterMetaGraph *self, gsize *n)
{
  g_return_val_if_fail (self != NULL && n != NULL, NULL);
  *n = self->variables.infos->len;
  return (const MusterVariableInfo *)(gpointer)self->variables.infos->data;
}

const MusterSaverInfo *
muster_meta_graph_saver (MusterMetaGraph *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->saver;
}

const MusterSaverInfo *
muster_meta_graph_savers (MusterMetaGraph *self, gsize *n)
{
  g_return_val_if_fail (self != NULL && n != NULL, NULL);
  *n = self->savers->len;
  return (const MusterSaverInfo *)(gpointer)self->savers->data;
}

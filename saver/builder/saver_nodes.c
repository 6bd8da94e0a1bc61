// SPDX-License-Identifier: Apache-2.0
/* Adds the nodes of TensorFlow's Saver to a graph, in TensorFlow's order, which determines the
 * numbers in their names ("save/Identity_3"). Therefore saving comes before restoring, and devices
 * in the order of their names. */
#include "graph/device_name_private.h"
#include "graph/graph_builder.h"
#include "graph/graph_nodes_private.h"
#include "graph/meta_graph/meta_graph.h"
#include "saver/builder/saver_builder_private.h"

#include <string.h>

/* The nodes under construction. */

typedef struct {
  MusterGraph *graph; /* (not owned) the model's */
  MusterGraphBuilder *builder;
  const char *scope;
  gboolean reshape;
  GHashTable *numbers; /* (owned) how often a name was taken */
  GStringChunk *names; /* (owned) names of nodes and devices, while building */
  const char *filename;
} Nodes;

/* The saveables of one device. */
typedef struct {
  const char *device; /* canonical; "" for none */
  GPtrArray *saveables;
} Shard;

static const char *
keep (Nodes *self, char *text)
{
  const char *kept = g_string_chunk_insert (self->names, text);
  g_free (text);
  return kept;
}

static const char *
canonical (Nodes *self, const char *device)
{
  return keep (self, muster_device_canonical (device));
}

static const char *
cpu_of (Nodes *self, const char *device)
{
  return keep (self, muster_device_cpu (device));
}

/* "save/Identity", "save/Identity_1", … */
static const char *
unique (Nodes *self, const char *name)
{
  guint n = GPOINTER_TO_UINT (g_hash_table_lookup (self->numbers, name));
  g_hash_table_insert (self->numbers, (gpointer)name, GUINT_TO_POINTER (n + 1));
  return keep (self, n == 0 ? g_strdup_printf ("%s/%s", self->scope, name)
                            : g_strdup_printf ("%s/%s_%u", self->scope, name, n));
}

static const char *
below (Nodes *self, const char *node, const char *name)
{
  return keep (self, g_strdup_printf ("%s/%s", node, name));
}

/* Begins a node; name is unique already (unique ()). */
static const char *
begin (Nodes *self, const char *op, const char *name, const char *device)
{
  muster_graph_builder_node (self->builder, op, name);
  if (*device)
    muster_graph_builder_device (self->builder, device);
  return name;
}

static void
input (Nodes *self, const char *name)
{
  muster_graph_builder_input (self->builder, name);
}

static int
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(char *const *)a, *(char *const *)b);
}

/* Adds control inputs, in TensorFlow's order. */
static void
wait_for (Nodes *self, GPtrArray *nodes)
{
  g_ptr_array_sort (nodes, compare_names);
  for (guint i = 0; i < nodes->len; i++) {
    g_autofree char *control = g_strconcat ("^", nodes->pdata[i], NULL);
    input (self, control);
  }
}

/* Sets an attribute that TensorFlow adds to nodes with control outputs. */
static void
is_waited_for (Nodes *self)
{
  muster_graph_builder_attr_bool (self->builder, "_has_manual_control_dependencies", TRUE);
}

static const char *
constant (Nodes *self, const char *name, const char *device, MusterTensor *value)
{
  muster_graph_builder_constant (self->builder, name, value);
  if (*device)
    muster_graph_builder_device (self->builder, device);
  return name;
}

static const char *
constant_text (Nodes *self, const char *name, const char *device, const char *text)
{
  g_autoptr (MusterTensor) value = muster_tensor_new_string (text);
  return constant (self, name, device, value);
}

static const char *
constant_number (Nodes *self, const char *name, const char *device, guint number)
{
  g_autoptr (MusterTensor) value = muster_tensor_new_int32 ((gint32)number);
  return constant (self, name, device, value);
}

static const char *
identity (Nodes *self, const char *of, MusterDType dtype, const char *device)
{
  const char *name = begin (self, "Identity", unique (self, "Identity"), device);
  input (self, of);
  muster_graph_builder_attr_type (self->builder, "T", dtype);
  return name;
}

/* --- the file's name --- */

static const char *
with_default (Nodes *self, const char *name, const char *value)
{
  begin (self, "PlaceholderWithDefault", name, "");
  input (self, value);
  muster_graph_builder_attr_type (self->builder, "dtype", MUSTER_STRING);
  muster_graph_builder_attr_shape (self->builder, "shape", 0, NULL);
  return name;
}

static void
add_filename (Nodes *self, const char *value)
{
  const char *name = unique (self, "filename");
  const char *text = constant_text (self, below (self, name, "input"), "", value);
  self->filename = with_default (self, unique (self, "Const"), with_default (self, name, text));
}

/* --- saving --- */

static gboolean
is_read (Nodes *self, const char *tensor)
{
  g_autofree char *name = NULL;

  muster_graph_split_input (tensor, &name);
  const MusterNode *node = muster_graph_find_node (self->graph, name);
  return node != NULL && strcmp (node->kind->op, "ReadVariableOp") == 0;
}

/* "p/read" of "p/read:0", as the inputs of nodes are written. */
static const char *
as_input (Nodes *self, const char *tensor)
{
  g_autofree char *name = NULL;
  int output = muster_graph_split_input (tensor, &name);
  return keep (self, output == 0 ? g_steal_pointer (&name) : g_strdup (tensor));
}

static const char *
new_read (Nodes *self, const MusterVariableInfo *variable, const char *device)
{
  const char *scope = unique (self, "Read");
  const char *read = begin (self, "ReadVariableOp", below (self, scope, "ReadVariableOp"), device);
  input (self, variable->name);
  muster_graph_builder_attr_type (self->builder, "dtype", variable->dtype);
  read = identity (self, read, variable->dtype, device);
  return identity (self, read, variable->dtype, cpu_of (self, device));
}

/* Returns the tensor that holds a variable's value: a read of its own for a part, else the
 * model's. */
static const char *
value_of (Nodes *self, const MusterSaveable *saveable)
{
  const MusterVariableInfo *variable = saveable->variable;
  if (variable == NULL)
    return as_input (self, saveable->tensor);
  const char *own = below (self, variable->name, "Read/ReadVariableOp");
  gboolean is_part = *saveable->slice != '\0';
  if (!variable->is_resource)
    return is_part && variable->snapshot != NULL ? as_input (self, variable->snapshot)
                                                 : variable->name;
  if (!is_part && variable->snapshot != NULL && is_read (self, variable->snapshot))
    return as_input (self, variable->snapshot);
  if (!is_part && is_read (self, own))
    return own;
  return new_read (self, variable, canonical (self, variable->device));
}

typedef const char *(*TextOf) (const MusterSaveable *saveable);

static const char *
key_of (const MusterSaveable *saveable)
{
  return saveable->key;
}

static const char *
slice_of (const MusterSaveable *saveable)
{
  return saveable->slice;
}

static const char *
constant_texts (Nodes *self, const char *name, const char *device, GPtrArray *saveables,
                TextOf text_of)
{
  g_autoptr (GPtrArray) texts = g_ptr_array_new ();
  for (guint i = 0; i < saveables->len; i++)
    g_ptr_array_add (texts, (gpointer)text_of (saveables->pdata[i]));
  g_ptr_array_add (texts, NULL);
  g_autoptr (MusterTensor) value = muster_tensor_new_strv ((const char *const *)texts->pdata);
  return constant (self, name, device, value);
}

static MusterDType
dtype_of (const MusterSaveable *saveable)
{
  return saveable->variable != NULL ? saveable->variable->dtype : saveable->dtype;
}

static void
attr_dtypes (Nodes *self, GPtrArray *saveables)
{
  g_autofree MusterDType *dtypes = g_new (MusterDType, saveables->len);

  for (guint i = 0; i < saveables->len; i++)
    dtypes[i] = dtype_of (saveables->pdata[i]);
  muster_graph_builder_attr_types (self->builder, "dtypes", dtypes, saveables->len);
}

/* Begins a SaveV2 or RestoreV2, up to the end of the three inputs that both have. */
static const char *
begin_transfer (Nodes *self, const char *op, const char *device, const char *filename,
                GPtrArray *saveables)
{
  const char *node = unique (self, op);
  const char *names =
      constant_texts (self, below (self, node, "tensor_names"), device, saveables, key_of);
  const char *slices =
      constant_texts (self, below (self, node, "shape_and_slices"), device, saveables, slice_of);

  begin (self, op, node, device);
  input (self, filename);
  input (self, names);
  input (self, slices);
  return node;
}

/* Returns a tensor with the file's name, which is available once the file is written. */
static const char *
add_save (Nodes *self, const char *device, const char *filename, GPtrArray *saveables)
{
  g_autofree const char **values = g_new (const char *, saveables->len);

  for (guint i = 0; i < saveables->len; i++)
    values[i] = value_of (self, saveables->pdata[i]);
  const char *save = begin_transfer (self, "SaveV2", device, filename, saveables);
  for (guint i = 0; i < saveables->len; i++)
    input (self, values[i]);
  attr_dtypes (self, saveables);
  is_waited_for (self);

  const char *saved = begin (self, "Identity", unique (self, "control_dependency"), device);
  g_autofree char *control = g_strconcat ("^", save, NULL);
  input (self, filename);
  input (self, control);
  muster_graph_builder_attr_type (self->builder, "T", MUSTER_STRING);
  muster_graph_builder_colocate (self->builder, filename);
  return saved;
}

/* "PREFIX_temp/part", beside the checkpoint; on S3, where a rename is a copy, "PREFIX.part". */
static const char *
add_part_prefix (Nodes *self)
{
  static const char device[] = "/device:CPU:*";
  const char *is_s3 =
      begin (self, "StaticRegexFullMatch", unique (self, "StaticRegexFullMatch"), device);
  input (self, self->filename);
  muster_graph_builder_attr_string (self->builder, "pattern", "^s3://.*");
  const char *there = constant_text (self, unique (self, "Const"), device, ".part");
  const char *here = constant_text (self, unique (self, "Const"), device, "_temp/part");
  const char *suffix = begin (self, "Select", unique (self, "Select"), device);
  input (self, is_s3);
  input (self, there);
  input (self, here);
  muster_graph_builder_attr_type (self->builder, "T", MUSTER_STRING);
  const char *joined = begin (self, "StringJoin", unique (self, "StringJoin"), device);
  input (self, self->filename);
  input (self, suffix);
  muster_graph_builder_attr_int (self->builder, "N", 2);
  muster_graph_builder_attr_string (self->builder, "separator", "");
  return joined;
}

static const char *
add_part_name (Nodes *self, const char *device, const char *prefix, guint shard,
               const char *n_shards)
{
  const char *node = unique (self, "ShardedFilename");
  const char *number = constant_number (self, below (self, node, "shard"), device, shard);
  begin (self, "ShardedFilename", node, device);
  input (self, prefix);
  input (self, number);
  input (self, n_shards);
  return node;
}

static const char *
add_merge (Nodes *self, const char *device, GPtrArray *parts, GPtrArray *saved)
{
  const char *merge = unique (self, "MergeV2Checkpoints");
  const char *pack = begin (self, "Pack", below (self, merge, "checkpoint_prefixes"), device);
  for (guint i = 0; i < parts->len; i++)
    input (self, parts->pdata[i]);
  wait_for (self, saved);
  muster_graph_builder_attr_int (self->builder, "N", parts->len);
  muster_graph_builder_attr_type (self->builder, "T", MUSTER_STRING);
  muster_graph_builder_attr_int (self->builder, "axis", 0);
  begin (self, "MergeV2Checkpoints", merge, device);
  input (self, pack);
  input (self, self->filename);
  muster_graph_builder_attr_bool (self->builder, "delete_old_dirs", TRUE);
  is_waited_for (self);

  const char *done = begin (self, "Identity", unique (self, "Identity"), device);
  input (self, self->filename);
  g_ptr_array_add (saved, (gpointer)merge);
  wait_for (self, saved);
  muster_graph_builder_attr_type (self->builder, "T", MUSTER_STRING);
  return done;
}

static const char *
add_sharded_save (Nodes *self, GArray *shards)
{
  const char *prefix = add_part_prefix (self);
  const char *n_shards = constant_number (self, unique (self, "num_shards"), "", shards->len);
  g_autoptr (GPtrArray) parts = g_ptr_array_new ();
  g_autoptr (GPtrArray) saved = g_ptr_array_new ();
  const char *device = "";
  for (guint i = 0; i < shards->len; i++) {
    const Shard *shard = &g_array_index (shards, Shard, i);
    device = cpu_of (self, shard->device);
    const char *part = add_part_name (self, device, prefix, i, n_shards);
    g_ptr_array_add (parts, (gpointer)part);
    g_ptr_array_add (saved, (gpointer)add_save (self, device, part, shard->saveables));
    is_waited_for (self);
  }
  return add_merge (self, device, parts, saved);
}

/* --- restoring --- */

typedef struct {
  const char *name;
  const char *device;
} Op;

static gboolean
shape_is_known (const MusterVariableInfo *variable)
{
  return muster_shape_n_elements (variable->n_dims, variable->dims) >= 0 && variable->n_dims >= 0;
}

static gboolean
shape_is_constant (const MusterVariableInfo *variable)
{
  for (int i = 0; i < variable->n_dims; i++)
    if (variable->dims[i] > G_MAXINT32)
      return FALSE;
  return shape_is_known (variable);
}

/* Returns the variable's shape as a tensor: a constant, or the shape at the time of the restore.
 * */
static const char *
add_shape (Nodes *self, const MusterSaveable *saveable, const char *node, const char *device)
{
  const MusterVariableInfo *variable = saveable->variable;
  if (!shape_is_constant (variable)) {
    const char *value = value_of (self, saveable);
    const char *shape = begin (self, "Shape", unique (self, "Shape"), device);
    input (self, value);
    muster_graph_builder_attr_type (self->builder, "T", variable->dtype);
    muster_graph_builder_attr_type (self->builder, "out_type", MUSTER_INT32);
    return shape;
  }
  gint64 n = variable->n_dims;
  g_autoptr (MusterTensor) shape = muster_tensor_new (MUSTER_INT32, 1, &n);
  gint32 *dims = muster_tensor_data_mutable (shape);
  for (gint64 i = 0; i < n; i++)
    dims[i] = (gint32)variable->dims[i];
  return constant (self, below (self, node, "shape"), device, shape);
}

static const char *
add_reshape (Nodes *self, const MusterSaveable *saveable, const char *value, const char *device)
{
  const char *node = unique (self, "Reshape");
  const char *shape = add_shape (self, saveable, node, device);
  begin (self, "Reshape", node, device);
  input (self, value);
  input (self, shape);
  muster_graph_builder_attr_type (self->builder, "T", saveable->variable->dtype);
  muster_graph_builder_attr_type (self->builder, "Tshape", MUSTER_INT32);
  return node;
}

static Op
add_assign (Nodes *self, const MusterVariableInfo *variable, const char *value)
{
  const char *device = canonical (self, variable->device);
  Op op = {NULL, device};
  if (variable->is_resource) {
    value = identity (self, value, variable->dtype, device);
    op.name = begin (self, "AssignVariableOp", unique (self, "AssignVariableOp"), device);
    input (self, variable->name);
    input (self, value);
    muster_graph_builder_attr_type (self->builder, "dtype", variable->dtype);
  } else {
    op.name = begin (self, "Assign", unique (self, "Assign"), device);
    input (self, variable->name);
    input (self, value);
    muster_graph_builder_attr_type (self->builder, "T", variable->dtype);
    muster_graph_builder_attr_bool (self->builder, "use_locking", TRUE);
    muster_graph_builder_attr_bool (self->builder, "validate_shape",
                                    !self->reshape && shape_is_known (variable));
    muster_graph_builder_colocate (self->builder, variable->name);
  }
  is_waited_for (self);
  return op;
}

static const char *
no_op (Nodes *self, const char *name, const char *device, GPtrArray *waits_for)
{
  begin (self, "NoOp", name, device);
  wait_for (self, waits_for);
  return name;
}

static int
compare_ops (gconstpointer a, gconstpointer b)
{
  return strcmp (((const Op *)a)->device, ((const Op *)b)->device);
}

/* Adds a NoOp for each device and one that joins them, so that each device reports once. */
static Op
add_group (Nodes *self, const char *name, GArray *ops)
{
  const char *group = unique (self, name);
  g_autoptr (GPtrArray) devices = g_ptr_array_new ();
  guint end = 0;
  g_array_sort (ops, compare_ops);
  for (guint start = 0; start < ops->len; start = end) {
    const char *device = g_array_index (ops, Op, start).device;
    g_autoptr (GPtrArray) names = g_ptr_array_new ();
    for (end = start; end < ops->len; end++) {
      const Op *op = &g_array_index (ops, Op, end);
      if (strcmp (op->device, device) != 0)
        break;
      g_ptr_array_add (names, (gpointer)op->name);
    }
    if (start == 0 && end == ops->len)
      return (Op){no_op (self, group, device, names), device};
    char *one = devices->len == 0 ? g_strdup ("NoOp") : g_strdup_printf ("NoOp_%u", devices->len);
    const char *whole = below (self, group, one);
    g_free (one);
    g_ptr_array_add (devices, (gpointer)no_op (self, whole, device, names));
    is_waited_for (self);
  }
  return (Op){no_op (self, group, "", devices), ""};
}

static Op
add_restore (Nodes *self, const char *device, GPtrArray *saveables, const char *group)
{
  g_autoptr (GArray) assigned = g_array_new (FALSE, FALSE, sizeof (Op));
  const char *restore =
      begin_transfer (self, "RestoreV2", cpu_of (self, device), self->filename, saveables);

  attr_dtypes (self, saveables);
  for (guint i = 0; i < saveables->len; i++) {
    const MusterSaveable *saveable = saveables->pdata[i];
    const char *value = i == 0 ? restore : keep (self, g_strdup_printf ("%s:%u", restore, i));
    if (self->reshape)
      value = add_reshape (self, saveable, value, device);
    Op op = add_assign (self, saveable->variable, value);
    g_array_append_val (assigned, op);
  }
  return add_group (self, group, assigned);
}

static GPtrArray *
without_kept (GPtrArray *saveables)
{
  GPtrArray *others = g_ptr_array_new ();
  for (guint i = 0; i < saveables->len; i++)
    if (!((const MusterSaveable *)saveables->pdata[i])->is_kept)
      g_ptr_array_add (others, saveables->pdata[i]);
  return others;
}

static const char *
add_sharded_restore (Nodes *self, GArray *shards)
{
  g_autoptr (GArray) restored = g_array_new (FALSE, FALSE, sizeof (Op));
  for (guint i = 0; i < shards->len; i++) {
    const Shard *shard = &g_array_index (shards, Shard, i);
    g_autoptr (GPtrArray) restored_here = without_kept (shard->saveables);
    if (restored_here->len == 0)
      continue;
    Op op = add_restore (self, shard->device, restored_here, "restore_shard");
    is_waited_for (self);
    g_array_append_val (restored, op);
  }
  return add_group (self, "restore_all", restored).name;
}

/* Restores what the saver before restores, and the rest. */
static const char *
add_both (Nodes *self, const char *before, const char *rest)
{
  g_autoptr (GPtrArray) both = g_ptr_array_new ();
  is_waited_for (self);
  g_ptr_array_add (both, (gpointer)before);
  g_ptr_array_add (both, (gpointer)rest);
  return no_op (self, unique (self, "restore_both"), "", both);
}

/* --- all --- */

static void
shard_clear (gpointer data)
{
  g_ptr_array_unref (((Shard *)data)->saveables);
}

static int
compare_shards (gconstpointer a, gconstpointer b)
{
  return strcmp (((const Shard *)a)->device, ((const Shard *)b)->device);
}

/* Returns the shards, one for each device, sorted by name. */
static GArray *
group_by_device (Nodes *self, GArray *saveables)
{
  GArray *shards = g_array_new (FALSE, FALSE, sizeof (Shard));
  g_autoptr (GHashTable) by_device = g_hash_table_new (g_str_hash, g_str_equal);
  g_array_set_clear_func (shards, shard_clear);
  for (guint i = 0; i < saveables->len; i++) {
    MusterSaveable *saveable = &g_array_index (saveables, MusterSaveable, i);
    const char *device = canonical (self, saveable->variable != NULL ? saveable->variable->device
                                                                     : saveable->device);
    GPtrArray *there = g_hash_table_lookup (by_device, device);
    if (there == NULL) {
      Shard shard = {device, there = g_ptr_array_new ()};
      g_hash_table_insert (by_device, (gpointer)device, there);
      g_array_append_val (shards, shard);
    }
    g_ptr_array_add (there, saveable);
  }
  g_array_sort (shards, compare_shards);
  return shards;
}

static void
add_all (Nodes *self, GArray *saveables, gboolean sharded, const MusterSaverInfo *before,
         MusterSaverInfo *info)
{
  const char *saved, *restored;
  if (sharded) {
    g_autoptr (GArray) shards = group_by_device (self, saveables);
    saved = add_sharded_save (self, shards);
    restored = add_sharded_restore (self, shards);
  } else {
    g_autoptr (GPtrArray) all = g_ptr_array_new ();
    for (guint i = 0; i < saveables->len; i++)
      g_ptr_array_add (all, &g_array_index (saveables, MusterSaveable, i));
    g_autoptr (GPtrArray) restored_here = without_kept (all);
    saved = add_save (self, "", self->filename, all);
    restored = add_restore (self, "", restored_here, "restore_all").name;
  }
  if (before != NULL)
    restored = add_both (self, as_input (self, before->restore_op), restored);
  info->filename_tensor = g_strconcat (self->filename, ":0", NULL);
  info->save_tensor = g_strconcat (saved, ":0", NULL);
  info->restore_op = g_strdup (restored);
}

MusterGraph *
muster_saver_add_nodes (MusterGraph *graph, const char *scope, GArray *saveables,
                        const MusterSaverBuild *how, const MusterSaverInfo *before,
                        MusterSaverInfo *info, GError **error)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new_extension ();
  g_autoptr (GHashTable) numbers = g_hash_table_new (g_str_hash, g_str_equal);
  Nodes nodes = {
      .graph = graph,
      .builder = builder,
      .scope = scope,
      .reshape = how->reshape,
      .numbers = numbers,
      .names = g_string_chunk_new (4096),
  };
  if (before != NULL)
    nodes.filename = as_input (&nodes, before->filename_tensor);
  else
    add_filename (&nodes, how->filename != NULL && *how->filename ? how->filename : "model");
  add_all (&nodes, saveables, how->sharded, before, info);
  g_string_chunk_free (nodes.names);
  g_autoptr (MusterGraph) extra = muster_graph_builder_end (builder, error);
  return extra != NULL ? muster_graph_extended (graph, extra) : NULL;
}

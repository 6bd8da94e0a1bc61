// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/sharded_model.h"

#include "base/error.h"
#include "tests/doubles/small_model.h"

#include <string.h>

#define N_VARIABLES 4
#define PER_SHARD   2

/* In the order in which they are saved: two in each shard. */
static const char *const variables[N_VARIABLES] = {"v", "p/part_0", "w", "p/part_1"};
static const char *const keys[N_VARIABLES] = {"v", "p", "w", "p"};
static const char *const reads[N_VARIABLES] = {"v/read:0", "p/part_0/read:0", "w/read:0",
                                               "p/part_1/read:0"};
static const MusterDType dtypes[N_VARIABLES] = {MUSTER_FLOAT, MUSTER_FLOAT, MUSTER_INT64,
                                                MUSTER_FLOAT};

static gint64
rows_of (const MusterShardedModel *model)
{
  return model->rows > 0 ? model->rows : 2;
}

/* A variable's rank, and its dimensions. */
static int
shape_of (const MusterShardedModel *model, gsize i, gint64 dims[2])
{
  static const int n_dims[N_VARIABLES] = {1, 2, 0, 2};
  dims[0] = n_dims[i] == 2 ? rows_of (model) : 2;
  dims[1] = 2;
  return n_dims[i];
}

static MusterTensor *
filled (const MusterShardedModel *model, gsize i, guint8 value)
{
  gint64 dims[2];
  int n_dims = shape_of (model, i, dims);
  MusterTensor *tensor = muster_tensor_new (dtypes[i], n_dims, dims);
  memset (muster_tensor_data_mutable (tensor), value, muster_tensor_n_bytes (tensor));
  return tensor;
}

static char *
slice_of (const MusterShardedModel *model, gsize i)
{
  const gint64 rows = rows_of (model);
  if (!g_str_equal (keys[i], "p"))
    return g_strdup ("");
  return g_strdup_printf ("%" G_GINT64_FORMAT " 2 %" G_GINT64_FORMAT ",%" G_GINT64_FORMAT ":0,2",
                          2 * rows, i == 1 ? 0 : rows, rows);
}

static void
add_int (MusterGraphBuilder *builder, const char *name, gint32 value)
{
  g_autoptr (MusterTensor) tensor = muster_tensor_new_int32 (value);
  muster_graph_builder_constant (builder, name, tensor);
}

static void
add_text (MusterGraphBuilder *builder, const char *name, const char *value)
{
  g_autoptr (MusterTensor) tensor = muster_tensor_new_string (value);
  muster_graph_builder_constant (builder, name, tensor);
}

/* The constants "NAME/tensor_names" and "NAME/shape_and_slices" of n variables. */
static void
add_names (const MusterShardedModel *model, MusterGraphBuilder *builder, const char *name,
           gsize first, gsize n)
{
  g_autofree char *of_names = g_strconcat (name, "/tensor_names", NULL);
  g_autofree char *of_slices = g_strconcat (name, "/shape_and_slices", NULL);
  g_autoptr (GStrvBuilder) slices = g_strv_builder_new ();
  g_autoptr (GStrvBuilder) names = g_strv_builder_new ();

  for (gsize i = first; i < first + n; i++) {
    g_autofree char *slice = slice_of (model, i);
    g_strv_builder_add (names, keys[i]);
    g_strv_builder_add (slices, slice);
  }
  g_auto (GStrv) all_names = g_strv_builder_end (names);
  g_auto (GStrv) all_slices = g_strv_builder_end (slices);
  g_autoptr (MusterTensor) name_tensor = muster_tensor_new_strv ((const char *const *)all_names);
  g_autoptr (MusterTensor) slice_tensor = muster_tensor_new_strv ((const char *const *)all_slices);
  muster_graph_builder_constant (builder, of_names, name_tensor);
  muster_graph_builder_constant (builder, of_slices, slice_tensor);
}

/* Begins a SaveV2 or RestoreV2 of n variables. */
static void
begin_io (const MusterShardedModel *model, MusterGraphBuilder *builder, const char *op,
          const char *name, const char *prefix, gsize first, gsize n)
{
  g_autofree char *of_names = g_strconcat (name, "/tensor_names", NULL);
  g_autofree char *of_slices = g_strconcat (name, "/shape_and_slices", NULL);

  add_names (model, builder, name, first, n);
  muster_graph_builder_node (builder, op, name);
  muster_graph_builder_input (builder, prefix);
  muster_graph_builder_input (builder, of_names);
  muster_graph_builder_input (builder, of_slices);
  muster_graph_builder_attr_types (builder, "dtypes", dtypes + first, n);
}

static void
add_save_v2 (const MusterShardedModel *model, MusterGraphBuilder *builder, const char *name,
             const char *prefix, gsize first, gsize n)
{
  begin_io (model, builder, "SaveV2", name, prefix, first, n);
  for (gsize i = first; i < first + n; i++)
    muster_graph_builder_input (builder, variables[i]);
}

static void
add_shard (const MusterShardedModel *model, MusterGraphBuilder *builder, int shard)
{
  static const char *const numbers[] = {"save/shard_0", "save/shard_1"};
  static const char *const names[] = {"save/ShardedFilename", "save/ShardedFilename_1"};
  static const char *const saves[] = {"save/SaveV2", "save/SaveV2_1"};
  static const char *const after[] = {"save/control_dependency", "save/control_dependency_1"};
  add_int (builder, numbers[shard], shard);
  muster_graph_builder_node (builder, "ShardedFilename", names[shard]);
  muster_graph_builder_input (builder, "save/StringJoin");
  muster_graph_builder_input (builder, numbers[shard]);
  muster_graph_builder_input (builder, "save/num_shards");
  add_save_v2 (model, builder, saves[shard], names[shard], (gsize)shard * PER_SHARD, PER_SHARD);
  muster_saver_graph_add_after (builder, after[shard], names[shard], saves[shard]);
}

static void
add_sharded_save (const MusterShardedModel *model, MusterGraphBuilder *builder)
{
  add_text (builder, "save/StringJoin/inputs_1", "_temp_0123456789abcdef/part");
  muster_graph_builder_node (builder, "StringJoin", "save/StringJoin");
  muster_graph_builder_input (builder, "save/Const");
  muster_graph_builder_input (builder, "save/StringJoin/inputs_1");
  muster_graph_builder_attr_int (builder, "N", 2);
  add_int (builder, "save/num_shards", 2);
  add_shard (model, builder, 0);
  add_shard (model, builder, 1);

  muster_graph_builder_node (builder, "Pack", "save/MergeV2Checkpoints/checkpoint_prefixes");
  muster_graph_builder_input (builder, "save/ShardedFilename");
  muster_graph_builder_input (builder, "save/ShardedFilename_1");
  muster_graph_builder_input (builder, "^save/control_dependency");
  muster_graph_builder_input (builder, "^save/control_dependency_1");
  muster_graph_builder_attr_int (builder, "N", 2);
  muster_graph_builder_attr_type (builder, "T", MUSTER_STRING);
  muster_graph_builder_node (builder, "MergeV2Checkpoints", "save/MergeV2Checkpoints");
  muster_graph_builder_input (builder, "save/MergeV2Checkpoints/checkpoint_prefixes");
  muster_graph_builder_input (builder, "save/Const");
  muster_graph_builder_attr_bool (builder, "delete_old_dirs", TRUE);
  muster_saver_graph_add_after (builder, "save/Identity", "save/Const", "save/MergeV2Checkpoints");
}

static void
add_whole_save (const MusterShardedModel *model, MusterGraphBuilder *builder)
{
  add_save_v2 (model, builder, "save/SaveV2", "save/Const", 0, N_VARIABLES);
  muster_saver_graph_add_after (builder, "save/Identity", "save/Const", "save/SaveV2");
}

/* One RestoreV2, and what it goes to. */
static void
add_restore_v2 (const MusterShardedModel *model, MusterGraphBuilder *builder, const char *name,
                const char *const *assigns, gsize first, gsize n)
{
  begin_io (model, builder, "RestoreV2", name, "save/Const", first, n);
  for (gsize i = 0; i < n; i++)
    muster_saver_graph_add_assign (builder, assigns[first + i], variables[first + i],
                                   dtypes[first + i], name, i);
}

static void
add_restore (const MusterShardedModel *model, MusterGraphBuilder *builder)
{
  static const char *const assigns[] = {"save/Assign", "save/Assign_1", "save/Assign_2",
                                        "save/Assign_3", NULL};
  const gsize n = model->is_whole ? N_VARIABLES : PER_SHARD;
  add_restore_v2 (model, builder, "save/RestoreV2", assigns, 0, n);
  if (!model->is_whole)
    add_restore_v2 (model, builder, "save/RestoreV2_1", assigns, n, n);
  muster_graph_builder_group (builder, "save/restore_all", assigns);
}

/* Without an initial value: it is set or restored. */
static void
add_variable (const MusterShardedModel *model, MusterGraphBuilder *builder, gsize i)
{
  g_autofree char *read = g_strconcat (variables[i], "/read", NULL);
  gint64 dims[2];
  int n_dims = shape_of (model, i, dims);

  muster_graph_builder_node (builder, "VariableV2", variables[i]);
  muster_graph_builder_attr_type (builder, "dtype", dtypes[i]);
  muster_graph_builder_attr_shape (builder, "shape", n_dims, dims);
  muster_graph_builder_attr_string (builder, "container", "");
  muster_graph_builder_attr_string (builder, "shared_name", "");
  muster_graph_builder_node (builder, "Identity", read);
  muster_graph_builder_input (builder, variables[i]);
  muster_graph_builder_attr_type (builder, "T", dtypes[i]);
}

MusterMetaGraph *
muster_sharded_model_new (const MusterShardedModel *model)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  for (gsize i = 0; i < N_VARIABLES; i++)
    add_variable (model, builder, i);
  add_text (builder, "save/Const", "model");
  (model->is_whole ? add_whole_save : add_sharded_save) (model, builder);
  add_restore (model, builder);
  return muster_saver_graph_end (builder, "save/Identity:0", !model->is_whole, model->max_to_keep);
}

/* Through the restore op, what it would read fed. */
gboolean
muster_sharded_model_set (const MusterShardedModel *model, MusterSession *session, guint8 value,
                          GError **error)
{
  static const char *const whole[] = {"save/RestoreV2:0", "save/RestoreV2:1", "save/RestoreV2:2",
                                      "save/RestoreV2:3"};
  static const char *const sharded[] = {"save/RestoreV2:0", "save/RestoreV2:1",
                                        "save/RestoreV2_1:0", "save/RestoreV2_1:1"};
  static const char *const target = "save/restore_all";
  g_autoptr (GPtrArray) tensors =
      g_ptr_array_new_with_free_func ((GDestroyNotify)muster_tensor_unref);
  MusterFeed feeds[N_VARIABLES];
  const MusterStep step = {
      .feeds = feeds, .n_feeds = N_VARIABLES, .targets = &target, .n_targets = 1};

  for (gsize i = 0; i < N_VARIABLES; i++) {
    g_ptr_array_add (tensors, filled (model, i, value));
    feeds[i] = (MusterFeed){(model->is_whole ? whole : sharded)[i], tensors->pdata[i]};
  }
  return muster_session_run (session, &step, NULL, NULL, NULL, error);
}

/* The byte that all of a tensor is made of; -1 where it isn't. */
static int
only_byte (MusterTensor *tensor)
{
  const guint8 *data = muster_tensor_data (tensor);
  gsize size = muster_tensor_n_bytes (tensor);
  return size > 0 && memcmp (data, data + 1, size - 1) == 0 ? data[0] : -1;
}

int
muster_sharded_model_get (MusterSession *session, GError **error)
{
  MusterTensor *values[N_VARIABLES] = {NULL};
  const MusterStep step = {.fetches = reads, .n_fetches = N_VARIABLES};
  int bytes[N_VARIABLES];
  gboolean same = TRUE;
  if (!muster_session_run (session, &step, values, NULL, NULL, error))
    return -1;
  for (gsize i = 0; i < N_VARIABLES; i++) {
    bytes[i] = only_byte (values[i]);
    same = same && bytes[i] >= 0 && bytes[i] == bytes[0];
    muster_tensor_unref (values[i]);
  }
  if (same)
    return bytes[0];
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS,
               "A mixture: v is %d, p is %d and %d, w is %d", bytes[0], bytes[1], bytes[3],
               bytes[2]);
  return -1;
}

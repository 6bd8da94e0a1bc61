// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_nodes.h"
#include "graph/tensor_proto.h"
#include "saver/nearest_private.h"
#include "saver/saver_private.h"

/* What a restore reads is known from the graph: the RestoreV2 nodes behind the restore op, with
 * their names, slices and dtypes, and the variable that each output is assigned to. */

#define LONGEST_PATH     100 /* of Identity nodes between RestoreV2 and an assignment */
#define MOST_NEAREST     50  /* a nearest name is looked for so often */
#define OBJECT_GRAPH     "_CHECKPOINTABLE_OBJECT_GRAPH"
#define REF_DTYPE(dtype) ((dtype) > MUSTER_REF ? (dtype)-MUSTER_REF : (dtype))

/* A tensor that the restore reads. */
typedef struct {
  char *name;  /* (owned) */
  char *slice; /* (owned) "" for the whole */
  MusterDType dtype;
  const Tensorflow__NodeDef *variable; /* (nullable) where it goes */
} Wanted;

typedef struct {
  MusterGraph *graph;
  GPtrArray *restores;     /* (owned) (element-type Tensorflow__NodeDef) */
  GHashTable *destination; /* (owned) "restore node:output" -> variable's node */
  GArray *wanted;          /* (owned) (element-type Wanted) */
  GHashTable *names;       /* (owned) a set: those wanted, which belong to wanted */
} Plan;

static void
wanted_clear (gpointer data)
{
  g_free (((Wanted *)data)->name);
  g_free (((Wanted *)data)->slice);
}

static void
plan_clear (Plan *self)
{
  g_clear_pointer (&self->restores, g_ptr_array_unref);
  g_clear_pointer (&self->destination, g_hash_table_unref);
  g_clear_pointer (&self->names, g_hash_table_unref);
  g_clear_pointer (&self->wanted, g_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Plan, plan_clear)

static const Tensorflow__NodeDef *
input_node (MusterGraph *graph, const Tensorflow__NodeDef *node, gsize input, int *output)
{
  g_autofree char *name = NULL;

  if (input >= node->n_input)
    return NULL;
  *output = muster_graph_split_input (node->input[input], &name);

  return muster_graph_find_node (graph, name);
}

/* Follows an input back through nodes that merely hand a value on. */
static const Tensorflow__NodeDef *
source_of (MusterGraph *graph, const Tensorflow__NodeDef *node, gsize input, int *output)
{
  static const char *const pass[] = {"Identity", "Enter", "Snapshot", NULL};
  const Tensorflow__NodeDef *source = input_node (graph, node, input, output);

  for (int i = 0; source && g_strv_contains (pass, source->op) && i < LONGEST_PATH; i++)
    source = input_node (graph, source, 0, output);

  return source;
}

static void
note_assignment (Plan *self, const Tensorflow__NodeDef *node)
{
  int output = 0;
  int ignored;
  const Tensorflow__NodeDef *source = source_of (self->graph, node, 1, &output);
  const Tensorflow__NodeDef *variable = source_of (self->graph, node, 0, &ignored);

  if (source && variable && strcmp (source->op, "RestoreV2") == 0)
    g_hash_table_insert (self->destination, g_strdup_printf ("%s:%d", source->name, output),
                         (gpointer)variable);
}

static void
note_node (Plan *self, const Tensorflow__NodeDef *node)
{
  if (strcmp (node->op, "RestoreV2") == 0)
    g_ptr_array_add (self->restores, (gpointer)node);
  else if (strcmp (node->op, "Assign") == 0 || strcmp (node->op, "AssignVariableOp") == 0)
    note_assignment (self, node);
}

/* Visits what the restore op depends on. */
static void
walk (Plan *self, const Tensorflow__NodeDef *from)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (g_direct_hash, g_direct_equal);
  g_autoptr (GPtrArray) left = g_ptr_array_new ();

  g_ptr_array_add (left, (gpointer)from);
  g_hash_table_add (seen, (gpointer)from);
  while (left->len > 0) {
    const Tensorflow__NodeDef *node = g_ptr_array_steal_index (left, left->len - 1);
    note_node (self, node);
    for (gsize i = 0; i < node->n_input; i++) {
      int output;
      const Tensorflow__NodeDef *input = input_node (self->graph, node, i, &output);
      if (input && g_hash_table_add (seen, (gpointer)input))
        g_ptr_array_add (left, (gpointer)input);
    }
  }
}

/* The constant behind an input: a vector of strings, or NULL where it isn't one. */
static MusterTensor *
constant_strings (MusterGraph *graph, const Tensorflow__NodeDef *node, gsize input)
{
  int output;
  const Tensorflow__NodeDef *source = source_of (graph, node, input, &output);
  const Tensorflow__AttrValue *value = source ? muster_node_attr (source, "value") : NULL;

  if (!value || strcmp (source->op, "Const") != 0 ||
      value->value_case != TENSORFLOW__ATTR_VALUE__VALUE_TENSOR)
    return NULL;
  g_autoptr (MusterTensor) tensor =
      muster_tensor_proto_read (value->tensor.data, value->tensor.len, NULL, NULL);

  return tensor && muster_tensor_dtype (tensor) == MUSTER_STRING ? g_steal_pointer (&tensor) : NULL;
}

static char *
string_at (const MusterTensor *strings, gint64 i)
{
  if (i >= muster_tensor_n_elements (strings))
    return g_strdup ("");
  MusterString string = muster_tensor_string (strings, i);

  return g_strndup (string.data, string.size);
}

/* What one RestoreV2 reads. One whose names are computed by the graph is left to the master. */
static void
add_wanted (Plan *self, const Tensorflow__NodeDef *node)
{
  g_autoptr (MusterTensor) names = constant_strings (self->graph, node, 1);
  g_autoptr (MusterTensor) slices = constant_strings (self->graph, node, 2);
  const Tensorflow__AttrValue *dtypes = muster_node_attr (node, "dtypes");

  if (!names || !slices || !dtypes || dtypes->value_case != TENSORFLOW__ATTR_VALUE__VALUE_LIST)
    return;
  gint64 n = MIN (muster_tensor_n_elements (names), (gint64)dtypes->list->n_type);
  for (gint64 i = 0; i < n; i++) {
    g_autofree char *key = g_strdup_printf ("%s:%d", node->name, (int)i);
    Wanted wanted = {string_at (names, i), string_at (slices, i),
                     REF_DTYPE ((MusterDType)dtypes->list->type[i]),
                     g_hash_table_lookup (self->destination, key)};
    g_array_append_val (self->wanted, wanted);
    g_hash_table_add (self->names, wanted.name);
  }
}

static gboolean
make_plan (Plan *self, MusterGraph *graph, const char *restore_op, GError **error)
{
  g_autofree char *name = NULL;

  if (!muster_graph_parse (graph, error))
    return FALSE;
  muster_graph_split_input (restore_op, &name);
  const Tensorflow__NodeDef *from = muster_graph_find_node (graph, name);
  if (!from) {
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                 "The graph has no node '%s', which its SaverDef names as the restore op", name);
    return FALSE;
  }

  *self = (Plan){.graph = graph,
                 .restores = g_ptr_array_new (),
                 .destination = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL),
                 .wanted = g_array_new (FALSE, FALSE, sizeof (Wanted)),
                 .names = g_hash_table_new (g_str_hash, g_str_equal)};
  g_array_set_clear_func (self->wanted, wanted_clear);
  walk (self, from);
  for (guint i = 0; i < self->restores->len; i++)
    add_wanted (self, self->restores->pdata[i]);

  return TRUE;
}

/* The shape that the graph has for a tensor: of the slice's whole ("10 4 0,4:-" -> [10,4]), or of
 * the variable. The rank is -1 where it doesn't say. */
static int
shape_in_graph (const Wanted *wanted, gint64 *dims)
{
  if (*wanted->slice) {
    g_auto (GStrv) words = g_strsplit (wanted->slice, " ", MUSTER_MAX_DIMS + 2);
    int n_dims = (int)g_strv_length (words) - 1;
    for (int i = 0; i < n_dims; i++)
      dims[i] = g_ascii_strtoll (words[i], NULL, 10);
    return n_dims > 0 && n_dims <= MUSTER_MAX_DIMS ? n_dims : -1;
  }

  return wanted->variable ? muster_node_shape (wanted->variable, "shape", dims, MUSTER_MAX_DIMS)
                          : -1;
}

static gboolean
shapes_agree (const MusterBundleEntry *entry, int n_dims, const gint64 *dims)
{
  if (n_dims < 0)
    return TRUE;
  if (entry->n_dims != n_dims)
    return FALSE;
  for (int i = 0; i < n_dims; i++)
    if (dims[i] >= 0 && dims[i] != entry->dims[i])
      return FALSE;

  return TRUE;
}

/* A name that the graph restores besides isn't what was meant. */
static void
describe_missing (GString *faults, const Plan *plan, const Wanted *wanted,
                  MusterBundleReader *reader, guint n_described)
{
  const char *nearest =
      n_described < MOST_NEAREST ? muster_nearest_name (reader, plan->names, wanted->name) : NULL;

  g_string_append_printf (faults, "\n  %s  not found in checkpoint", wanted->name);
  if (nearest)
    g_string_append_printf (faults, "; nearest: %s", nearest);
}

/* Adds a line to faults unless the checkpoint has what is wanted. */
static gboolean
check_one (const Plan *plan, const Wanted *wanted, MusterBundleReader *reader, guint n_described,
           GString *faults)
{
  const MusterBundleEntry *entry = muster_bundle_reader_find (reader, wanted->name);
  gint64 dims[MUSTER_MAX_DIMS + 2];

  if (!entry) {
    describe_missing (faults, plan, wanted, reader, n_described);
    return FALSE;
  }
  if (entry->dtype != wanted->dtype) {
    g_string_append_printf (faults, "\n  %s  %s in the checkpoint, %s in the graph", wanted->name,
                            muster_dtype_name (entry->dtype), muster_dtype_name (wanted->dtype));
    return FALSE;
  }
  int n_dims = shape_in_graph (wanted, dims);
  if (shapes_agree (entry, n_dims, dims))
    return TRUE;
  g_autofree char *there = muster_shape_to_string (entry->n_dims, entry->dims);
  g_autofree char *here = muster_shape_to_string (n_dims, dims);
  g_string_append_printf (faults, "\n  %s  shape %s in the checkpoint, %s in the graph",
                          wanted->name, there, here);

  return FALSE;
}

static gboolean
refuse_misfit (MusterBundleReader *reader, guint n_faults, guint n_wanted, const char *faults,
               GError **error)
{
  const char *hint =
      muster_bundle_reader_find (reader, OBJECT_GRAPH)
          ? "\n  it is an object-based checkpoint of TensorFlow 2, whose names differ"
          : "";

  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
               "'%s' does not fit the graph: %u of %u variables%s%s",
               muster_bundle_reader_prefix (reader), n_faults, n_wanted, faults, hint);

  return FALSE;
}

gboolean
muster_saver_check_fit (MusterSaver *self, MusterBundleReader *reader, GError **error)
{
  g_auto (Plan) plan = {0};
  g_autoptr (GString) faults = g_string_new (NULL);
  guint n_faults = 0;

  if (!make_plan (&plan, muster_meta_graph_graph (self->meta_graph), self->info.restore_op, error))
    return FALSE;
  for (guint i = 0; i < plan.wanted->len; i++)
    if (!check_one (&plan, &g_array_index (plan.wanted, Wanted, i), reader, n_faults, faults))
      n_faults++;

  return n_faults == 0 || refuse_misfit (reader, n_faults, plan.wanted->len, faults->str, error);
}

static MusterBundleReader *
open_checkpoint (MusterSaver *self, const char *prefix, GError **error)
{
  g_autoptr (GError) failure = NULL;
  MusterBundleReader *reader = muster_bundle_reader_open (self->storage, prefix, &failure);

  if (reader)
    return reader;
  if (muster_error_to_wire (failure) == MUSTER_ERROR_NOT_FOUND)
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND,
                 "The passed save_path is not a valid checkpoint: %s (%s)", prefix,
                 failure->message);
  else
    g_propagate_error (error, g_steal_pointer (&failure));

  return NULL;
}

gboolean
muster_saver_preflight (MusterSaver *self, const char *prefix, GCancellable *cancellable,
                        GError **error)
{
  g_autoptr (GError) failure = NULL;

  g_return_val_if_fail (MUSTER_IS_SAVER (self) && prefix, FALSE);

  g_autoptr (MusterBundleReader) reader = open_checkpoint (self, prefix, error);
  if (!reader || !muster_saver_check_fit (self, reader, error))
    return FALSE;
  if (muster_bundle_reader_verify (reader, NULL, NULL, cancellable, &failure))
    return TRUE;
  if (muster_error_to_wire (failure) == MUSTER_ERROR_NOT_FOUND)
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS, "'%s' is damaged: %s", prefix,
                 failure->message);
  else
    g_propagate_error (error, g_steal_pointer (&failure));

  return FALSE;
}

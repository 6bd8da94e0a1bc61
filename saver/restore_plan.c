// SPDX-License-Identifier: Apache-2.0
#include "saver/restore_plan_private.h"

#include "base/error.h"
#include "bundle/slice.h"
#include "graph/tensor_proto.h"

#include <string.h>

#define LONGEST_PATH     100 /* of nodes that hand a value on, between RestoreV2 and an assignment */
#define MOST_NODES       1000 /* between RestoreV2 and an op that isn't a mere assignment */
#define REF_DTYPE(dtype) ((dtype) > MUSTER_REF ? (dtype)-MUSTER_REF : (dtype))

/* A plan in the making. */
typedef struct {
  MusterRestorePlan *plan;
  GPtrArray *restores; /* (owned) (element-type Tensorflow__NodeDef) */
  GPtrArray *sinks;    /* (owned) (element-type Tensorflow__NodeDef) what takes values in */
  GHashTable *places;  /* (owned) "restore node:output" -> 1 + index of wanted */
} Maker;

static void
maker_clear (Maker *self)
{
  g_clear_pointer (&self->restores, g_ptr_array_unref);
  g_clear_pointer (&self->sinks, g_ptr_array_unref);
  g_clear_pointer (&self->places, g_hash_table_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Maker, maker_clear)

static void
wanted_clear (gpointer data)
{
  MusterWanted *self = data;

  g_free (self->name);
  g_free (self->slice);
  g_free (self->output);
}

void
muster_restore_plan_clear (MusterRestorePlan *self)
{
  g_clear_pointer (&self->names, g_hash_table_unref);
  g_clear_pointer (&self->wanted, g_array_unref);
  g_clear_pointer (&self->assignments, g_array_unref);
  g_clear_pointer (&self->uses, g_array_unref);
}

static gboolean
is_op (const Tensorflow__NodeDef *node, const char *op)
{
  return strcmp (node->op, op) == 0;
}

static gboolean
is_assign (const Tensorflow__NodeDef *node)
{
  return is_op (node, "Assign") || is_op (node, "AssignVariableOp");
}

/* *output is below 0 for a control input. */
static const Tensorflow__NodeDef *
input_node (MusterGraph *graph, const Tensorflow__NodeDef *node, gsize input, int *output)
{
  g_autofree char *name = NULL;

  if (input >= node->n_input)
    return NULL;
  *output = muster_graph_split_input (node->input[input], &name);

  return muster_graph_find_node (graph, name);
}

/* Follows an input back through nodes that merely hand a value on; *reshaped (nullable) says
 * whether one of them gave it another shape. */
static const Tensorflow__NodeDef *
source_of (MusterGraph *graph, const Tensorflow__NodeDef *node, gsize input, int *output,
           gboolean *reshaped)
{
  static const char *const pass[] = {"Identity", "Enter", "Snapshot", NULL};
  const Tensorflow__NodeDef *source = input_node (graph, node, input, output);

  for (int i = 0; source && i < LONGEST_PATH; i++) {
    if (reshaped && is_op (source, "Reshape"))
      *reshaped = TRUE;
    else if (!g_strv_contains (pass, source->op))
      break;
    source = input_node (graph, source, 0, output);
  }

  return source;
}

/* Visits what the restore op depends on. */
static void
walk (Maker *self, const Tensorflow__NodeDef *from)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (g_direct_hash, g_direct_equal);
  g_autoptr (GPtrArray) left = g_ptr_array_new ();

  g_ptr_array_add (left, (gpointer)from);
  g_hash_table_add (seen, (gpointer)from);
  while (left->len > 0) {
    const Tensorflow__NodeDef *node = g_ptr_array_steal_index (left, left->len - 1);
    if (is_op (node, "RestoreV2"))
      g_ptr_array_add (self->restores, (gpointer)node);
    else if (is_assign (node))
      g_ptr_array_add (self->sinks, (gpointer)node);
    for (gsize i = 0; i < node->n_input; i++) {
      int output;
      const Tensorflow__NodeDef *input = input_node (self->plan->graph, node, i, &output);
      if (input && g_hash_table_add (seen, (gpointer)input))
        g_ptr_array_add (left, (gpointer)input);
    }
  }
}

/* What a restore op groups besides assignments, a table's import say. */
static void
add_other_sinks (Maker *self, const Tensorflow__NodeDef *from)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (g_direct_hash, g_direct_equal);
  g_autoptr (GPtrArray) left = g_ptr_array_new ();

  g_ptr_array_add (left, (gpointer)from);
  while (left->len > 0) {
    const Tensorflow__NodeDef *node = g_ptr_array_steal_index (left, left->len - 1);
    if (!g_hash_table_add (seen, (gpointer)node) || is_assign (node) || is_op (node, "RestoreV2"))
      continue;
    if (!is_op (node, "NoOp")) {
      g_ptr_array_add (self->sinks, (gpointer)node);
      continue;
    }
    for (gsize i = 0; i < node->n_input; i++) {
      int output;
      const Tensorflow__NodeDef *input = input_node (self->plan->graph, node, i, &output);
      if (input)
        g_ptr_array_add (left, (gpointer)input);
    }
  }
}

/* The constant behind an input: a vector of strings, or NULL where it isn't one. */
static MusterTensor *
constant_strings (MusterGraph *graph, const Tensorflow__NodeDef *node, gsize input)
{
  int output;
  const Tensorflow__NodeDef *source = source_of (graph, node, input, &output, NULL);
  const Tensorflow__AttrValue *value = source ? muster_node_attr (source, "value") : NULL;

  if (!value || !is_op (source, "Const") ||
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
add_wanted (Maker *self, const Tensorflow__NodeDef *node)
{
  MusterRestorePlan *plan = self->plan;
  g_autoptr (MusterTensor) names = constant_strings (plan->graph, node, 1);
  g_autoptr (MusterTensor) slices = constant_strings (plan->graph, node, 2);
  const Tensorflow__AttrValue *dtypes = muster_node_attr (node, "dtypes");

  if (!names || !slices || !dtypes || dtypes->value_case != TENSORFLOW__ATTR_VALUE__VALUE_LIST) {
    plan->can_feed = FALSE;
    return;
  }
  gint64 n = MIN (muster_tensor_n_elements (names), (gint64)dtypes->list->n_type);
  for (gint64 i = 0; i < n; i++) {
    MusterWanted wanted = {.name = string_at (names, i),
                           .slice = string_at (slices, i),
                           .output = g_strdup_printf ("%s:%d", node->name, (int)i),
                           .dtype = REF_DTYPE ((MusterDType)dtypes->list->type[i])};
    g_array_append_val (plan->wanted, wanted);
    g_hash_table_add (plan->names, wanted.name);
    g_hash_table_insert (self->places, wanted.output, GUINT_TO_POINTER (plan->wanted->len));
  }
}

/* FALSE where nobody knows what that output reads. */
static gboolean
add_use (Maker *self, const Tensorflow__NodeDef *restore, int output)
{
  g_autofree char *place = g_strdup_printf ("%s:%d", restore->name, output);
  guint index = GPOINTER_TO_UINT (g_hash_table_lookup (self->places, place));

  if (index == 0)
    return FALSE;
  index--;
  g_array_append_val (self->plan->uses, index);

  return TRUE;
}

/* "Assign (variable, value)", the value straight from RestoreV2: FALSE where it isn't that. */
static gboolean
note_assignment (Maker *self, const Tensorflow__NodeDef *node, MusterAssignment *assignment)
{
  MusterRestorePlan *plan = self->plan;
  int output = 0;
  int ignored;
  gboolean reshaped = FALSE;
  const Tensorflow__NodeDef *source = source_of (plan->graph, node, 1, &output, &reshaped);

  assignment->variable = source_of (plan->graph, node, 0, &ignored, NULL);
  if (!source || !assignment->variable || !is_op (source, "RestoreV2") ||
      !add_use (self, source, output))
    return FALSE;
  guint index = g_array_index (plan->uses, guint, plan->uses->len - 1);
  MusterWanted *wanted = &g_array_index (plan->wanted, MusterWanted, index);
  wanted->variable = assignment->variable;
  wanted->is_reshaped = reshaped;

  return TRUE;
}

/* All that an op takes from RestoreV2 nodes, on whatever way. */
static gboolean
note_uses (Maker *self, const Tensorflow__NodeDef *from)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (g_direct_hash, g_direct_equal);
  g_autoptr (GPtrArray) left = g_ptr_array_new ();

  g_ptr_array_add (left, (gpointer)from);
  while (left->len > 0) {
    const Tensorflow__NodeDef *node = g_ptr_array_steal_index (left, left->len - 1);
    if (!g_hash_table_add (seen, (gpointer)node))
      continue;
    if (g_hash_table_size (seen) > MOST_NODES)
      return FALSE;
    for (gsize i = 0; i < node->n_input; i++) {
      int output;
      const Tensorflow__NodeDef *input = input_node (self->plan->graph, node, i, &output);
      if (!input || output < 0)
        continue;
      if (!is_op (input, "RestoreV2"))
        g_ptr_array_add (left, (gpointer)input);
      else if (!add_use (self, input, output))
        return FALSE;
    }
  }

  return TRUE;
}

static void
add_assignment (Maker *self, const Tensorflow__NodeDef *node)
{
  MusterRestorePlan *plan = self->plan;
  MusterAssignment assignment = {.op = node, .first_use = plan->uses->len};

  if ((!is_assign (node) || !note_assignment (self, node, &assignment)) && !note_uses (self, node))
    plan->can_feed = FALSE;
  assignment.n_uses = plan->uses->len - assignment.first_use;
  g_array_append_val (plan->assignments, assignment);
}

static const Tensorflow__NodeDef *
find_restore_op (MusterGraph *graph, const char *restore_op, GError **error)
{
  g_autofree char *name = NULL;

  if (!muster_graph_parse (graph, error))
    return NULL;
  muster_graph_split_input (restore_op, &name);
  const Tensorflow__NodeDef *node = muster_graph_find_node (graph, name);
  if (!node)
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                 "The graph has no node '%s', which its SaverDef names as the restore op", name);

  return node;
}

gboolean
muster_restore_plan_make (MusterRestorePlan *self, MusterGraph *graph, const char *restore_op,
                          GError **error)
{
  const Tensorflow__NodeDef *from = find_restore_op (graph, restore_op, error);

  if (!from)
    return FALSE;
  *self = (MusterRestorePlan){
      .graph = graph,
      .wanted = g_array_new (FALSE, FALSE, sizeof (MusterWanted)),
      .names = g_hash_table_new (g_str_hash, g_str_equal),
      .assignments = g_array_new (FALSE, FALSE, sizeof (MusterAssignment)),
      .uses = g_array_new (FALSE, FALSE, sizeof (guint)),
      .can_feed = TRUE,
  };
  g_array_set_clear_func (self->wanted, wanted_clear);
  g_auto (Maker) maker = {.plan = self,
                          .restores = g_ptr_array_new (),
                          .sinks = g_ptr_array_new (),
                          .places = g_hash_table_new (g_str_hash, g_str_equal)};

  walk (&maker, from);
  add_other_sinks (&maker, from);
  for (guint i = 0; i < maker.restores->len; i++)
    add_wanted (&maker, maker.restores->pdata[i]);
  for (guint i = 0; i < maker.sinks->len; i++)
    add_assignment (&maker, maker.sinks->pdata[i]);
  self->can_feed = self->can_feed && self->assignments->len > 0;

  return TRUE;
}

int
muster_wanted_shape (const MusterWanted *self, gint64 *dims)
{
  MusterSliceSpec spec;

  if (!*self->slice) {
    int n_dims =
        self->variable ? muster_node_shape (self->variable, "shape", dims, MUSTER_MAX_DIMS) : -1;
    return n_dims <= MUSTER_MAX_DIMS ? n_dims : -1;
  }
  if (!muster_slice_spec_parse (&spec, self->slice, NULL) || !spec.has_shape)
    return -1;
  memcpy (dims, spec.dims, (gsize)spec.n_dims * sizeof *dims);

  return spec.n_dims;
}

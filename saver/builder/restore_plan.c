// SPDX-License-Identifier: Apache-2.0
/* Finds out what a graph's restore op reads and assigns. The plan follows the inputs of each
 * assignment back to RestoreV2 nodes. If every name that they read is a constant, the chief can
 * feed the tensors itself (can_feed); otherwise only the restore op works. */
#include "saver/builder/restore_plan_private.h"

#include "base/error.h"
#include "checkpoint/format/slice_private.h"

#include <string.h>

#define LONGEST_PATH     100  /* nodes that pass a value on, between RestoreV2 and an assignment */
#define MOST_NODES       1000 /* between RestoreV2 and an op other than an assignment */
#define TEXT_BLOCK       (64 << 10) /* of the texts' memory */
#define REF_DTYPE(dtype) ((dtype) > MUSTER_REF ? (dtype)-MUSTER_REF : (dtype))

/* The range of a RestoreV2's tensors in wanted. */
typedef struct {
  guint first, n;
} Place;

/* A plan under construction. Nodes are identified by index. */
typedef struct {
  MusterRestorePlan *plan;
  GArray *restores;   /* (owned) (element-type guint32) */
  GArray *sinks;      /* (owned) (element-type guint32) nodes that consume the values */
  GHashTable *places; /* (owned) restore node to its Place */
  /* For one traversal of a node's dependencies: */
  guint32 look;  /* its number */
  guint32 *seen; /* (owned) by node: the last traversal that visited it */
  guint32 n_seen;
  GArray *left; /* (owned) (element-type guint32) seen, not visited yet */
} Maker;

static void
maker_init (Maker *self, MusterRestorePlan *plan)
{
  *self = (Maker){.plan = plan,
                  .restores = g_array_new (FALSE, FALSE, sizeof (guint32)),
                  .sinks = g_array_new (FALSE, FALSE, sizeof (guint32)),
                  .places = g_hash_table_new_full (NULL, NULL, NULL, g_free),
                  .seen = g_new0 (guint32, muster_graph_n_nodes (plan->graph)),
                  .left = g_array_new (FALSE, FALSE, sizeof (guint32))};
}

static void
maker_clear (Maker *self)
{
  g_clear_pointer (&self->restores, g_array_unref);
  g_clear_pointer (&self->sinks, g_array_unref);
  g_clear_pointer (&self->places, g_hash_table_unref);
  g_clear_pointer (&self->seen, g_free);
  g_clear_pointer (&self->left, g_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Maker, maker_clear)

void
muster_restore_plan_free (MusterRestorePlan *self)
{
  if (self == NULL)
    return;
  g_clear_pointer (&self->wanted, g_array_unref);
  g_clear_pointer (&self->by_name, g_array_unref);
  g_clear_pointer (&self->arena, muster_arena_free);
  g_clear_pointer (&self->assignments, g_array_unref);
  g_clear_pointer (&self->uses, g_array_unref);
  g_clear_pointer (&self->restores, g_ptr_array_unref);
  g_clear_pointer (&self->texts, g_string_chunk_free);
  muster_graph_unref (self->graph);
  g_free (self);
}

static const MusterNode *
node_at (const Maker *self, guint32 index)
{
  return muster_graph_node (self->plan->graph, index);
}

static gboolean
is_op (const MusterNode *node, const char *op)
{
  return strcmp (node->kind->op, op) == 0;
}

static gboolean
is_assign (const MusterNode *node)
{
  return is_op (node, "Assign") || is_op (node, "AssignVariableOp");
}

/* Returns FALSE if the node has no such input; *output is below 0 for a control input. */
static gboolean
input_of (const Maker *self, guint32 node, gsize input, guint32 *source, int *output)
{
  const MusterNode *of = node_at (self, node);
  if (input >= of->n_input)
    return FALSE;
  *source = (guint32)muster_node_input (of, input, output);
  return TRUE;
}

/* Follows an input back through nodes that only pass a value on; *reshaped (nullable) is TRUE if
 * one of them reshapes it. */
static gboolean
source_of (const Maker *self, guint32 node, gsize input, guint32 *source, int *output,
           gboolean *reshaped)
{
  static const char *const pass[] = {"Identity", "Enter", "Snapshot", NULL};
  gboolean is_there = input_of (self, node, input, source, output);
  for (int i = 0; is_there && i < LONGEST_PATH; i++) {
    const char *op = node_at (self, *source)->kind->op;
    if (reshaped != NULL && strcmp (op, "Reshape") == 0)
      *reshaped = TRUE;
    else if (!g_strv_contains (pass, op))
      break;
    is_there = input_of (self, *source, 0, source, output);
  }
  return is_there;
}

/* A traversal of a node's dependencies: visit () queues a node, next () returns the next queued
 * one. */
static void
visit (Maker *self, guint32 node)
{
  if (self->seen[node] == self->look)
    return;
  self->seen[node] = self->look;
  self->n_seen++;
  g_array_append_val (self->left, node);
}

static void
begin (Maker *self, guint32 from)
{
  self->look++;
  self->n_seen = 0;
  g_array_set_size (self->left, 0);
  visit (self, from);
}

static gboolean
next (Maker *self, guint32 *node)
{
  if (self->left->len == 0)
    return FALSE;
  *node = g_array_index (self->left, guint32, self->left->len - 1);
  g_array_set_size (self->left, self->left->len - 1);
  return TRUE;
}

static void
visit_inputs (Maker *self, guint32 index)
{
  const MusterNode *node = node_at (self, index);
  for (gsize i = 0; i < node->n_input; i++)
    visit (self, (guint32)muster_node_input (node, i, NULL));
}

/* Visits the restore op's dependencies. */
static void
walk (Maker *self, guint32 from)
{
  begin (self, from);
  for (guint32 index; next (self, &index);) {
    const MusterNode *node = node_at (self, index);
    if (is_op (node, "RestoreV2"))
      g_array_append_val (self->restores, index);
    else if (is_assign (node))
      g_array_append_val (self->sinks, index);
    visit_inputs (self, index);
  }
}

/* Adds other ops of the restore op's group, such as a table's import. */
static void
add_other_sinks (Maker *self, guint32 from)
{
  begin (self, from);
  for (guint32 index; next (self, &index);) {
    const MusterNode *node = node_at (self, index);
    if (is_assign (node) || is_op (node, "RestoreV2"))
      continue;
    if (is_op (node, "NoOp"))
      visit_inputs (self, index);
    else
      g_array_append_val (self->sinks, index);
  }
}

/* Returns the constant behind an input, a vector of strings, or NULL if it isn't one. */
static MusterTensor *
constant_strings (const Maker *self, guint32 node, gsize input)
{
  guint32 index;
  int output;
  if (!source_of (self, node, input, &index, &output, NULL))
    return NULL;
  g_autoptr (MusterTensor) tensor = muster_node_constant (node_at (self, index));
  return tensor != NULL && muster_tensor_dtype (tensor) == MUSTER_STRING ? g_steal_pointer (&tensor)
                                                                         : NULL;
}

static const char *
string_at (MusterRestorePlan *self, const MusterTensor *strings, gint64 i)
{
  if (i >= muster_tensor_n_elements (strings))
    return "";
  MusterString string = muster_tensor_string (strings, i);
  return string.size > 0 ? g_string_chunk_insert_len (self->texts, string.data, (gssize)string.size)
                         : "";
}

/* Adds the tensors that a RestoreV2 reads. If the graph computes their names, the master must
 * read them. */
static void
add_wanted (Maker *self, guint32 index)
{
  MusterRestorePlan *plan = self->plan;
  const MusterNode *node = node_at (self, index);
  g_autoptr (MusterTensor) names = constant_strings (self, index, 1);
  g_autoptr (MusterTensor) slices = constant_strings (self, index, 2);
  const Tensorflow__AttrValue *dtypes = muster_node_attr (node, "dtypes");
  g_autoptr (GString) output = g_string_new (node->name);
  gsize size = output->len;
  if (names == NULL || slices == NULL || dtypes == NULL ||
      dtypes->value_case != TENSORFLOW__ATTR_VALUE__VALUE_LIST) {
    plan->can_feed = FALSE;
    return;
  }
  gint64 n = MIN (muster_tensor_n_elements (names), (gint64)dtypes->list->n_type);
  Place place = {.first = plan->wanted->len, .n = (guint)n};
  for (gint64 i = 0; i < n; i++) {
    g_string_truncate (output, size);
    g_string_append_printf (output, ":%d", (int)i);
    MusterWanted wanted = {
        .name = string_at (plan, names, i),
        .slice = string_at (plan, slices, i),
        .output = g_string_chunk_insert_len (plan->texts, output->str, (gssize)output->len),
        .dtype = REF_DTYPE ((MusterDType)dtypes->list->type[i])};
    g_array_append_val (plan->wanted, wanted);
  }
  g_hash_table_insert (self->places, GUINT_TO_POINTER (index), g_memdup2 (&place, sizeof place));
}

/* Returns FALSE if it is unknown what that output reads. */
static gboolean
add_use (Maker *self, guint32 restore, int output)
{
  const Place *place = g_hash_table_lookup (self->places, GUINT_TO_POINTER (restore));
  if (place == NULL || output < 0 || (guint)output >= place->n)
    return FALSE;
  guint index = place->first + (guint)output;
  g_array_append_val (self->plan->uses, index);
  return TRUE;
}

/* Notes "Assign (variable, value)" with a value directly from RestoreV2; FALSE for anything
 * else. */
static gboolean
note_assignment (Maker *self, guint32 node, MusterAssignment *assignment)
{
  MusterRestorePlan *plan = self->plan;
  guint32 source, variable;
  int output, ignored;
  gboolean reshaped = FALSE;
  if (!source_of (self, node, 0, &variable, &ignored, NULL))
    return FALSE;
  assignment->variable = node_at (self, variable);
  if (!source_of (self, node, 1, &source, &output, &reshaped) ||
      !is_op (node_at (self, source), "RestoreV2") || !add_use (self, source, output))
    return FALSE;
  guint index = g_array_index (plan->uses, guint, plan->uses->len - 1);
  MusterWanted *wanted = &g_array_index (plan->wanted, MusterWanted, index);
  wanted->variable = assignment->variable;
  wanted->is_reshaped = reshaped;
  return TRUE;
}

/* Notes everything that an op uses from RestoreV2 nodes, directly or not. */
static gboolean
note_uses (Maker *self, guint32 from)
{
  begin (self, from);
  for (guint32 index; next (self, &index);) {
    const MusterNode *node = node_at (self, index);
    for (gsize i = 0; i < node->n_input; i++) {
      int output;
      guint32 input = (guint32)muster_node_input (node, i, &output);
      if (output < 0)
        continue;
      if (!is_op (node_at (self, input), "RestoreV2"))
        visit (self, input);
      else if (!add_use (self, input, output))
        return FALSE;
    }
    if (self->n_seen > MOST_NODES)
      return FALSE;
  }
  return TRUE;
}

static void
add_assignment (Maker *self, guint32 index)
{
  MusterRestorePlan *plan = self->plan;
  const MusterNode *node = node_at (self, index);
  MusterAssignment assignment = {.op = node, .first_use = plan->uses->len};
  if ((!is_assign (node) || !note_assignment (self, index, &assignment)) &&
      !note_uses (self, index))
    plan->can_feed = FALSE;
  assignment.n_uses = plan->uses->len - assignment.first_use;
  g_array_append_val (plan->assignments, assignment);
}

static int
shape_of (const MusterWanted *self, gint64 *dims)
{
  MusterSliceSpec spec;
  if (!*self->slice) {
    int n_dims = self->variable != NULL
                     ? muster_node_shape (self->variable, "shape", dims, MUSTER_MAX_DIMS)
                     : -1;
    return n_dims <= MUSTER_MAX_DIMS ? n_dims : -1;
  }
  if (!muster_slice_spec_parse (&spec, self->slice, NULL) || !spec.has_shape)
    return -1;
  memcpy (dims, spec.dims, (gsize)spec.n_dims * sizeof *dims);
  return spec.n_dims;
}

static int
compare_names (gconstpointer a, gconstpointer b, gpointer wanted)
{
  guint left = *(const guint *)a, right = *(const guint *)b;
  return strcmp (g_array_index ((GArray *)wanted, MusterWanted, left).name,
                 g_array_index ((GArray *)wanted, MusterWanted, right).name);
}

/* Computes the parts that every restore needs. */
static void
finish (MusterRestorePlan *self)
{
  static const gint64 none[1];
  gint64 dims[MUSTER_MAX_DIMS];
  for (guint i = 0; i < self->wanted->len; i++) {
    MusterWanted *wanted = &g_array_index (self->wanted, MusterWanted, i);
    wanted->n_dims = shape_of (wanted, dims);
    wanted->dims = none;
    if (wanted->n_dims > 0) {
      gsize size = (gsize)wanted->n_dims * sizeof *dims;
      wanted->dims = memcpy (muster_arena_alloc (self->arena, size), dims, size);
    }
    g_array_append_val (self->by_name, i);
  }
  g_array_sort_with_data (self->by_name, compare_names, self->wanted);
}

static gboolean
find_restore_op (MusterGraph *graph, const char *restore_op, guint32 *index, GError **error)
{
  g_autofree char *name = NULL;

  if (!muster_graph_parse (graph, error))
    return FALSE;
  muster_graph_split_input (restore_op, &name);
  gssize found = muster_graph_find (graph, name, strlen (name));
  *index = (guint32)found;
  if (found >= 0)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "The graph has no node '%s', which its SaverDef names as the restore op",
                      name);
}

MusterRestorePlan *
muster_restore_plan_new (MusterGraph *graph, const char *restore_op, GError **error)
{
  guint32 from;
  if (!find_restore_op (graph, restore_op, &from, error))
    return NULL;
  MusterRestorePlan *self = g_new (MusterRestorePlan, 1);
  *self = (MusterRestorePlan){
      .graph = muster_graph_ref (graph),
      .wanted = g_array_new (FALSE, FALSE, sizeof (MusterWanted)),
      .by_name = g_array_new (FALSE, FALSE, sizeof (guint)),
      .arena = muster_arena_new (),
      .assignments = g_array_new (FALSE, FALSE, sizeof (MusterAssignment)),
      .uses = g_array_new (FALSE, FALSE, sizeof (guint)),
      .restores = g_ptr_array_new (),
      .texts = g_string_chunk_new (TEXT_BLOCK),
      .can_feed = TRUE,
  };
  g_auto (Maker) maker = {0};
  maker_init (&maker, self);

  walk (&maker, from);
  add_other_sinks (&maker, from);
  for (guint i = 0; i < maker.restores->len; i++) {
    guint32 index = g_array_index (maker.restores, guint32, i);
    g_ptr_array_add (self->restores, (gpointer)node_at (&maker, index)->name);
    add_wanted (&maker, index);
  }
  for (guint i = 0; i < maker.sinks->len; i++)
    add_assignment (&maker, g_array_index (maker.sinks, guint32, i));
  self->can_feed = self->can_feed && self->assignments->len > 0;
  finish (self);
  return self;
}

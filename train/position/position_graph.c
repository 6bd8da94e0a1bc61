// SPDX-License-Identifier: Apache-2.0
/* Adds positions to a meta graph. */
#include "base/error.h"
#include "base/require.h"
#include "graph/graph_builder.h"
#include "graph/graph_nodes.h"
#include "graph/meta_graph/meta_graph_edit.h"
#include "saver/builder/saver_builder.h"
#include "train/position/position_private.h"

#include <string.h>

#define INIT_OP    "muster/position_init"
#define BEGUN_STEP "muster/step/begun" /* every write of the train op depends on it */

typedef struct {
  MusterMetaGraph *meta_graph;
  MusterGraph *graph;
  MusterGraphBuilder *builder;
  const char *device;
  const char *train_op;
  gint64 n_tasks;
} Extension;

static gboolean
refuse_graph (const char *why, const char *name, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "Adding positions to the graph: %s: '%s'", why, name);
}

/* --- which nodes write --- */

static gboolean
is_one_of (const char *op, const char *const *names)
{
  for (; *names; names++)
    if (strcmp (op, *names) == 0)
      return TRUE;
  return FALSE;
}

static gboolean
begins_with_one_of (const char *op, const char *const *prefixes)
{
  for (; *prefixes; prefixes++)
    if (g_str_has_prefix (op, *prefixes))
      return TRUE;
  return FALSE;
}

static gboolean
takes_a_variable (MusterGraph *graph, gsize node)
{
  const MusterNode *def = muster_graph_node (graph, node);

  for (gsize i = 0; i < def->n_input; i++) {
    int output;
    const MusterNode *from = muster_graph_node (graph, muster_node_input (def, i, &output));
    if (output >= 0 && strcmp (from->kind->op, "VarHandleOp") == 0)
      return TRUE;
  }
  return FALSE;
}

/* A function call may write any variable that is passed to it. */
static gboolean
writes (MusterGraph *graph, gsize node)
{
  static const char *const writers[] = {"Assign",
                                        "Apply",
                                        "SparseApply",
                                        "ResourceApply",
                                        "Scatter",
                                        "ResourceScatter",
                                        "StridedSliceAssign",
                                        "ResourceStridedSliceAssign",
                                        "ResourceSparseApply",
                                        "CountUpTo",
                                        "ResourceCountUpTo",
                                        NULL};
  static const char *const pure[] = {"ScatterNd", "ScatterNdNonAliasingAdd", NULL};
  static const char *const calls[] = {"StatefulPartitionedCall", "If", "While", "Case", NULL};
  const char *op = muster_graph_node (graph, node)->kind->op;
  return (begins_with_one_of (op, writers) && !is_one_of (op, pure)) ||
         (is_one_of (op, calls) && takes_a_variable (graph, node));
}

/* Marks node and all nodes it depends on. */
static guint8 *
closure_of (MusterGraph *graph, gsize node)
{
  guint8 *marked = g_malloc0 (muster_graph_n_nodes (graph));
  g_autoptr (GArray) stack = g_array_new (FALSE, FALSE, sizeof (gsize));

  marked[node] = TRUE;
  g_array_append_val (stack, node);
  while (stack->len > 0) {
    gsize at = g_array_index (stack, gsize, stack->len - 1);
    g_array_set_size (stack, stack->len - 1);
    const MusterNode *node = muster_graph_node (graph, at);
    for (gsize i = 0; i < node->n_input; i++) {
      gsize from = muster_node_input (node, i, NULL);
      if (marked[from])
        continue;
      marked[from] = TRUE;
      g_array_append_val (stack, from);
    }
  }
  return marked;
}

/* Marks the nodes inside a loop's frame, which outside values can enter only through an Enter. */
static guint8 *
find_loops (MusterGraph *graph)
{
  static const char *const ins[] = {"Enter", "RefEnter", NULL};
  static const char *const outs[] = {"Exit", "RefExit", NULL};
  gsize n = muster_graph_n_nodes (graph);
  guint8 *in_loop = g_malloc0 (n);
  gboolean changed = FALSE;

  for (gsize i = 0; i < n; i++)
    changed |= in_loop[i] = is_one_of (muster_graph_node (graph, i)->kind->op, ins);
  while (changed) {
    changed = FALSE;
    for (gsize node = 0; node < n; node++) {
      const MusterNode *def = muster_graph_node (graph, node);
      for (gsize i = 0; i < def->n_input && !in_loop[node]; i++)
        if (in_loop[muster_node_input (def, i, NULL)] && !is_one_of (def->kind->op, outs))
          changed = in_loop[node] = TRUE;
    }
  }
  return in_loop;
}

/* Marks the nodes with which the train op writes (transfer full); NULL if that isn't possible. */
static guint8 *
find_writers (MusterGraph *graph, gsize train_op, GError **error)
{
  g_autofree guint8 *needed = closure_of (graph, train_op);
  g_autofree guint8 *in_loop = find_loops (graph);
  guint n_writers = 0;

  for (gsize i = 0; i < muster_graph_n_nodes (graph); i++) {
    needed[i] = needed[i] && writes (graph, i);
    n_writers += needed[i];
    if (needed[i] && in_loop[i]) {
      refuse_graph ("its train op writes a variable within a loop, by",
                    muster_graph_node (graph, i)->name, error);
      return NULL;
    }
  }
  if (n_writers == 0) {
    refuse_graph ("its train op writes no variable", muster_graph_node (graph, train_op)->name,
                  error);
    return NULL;
  }
  return g_steal_pointer (&needed);
}

/* --- adding nodes --- */

static void
begin (Extension *self, const char *op, const char *name, const char *const *inputs)
{
  muster_graph_builder_node (self->builder, op, name);
  muster_graph_builder_device (self->builder, self->device);
  for (; inputs != NULL && *inputs != NULL; inputs++)
    muster_graph_builder_input (self->builder, *inputs);
}
#define INPUTS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void
attr_type (Extension *self, const char *name, MusterDType type)
{
  muster_graph_builder_attr_type (self->builder, name, type);
}

/* Takes value. */
static void
constant (Extension *self, const char *name, MusterTensor *value)
{
  muster_graph_builder_constant (self->builder, name, value);
  muster_graph_builder_device (self->builder, self->device);
  muster_tensor_unref (value);
}

static void
placeholder (Extension *self, const char *name)
{
  muster_graph_builder_placeholder (self->builder, name, MUSTER_INT64, 0, NULL);
  muster_graph_builder_device (self->builder, self->device);
}

/* Adds a resource variable with TensorFlow's names. Takes initial. */
static void
variable (Extension *self, const char *name, MusterTensor *initial)
{
  g_autofree char *value = g_strconcat (name, "/initial_value", NULL);
  g_autofree char *assign = g_strconcat (name, "/Assign", NULL);
  g_autofree char *read = g_strconcat (name, "/Read/ReadVariableOp", NULL);

  begin (self, "VarHandleOp", name, NULL);
  attr_type (self, "dtype", MUSTER_INT64);
  muster_graph_builder_attr_shape (self->builder, "shape", muster_tensor_n_dims (initial),
                                   muster_tensor_dims (initial));
  muster_graph_builder_attr_string (self->builder, "container", "");
  muster_graph_builder_attr_string (self->builder, "shared_name", name);
  constant (self, value, initial);
  begin (self, "AssignVariableOp", assign, INPUTS (name, value));
  attr_type (self, "dtype", MUSTER_INT64);
  begin (self, "ReadVariableOp", read, INPUTS (name));
  attr_type (self, "dtype", MUSTER_INT64);
}

static MusterTensor *
zeros (gint64 n)
{
  MusterTensor *tensor = muster_tensor_new (MUSTER_INT64, 1, &n);

  memset (muster_tensor_data_mutable (tensor), 0, muster_tensor_n_bytes (tensor));
  return tensor;
}

/* Adds a scalar variable and an op that sets it to the value fed to NAME/value. */
static void
settable (Extension *self, const char *name, const char *set, gint64 initial)
{
  g_autofree char *value = g_strconcat (name, "/value", NULL);

  variable (self, name, muster_tensor_new_int64 (initial));
  placeholder (self, value);
  begin (self, "AssignVariableOp", set, INPUTS (name, value));
  attr_type (self, "dtype", MUSTER_INT64);
}

static void
add_variables (Extension *self)
{
  variable (self, MUSTER_POSITION_BEGUN, zeros (self->n_tasks));
  variable (self, MUSTER_POSITION_DONE, zeros (self->n_tasks));
  /* No task steps before the chief allows it. */
  settable (self, MUSTER_POSITION_HOLD, MUSTER_POSITION_SET_HOLD, MUSTER_POSITION_WAIT);
  settable (self, MUSTER_POSITION_OVER, MUSTER_POSITION_SET_OVER, 0);
}

static void
gather (Extension *self, const char *name, const char *after)
{
  begin (self, "ResourceGather", name, INPUTS (MUSTER_POSITION_BEGUN, "muster/task"));
  if (after != NULL)
    muster_graph_builder_input (self->builder, after);
  attr_type (self, "dtype", MUSTER_INT64);
  attr_type (self, "Tindices", MUSTER_INT64);
  muster_graph_builder_attr_int (self->builder, "batch_dims", 0);
  muster_graph_builder_attr_bool (self->builder, "validate_indices", TRUE);
}

/* Adds a check that fails unless the two are equal. */
static void
check (Extension *self, const char *name, const char *is, const char *should_be)
{
  static const MusterDType types[] = {MUSTER_STRING, MUSTER_INT64, MUSTER_STRING, MUSTER_INT64,
                                      MUSTER_INT64};
  g_autofree char *equal = g_strconcat (name, "/is_equal", NULL);

  begin (self, "Equal", equal, INPUTS (is, should_be));
  attr_type (self, "T", MUSTER_INT64);
  begin (self, "Assert", name,
         INPUTS (equal, "muster/step/what", "muster/task", "muster/step/why", is, should_be));
  muster_graph_builder_attr_types (self->builder, "T", types, G_N_ELEMENTS (types));
  muster_graph_builder_attr_int (self->builder, "summarize", 3);
}

static void
count (Extension *self, const char *name, const char *what, const char *after,
       const char *and_after)
{
  begin (self, "AssignAddVariableOp", name, INPUTS (what, "muster/step/one_hot", after));
  if (and_after != NULL)
    muster_graph_builder_input (self->builder, and_after);
  attr_type (self, "dtype", MUSTER_INT64);
}

/* Counters are updated as whole variables, since TensorFlow updates single elements without a lock.
 * A task's position is checked before the update, so that a stray process changes nothing, and
 * after it, so that at most one of two concurrent ones writes. */
static void
add_step (Extension *self)
{
  g_autofree char *train = g_strconcat ("^", self->train_op, NULL);

  placeholder (self, "muster/task");
  placeholder (self, MUSTER_POSITION_PLACEHOLDER);
  constant (self, "muster/step/what",
            muster_tensor_new_string ("This step isn't the next of task"));
  constant (self, "muster/step/why",
            muster_tensor_new_string ("whose position is another than the step's (another process "
                                      "runs as the same task, or did just now):"));
  constant (self, "muster/step/one", muster_tensor_new_int64 (1));
  constant (self, "muster/step/zero", muster_tensor_new_int64 (0));
  constant (self, "muster/step/n_tasks", muster_tensor_new_int32 ((gint32)self->n_tasks));
  begin (self, "OneHot", "muster/step/one_hot",
         INPUTS ("muster/task", "muster/step/n_tasks", "muster/step/one", "muster/step/zero"));
  attr_type (self, "T", MUSTER_INT64);
  attr_type (self, "TI", MUSTER_INT64);
  muster_graph_builder_attr_int (self->builder, "axis", -1);
  gather (self, "muster/step/before", NULL);
  check (self, "muster/step/is_next", "muster/step/before", "muster/position");
  count (self, "muster/step/begin", MUSTER_POSITION_BEGUN, "^muster/step/is_next", NULL);
  gather (self, "muster/step/after", "^muster/step/begin");
  begin (self, "AddV2", "muster/step/next", INPUTS ("muster/position", "muster/step/one"));
  attr_type (self, "T", MUSTER_INT64);
  check (self, BEGUN_STEP, "muster/step/after", "muster/step/next");
  count (self, "muster/step/done", MUSTER_POSITION_DONE, "^" BEGUN_STEP, train);
  begin (self, "ReadVariableOp", "muster/step/held",
         INPUTS (MUSTER_POSITION_HOLD, "^muster/step/done"));
  attr_type (self, "dtype", MUSTER_INT64);
}

static void
add_init (Extension *self, const char *init_op)
{
  const char *ops[] = {init_op,
                       MUSTER_POSITION_BEGUN "/Assign",
                       MUSTER_POSITION_DONE "/Assign",
                       MUSTER_POSITION_HOLD "/Assign",
                       MUSTER_POSITION_OVER "/Assign",
                       NULL};

  if (init_op != NULL)
    muster_graph_builder_group (self->builder, INIT_OP, ops);
}

/* --- all --- */

const char *
muster_position_device (MusterMetaGraph *meta_graph)
{
  const char *item = muster_meta_graph_op (meta_graph, "global_step");
  const char *wanted = item != NULL ? item : "global_step";
  gsize length = strcspn (wanted, ":");
  gsize n;
  const MusterVariableInfo *variables = muster_meta_graph_variables (meta_graph, &n);

  for (gsize i = 0; i < n; i++)
    if (strncmp (variables[i].name, wanted, length) == 0 && variables[i].name[length] == '\0')
      return variables[i].device;
  return n > 0 ? variables[0].device : "";
}

static MusterGraph *
extend_graph (Extension *self, gsize train_op, const char *init_op, GError **error)
{
  g_autofree guint8 *writers = find_writers (self->graph, train_op, error);
  if (writers == NULL)
    return NULL;
  gsize n_before = muster_graph_n_nodes (self->graph);

  add_variables (self);
  add_step (self);
  add_init (self, init_op);
  g_autoptr (MusterGraph) extra = muster_graph_builder_end (self->builder, error);
  g_autoptr (MusterGraph) whole = extra != NULL ? muster_graph_extended (self->graph, extra) : NULL;
  if (whole == NULL || !muster_graph_parse (whole, error))
    return NULL;
  gsize n = muster_graph_n_nodes (whole);
  writers = g_realloc (writers, n);
  memset (writers + n_before, 0, n - n_before);
  return muster_graph_with_control_input (whole, writers, BEGUN_STEP);
}

static MusterMetaGraph *
describe (MusterMetaGraph *meta_graph, MusterGraph *graph, const char *init_op, GError **error)
{
  static const MusterVariableInfo variables[] = {
      {.name = MUSTER_POSITION_BEGUN,
       .initializer = MUSTER_POSITION_BEGUN "/Assign",
       .snapshot = MUSTER_POSITION_BEGUN "/Read/ReadVariableOp:0",
       .is_resource = TRUE},
      {.name = MUSTER_POSITION_DONE,
       .initializer = MUSTER_POSITION_DONE "/Assign",
       .snapshot = MUSTER_POSITION_DONE "/Read/ReadVariableOp:0",
       .is_resource = TRUE},
      {.name = MUSTER_POSITION_HOLD,
       .initializer = MUSTER_POSITION_HOLD "/Assign",
       .snapshot = MUSTER_POSITION_HOLD "/Read/ReadVariableOp:0",
       .is_resource = TRUE},
      {.name = MUSTER_POSITION_OVER,
       .initializer = MUSTER_POSITION_OVER "/Assign",
       .snapshot = MUSTER_POSITION_OVER "/Read/ReadVariableOp:0",
       .is_resource = TRUE},
  };
  const MusterCollectedOp ops[] = {{"ready_op", NULL},
                                   {"init_op", init_op != NULL ? INIT_OP : NULL}};
  return muster_meta_graph_with_variables (meta_graph, graph, variables, G_N_ELEMENTS (variables),
                                           ops, G_N_ELEMENTS (ops), error);
}

static MusterMetaGraph *
with_saver (MusterMetaGraph *meta_graph, const MusterSaverInfo *before, GError **error)
{
  MusterSaverBuild how = {.sharded = TRUE, .scope = "muster/save"};

  if (before != NULL) {
    how.sharded = before->sharded;
    how.max_to_keep = before->max_to_keep > 0 ? before->max_to_keep : -1;
    how.keep_every_n_hours = (double)before->keep_every_n_hours;
  }
  return muster_saver_build (meta_graph, &how, error);
}

static gboolean
check_wanted (MusterMetaGraph *meta_graph, guint n_tasks, char **train_op, gssize *at,
              GError **error)
{
  MusterGraph *graph = muster_meta_graph_graph (meta_graph);
  const char *name = muster_meta_graph_op (meta_graph, "train_op");
  guint has = muster_position_n_tasks (meta_graph);

  if (n_tasks < 1 || n_tasks > MUSTER_POSITION_MOST_TASKS || (has > 0 && has != n_tasks)) {
    return muster_fail (
        error, MUSTER_ERROR_INVALID_ARGUMENT,
        has > 0 ? "Adding positions to the graph: it has those of another number of tasks "
                  "(%u) already: export it without"
                : "Adding positions to the graph: a job has 1 to 65536 tasks, not %u",
        has > 0 ? has : n_tasks);
  }
  if (!muster_graph_parse (graph, error))
    return FALSE;
  if (name == NULL || !*name)
    return refuse_graph ("it has no train op", "add it to the collection 'train_op'", error);
  muster_graph_split_input (name, train_op);
  *at = muster_graph_find (graph, *train_op, strlen (*train_op));
  return *at >= 0 || refuse_graph ("it has no node of the name of its train op", *train_op, error);
}

MusterMetaGraph *
muster_position_add (MusterMetaGraph *meta_graph, guint n_tasks, GError **error)
{
  muster_require (error, NULL, meta_graph);

  g_autofree char *train_op = NULL;
  gssize at = -1;

  if (!check_wanted (meta_graph, n_tasks, &train_op, &at, error))
    return NULL;
  if (muster_position_n_tasks (meta_graph) > 0)
    return muster_meta_graph_ref (meta_graph);
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new_extension ();
  const char *init_op = muster_meta_graph_op (meta_graph, "init_op");
  Extension extension = {.meta_graph = meta_graph,
                         .graph = muster_meta_graph_graph (meta_graph),
                         .builder = builder,
                         .device = muster_position_device (meta_graph),
                         .train_op = train_op,
                         .n_tasks = n_tasks};
  if (init_op != NULL && !*init_op)
    init_op = NULL;
  g_autoptr (MusterGraph) graph = extend_graph (&extension, (gsize)at, init_op, error);
  g_autoptr (MusterMetaGraph) described =
      graph != NULL ? describe (meta_graph, graph, init_op, error) : NULL;
  return described != NULL ? with_saver (described, muster_meta_graph_saver (meta_graph), error)
                           : NULL;
}

guint
muster_position_n_tasks (MusterMetaGraph *meta_graph)
{
  g_return_val_if_fail (meta_graph != NULL, 0);

  MusterGraph *graph = muster_meta_graph_graph (meta_graph);
  const MusterNode *begun = muster_graph_find_node (graph, MUSTER_POSITION_BEGUN);
  gint64 n;

  if (begun == NULL || strcmp (begun->kind->op, "VarHandleOp") != 0 ||
      !muster_graph_has_node (graph, "muster/step/held") ||
      muster_node_shape (begun, "shape", &n, 1) != 1 || n < 1 || n > MUSTER_POSITION_MOST_TASKS)
    return 0;
  return (guint)n;
}

// SPDX-License-Identifier: Apache-2.0
/* Adds positions to a meta graph. */
#include "base/error.h"
#include "base/require_private.h"
#include "graph/device_name_private.h"
#include "graph/graph_nodes_private.h"
#include "graph/graph_walk_private.h"
#include "graph/meta_graph/meta_graph_edit.h"
#include "saver/builder/saver_builder.h"
#include "saver/builder/saver_complete_private.h"
#include "train/position/position_private.h"
#include "train/position/position_step_private.h"

#include <string.h>

static gboolean
refuse_graph (const char *why, const char *name, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "Adding positions to the graph: %s: '%s'", why, name);
}

/* --- which nodes write --- */

/* Marks the nodes with which the train op writes (transfer full); NULL if that isn't possible. */
static guint8 *
find_writers (MusterGraph *graph, gsize train_op, GError **error)
{
  g_autofree guint8 *needed = g_malloc0 (muster_graph_n_nodes (graph));
  g_autofree guint8 *in_loop = muster_graph_mark_loops (graph);
  guint n_writers = 0;

  muster_graph_mark_needed (graph, train_op, needed);
  for (gsize i = 0; i < muster_graph_n_nodes (graph); i++) {
    needed[i] = needed[i] && muster_graph_writes (graph, i);
    n_writers += needed[i];
    if (needed[i] && in_loop[i]) {
      refuse_graph ("its train op writes a variable within a loop, which only a training without "
                    "positions (--no-positions) can run, by",
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

/* A model that is extended. */
typedef struct {
  MusterMetaGraph *meta_graph;
  gsize train_op;
  const char *init_op; /* (nullable) */
  MusterPositionNodes nodes;
} Extension;

static MusterGraph *
extend_graph (Extension *self, GError **error)
{
  MusterGraph *before = muster_meta_graph_graph (self->meta_graph);
  g_autofree guint8 *writers = find_writers (before, self->train_op, error);
  if (writers == NULL)
    return NULL;
  gsize n_before = muster_graph_n_nodes (before);

  muster_position_add_nodes (&self->nodes, self->init_op);
  g_autoptr (MusterGraph) extra = muster_graph_builder_end (self->nodes.builder, error);
  g_autoptr (MusterGraph) whole = extra != NULL ? muster_graph_extended (before, extra) : NULL;
  if (whole == NULL || !muster_graph_parse (whole, error))
    return NULL;
  gsize n = muster_graph_n_nodes (whole);
  writers = g_realloc (writers, n);
  memset (writers + n_before, 0, n - n_before);
  return muster_graph_with_control_input (whole, writers, MUSTER_POSITION_BEGUN_STEP);
}

static MusterMetaGraph *
describe (const Extension *self, MusterGraph *graph, GError **error)
{
  const MusterCollectedOp ops[] = {
      {"ready_op", NULL}, {"init_op", self->init_op != NULL ? MUSTER_POSITION_INIT_OP : NULL}};
  g_autoptr (GPtrArray) texts = g_ptr_array_new_with_free_func (g_free);
  gsize n;
  const char *const *names = muster_position_variables (self->nodes.is_dealt, &n);
  g_autofree MusterVariableInfo *variables = g_new0 (MusterVariableInfo, n);

  for (gsize i = 0; i < n; i++) {
    char *initializer = g_strconcat (names[i], "/Assign", NULL);
    char *snapshot = g_strconcat (names[i], "/Read/ReadVariableOp:0", NULL);
    variables[i].name = names[i];
    variables[i].initializer = initializer;
    variables[i].snapshot = snapshot;
    variables[i].is_resource = TRUE;
    g_ptr_array_add (texts, initializer);
    g_ptr_array_add (texts, snapshot);
  }
  return muster_meta_graph_with_variables (self->meta_graph, graph, variables, n, ops,
                                           G_N_ELEMENTS (ops), error);
}

/* With the names of the model's saver, unless that can't be found in the graph. */
static MusterMetaGraph *
with_saver (MusterMetaGraph *meta_graph, const MusterSaverInfo *before, GError **error)
{
  g_autofree char *why = NULL;
  MusterMetaGraph *with = before != NULL ? muster_saver_complete (meta_graph, &why, error) : NULL;
  if (before != NULL && (with == NULL || with != meta_graph))
    return with;
  g_clear_pointer (&with, muster_meta_graph_unref);
  MusterSaverBuild how = {.sharded = TRUE, .scope = "muster/save"};

  if (before != NULL) {
    how.sharded = before->sharded;
    how.max_to_keep = before->max_to_keep > 0 ? before->max_to_keep : -1;
    how.keep_every_n_hours = (double)before->keep_every_n_hours;
  }
  return muster_saver_build (meta_graph, &how, error);
}

/* A meta graph that has positions must have those that are wanted. */
static gboolean
check_wanted (MusterMetaGraph *meta_graph, guint n_tasks, gboolean is_dealt, GError **error)
{
  const guint has = muster_position_n_tasks (meta_graph);
  if (n_tasks < 1 || n_tasks > MUSTER_POSITION_MOST_TASKS)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "Adding positions to the graph: a job has 1 to 65536 tasks, not %u",
                        n_tasks);
  if (has == 0 || (has == n_tasks && muster_position_is_dealt (meta_graph) == is_dealt))
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      has == n_tasks
                          ? "Adding positions to the graph: it has those of %u tasks in the other "
                            "form (fixed or dealt) already: export it without"
                          : "Adding positions to the graph: it has those of another number of "
                            "tasks (%u) already: export it without",
                      has);
}

static gboolean
find_train_op (MusterMetaGraph *meta_graph, char **train_op, gsize *at, GError **error)
{
  MusterGraph *graph = muster_meta_graph_graph (meta_graph);
  const char *name = muster_meta_graph_op (meta_graph, "train_op");
  if (!muster_graph_parse (graph, error))
    return FALSE;
  if (name == NULL || !*name)
    return refuse_graph ("it has no train op", "add it to the collection 'train_op'", error);
  muster_graph_split_input (name, train_op);
  const gssize found = muster_graph_find (graph, *train_op, strlen (*train_op));
  *at = (gsize)MAX (found, 0);
  return found >= 0 ||
         refuse_graph ("it has no node of the name of its train op", *train_op, error);
}

/* Only what is on a task of a cluster is seen by masters of their own. */
static gboolean
is_shared (const char *device)
{
  g_autofree char *task = muster_device_task (device);
  return task != NULL;
}

static MusterMetaGraph *
add (MusterMetaGraph *meta_graph, guint n_tasks, gboolean is_dealt, GError **error)
{
  g_autofree char *train_op = NULL;
  gsize at = 0;

  if (!check_wanted (meta_graph, n_tasks, is_dealt, error) ||
      !find_train_op (meta_graph, &train_op, &at, error))
    return NULL;
  if (muster_position_n_tasks (meta_graph) > 0)
    return muster_meta_graph_ref (meta_graph);
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new_extension ();
  const char *init_op = muster_meta_graph_op (meta_graph, "init_op");
  const char *device = muster_position_device (meta_graph);
  Extension extension = {.meta_graph = meta_graph,
                         .train_op = at,
                         .init_op = init_op != NULL && *init_op ? init_op : NULL,
                         .nodes = {.builder = builder,
                                   .device = device,
                                   .train_op = train_op,
                                   .n_tasks = n_tasks,
                                   .is_dealt = is_dealt,
                                   .has_fence = !is_dealt && is_shared (device)}};
  g_autoptr (MusterGraph) graph = extend_graph (&extension, error);
  g_autoptr (MusterMetaGraph) described =
      graph != NULL ? describe (&extension, graph, error) : NULL;
  return described != NULL ? with_saver (described, muster_meta_graph_saver (meta_graph), error)
                           : NULL;
}

MusterMetaGraph *
muster_position_add (MusterMetaGraph *meta_graph, guint n_tasks, GError **error)
{
  muster_require (error, NULL, meta_graph);

  return add (meta_graph, n_tasks, FALSE, error);
}

MusterMetaGraph *
muster_position_add_dealt (MusterMetaGraph *meta_graph, guint n_slots, GError **error)
{
  muster_require (error, NULL, meta_graph);

  return add (meta_graph, n_slots, TRUE, error);
}

static guint
n_counts (MusterGraph *graph, const char *name)
{
  const MusterNode *counts = muster_graph_find_node (graph, name);
  gint64 n;
  if (counts == NULL || strcmp (counts->kind->op, "VarHandleOp") != 0 ||
      !muster_graph_has_node (graph, "muster/step/held") ||
      muster_node_shape (counts, "shape", &n, 1) != 1 || n < 1 || n > MUSTER_POSITION_MOST_TASKS)
    return 0;
  return (guint)n;
}

guint
muster_position_n_tasks (MusterMetaGraph *meta_graph)
{
  g_return_val_if_fail (meta_graph != NULL, 0);

  MusterGraph *graph = muster_meta_graph_graph (meta_graph);
  const guint n_slots = n_counts (graph, MUSTER_POSITION_SLOT_BEGUN);
  return n_slots > 0 ? n_slots : n_counts (graph, MUSTER_POSITION_BEGUN);
}

gboolean
muster_position_is_dealt (MusterMetaGraph *meta_graph)
{
  g_return_val_if_fail (meta_graph != NULL, FALSE);

  return n_counts (muster_meta_graph_graph (meta_graph), MUSTER_POSITION_SLOT_BEGUN) > 0;
}

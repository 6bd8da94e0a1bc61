// SPDX-License-Identifier: Apache-2.0
/* Completes a meta graph for a training: a global step, the train op and its increment, local
 * init, a saver. Each addition is noted in a line. */
#include "train/completion/completion.h"

#include "base/error.h"
#include "base/require_private.h"
#include "graph/graph_builder.h"
#include "graph/graph_nodes_private.h"
#include "graph/graph_walk_private.h"
#include "graph/meta_graph/meta_graph_edit.h"
#include "saver/builder/saver_complete_private.h"
#include "train/completion/global_step_private.h"
#include "train/completion/local_init_private.h"
#include "train/completion/sync_replicas_private.h"
#include "train/completion/train_ops_private.h"

#include <string.h>

#define ADVANCE MUSTER_TRAIN "/advance"
#define ONE     MUSTER_TRAIN "/one"
#define INIT_OP                                                                                    \
  MUSTER_TRAIN "/init" /* and, of variables that are collected, INIT_OP "_collected" */
#define STEP     "global_step"
#define OWN_STEP "muster/global_step"

/* A meta graph that is completed. */
typedef struct {
  MusterMetaGraph *meta_graph; /* (owned) */
  GPtrArray *ops;              /* (owned) (element-type utf8) the train ops */
  gboolean is_asked;           /* for those; else they are the graph's own */
  GPtrArray *notes;            /* (owned) (element-type utf8) */
} Completion;

static void
completion_clear (Completion *self)
{
  g_clear_pointer (&self->meta_graph, muster_meta_graph_unref);
  g_clear_pointer (&self->ops, g_ptr_array_unref);
  g_clear_pointer (&self->notes, g_ptr_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Completion, completion_clear)

/* Takes meta_graph; FALSE for NULL. */
static gboolean
take (Completion *self, MusterMetaGraph *meta_graph)
{
  if (meta_graph == NULL)
    return FALSE;
  muster_meta_graph_unref (self->meta_graph);
  self->meta_graph = meta_graph;
  return TRUE;
}

static void G_GNUC_PRINTF (2, 3) note (Completion *self, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_ptr_array_add (self->notes, g_strdup_vprintf (format, args));
  va_end (args);
}

/* "'a', 'b'" */
static char *
quoted (const GPtrArray *names)
{
  g_autoptr (GString) text = g_string_new (NULL);
  for (guint i = 0; i < names->len; i++)
    g_string_append_printf (text, "%s'%s'", i > 0 ? ", " : "", (const char *)names->pdata[i]);
  return g_strdup (text->str);
}

/* --- the global step --- */

/* The nodes of a resource variable of that name, an int64 of 0. */
static void
add_variable (MusterGraphBuilder *builder, const char *name, const char *device)
{
  g_autofree char *zero = g_strconcat (name, "/zero", NULL);
  g_autofree char *assign = g_strconcat (name, "/Assign", NULL);
  g_autofree char *read = g_strconcat (name, "/Read/ReadVariableOp", NULL);
  g_autoptr (MusterTensor) value = muster_tensor_new_int64 (0);

  muster_graph_builder_constant (builder, zero, value);
  muster_graph_builder_node (builder, "VarHandleOp", name);
  muster_graph_builder_attr_type (builder, "dtype", MUSTER_INT64);
  muster_graph_builder_attr_shape (builder, "shape", 0, NULL);
  muster_graph_builder_attr_string (builder, "shared_name", name);
  muster_graph_builder_attr_string (builder, "container", "");
  muster_graph_builder_device (builder, device);
  muster_graph_builder_node (builder, "AssignVariableOp", assign);
  muster_graph_builder_input (builder, name);
  muster_graph_builder_input (builder, zero);
  muster_graph_builder_attr_type (builder, "dtype", MUSTER_INT64);
  muster_graph_builder_device (builder, device);
  muster_graph_builder_node (builder, "ReadVariableOp", read);
  muster_graph_builder_input (builder, name);
  muster_graph_builder_attr_type (builder, "dtype", MUSTER_INT64);
  muster_graph_builder_device (builder, device);
}

/* Its init op runs what a collection's did, and the initialisers. */
static const char *
add_init (MusterMetaGraph *meta_graph, MusterGraphBuilder *builder, const GArray *variables,
          const char *name)
{
  const char *const *ops = muster_meta_graph_collection (meta_graph, "init_op");
  g_autoptr (GPtrArray) all = g_ptr_array_new ();
  g_autofree char *first = NULL;

  if (ops == NULL || ops[0] == NULL || !*ops[0] || ops[1] != NULL)
    return NULL;
  muster_graph_split_input (ops[0], &first);
  g_ptr_array_add (all, first);
  for (guint i = 0; i < variables->len; i++)
    g_ptr_array_add (all, (gpointer)g_array_index (variables, MusterVariableInfo, i).initializer);
  g_ptr_array_add (all, NULL);
  muster_graph_builder_group (builder, name, (const char *const *)all->pdata);
  return name;
}

static gboolean
has_any_of (MusterGraph *graph, const char *name)
{
  const gsize size = strlen (name);
  for (gsize i = 0; i < muster_graph_n_nodes (graph); i++) {
    const char *other = muster_graph_node (graph, i)->name;
    if (g_ascii_strncasecmp (other, name, size) == 0 && (other[size] == '\0' || other[size] == '/'))
      return TRUE;
  }
  return FALSE;
}

/* Early programs count in a float, the default of get_variable (). */
static gboolean
is_integer (const MusterVariableInfo *step)
{
  return step->dtype == MUSTER_INT64 || step->dtype == MUSTER_INT32;
}

/* Sets the variables and the graph with what makes them; the ready op is built anew. */
static gboolean
take_variables (Completion *self, MusterGraphBuilder *builder, const GArray *variables,
                const char *step, GError **error)
{
  const char *init_op = add_init (self->meta_graph, builder, variables,
                                  step != NULL ? INIT_OP : INIT_OP "_collected");
  g_autoptr (MusterGraph) extra = muster_graph_builder_end (builder, error);
  MusterCollectedOp ops[3] = {{"ready_op", NULL}};
  gsize n = 1;
  if (extra == NULL)
    return FALSE;
  if (init_op != NULL)
    ops[n++] = (MusterCollectedOp){"init_op", init_op};
  if (step != NULL)
    ops[n++] = (MusterCollectedOp){"global_step", step};
  g_autoptr (MusterGraph) whole =
      muster_graph_extended (muster_meta_graph_graph (self->meta_graph), extra);
  return take (self, muster_meta_graph_with_variables (
                         self->meta_graph, whole, &g_array_index (variables, MusterVariableInfo, 0),
                         variables->len, ops, n, error));
}

/* Marks the variables that the train ops write and no collection has: no saver and no init op knows
 * them. NULL: none. (transfer full) */
static guint8 *
mark_uncollected (const Completion *self, const guint8 *needed)
{
  MusterGraph *graph = muster_meta_graph_graph (self->meta_graph);
  const gsize n_nodes = muster_graph_n_nodes (graph);
  g_autoptr (GArray) written = g_array_new (FALSE, FALSE, sizeof (gsize));
  g_autofree guint8 *marked = g_malloc0 (n_nodes + 1);
  gsize n;
  const MusterVariableInfo *variables = muster_meta_graph_variables (self->meta_graph, &n);

  for (gsize i = 0; i < n_nodes; i++)
    if (needed[i])
      muster_graph_written (graph, i, written);
  for (guint i = 0; i < written->len; i++)
    marked[g_array_index (written, gsize, i)] = TRUE;
  for (gsize i = 0; i < n; i++) {
    const gssize at = muster_graph_find_named (graph, variables[i].name);
    if (at >= 0)
      marked[at] = FALSE;
  }
  return memchr (marked, TRUE, n_nodes) != NULL ? g_steal_pointer (&marked) : NULL;
}

static gboolean
collect_variables (Completion *self, GError **error)
{
  MusterGraph *graph = muster_meta_graph_graph (self->meta_graph);
  g_autofree guint8 *needed = muster_train_ops_needed (graph, self->ops);
  g_autofree guint8 *marked = mark_uncollected (self, needed);
  g_autoptr (GArray) found = g_array_new (FALSE, FALSE, sizeof (MusterVariableInfo));
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  gsize n;

  if (marked == NULL)
    return TRUE;
  /* Without collections each variable counts. */
  g_autoptr (MusterMetaGraph) all = muster_meta_graph_new_for_graph (graph);
  const MusterVariableInfo *variables = muster_meta_graph_variables (all, &n);
  for (gsize i = 0; i < n; i++) {
    if (variables[i].initializer == NULL ||
        !marked[muster_graph_find_named (graph, variables[i].name)])
      continue;
    g_autoptr (GArray) writers = muster_train_ops_writers (all, &variables[i], needed);
    if (writers->len > 0)
      g_array_append_val (found, variables[i]);
  }
  if (found->len == 0)
    return TRUE;
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new_extension ();
  for (guint i = 0; i < found->len; i++)
    g_ptr_array_add (names, (gpointer)g_array_index (found, MusterVariableInfo, i).name);
  g_autofree char *text = quoted (names);
  note (self, "%s: trained, but in no collection of variables; initialised and saved with them",
        text);
  return take_variables (self, builder, found, NULL, error);
}

/* The collections keep the global step and the init op. */
static gboolean
add_step (Completion *self, GError **error)
{
  MusterGraph *graph = muster_meta_graph_graph (self->meta_graph);
  const char *name = has_any_of (graph, STEP) ? OWN_STEP : STEP;
  gsize n;
  const MusterVariableInfo *variables = muster_meta_graph_variables (self->meta_graph, &n);
  const MusterVariableInfo *before = muster_global_step_of (self->meta_graph);
  if (self->ops->len == 0 ||
      (before != NULL && (is_integer (before) || before->dtype == MUSTER_INVALID)))
    return TRUE;
  g_autofree char *why =
      before != NULL ? g_strdup_printf ("the graph's own, '%s', isn't an integer", before->name)
                     : g_strdup ("the graph has none");
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new_extension ();
  g_autofree char *assign = g_strconcat (name, "/Assign", NULL);
  g_autofree char *read = g_strconcat (name, "/Read/ReadVariableOp:0", NULL);
  add_variable (builder, name, n > 0 ? variables[0].device : "");
  const MusterVariableInfo variable = {
      .name = name, .initializer = assign, .snapshot = read, .is_resource = TRUE};
  g_autoptr (GArray) added = g_array_new (FALSE, FALSE, sizeof variable);
  g_array_append_val (added, variable);
  if (!take_variables (self, builder, added, name, error))
    return FALSE;
  note (self, "added the global step '%s': %s", name, why);
  return TRUE;
}

/* --- the train op --- */

static void
add_advance (MusterGraphBuilder *builder, const MusterVariableInfo *step, const GPtrArray *ops)
{
  g_autoptr (MusterTensor) one =
      step->dtype == MUSTER_INT32 ? muster_tensor_new_int32 (1) : muster_tensor_new_int64 (1);

  muster_graph_builder_constant (builder, ONE, one);
  muster_graph_builder_node (builder, step->is_resource ? "AssignAddVariableOp" : "AssignAdd",
                             ADVANCE);
  muster_graph_builder_input (builder, step->name);
  muster_graph_builder_input (builder, ONE);
  for (guint i = 0; i < ops->len; i++) {
    g_autofree char *after = g_strconcat ("^", ops->pdata[i], NULL);
    muster_graph_builder_input (builder, after);
  }
  muster_graph_builder_attr_type (builder, step->is_resource ? "dtype" : "T", step->dtype);
  muster_graph_builder_device (builder, step->device);
}

/* Whether a step of muster/train is to advance the global step: nobody else does. */
static gboolean
needs_advance (MusterMetaGraph *meta_graph, const MusterVariableInfo *step)
{
  if (step == NULL || step->n_dims != 0 || !is_integer (step))
    return FALSE;
  g_autoptr (GArray) writers = muster_train_ops_writers (meta_graph, step, NULL);
  return writers->len == 0;
}

/* The graph with a node that runs all train ops, and after them advances a step (nullable).
 * (transfer full) */
static MusterGraph *
with_train_op (const Completion *self, const MusterVariableInfo *advanced, GError **error)
{
  static const char *const last[] = {ADVANCE, NULL};
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new_extension ();
  g_autofree const char **ops = g_new0 (const char *, self->ops->len + 1);

  memcpy (ops, self->ops->pdata, self->ops->len * sizeof *ops);
  if (advanced != NULL)
    add_advance (builder, advanced, self->ops);
  muster_graph_builder_group (builder, MUSTER_TRAIN, advanced != NULL ? last : ops);
  g_autoptr (MusterGraph) extra = muster_graph_builder_end (builder, error);
  return extra != NULL ? muster_graph_extended (muster_meta_graph_graph (self->meta_graph), extra)
                       : NULL;
}

static void
note_train_op (Completion *self, const MusterVariableInfo *advanced)
{
  g_autofree char *names = quoted (self->ops);

  if (self->ops->len > 1)
    note (self, "a step runs %u train ops: %s%s", self->ops->len, names,
          self->is_asked ? "" : "; choose others with --train-op=NAME");
  if (advanced != NULL)
    note (self, "a step advances the global step '%s': no other op does", advanced->name);
}

/* One op in the collection: the only train op, or one that runs all, and counts the step. */
static gboolean
add_train_op (Completion *self, GError **error)
{
  MusterGraph *graph = muster_meta_graph_graph (self->meta_graph);
  const char *const *before = muster_meta_graph_collection (self->meta_graph, "train_op");
  const MusterVariableInfo *step = muster_global_step_of (self->meta_graph);
  const MusterVariableInfo *advanced = needs_advance (self->meta_graph, step) ? step : NULL;
  const gboolean is_one = self->ops->len == 1 && advanced == NULL;
  if (self->ops->len == 0 || muster_graph_has_node (graph, MUSTER_TRAIN))
    return TRUE;
  if (is_one && before != NULL && before[0] != NULL && before[1] == NULL) {
    g_autofree char *own = NULL;
    muster_graph_split_input (before[0], &own);
    if (strcmp (own, self->ops->pdata[0]) == 0)
      return TRUE;
  }
  const MusterCollectedOp collected = {"train_op", is_one ? self->ops->pdata[0] : MUSTER_TRAIN};
  g_autoptr (MusterGraph) whole =
      is_one ? muster_graph_ref (graph) : with_train_op (self, advanced, error);
  if (whole == NULL)
    return FALSE;
  note_train_op (self, advanced);
  return take (self, muster_meta_graph_with_variables (self->meta_graph, whole, NULL, 0, &collected,
                                                       1, error));
}

static gboolean
add_local_init (Completion *self, GError **error)
{
  g_autoptr (GPtrArray) missing = muster_local_init_missing (self->meta_graph, self->ops);
  if (missing->len == 0)
    return TRUE;
  if (!take (self, muster_local_init_add (self->meta_graph, missing, error)))
    return FALSE;
  g_autofree char *names = quoted (missing);
  note (self, "%s %s after a restore as well: no checkpoint holds what is initialised there", names,
        missing->len == 1 ? "runs" : "run");
  return TRUE;
}

static gboolean
add_sync (Completion *self, GError **error)
{
  g_auto (MusterSyncReplicas) sync = {0};
  if (!muster_sync_replicas_find (self->meta_graph, &sync) ||
      muster_graph_has_node (muster_meta_graph_graph (self->meta_graph), MUSTER_SYNC_TOKENS))
    return TRUE;
  if (!take (self, muster_sync_replicas_add (&sync, self->meta_graph, error)))
    return FALSE;
  note (self,
        "replicas are synchronised: the chief updates the variables by '%s', of %" G_GINT64_FORMAT
        " gradient%s each time",
        sync.update, sync.n_tokens, sync.n_tokens == 1 ? "" : "s");
  return TRUE;
}

/* --- all --- */

static gboolean
add_saver (Completion *self, GError **error)
{
  g_autofree char *why = NULL;

  if (!take (self, muster_saver_complete (self->meta_graph, &why, error)))
    return FALSE;
  if (why != NULL)
    note (self, "added a saver of all variables: %s", why);
  return TRUE;
}

static void
note_branches (Completion *self, const char *const *train_ops)
{
  MusterGraph *graph = muster_meta_graph_graph (self->meta_graph);
  const char *const *items =
      self->is_asked ? train_ops : muster_meta_graph_collection (self->meta_graph, "train_op");
  for (; items != NULL && *items != NULL; items++) {
    const gssize at = muster_graph_find_named (graph, *items);
    const gsize whole = at >= 0 ? muster_graph_whole_of_branch (graph, (gsize)at) : 0;
    if (at >= 0 && whole != (gsize)at)
      note (self,
            "a step runs '%s' instead of '%s', which is in a branch of it that isn't always taken",
            muster_graph_node (graph, whole)->name, *items);
  }
}

/* FALSE without an error: the train ops stay as they are. */
static gboolean
choose_train_ops (Completion *self, const char *const *train_ops, GError **error)
{
  g_autoptr (GError) conflict = NULL;
  note_branches (self, train_ops);
  self->ops = muster_train_ops_find (self->meta_graph, train_ops, error);
  if (self->ops == NULL || muster_train_ops_check (self->meta_graph, self->ops, &conflict))
    return self->ops != NULL;
  if (self->is_asked)
    g_propagate_error (error, g_steal_pointer (&conflict));
  else
    note (self, "%s", conflict->message);
  return FALSE;
}

MusterMetaGraph *
muster_meta_graph_complete (MusterMetaGraph *self, const char *const *train_ops, char ***notes,
                            GError **error)
{
  muster_require (error, NULL, self);

  g_auto (Completion) all = {.meta_graph = muster_meta_graph_ref (self),
                             .notes = g_ptr_array_new_with_free_func (g_free),
                             .is_asked = train_ops != NULL && *train_ops != NULL};
  GError *failure = NULL;
  if (!muster_graph_parse (muster_meta_graph_graph (self), error))
    return NULL;
  const gboolean is_chosen = choose_train_ops (&all, train_ops, &failure);
  if (failure != NULL) {
    g_propagate_error (error, failure);
    return NULL;
  }
  if (!collect_variables (&all, error) || !add_step (&all, error) ||
      (is_chosen && !add_train_op (&all, error)) || !add_local_init (&all, error) ||
      !add_sync (&all, error) || !add_saver (&all, error))
    return NULL;
  g_ptr_array_add (all.notes, NULL);
  if (notes != NULL)
    *notes = (char **)g_ptr_array_free (g_steal_pointer (&all.notes), FALSE);
  return g_steal_pointer (&all.meta_graph);
}

/* --- own input --- */

/* The queues that the graph's queue runners fill. */
static guint8 *
filled_queues (MusterMetaGraph *meta_graph)
{
  MusterGraph *graph = muster_meta_graph_graph (meta_graph);
  const gsize n = muster_graph_n_nodes (graph);
  g_autofree guint8 *queued = muster_train_ops_queued (meta_graph);
  guint8 *queues = g_malloc0 (n + 1);

  for (gsize i = 0; i < n; i++) {
    const gssize queue =
        queued[i] && g_str_has_prefix (muster_graph_node (graph, i)->kind->op, "QueueEnqueue")
            ? muster_graph_origin (graph, i, 0)
            : -1;
    if (queue >= 0)
      queues[queue] = TRUE;
  }
  return queues;
}

static gboolean
is_input (MusterGraph *graph, gsize node, const guint8 *queues)
{
  static const char *const inputs[] = {"IteratorGetNext", "IteratorGetNextSync", "OneShotIterator",
                                       "MultiDeviceIteratorGetNextFromShard", NULL};
  const char *op = muster_graph_node (graph, node)->kind->op;
  if (g_strv_contains (inputs, op) || g_str_has_prefix (op, "ReaderRead"))
    return TRUE;
  const gssize queue =
      g_str_has_prefix (op, "QueueDequeue") ? muster_graph_origin (graph, node, 0) : -1;
  return queue >= 0 && queues[queue];
}

gboolean
muster_train_ops_take_input (MusterMetaGraph *meta_graph, const GPtrArray *ops)
{
  MusterGraph *graph = muster_meta_graph_graph (meta_graph);
  g_auto (MusterSyncReplicas) sync = {0};
  g_autofree guint8 *needed = muster_train_ops_needed (graph, ops);
  g_autofree guint8 *queues = filled_queues (meta_graph);
  if (muster_sync_replicas_find (meta_graph, &sync)) /* tokens are no input */
    queues[muster_graph_find_named (graph, sync.queue)] = FALSE;
  for (gsize i = 0; i < muster_graph_n_nodes (graph); i++)
    if (needed[i] && is_input (graph, i, queues))
      return TRUE;
  return FALSE;
}

gboolean
muster_meta_graph_has_own_input (MusterMetaGraph *self)
{
  g_return_val_if_fail (self != NULL, FALSE);

  g_autoptr (GPtrArray) ops = muster_train_ops_find (self, NULL, NULL);
  return ops != NULL && ops->len > 0 && muster_train_ops_take_input (self, ops);
}

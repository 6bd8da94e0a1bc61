// SPDX-License-Identifier: Apache-2.0
/* Describes a graph that somebody else exported, for `muster inspect`: facts, losses, train op,
 * obstacles, and the commands for it (inspect_commands.c). */
#include "train/inspect.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fields_private.h"
#include "base/require_private.h"
#include "graph/feed_option_private.h"
#include "graph/graph_nodes_private.h"
#include "graph/graph_walk_private.h"
#include "graph/missing_ops_private.h"
#include "train/completion/completion.h"
#include "train/completion/global_step_private.h"
#include "train/completion/train_ops_private.h"
#include "train/completion/trainable_private.h"
#include "train/inspect_private.h"
#include "train/inspect_target_private.h"

#include <string.h>

MUSTER_DEFINE_OPTIONS (MusterGraphFact, muster_graph_fact)

MusterGraphFact *
muster_graph_fact_new (const char *topic, const char *name, const char *text)
{
  g_return_val_if_fail (topic != NULL, NULL);
  MusterGraphFact *self = g_new0 (MusterGraphFact, 1);
  self->topic = g_strdup (topic);
  self->name = g_strdup (name != NULL ? name : "");
  self->text = g_strdup (text != NULL ? text : "");
  return self;
}

void
muster_inspect_add (MusterInspect *self, const char *topic, const char *name, const char *text)
{
  g_ptr_array_add (self->facts, muster_graph_fact_new (topic, name, text));
}

/* --- the facts --- */

static void
add_maker (MusterInspect *self)
{
  const int producer = muster_graph_versions (self->graph, 0).producer;
  g_autofree char *text = g_strdup_printf ("%" G_GSIZE_FORMAT " nodes, GraphDef version %d",
                                           muster_graph_n_nodes (self->graph), producer);
  muster_inspect_add (self, "graph", NULL, text);
}

static void
add_completed (MusterInspect *self)
{
  const char *const *notes = self->notes;
  for (; *notes != NULL; notes++)
    muster_inspect_add (self, "completed", NULL, *notes);
}

/* Marks what savers take, which muster feeds. (transfer full) */
static guint8 *
mark_savers (MusterMetaGraph *meta_graph)
{
  static const char *const ops[] = {"Save",    "SaveSlices",   "SaveV2",    "ShardedFilename",
                                    "Restore", "RestoreSlice", "RestoreV2", NULL};
  MusterGraph *graph = muster_meta_graph_graph (meta_graph);
  const MusterSaverInfo *saver = muster_meta_graph_saver (meta_graph);
  guint8 *marked = g_new0 (guint8, muster_graph_n_nodes (graph) + 1);
  for (gsize i = 0; i < muster_graph_n_nodes (graph); i++)
    if (g_strv_contains (ops, muster_graph_node (graph, i)->kind->op))
      muster_graph_mark_needed (graph, i, marked);
  if (saver != NULL)
    muster_graph_mark_needs (graph, saver->filename_tensor, marked);
  return marked;
}

static const char *
need_of (const MusterInspect *self, gsize placeholder)
{
  if (!muster_feed_is_needed (muster_graph_node (self->graph, placeholder)))
    return ", has a default";
  if (muster_scaffold_train_op (self->scaffold) == NULL)
    return "";
  return self->trains_by[placeholder] ? ", needed to train" : ", not needed to train";
}

/* Returns a placeholder to which `muster train --feed` can't give rows: the first half of a
 * sparse one. */
static const MusterNode *
find_sparse (const MusterInspect *self)
{
  for (gsize i = 0; i < muster_graph_n_nodes (self->graph); i++) {
    const MusterNode *node = muster_graph_node (self->graph, i);
    if (self->trains_by[i] && muster_feed_is_needed (node) &&
        muster_feed_is_sparse (self->users, node))
      return node;
  }
  return NULL;
}

/* Returns a placeholder for an iterator's handle, which is known in a session alone. */
static const MusterNode *
find_handle (const MusterInspect *self)
{
  for (gsize i = 0; i < muster_graph_n_nodes (self->graph); i++) {
    const MusterNode *node = muster_graph_node (self->graph, i);
    const gssize from =
        self->trains_by[i] && g_str_has_prefix (node->kind->op, "IteratorFromStringHandle")
            ? muster_graph_origin (self->graph, i, 0)
            : -1;
    if (from >= 0 && muster_feed_is_needed (muster_graph_node (self->graph, (gsize)from)))
      return muster_graph_node (self->graph, (gsize)from);
  }
  return NULL;
}

/* Explains why a training of that graph has no command. (transfer full) (nullable) */
static char *
find_obstacle (const MusterInspect *self)
{
  const char *init_op = muster_scaffold_init_op (self->scaffold);
  const MusterNode *fed =
      init_op != NULL ? muster_feed_needed_by (muster_scaffold_graph (self->scaffold), init_op)
                      : NULL;
  const MusterNode *handle = find_handle (self);
  const MusterNode *sparse = find_sparse (self);
  const MusterNode *of_program = muster_graph_program_op (self->graph, self->trains_by);
  if (of_program != NULL)
    return g_strdup_printf ("needs '%s' (%s), which calls the Python program that exported the "
                            "graph or a library of it: train it there",
                            of_program->name, of_program->kind->op);
  if (sparse != NULL)
    return g_strdup_printf ("needs the sparse placeholder of '%s', which --feed can give the same "
                            "in each step, but no rows of a file: train it from a program",
                            sparse->name);
  if (handle != NULL)
    return g_strdup_printf ("needs the handle of an iterator in the placeholder '%s', which only a "
                            "session has: train it from a program",
                            handle->name);
  if (fed != NULL)
    return g_strdup_printf ("its init op needs the placeholder '%s', but init ops run without "
                            "feeds; export the graph with a constant or a file in its place",
                            fed->name);
  return NULL;
}

static void
add_placeholders (MusterInspect *self)
{
  g_autofree guint8 *savers = mark_savers (self->meta_graph);
  for (gsize i = 0; i < muster_graph_n_nodes (self->graph); i++) {
    const MusterNode *node = muster_graph_node (self->graph, i);
    if (!muster_feed_is_needed (node) && strcmp (node->kind->op, "PlaceholderWithDefault") != 0)
      continue;
    if (muster_feed_is_own (node) || (savers[i] && !self->trains_by[i]))
      continue;
    g_autofree char *feed = g_strconcat (node->name, ":0", NULL);
    g_autofree char *type = muster_feed_type (self->graph, node);
    g_autofree char *text = g_strconcat (type, need_of (self, i), NULL);
    muster_inspect_add (self, "placeholder", feed, text);
  }
}

static void
add_collection (MusterInspect *self, const char *key, const char *topic)
{
  const char *const *items = muster_meta_graph_collection (self->meta_graph, key);
  for (; items != NULL && *items != NULL; items++) {
    g_autofree char *op = NULL;
    (void)muster_graph_split_input (*items, &op);
    const MusterNode *node = muster_graph_find_node (self->graph, op);
    muster_inspect_add (self, topic, *items, node != NULL ? "" : "missing in the graph");
  }
}

static guint64
bytes_of (const MusterVariableInfo *variable, gboolean *is_known)
{
  guint64 n = muster_dtype_size (variable->dtype);
  *is_known = *is_known && variable->n_dims >= 0;
  for (int i = 0; i < variable->n_dims; i++) {
    if (variable->dims[i] < 0 ||
        (variable->dims[i] > 0 && n > G_MAXINT64 / (guint64)variable->dims[i])) {
      *is_known = FALSE;
      return 0;
    }
    n *= (guint64)variable->dims[i];
  }
  return n;
}

static void
add_variables (MusterInspect *self)
{
  gsize n, n_local = 0, n_trainable = 0;
  guint64 bytes = 0;
  gboolean is_known = TRUE;
  const MusterVariableInfo *variables = muster_meta_graph_variables (self->meta_graph, &n);
  for (gsize i = 0; i < n; i++) {
    n_local += variables[i].is_local != 0;
    n_trainable += variables[i].is_trainable != 0;
    bytes += bytes_of (&variables[i], &is_known);
  }
  g_autofree char *size = muster_format_size (bytes);
  g_autofree char *text = g_strdup_printf (
      "%" G_GSIZE_FORMAT " (%" G_GSIZE_FORMAT " trainable, %" G_GSIZE_FORMAT " local), %s%s", n,
      n_trainable, n_local, is_known ? "" : "at least ", size);
  muster_inspect_add (self, "variables", NULL, text);
}

static void
add_saver (MusterInspect *self)
{
  const MusterSaverInfo *saver = muster_meta_graph_saver (self->meta_graph);
  if (saver == NULL) {
    muster_inspect_add (self, "saver", NULL, "none: there are no variables");
    return;
  }
  g_autofree char *keeps = saver->max_to_keep > 0
                               ? g_strdup_printf ("%d checkpoint%s", saver->max_to_keep,
                                                  saver->max_to_keep == 1 ? "" : "s")
                               : g_strdup ("all checkpoints");
  g_autofree char *text =
      g_strdup_printf ("%s format%s, keeps %s", saver->version == 2 ? "V2" : "V1",
                       saver->sharded ? ", sharded" : "", keeps);
  muster_inspect_add (self, "saver", saver->restore_op, text);
}

guint8 *
muster_inspect_mark_writers (const MusterInspect *self)
{
  gsize n;
  const MusterVariableInfo *variables = muster_meta_graph_variables (self->meta_graph, &n);
  guint8 *marked = muster_train_ops_queued (self->meta_graph);
  for (gsize i = 0; i < muster_graph_n_nodes (self->graph); i++)
    marked[i] |= self->trains_by[i];
  for (gsize i = 0; i < n; i++)
    muster_graph_mark_needs (self->graph, variables[i].initializer, marked);
  for (guint i = 0; i < self->others->len; i++)
    muster_graph_mark_needs (self->graph, self->others->pdata[i], marked);
  muster_graph_mark_needs (self->graph, muster_scaffold_init_op (self->scaffold), marked);
  muster_graph_mark_needs (self->graph, muster_scaffold_local_init_op (self->scaffold), marked);
  return marked;
}

/* Marks what is local: metrics' counts and a replica's own step. (transfer full) */
static guint8 *
mark_local (const MusterInspect *self)
{
  gsize n;
  const MusterVariableInfo *variables = muster_meta_graph_variables (self->meta_graph, &n);
  guint8 *marked = g_malloc0 (muster_graph_n_nodes (self->graph) + 1);
  for (gsize i = 0; i < n; i++)
    if (variables[i].is_local)
      muster_graph_mark_needs (self->graph, variables[i].name, marked);
  return marked;
}

/* Adds ops that write a variable of the model and that nothing else runs: averages, updates of
 * batch norm. */
static void
add_other_writers (MusterInspect *self)
{
  const gboolean has_input =
      muster_scaffold_train_op (self->scaffold) == NULL ||
      muster_feed_needed_by (self->graph, muster_scaffold_train_op (self->scaffold)) != NULL ||
      muster_meta_graph_has_own_input (self->meta_graph);
  g_autofree guint8 *local = mark_local (self);
  g_autofree guint8 *marked = muster_inspect_mark_writers (self);
  g_autoptr (GArray) written = g_array_new (FALSE, FALSE, sizeof (gsize));
  for (gsize i = 0; i < muster_graph_n_nodes (self->graph); i++) {
    const MusterNode *node = muster_graph_node (self->graph, i);
    g_array_set_size (written, 0);
    muster_graph_written (self->graph, i, written);
    if (marked[i] || written->len == 0 || local[g_array_index (written, gsize, 0)] ||
        g_str_has_prefix (node->name, "muster/") || muster_train_ops_restores (self->graph, i))
      continue;
    const MusterNode *to = muster_graph_node (self->graph, g_array_index (written, gsize, 0));
    g_autofree char *text =
        g_strdup_printf ("%s of '%s', which a step doesn't run%s", node->kind->op, to->name,
                         !has_input && muster_feed_needed_by (self->graph, node->name) != NULL
                             ? ", but which takes the input: the step takes none"
                             : "");
    muster_inspect_add (self, "other writer", node->name, text);
  }
}

static void
add_resources (MusterInspect *self)
{
  for (gsize i = 0; i < muster_graph_n_nodes (self->graph); i++) {
    const MusterNode *node = muster_graph_node (self->graph, i);
    const char *op = node->kind->op;
    if (g_str_has_prefix (op, "HashTable") || g_str_has_prefix (op, "MutableHashTable") ||
        g_str_has_prefix (op, "MutableDenseHashTable"))
      muster_inspect_add (self, "table", node->name, op);
    else if (g_str_has_suffix (op, "Queue") || g_str_has_suffix (op, "QueueV2"))
      muster_inspect_add (self, "queue", node->name, op);
    else if (self->trains_by[i] &&
             (strstr (op, "Iterator") != NULL || strstr (op, "Reader") != NULL))
      muster_inspect_add (self, "input", node->name, op);
  }
}

/* Lists the ops that muster/train runs; after them it advances the global step. (transfer full)
 * */
static char *
list_runs (MusterGraph *graph, gsize train)
{
  const MusterNode *node = muster_graph_node (graph, train);
  g_autoptr (GString) text = g_string_new (NULL);
  for (gsize i = 0; i < node->n_input; i++) {
    const gsize input = muster_node_input (node, i, NULL);
    const char *name = muster_graph_node (graph, input)->name;
    if (!muster_node_input_is_control (node, i))
      continue;
    if (g_str_has_prefix (name, MUSTER_TRAIN "/"))
      return list_runs (graph, input);
    g_string_append_printf (text, "%s'%s'", text->len > 0 ? ", " : "runs ", name);
  }
  return g_strdup (text->str);
}

/* Adds the other train ops, if they can't be one step. */
static void
add_alternatives (MusterInspect *self)
{
  for (guint i = 1; self->others != NULL && i < self->others->len; i++) {
    g_autofree char *text = g_strdup_printf ("not run; instead of '%s' with --train-op=%s",
                                             (const char *)self->others->pdata[0],
                                             (const char *)self->others->pdata[i]);
    muster_inspect_add (self, "train op", self->others->pdata[i], text);
  }
}

/* "runs 'train'", "in no collection". (transfer full) */
static char *
describe_train_op (const MusterInspect *self, const char *train)
{
  const gssize node = muster_graph_find (self->graph, train, strlen (train));
  g_autofree char *runs =
      node >= 0 && strcmp (train, MUSTER_TRAIN) == 0 ? list_runs (self->graph, (gsize)node) : NULL;
  if (self->why_not != NULL)
    return g_strdup (self->why_not);
  if (self->proposal != NULL)
    return g_strconcat (runs != NULL ? runs : "", runs != NULL ? ", " : "",
                        "which no collection has, but which updates the most trainable variables; "
                        "choose another with --train-op=NAME",
                        NULL);
  return g_steal_pointer (&runs);
}

static void
add_train_op (MusterInspect *self)
{
  const char *train = muster_scaffold_train_op (self->scaffold);
  g_autofree char *text = train != NULL
                              ? describe_train_op (self, train)
                              : g_strdup ("none collected; to train, add --train-op=NAME");
  muster_inspect_add (self, "train op", train, text);
  add_alternatives (self);
}

static void
add_scaffold (MusterInspect *self)
{
  const MusterVariableInfo *step = muster_global_step_of (self->meta_graph);
  add_train_op (self);
  muster_inspect_add (self, "global step", step != NULL ? step->name : NULL,
                      step != NULL ? "" : "none");
  if (muster_scaffold_init_op (self->scaffold) == NULL)
    muster_inspect_add (self, "init op", NULL,
                        "none: the variables have no initialisers, so `prepare` can't set them");
}

/* Adds the loss that the commands report, and the others. */
static void
add_losses (MusterInspect *self)
{
  for (guint i = 0; i < self->losses->len; i++) {
    const char *loss = self->losses->pdata[i];
    const gboolean is_there = muster_graph_find_named (self->graph, loss) >= 0;
    muster_inspect_add (self, "loss", loss,
                        !is_there               ? "missing in the graph"
                        : i < self->n_minimised ? "the train op's"
                                                : "");
  }
}

static void
add_facts (MusterInspect *self)
{
  add_maker (self);
  add_completed (self);
  add_placeholders (self);
  add_scaffold (self);
  add_other_writers (self);
  add_losses (self);
  add_collection (self, "metric_variables", "metric");
  add_variables (self);
  add_saver (self);
  add_resources (self);
  muster_inspect_add_commands (self);
}

static void
inspect_clear (MusterInspect *self)
{
  g_clear_pointer (&self->scaffold, muster_scaffold_unref);
  g_clear_pointer (&self->users, muster_feed_users_free);
  g_clear_pointer (&self->facts, g_ptr_array_unref);
  g_clear_pointer (&self->others, g_ptr_array_unref);
  g_clear_pointer (&self->losses, g_ptr_array_unref);
  g_free (self->trains_by);
  g_free (self->in_loop);
  g_free (self->why_not);
  g_free (self->proposal);
  g_strfreev (self->own_notes);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterInspect, inspect_clear)

/* Describes the graph completed for one train op. */
static gboolean
complete_for (MusterInspect *self, const char *train_op, char ***notes, GError **error)
{
  const char *const ops[] = {train_op, NULL};
  g_autoptr (MusterMetaGraph) whole =
      muster_meta_graph_complete (self->meta_graph, ops, notes, error);
  g_autoptr (MusterScaffold) completed = whole != NULL ? muster_scaffold_new (whole, error) : NULL;
  if (completed == NULL)
    return FALSE;
  if (muster_scaffold_train_op (completed) == NULL)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "the graph can't be completed for the train op '%s': it has another op "
                        "'" MUSTER_TRAIN "'",
                        train_op);
  muster_scaffold_unref (self->scaffold);
  self->scaffold = g_steal_pointer (&completed);
  return TRUE;
}

/* Chooses a train op to describe: the first one if several can't be one step; if the graph
 * collects none, the one that its program may have run, if the graph can be completed for it. */
static gboolean
choose (MusterInspect *self, MusterScaffold *scaffold, const char *const *train_ops, GError **error)
{
  g_autoptr (GError) why_not = NULL;
  g_autofree char *proposal = NULL;
  self->scaffold = muster_scaffold_ref (scaffold);
  self->meta_graph = muster_scaffold_meta_graph (scaffold);
  self->others = muster_train_ops_find (self->meta_graph, NULL, error);
  if (self->others == NULL)
    return FALSE;
  if (train_ops != NULL && *train_ops != NULL)
    self->asked = train_ops;
  else if (self->others->len > 1) {
    if (!complete_for (self, self->others->pdata[0], NULL, error))
      return FALSE;
  } else if ((proposal = muster_scaffold_propose_train_op (scaffold)) != NULL &&
             complete_for (self, proposal, &self->own_notes, NULL)) {
    self->notes = (const char *const *)self->own_notes;
    self->proposal = g_steal_pointer (&proposal);
  }
  self->meta_graph = muster_scaffold_meta_graph (self->scaffold);
  self->graph = muster_meta_graph_graph (self->meta_graph);
  if (muster_scaffold_train_op (self->scaffold) != NULL &&
      !muster_trainable_check (self->meta_graph, &why_not))
    self->why_not = g_strdup (why_not->message);
  return TRUE;
}

GPtrArray *
muster_scaffold_inspect_for (MusterScaffold *self, const char *path, const char *const *train_ops,
                             const char *(*target) (MusterScaffold *described, gpointer user_data),
                             gpointer user_data, GError **error)
{
  g_auto (MusterInspect) all = {.path = path, .notes = muster_scaffold_completed (self)};
  if (!choose (&all, self, train_ops, error))
    return NULL;
  all.users = muster_feed_users_new (all.graph);
  all.target = target (all.scaffold, user_data);
  all.facts = g_ptr_array_new_with_free_func ((GDestroyNotify)muster_graph_fact_free);
  all.in_loop = muster_graph_mark_loops (all.graph);
  all.trains_by = g_new0 (guint8, muster_graph_n_nodes (all.graph) + 1);
  muster_graph_mark_needs (all.graph, muster_scaffold_train_op (all.scaffold), all.trains_by);
  if (all.why_not == NULL)
    all.why_not = find_obstacle (&all);
  all.losses = muster_inspect_find_losses (&all, &all.n_minimised);
  add_facts (&all);
  return g_steal_pointer (&all.facts);
}

static const char *
given_target (MusterScaffold *described G_GNUC_UNUSED, gpointer user_data)
{
  return user_data;
}

GPtrArray *
muster_scaffold_inspect (MusterScaffold *self, const char *path, const char *const *train_ops,
                         const char *target, GError **error)
{
  muster_require (error, NULL, self, path, target);
  return muster_scaffold_inspect_for (self, path, train_ops, given_target, (gpointer)target, error);
}

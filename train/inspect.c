// SPDX-License-Identifier: Apache-2.0
#include "train/inspect.h"

#include "base/fields.h"
#include "base/require.h"
#include "graph/feed_option.h"
#include "graph/graph_nodes.h"
#include "graph/graph_walk.h"
#include "train/inspect_private.h"

#include <string.h>

static const MusterField fact_fields[] = {MUSTER_STRING_FIELD (MusterGraphFact, topic),
                                          MUSTER_STRING_FIELD (MusterGraphFact, name),
                                          MUSTER_STRING_FIELD (MusterGraphFact, text)};
MUSTER_DEFINE_OPTIONS (MusterGraphFact, muster_graph_fact, fact_fields)

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
add_placeholders (MusterInspect *self)
{
  for (gsize i = 0; i < muster_graph_n_nodes (self->graph); i++) {
    const MusterNode *node = muster_graph_node (self->graph, i);
    const gboolean has_default = strcmp (node->kind->op, "PlaceholderWithDefault") == 0;
    if ((!muster_feed_is_needed (node) && !has_default) || g_str_has_prefix (node->name, "save/"))
      continue;
    g_autofree char *feed = g_strconcat (node->name, ":0", NULL);
    g_autofree char *type = muster_feed_type (self->graph, node);
    g_autofree char *text = g_strconcat (type,
                                         has_default          ? ", has a default"
                                         : self->trains_by[i] ? ", needed to train"
                                                              : ", not needed to train",
                                         NULL);
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
  g_autofree char *size = g_format_size (bytes);
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
    muster_inspect_add (self, "saver", NULL, "none: muster adds its own");
    return;
  }
  g_autofree char *text =
      g_strdup_printf ("%s format%s, keeps %d checkpoints", saver->version == 2 ? "V2" : "V1",
                       saver->sharded ? ", sharded" : "", saver->max_to_keep);
  muster_inspect_add (self, "saver", saver->restore_op, text);
}

/* Ops that write a variable and that no train op runs: averages, batch norm's updates. Initialisers
 * and what restores don't count. */
static gboolean
writes (const char *op)
{
  static const char *const writers[] = {"AssignAdd",           "AssignSub",  "AssignAddVariableOp",
                                        "AssignSubVariableOp", "ScatterAdd", "ScatterSub"};
  for (gsize i = 0; i < G_N_ELEMENTS (writers); i++)
    if (strcmp (op, writers[i]) == 0)
      return TRUE;
  return g_str_has_prefix (op, "Apply") || g_str_has_prefix (op, "ResourceApply");
}

static void
add_other_writers (MusterInspect *self)
{
  for (gsize i = 0; i < muster_graph_n_nodes (self->graph); i++) {
    const MusterNode *node = muster_graph_node (self->graph, i);
    if (self->trains_by[i] || !writes (node->kind->op) || g_str_has_prefix (node->name, "muster/"))
      continue;
    const MusterNode *to = node->n_input > 0
                               ? muster_graph_node (self->graph, muster_node_input (node, 0, NULL))
                               : node;
    g_autofree char *text =
        g_strdup_printf ("%s of '%s', which no train op runs", node->kind->op, to->name);
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

static void
add_scaffold (MusterInspect *self)
{
  const char *step = muster_scaffold_global_step (self->scaffold);
  const char *train = muster_scaffold_train_op (self->scaffold);
  if (train == NULL)
    muster_inspect_add (self, "train op", NULL, "none: the collection 'train_op' is empty");
  add_collection (self, "train_op", "train op");
  muster_inspect_add (self, "global step", step, step != NULL ? "" : "none");
}

static void
add_facts (MusterInspect *self)
{
  add_maker (self);
  add_placeholders (self);
  add_scaffold (self);
  add_other_writers (self);
  add_collection (self, "losses", "loss");
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
  g_clear_pointer (&self->facts, g_ptr_array_unref);
  g_free (self->trains_by);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterInspect, inspect_clear)

GPtrArray *
muster_graph_inspect (const char *path, const char *target, GError **error)
{
  muster_require (error, NULL, path, target);
  g_auto (MusterInspect) self = {.path = path, .target = target};
  self.scaffold = muster_scaffold_load (path, error);
  if (self.scaffold == NULL)
    return NULL;
  self.meta_graph = muster_scaffold_meta_graph (self.scaffold);
  self.graph = muster_meta_graph_graph (self.meta_graph);
  self.facts = g_ptr_array_new_with_free_func ((GDestroyNotify)muster_graph_fact_free);
  self.trains_by = g_new0 (guint8, muster_graph_n_nodes (self.graph) + 1);
  muster_graph_mark_needs (self.graph, muster_scaffold_train_op (self.scaffold), self.trains_by);
  add_facts (&self);
  return g_steal_pointer (&self.facts);
}

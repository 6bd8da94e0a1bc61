// SPDX-License-Identifier: Apache-2.0
/* Builds another saver for a graph whose own leaves out variables or writes the V1 format. It
 * reads from the graph what that saver saves, under which names, and adds the variables that are
 * left out; the names stay, so checkpoints remain compatible. */
#include "saver/builder/saver_complete_private.h"

#include "base/error.h"
#include "graph/graph_nodes_private.h"
#include "graph/graph_walk_private.h"
#include "graph/meta_graph/meta_graph_edit.h"
#include "saver/builder/save_nodes_private.h"
#include "saver/builder/saver_builder.h"
#include "saver/builder/saver_builder_private.h"

#include <string.h>

#define SCOPE "muster/save"

/* An op that saves, and its first input with a value to save; the second has the names. */
typedef struct {
  const char *op;
  gsize first;
  gboolean has_slices; /* in the third */
} SaveOp;

static const SaveOp save_ops[] = {{"SaveV2", 3, TRUE}, {"SaveSlices", 3, TRUE}, {"Save", 2, FALSE}};

static const SaveOp *
save_op_of (const MusterNode *node)
{
  for (gsize i = 0; i < G_N_ELEMENTS (save_ops); i++)
    if (strcmp (node->kind->op, save_ops[i].op) == 0)
      return &save_ops[i];
  return NULL;
}

/* Collects what the graph's saver saves. */
typedef struct {
  MusterGraph *graph;     /* (not owned) */
  GHashTable *variables;  /* (owned) name -> MusterVariableInfo, the graph's global ones */
  GHashTable *by_name;    /* (owned) name -> index in saveables + 1 */
  GArray *saveables;      /* (owned) (element-type MusterSaveable) */
  GStringChunk *texts;    /* (owned) */
  const char *old_format; /* (nullable) an op of another format than V2 */
  const char *other;      /* (nullable) a saved tensor that isn't a global variable's value */
  const char *unnamed;    /* (nullable) one whose name in the checkpoint isn't a constant */
} Kept;

static void
saveable_clear (gpointer data)
{
  g_free (((MusterSaveable *)data)->key);
}

static void
kept_clear (Kept *self)
{
  g_clear_pointer (&self->variables, g_hash_table_unref);
  g_clear_pointer (&self->by_name, g_hash_table_unref);
  g_clear_pointer (&self->saveables, g_array_unref);
  g_clear_pointer (&self->texts, g_string_chunk_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Kept, kept_clear)

static void
kept_init (Kept *self, MusterMetaGraph *meta_graph)
{
  gsize n;
  const MusterVariableInfo *variables = muster_meta_graph_variables (meta_graph, &n);
  *self = (Kept){.graph = muster_meta_graph_graph (meta_graph),
                 .variables = g_hash_table_new (g_str_hash, g_str_equal),
                 .by_name = g_hash_table_new (g_str_hash, g_str_equal),
                 .saveables = g_array_new (FALSE, FALSE, sizeof (MusterSaveable)),
                 .texts = g_string_chunk_new (1024)};
  g_array_set_clear_func (self->saveables, saveable_clear);
  for (gsize i = 0; i < n; i++)
    if (!variables[i].is_local && variables[i].dtype != MUSTER_INVALID)
      g_hash_table_insert (self->variables, (gpointer)variables[i].name, (gpointer)&variables[i]);
}

/* Returns the constant strings of an input, or NULL. */
static MusterTensor *
strings_of (MusterGraph *graph, gsize node, gsize input)
{
  const gssize origin = muster_graph_origin (graph, node, input);
  g_autoptr (MusterTensor) tensor =
      origin >= 0 ? muster_node_constant (muster_graph_node (graph, (gsize)origin)) : NULL;

  return tensor != NULL && muster_tensor_dtype (tensor) == MUSTER_STRING ? g_steal_pointer (&tensor)
                                                                         : NULL;
}

/* The variable is NULL for another tensor. */
static void
keep (Kept *self, const MusterVariableInfo *variable, MusterString key, MusterString slice)
{
  const MusterSaveable saveable = {
      .key = g_strndup (key.data, key.size),
      .variable = variable,
      .slice = slice.size > 0
                   ? g_string_chunk_insert_len (self->texts, slice.data, (gssize)slice.size)
                   : ""};
  g_array_append_val (self->saveables, saveable);
  if (variable != NULL)
    g_hash_table_insert (self->by_name, (gpointer)variable->name,
                         GUINT_TO_POINTER (self->saveables->len));
}

/* A table's keys, the state of an iterator, a local variable. */
static void
note_other (Kept *self, const MusterNode *save, gsize input)
{
  MusterSaveable *kept = &g_array_index (self->saveables, MusterSaveable, self->saveables->len - 1);
  const MusterNode *from = muster_graph_node (self->graph, muster_node_input (save, input, NULL));
  g_autofree char *tensor = muster_graph_input_text (self->graph, save, input);
  self->other = from->name;
  kept->tensor = g_string_chunk_insert (self->texts, tensor);
  kept->device = from->kind->device;
  kept->dtype = muster_save_node_dtype (save, input);
}

static void
keep_all_of (Kept *self, gsize node, const SaveOp *op)
{
  const MusterNode *def = muster_graph_node (self->graph, node);
  g_autoptr (MusterTensor) names = strings_of (self->graph, node, 1);
  g_autoptr (MusterTensor) slices = op->has_slices ? strings_of (self->graph, node, 2) : NULL;
  for (gsize i = op->first; i < def->n_input && !muster_node_input_is_control (def, i); i++) {
    const gint64 at = (gint64)(i - op->first);
    const gssize origin = muster_graph_origin (self->graph, node, i);
    const MusterVariableInfo *variable =
        origin < 0 ? NULL
                   : g_hash_table_lookup (self->variables,
                                          muster_graph_node (self->graph, (gsize)origin)->name);
    if (names == NULL || at >= muster_tensor_n_elements (names)) {
      self->unnamed = muster_graph_node (self->graph, muster_node_input (def, i, NULL))->name;
      continue;
    }
    keep (self, variable, muster_tensor_string (names, at),
          slices != NULL && at < muster_tensor_n_elements (slices)
              ? muster_tensor_string (slices, at)
              : (MusterString){0});
    if (variable == NULL)
      note_other (self, def, i);
  }
}

/* Marks the nodes that the saver runs; NULL if the graph lacks its op. */
static guint8 *
saving_nodes (MusterGraph *graph, const MusterSaverInfo *saver)
{
  const gssize from = muster_graph_find_named (graph, saver->save_tensor);
  guint8 *marked = from >= 0 ? g_malloc0 (muster_graph_n_nodes (graph)) : NULL;
  if (from >= 0)
    muster_graph_mark_needed (graph, (gsize)from, marked);
  return marked;
}

static void
read_saver (Kept *self, const MusterSaverInfo *saver)
{
  g_autofree guint8 *marked = saving_nodes (self->graph, saver);

  for (gsize i = 0; marked != NULL && i < muster_graph_n_nodes (self->graph); i++) {
    const SaveOp *op = marked[i] ? save_op_of (muster_graph_node (self->graph, i)) : NULL;
    if (op == NULL)
      continue;
    keep_all_of (self, i, op);
    if (op != &save_ops[0])
      self->old_format = op->op;
  }
}

const char *
muster_saver_old_format (MusterGraph *graph, const MusterSaverInfo *saver)
{
  g_autofree guint8 *marked = saving_nodes (graph, saver);

  for (gsize i = 0; marked != NULL && i < muster_graph_n_nodes (graph); i++) {
    const SaveOp *op = marked[i] ? save_op_of (muster_graph_node (graph, i)) : NULL;
    if (op != NULL && op != &save_ops[0])
      return op->op;
  }
  return NULL;
}

static gboolean
is_left_out (const Kept *self, const MusterVariableInfo *variable)
{
  return g_hash_table_contains (self->variables, variable->name) &&
         !g_hash_table_contains (self->by_name, variable->name);
}

/* Returns the first global variable that the saver leaves out, in the graph's order; *n is their
 * number. */
static const char *
find_left_out (const Kept *self, MusterMetaGraph *meta_graph, guint *n)
{
  gsize n_variables;
  const MusterVariableInfo *variables = muster_meta_graph_variables (meta_graph, &n_variables);
  const char *first = NULL;
  *n = 0;
  for (gsize i = 0; i < n_variables; i++)
    if (is_left_out (self, &variables[i]) && (*n)++ == 0)
      first = variables[i].name;
  return first;
}

static int
compare_keys (gconstpointer a, gconstpointer b)
{
  return strcmp (((const MusterSaveable *)a)->key, ((const MusterSaveable *)b)->key);
}

/* Adds the variables that the saver leaves out, under their own names. */
static void
add_left_out (Kept *self, MusterMetaGraph *meta_graph)
{
  gsize n;
  const MusterVariableInfo *variables = muster_meta_graph_variables (meta_graph, &n);
  for (gsize i = 0; i < n; i++) {
    const MusterVariableInfo *variable = &variables[i];
    if (!is_left_out (self, variable))
      continue;
    const MusterSaveable saveable = {
        .key = g_strdup (variable->slice != NULL ? variable->full_name : variable->name),
        .variable = variable,
        .slice = variable->slice != NULL ? variable->slice : ""};
    g_array_append_val (self->saveables, saveable);
  }
  g_array_sort (self->saveables, compare_keys); /* which is stable */
}

static const char *
name_of (const MusterSaveable *saveable)
{
  return saveable->variable != NULL ? saveable->variable->name : saveable->tensor;
}

/* Refuses two values of one name, because one would overwrite the other. */
static gboolean
check_keys (const GArray *saveables, GError **error)
{
  for (guint i = 1; i < saveables->len; i++) {
    const MusterSaveable *a = &g_array_index (saveables, MusterSaveable, i - 1);
    const MusterSaveable *b = &g_array_index (saveables, MusterSaveable, i);
    if (strcmp (a->key, b->key) == 0 && (!*a->slice || !*b->slice))
      return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                          "Adding a saver to the graph: its own saver saves '%s' as '%s', which is "
                          "the name of '%s' too; export the graph with a saver of all variables",
                          name_of (a), a->key, name_of (b));
  }
  return TRUE;
}

static MusterMetaGraph *
build (Kept *self, MusterMetaGraph *meta_graph, const MusterSaverInfo *before, GError **error)
{
  const MusterSaverBuild how = {.sharded = before->sharded,
                                .max_to_keep =
                                    before->max_to_keep > 0 ? before->max_to_keep : MUSTER_KEEP_ALL,
                                .keep_every_n_hours = (double)before->keep_every_n_hours,
                                .scope = SCOPE};
  for (guint i = 0; i < self->saveables->len; i++)
    g_array_index (self->saveables, MusterSaveable, i).is_kept = self->other != NULL;
  add_left_out (self, meta_graph);
  return check_keys (self->saveables, error)
             ? muster_saver_build_saveables (meta_graph, self->saveables, &how,
                                             self->other != NULL ? before : NULL, error)
             : NULL;
}

/* Refuses what the new saver couldn't save and restore, since it would be lost. */
static gboolean
check_kept (const Kept *self, GError **error)
{
  if (self->unnamed != NULL)
    return muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED,
                        "Adding a saver to the graph: its own computes the name under which it "
                        "saves '%s'; export it with a saver whose names are constants",
                        self->unnamed);
  if (self->old_format == NULL || self->other == NULL)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED,
                      "Adding a saver to the graph: its own is of the old format ('%s') and "
                      "saves '%s', which isn't a variable; export it with a saver of the V2 "
                      "format",
                      self->old_format, self->other);
}

static gboolean
has_global_variables (const Kept *self)
{
  return g_hash_table_size (self->variables) > 0;
}

/* A table that changes, which no saver of variables saves; NULL: none. */
static const char *
find_table (MusterGraph *graph)
{
  for (gsize i = 0; i < muster_graph_n_nodes (graph); i++) {
    const char *op = muster_graph_node (graph, i)->kind->op;
    if (g_str_has_prefix (op, "MutableHashTable") || g_str_has_prefix (op, "MutableDenseHashTable"))
      return muster_graph_node (graph, i)->name;
  }
  return NULL;
}

static char *
explain_default (MusterGraph *graph)
{
  const char *table = find_table (graph);

  return table == NULL ? g_strdup ("the graph has none")
                       : g_strdup_printf ("the graph has none; it doesn't save the table '%s', as "
                                          "a tf.compat.v1.train.Saver () in the graph would",
                                          table);
}

MusterMetaGraph *
muster_saver_complete (MusterMetaGraph *meta_graph, char **why, GError **error)
{
  const MusterSaverInfo *before = muster_meta_graph_saver (meta_graph);
  g_auto (Kept) kept = {0};
  guint n_left_out;
  *why = NULL;
  kept_init (&kept, meta_graph);
  if (!has_global_variables (&kept))
    return muster_meta_graph_ref (meta_graph);
  if (before == NULL) {
    MusterMetaGraph *with = muster_saver_default (meta_graph, error);
    *why = with != NULL ? explain_default (kept.graph) : NULL;
    return with;
  }
  read_saver (&kept, before);
  const char *left_out = find_left_out (&kept, meta_graph, &n_left_out);
  if (kept.old_format == NULL && (n_left_out == 0 || kept.saveables->len == 0))
    return muster_meta_graph_ref (meta_graph);
  if (!check_kept (&kept, error))
    return NULL;
  MusterMetaGraph *with = build (&kept, meta_graph, before, error);
  if (with != NULL && kept.old_format != NULL)
    *why = g_strdup_printf ("the graph's is of the old format ('%s')", kept.old_format);
  else if (with != NULL)
    *why = g_strdup_printf (n_left_out == 1 ? "the graph's leaves out '%s'"
                                            : "the graph's leaves out '%s' and %u more",
                            left_out, n_left_out - 1);
  return with;
}

// SPDX-License-Identifier: Apache-2.0
/* Builds the save and restore ops of a MetaGraphDef that has none, like tf.train.Saver's
 * constructor. It resolves the list or map of variables into saveables, checks that each key is
 * used once, and finds a free scope; saver_nodes.c adds the nodes. */
#include "saver/builder/saver_builder.h"

#include "base/error.h"
#include "base/require_private.h"
#include "graph/graph_nodes_private.h"
#include "graph/meta_graph/meta_graph_edit.h"
#include "saver/builder/keep_private.h"
#include "saver/builder/saver_builder_private.h"

#include <string.h>

#define DEFAULT_SCOPE         "save"
#define DEFAULT_MAX_TO_KEEP   5
#define DEFAULT_EVERY_N_HOURS 10000.0

/* Collects the saveables. */
typedef struct {
  MusterMetaGraph *meta_graph; /* (not owned) */
  MusterMetaGraph *nodes;      /* (owned) (nullable) the graph alone: all its variable nodes */
  GHashTable *by_name;         /* (owned) name -> MusterVariableInfo */
  GHashTable *parts;           /* (owned) whole's name -> GPtrArray of MusterVariableInfo */
  GHashTable *keys;            /* (owned) key -> is it made of slices? */
  GArray *saveables;           /* (owned) */
} Choice;

static void
saveable_clear (gpointer data)
{
  g_free (((MusterSaveable *)data)->key);
}

static void
choice_clear (Choice *self)
{
  g_clear_pointer (&self->nodes, muster_meta_graph_unref);
  g_clear_pointer (&self->by_name, g_hash_table_unref);
  g_clear_pointer (&self->parts, g_hash_table_unref);
  g_clear_pointer (&self->keys, g_hash_table_unref);
  g_clear_pointer (&self->saveables, g_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Choice, choice_clear)

static void
note_variable (Choice *self, const MusterVariableInfo *variable)
{
  g_hash_table_insert (self->by_name, (gpointer)variable->name, (gpointer)variable);
  if (variable->slice == NULL)
    return;
  GPtrArray *parts = g_hash_table_lookup (self->parts, variable->full_name);
  if (parts == NULL) {
    parts = g_ptr_array_new ();
    g_hash_table_insert (self->parts, (gpointer)variable->full_name, parts);
  }
  g_ptr_array_add (parts, (gpointer)variable);
}

static void
choice_init (Choice *self, MusterMetaGraph *meta_graph)
{
  gsize n;
  const MusterVariableInfo *variables = muster_meta_graph_variables (meta_graph, &n);
  self->meta_graph = meta_graph;
  self->by_name = g_hash_table_new (g_str_hash, g_str_equal);
  self->parts =
      g_hash_table_new_full (g_str_hash, g_str_equal, NULL, (GDestroyNotify)g_ptr_array_unref);
  self->keys = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  self->saveables = g_array_new (FALSE, FALSE, sizeof (MusterSaveable));
  g_array_set_clear_func (self->saveables, saveable_clear);
  for (gsize i = 0; i < n; i++)
    note_variable (self, &variables[i]);
}

static gboolean
refuse_saveable (const char *what, const char *name, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "%s: %s", what, name);
}

/* Finds a variable outside the collections, which can be saved, too. */
static const MusterVariableInfo *
find_node (Choice *self, const char *name)
{
  gsize n;
  if (self->nodes == NULL)
    self->nodes = muster_meta_graph_new_for_graph (muster_meta_graph_graph (self->meta_graph));
  const MusterVariableInfo *variables = muster_meta_graph_variables (self->nodes, &n);
  for (gsize i = 0; i < n; i++)
    if (strcmp (variables[i].name, name) == 0)
      return &variables[i];
  return NULL;
}

static const MusterVariableInfo *
find_variable (Choice *self, const char *name, GError **error)
{
  const MusterVariableInfo *variable = g_hash_table_lookup (self->by_name, name);
  if (variable == NULL)
    variable = find_node (self, name);
  if (variable == NULL && !muster_graph_has_node (muster_meta_graph_graph (self->meta_graph), name))
    refuse_saveable ("Variable to save is not a Variable: the graph has nothing of the name", name,
                     error);
  else if (variable == NULL)
    refuse_saveable ("Variable to save is not a Variable", name, error);
  else if (variable->dtype == MUSTER_INVALID) {
    variable = NULL;
    refuse_saveable (
        "Variable to save is not a Variable: a collection names it, and the graph has none", name,
        error);
  }
  return variable;
}

/* Takes a key for one variable, or for all parts of one. */
static gboolean
take_key (Choice *self, const char *key, gboolean is_sliced, GError **error)
{
  gpointer before;
  if (!g_hash_table_lookup_extended (self->keys, key, NULL, &before)) {
    g_hash_table_insert (self->keys, g_strdup (key), GINT_TO_POINTER (is_sliced));
    return TRUE;
  }
  if (!is_sliced)
    return refuse_saveable ("At least two variables have the same name", key, error);
  return GPOINTER_TO_INT (before) ||
         refuse_saveable ("Mixing slices and non-slices with the same name", key, error);
}

static void
add_saveable (Choice *self, const char *key, const MusterVariableInfo *variable, const char *slice)
{
  const MusterSaveable saveable = {.key = g_strdup (key), .variable = variable, .slice = slice};
  g_array_append_val (self->saveables, saveable);
}

/* --- a list --- */

/* Sorts like TensorFlow sorts a list: by the tensors' names. */
static int
compare_variables (gconstpointer a, gconstpointer b)
{
  g_autofree char *left = g_strconcat ((*(MusterVariableInfo *const *)a)->name, ":0", NULL);
  g_autofree char *right = g_strconcat ((*(MusterVariableInfo *const *)b)->name, ":0", NULL);
  return strcmp (left, right);
}

static gboolean
add_list (Choice *self, GPtrArray *variables, GError **error)
{
  g_ptr_array_sort (variables, compare_variables);
  for (guint i = 0; i < variables->len; i++) {
    const MusterVariableInfo *variable = variables->pdata[i];
    const char *key = variable->slice != NULL ? variable->full_name : variable->name;
    if (!take_key (self, key, variable->slice != NULL, error))
      return FALSE;
    add_saveable (self, key, variable, variable->slice != NULL ? variable->slice : "");
  }
  return TRUE;
}

static GPtrArray *
all_global (Choice *self, GError **error)
{
  gsize n;
  const MusterVariableInfo *all = muster_meta_graph_variables (self->meta_graph, &n);
  g_autoptr (GPtrArray) variables = g_ptr_array_new ();
  for (gsize i = 0; i < n; i++) {
    if (!all[i].is_local && find_variable (self, all[i].name, error) == NULL)
      return NULL;
    if (!all[i].is_local)
      g_ptr_array_add (variables, (gpointer)&all[i]);
  }
  return g_steal_pointer (&variables);
}

static GPtrArray *
named (Choice *self, const char *const *names, GError **error)
{
  g_autoptr (GPtrArray) variables = g_ptr_array_new ();
  g_autoptr (GHashTable) wholes = g_hash_table_new (g_str_hash, g_str_equal);
  for (; *names; names++) {
    const GPtrArray *parts = g_hash_table_lookup (self->parts, *names);
    if (parts != NULL && !g_hash_table_contains (self->by_name, *names)) {
      if (!g_hash_table_add (wholes, (gpointer)*names)) {
        refuse_saveable ("At least two variables have the same name", *names, error);
        return NULL;
      }
      for (guint i = 0; i < parts->len; i++)
        g_ptr_array_add (variables, parts->pdata[i]);
      continue;
    }
    const MusterVariableInfo *variable = find_variable (self, *names, error);
    if (variable == NULL)
      return NULL;
    g_ptr_array_add (variables, (gpointer)variable);
  }
  return g_steal_pointer (&variables);
}

/* --- a map --- */

static gboolean
add_entry (Choice *self, const MusterSaverKey *entry, GError **error)
{
  const GPtrArray *parts = g_hash_table_lookup (self->parts, entry->variable);
  if (parts != NULL && !g_hash_table_contains (self->by_name, entry->variable)) {
    if (g_hash_table_contains (self->keys, entry->key))
      return refuse_saveable ("At least two variables have the same name", entry->key, error);
    (void)take_key (self, entry->key, TRUE, NULL);
    for (guint i = 0; i < parts->len; i++) {
      const MusterVariableInfo *part = parts->pdata[i];
      if (find_variable (self, part->name, error) == NULL)
        return FALSE;
      add_saveable (self, entry->key, part, part->slice);
    }
    return TRUE;
  }
  const MusterVariableInfo *variable = find_variable (self, entry->variable, error);
  if (variable == NULL || !take_key (self, entry->key, FALSE, error))
    return FALSE;
  add_saveable (self, entry->key, variable, "");
  return TRUE;
}

/* --- both --- */

static gboolean
gather (Choice *self, const MusterSaverBuild *how, GError **error)
{
  for (gsize i = 0; how->map != NULL && i < how->n_map; i++)
    if (!add_entry (self, &how->map[i], error))
      return FALSE;
  if (how->map != NULL)
    return TRUE;
  g_autoptr (GPtrArray) variables =
      how->variables != NULL ? named (self, how->variables, error) : all_global (self, error);
  return variables != NULL && add_list (self, variables, error);
}

/* Sorts by key; parts of one variable keep their order. */
static int
compare_saveables (gconstpointer a, gconstpointer b)
{
  return strcmp (((const MusterSaveable *)a)->key, ((const MusterSaveable *)b)->key);
}

static gboolean
check_each_once (GArray *saveables, GError **error)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; i < saveables->len; i++) {
    const MusterSaveable *saveable = &g_array_index (saveables, MusterSaveable, i);
    if (!g_hash_table_add (seen, (gpointer)saveable->variable->name))
      return refuse_saveable ("The same saveable will be restored with two names", saveable->key,
                              error);
  }
  return TRUE;
}

/* --- where it goes --- */

/* Checks a scope by TensorFlow's rules, without a '/' at the end. */
static gboolean
is_scope (const char *scope)
{
  gsize size = strlen (scope);
  return size > 0 && (g_ascii_isalnum (scope[0]) || scope[0] == '.') && scope[size - 1] != '/' &&
         strspn (scope, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.\\-/") ==
             size;
}

/* TensorFlow treats names that differ only in case as the same. */
static gboolean
is_taken (MusterGraph *graph, const char *scope)
{
  gsize size = strlen (scope);
  for (gsize i = 0; i < muster_graph_n_nodes (graph); i++) {
    const char *name = muster_graph_node (graph, i)->name;
    if (g_ascii_strncasecmp (name, scope, size) == 0 && (name[size] == '/' || name[size] == '\0'))
      return TRUE;
  }
  return FALSE;
}

static char *
free_scope (MusterGraph *graph, const char *wanted)
{
  char *scope = g_strdup (wanted);
  for (guint i = 1; is_taken (graph, scope); i++) {
    g_free (scope);
    scope = g_strdup_printf ("%s_%u", wanted, i);
  }
  return scope;
}

static gboolean
check_how (const MusterSaverBuild *how, GError **error)
{
  if (how->version != 0 && how->version != 2) {
    return muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED,
                        "Building a saver: version V%d isn't supported: it is deprecated in "
                        "TensorFlow and its files have no checksums; use V2",
                        how->version);
  }
  if (how->scope != NULL && !is_scope (how->scope)) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "Building a saver: '%s' is not a valid scope name", how->scope);
  }
  return muster_check_max_to_keep (how->max_to_keep, error);
}

static void
info_clear (MusterSaverInfo *info)
{
  g_free ((char *)info->filename_tensor);
  g_free ((char *)info->save_tensor);
  g_free ((char *)info->restore_op);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterSaverInfo, info_clear)

MusterMetaGraph *
muster_saver_build_saveables (MusterMetaGraph *meta_graph, GArray *saveables,
                              const MusterSaverBuild *how, const MusterSaverInfo *before,
                              GError **error)
{
  MusterGraph *graph = muster_meta_graph_graph (meta_graph);
  g_autofree char *scope = free_scope (graph, how->scope != NULL ? how->scope : DEFAULT_SCOPE);
  g_auto (MusterSaverInfo) info = {
      .max_to_keep = muster_max_to_keep_or (how->max_to_keep, DEFAULT_MAX_TO_KEEP),
      .sharded = how->sharded,
      .keep_every_n_hours =
          (float)(how->keep_every_n_hours > 0 ? how->keep_every_n_hours : DEFAULT_EVERY_N_HOURS),
      .version = 2,
  };
  g_autoptr (MusterGraph) whole =
      muster_saver_add_nodes (graph, scope, saveables, how, before, &info, error);
  return whole != NULL
             ? muster_meta_graph_with_saver (meta_graph, whole, &info, how->collect, error)
             : NULL;
}

MusterMetaGraph *
muster_saver_build (MusterMetaGraph *meta_graph, const MusterSaverBuild *how, GError **error)
{
  muster_require (error, NULL, meta_graph);

  static const MusterSaverBuild defaults;
  g_auto (Choice) choice = {0};
  if (how == NULL)
    how = &defaults;
  if (!check_how (how, error) || !muster_graph_parse (muster_meta_graph_graph (meta_graph), error))
    return NULL;
  choice_init (&choice, meta_graph);
  if (!gather (&choice, how, error))
    return NULL;
  g_array_sort (choice.saveables, compare_saveables); /* which is stable */
  if (!check_each_once (choice.saveables, error))
    return NULL;
  if (choice.saveables->len > 0)
    return muster_saver_build_saveables (meta_graph, choice.saveables, how, NULL, error);
  if (how->allow_empty)
    return muster_meta_graph_ref (meta_graph);
  muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "No variables to save");
  return NULL;
}

MusterMetaGraph *
muster_saver_default (MusterMetaGraph *meta_graph, GError **error)
{
  muster_require (error, NULL, meta_graph);

  MusterSaverBuild how = {.sharded = TRUE, .allow_empty = TRUE, .collect = TRUE};
  gsize n;
  const MusterSaverInfo *savers = muster_meta_graph_savers (meta_graph, &n);
  const MusterSaverInfo *own = muster_meta_graph_saver (meta_graph);
  if (own != NULL && (n < 2 || own != savers))
    return muster_meta_graph_ref (meta_graph);
  if (n < 2)
    return muster_saver_build (meta_graph, &how, error);
  muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
               "More than one item in collection savers. Please indicate which one to use: "
               "make it the meta graph's own");
  return NULL;
}

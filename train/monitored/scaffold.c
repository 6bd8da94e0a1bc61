// SPDX-License-Identifier: Apache-2.0
/* A scaffold: the ops of a model that a session runs. Each is given, or the only one of its
 * collection, or built and appended to the graph (ready op, init ops), as TensorFlow's Scaffold
 * does. */
#include "train/monitored/scaffold.h"

#include "base/error.h"
#include "base/require_private.h"
#include "checkpoint/state/checkpoint_check.h"
#include "graph/graph_builder.h"
#include "graph/graph_nodes_private.h"
#include "graph/meta_graph/ready_op.h"
#include "graph/step_copy_private.h"
#include "saver/builder/saver_complete_private.h"
#include "train/completion/completion.h"
#include "train/monitored/scaffold_private.h"

#include <string.h>

#define META ".meta"

struct _MusterScaffold {
  gatomicrefcount refs;
  MusterMetaGraph *meta_graph; /* (owned) */
  MusterGraph *graph;          /* (owned) */
  MusterScaffoldOptions given; /* (owned) the strings and feeds; copy_from isn't kept */
  char **completed;            /* (owned) (nullable) */
  char *init_op;               /* (owned) (nullable), as the ones below */
  char *local_init_op;
  char *ready_op;
  char *gate_op;
  char *summary_op;
  char *train_op;
  char *global_step;
};

G_DEFINE_BOXED_TYPE (MusterScaffold, muster_scaffold, muster_scaffold_ref, muster_scaffold_unref)

/* --- given pieces --- */

/* Merges both; the value given first wins (MON.8). */
static void
take_given (MusterScaffold *self, const MusterScaffoldOptions *options)
{
  static const MusterScaffoldOptions none = {0};
  const MusterScaffoldOptions *o = options != NULL ? options : &none;
  const MusterScaffoldOptions *base = o->copy_from != NULL ? &o->copy_from->given : &none;
  gboolean own_feeds = o->n_init_feeds > 0;
  gboolean own_func = o->init_func != NULL;
  self->given = (MusterScaffoldOptions){
      .init_op = g_strdup (o->init_op != NULL ? o->init_op : base->init_op),
      .local_init_op = g_strdup (o->local_init_op != NULL ? o->local_init_op : base->local_init_op),
      .ready_op = g_strdup (o->ready_op != NULL ? o->ready_op : base->ready_op),
      .ready_for_local_init_op =
          g_strdup (o->ready_for_local_init_op != NULL ? o->ready_for_local_init_op
                                                       : base->ready_for_local_init_op),
      .summary_op = g_strdup (o->summary_op != NULL ? o->summary_op : base->summary_op),
      .train_op = g_strdup (o->train_op != NULL ? o->train_op : base->train_op),
      .global_step = g_strdup (o->global_step != NULL ? o->global_step : base->global_step),
      .n_init_feeds = own_feeds ? o->n_init_feeds : base->n_init_feeds,
      .init_func = own_func ? o->init_func : base->init_func,
      .init_func_data = own_func ? o->init_func_data : base->init_func_data,
      .init_func_owner = own_func ? o->init_func_owner : base->init_func_owner};
  if (self->given.init_func_owner != NULL)
    g_bytes_ref (self->given.init_func_owner);
  self->given.init_feeds =
      muster_feeds_copy (own_feeds ? o->init_feeds : base->init_feeds, self->given.n_init_feeds);
}

static void
clear_given (MusterScaffoldOptions *given)
{
  const char *strings[] = {
      given->init_op,    given->local_init_op, given->ready_op,   given->ready_for_local_init_op,
      given->summary_op, given->train_op,      given->global_step};
  for (gsize i = 0; i < G_N_ELEMENTS (strings); i++)
    g_free ((char *)strings[i]);
  muster_feeds_free (given->init_feeds, given->n_init_feeds);
  g_clear_pointer (&given->init_func_owner, g_bytes_unref);
}

/* --- choosing --- */

static gboolean
need_node (MusterScaffold *self, const char *name, const char *what, GError **error)
{
  g_autofree char *node = NULL;

  muster_graph_split_input (name, &node);
  if (muster_graph_has_node (muster_meta_graph_graph (self->meta_graph), node))
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "The graph has no node '%s', which was given as %s", node, what);
}

/* Sets *piece (transfer full) to the given one, or to the only one in its collection; NULL if there
 * is neither (MON.2 to MON.4). */
static gboolean
choose (MusterScaffold *self, const char *given, const char *key, char **piece, GError **error)
{
  const char *const *items = muster_meta_graph_collection (self->meta_graph, key);
  if (given != NULL && *given && !need_node (self, given, key, error))
    return FALSE;
  if (given != NULL || items == NULL || items[0] == NULL || !*items[0]) {
    *piece = given != NULL && *given ? g_strdup (given) : NULL;
    return TRUE;
  }
  if (items[1] != NULL) {
    return muster_fail (
        error, MUSTER_ERROR_INVALID_ARGUMENT,
        "More than one item in the collection \"%s\". Please indicate which one to use by "
        "passing it to the scaffold as its %s",
        key, key);
  }
  *piece = g_strdup (items[0]);
  return TRUE;
}

static gboolean
choose_all (MusterScaffold *self, GError **error)
{
  const MusterScaffoldOptions *given = &self->given;
  const char *train = given->train_op != NULL ? given->train_op
                                              : muster_meta_graph_op (self->meta_graph, "train_op");
  self->train_op = g_strdup (train);
  return choose (self, given->init_op, "init_op", &self->init_op, error) &&
         choose (self, given->local_init_op, "local_init_op", &self->local_init_op, error) &&
         choose (self, given->ready_op, "ready_op", &self->ready_op, error) &&
         choose (self, given->ready_for_local_init_op, "ready_for_local_init_op", &self->gate_op,
                 error) &&
         choose (self, given->summary_op, "summary_op", &self->summary_op, error) &&
         (given->train_op == NULL || need_node (self, given->train_op, "train_op", error));
}

/* --- building missing pieces --- */

static gboolean
add_nodes (MusterScaffold *self, MusterGraphBuilder *builder, GError **error)
{
  g_autoptr (MusterGraph) extra = muster_graph_builder_end (builder, error);
  if (extra == NULL)
    return FALSE;
  MusterGraph *both = muster_graph_extended (self->graph, extra);
  muster_graph_unref (self->graph);
  self->graph = both;
  return TRUE;
}

/* The initialisers of the global or the local variables, and those of the tables with the latter.
 */
static GPtrArray *
initializers (MusterScaffold *self, gboolean local)
{
  gsize n = 0;
  const MusterVariableInfo *variables = muster_meta_graph_variables (self->meta_graph, &n);
  const char *const *tables =
      local ? muster_meta_graph_collection (self->meta_graph, "table_initializer") : NULL;
  GPtrArray *ops = g_ptr_array_new ();

  for (gsize i = 0; i < n; i++)
    if (variables[i].is_local == local && variables[i].initializer != NULL)
      g_ptr_array_add (ops, (gpointer)variables[i].initializer);
  for (; tables != NULL && *tables != NULL; tables++)
    g_ptr_array_add (ops, (gpointer)*tables);
  return ops;
}

/* Sets *op to a NoOp that depends on all initialisers, or to NULL if there are none. */
static gboolean
build_init (MusterScaffold *self, gboolean local, const char *name, char **op, GError **error)
{
  g_autoptr (GPtrArray) ops = initializers (self, local);
  g_autoptr (MusterGraphBuilder) builder = NULL;
  if (*op != NULL || ops->len == 0)
    return TRUE;
  *op = g_strdup (name);
  if (muster_graph_has_node (self->graph, name)) /* already in the exported graph */
    return TRUE;
  g_ptr_array_add (ops, NULL);
  builder = muster_graph_builder_new_extension ();
  muster_graph_builder_group (builder, name, (const char *const *)ops->pdata);
  return add_nodes (self, builder, error);
}

/* Each op is built outside the meta graph's own graph and appended to it. */
static gboolean
build_ready (MusterScaffold *self, gboolean local_too, char **op, GError **error)
{
  if (*op != NULL)
    return TRUE;
  g_autoptr (MusterGraph) with =
      muster_graph_with_ready_op (self->meta_graph, local_too, op, error);
  if (with == NULL)
    return FALSE;
  g_autoptr (MusterGraph) extra =
      muster_graph_added (with, muster_meta_graph_graph (self->meta_graph));
  MusterGraph *both = muster_graph_extended (self->graph, extra);
  muster_graph_unref (self->graph);
  self->graph = both;
  return TRUE;
}

static gboolean
build_summary (MusterScaffold *self, GError **error)
{
  const char *const *summaries = muster_meta_graph_collection (self->meta_graph, "summaries");
  gsize n = summaries != NULL ? g_strv_length ((char **)summaries) : 0;
  g_autoptr (MusterGraphBuilder) builder = NULL;
  if (self->summary_op != NULL || self->given.summary_op != NULL || n == 0)
    return TRUE;
  self->summary_op = g_strdup ("muster/summaries:0");
  if (muster_graph_has_node (self->graph, "muster/summaries"))
    return TRUE;
  builder = muster_graph_builder_new_extension ();
  muster_graph_builder_node (builder, "MergeSummary", "muster/summaries");
  for (gsize i = 0; i < n; i++)
    muster_graph_builder_input (builder, summaries[i]);
  muster_graph_builder_attr_int (builder, "N", (gint64)n);
  return add_nodes (self, builder, error);
}

static gboolean
build_missing (MusterScaffold *self, GError **error)
{
  if (!build_ready (self, TRUE, &self->ready_op, error) ||
      !build_init (self, FALSE, "muster/init", &self->init_op, error) ||
      !build_init (self, TRUE, "muster/local_init", &self->local_init_op, error) ||
      !build_summary (self, error))
    return FALSE;
  if (self->local_init_op != NULL)
    return build_ready (self, FALSE, &self->gate_op, error);
  g_clear_pointer (&self->gate_op, g_free); /* without a ready op there is no gate */
  return TRUE;
}

/* The tensor that reads the global step: a resource variable's snapshot or a reference variable's
 * output; or a given tensor that isn't a variable's. */
static char *
find_global_step (MusterScaffold *self)
{
  const char *item = muster_meta_graph_op (self->meta_graph, "global_step");
  const char *wanted = self->given.global_step;
  gsize n = 0;
  const MusterVariableInfo *variables = muster_meta_graph_variables (self->meta_graph, &n);
  if (wanted == NULL)
    wanted = item != NULL ? item : "global_step";
  gsize length = strcspn (wanted, ":");
  for (gsize i = 0; i < n; i++) {
    if (strncmp (variables[i].name, wanted, length) != 0 || variables[i].name[length] != '\0')
      continue;
    if (variables[i].is_resource && variables[i].snapshot != NULL)
      return g_strdup (variables[i].snapshot);
    return g_strdup_printf ("%s:0", variables[i].name);
  }
  return g_strdup (self->given.global_step);
}

MusterScaffold *
muster_scaffold_new_with (MusterMetaGraph *meta_graph, const MusterScaffoldOptions *options,
                          GError **error)
{
  muster_require (error, NULL, meta_graph);

  g_autoptr (MusterScaffold) self = g_new0 (MusterScaffold, 1);
  g_atomic_ref_count_init (&self->refs);
  take_given (self, options);
  self->meta_graph = muster_meta_graph_ref (meta_graph);
  self->graph = muster_graph_ref (muster_meta_graph_graph (self->meta_graph));
  if (!choose_all (self, error) ||
      (self->given.global_step != NULL &&
       !need_node (self, self->given.global_step, "global_step", error)) ||
      !build_missing (self, error))
    return NULL;
  /* The ops built may depend on ops that a collection names but the graph lacks. */
  if (!muster_graph_parse (self->graph, error))
    return NULL;
  self->global_step = find_global_step (self);
  return g_steal_pointer (&self);
}

MusterScaffold *
muster_scaffold_new (MusterMetaGraph *meta_graph, GError **error)
{
  muster_require (error, NULL, meta_graph);
  return muster_scaffold_new_with (meta_graph, NULL, error);
}

/* With another meta graph: self itself if it is the same. Takes notes, after those of self. */
static MusterScaffold *
scaffold_of (MusterScaffold *self, MusterMetaGraph *meta_graph, char **notes, const char *train_op,
             GError **error)
{
  const MusterScaffoldOptions with = {.copy_from = self, .train_op = train_op};
  g_auto (GStrv) added = notes;
  g_autoptr (GStrvBuilder) all = g_strv_builder_new ();
  if (meta_graph == self->meta_graph && g_strcmp0 (train_op, self->given.train_op) == 0)
    return muster_scaffold_ref (self);
  MusterScaffold *other = muster_scaffold_new_with (meta_graph, &with, error);
  if (other == NULL)
    return NULL;
  if (self->completed != NULL)
    g_strv_builder_addv (all, (const char **)self->completed);
  if (added != NULL)
    g_strv_builder_addv (all, (const char **)added);
  other->completed = g_strv_builder_end (all);
  return other;
}

MusterScaffold *
muster_scaffold_with_saver (MusterScaffold *self, GError **error)
{
  muster_require (error, NULL, self);

  g_autofree char *why = NULL;
  g_autoptr (MusterMetaGraph) meta_graph = muster_saver_complete (self->meta_graph, &why, error);
  return meta_graph != NULL ? scaffold_of (self, meta_graph, NULL, NULL, error) : NULL;
}

MusterScaffold *
muster_scaffold_complete (MusterScaffold *self, GError **error)
{
  muster_require (error, NULL, self);

  const char *const own[] = {self->given.train_op, NULL};
  char **notes = NULL;
  g_autoptr (MusterMetaGraph) meta_graph =
      muster_meta_graph_complete (self->meta_graph, own, &notes, error);
  return meta_graph != NULL
             ? scaffold_of (self, meta_graph, notes,
                            own[0] != NULL ? muster_meta_graph_op (meta_graph, "train_op") : NULL,
                            error)
             : NULL;
}

MusterScaffold *
muster_scaffold_load_with (const char *path, const char *const *train_ops, GError **error)
{
  muster_require (error, NULL, path);
  if (g_str_has_suffix (path, META)) {
    g_autofree char *prefix = g_strndup (path, strlen (path) - strlen (META));
    if (!muster_checkpoint_check_meta_graph (NULL, prefix, error))
      return NULL;
  }
  g_autoptr (MusterMetaGraph) meta_graph = muster_meta_graph_load (path, error);
  if (meta_graph == NULL)
    return NULL;
  g_auto (GStrv) notes = NULL;
  g_autoptr (MusterMetaGraph) whole =
      muster_meta_graph_complete (meta_graph, train_ops, &notes, error);
  MusterScaffold *self = whole != NULL ? muster_scaffold_new (whole, error) : NULL;
  if (self == NULL)
    g_prefix_error (error, "'%s': ", path);
  else
    self->completed = g_steal_pointer (&notes);
  return self;
}

MusterScaffold *
muster_scaffold_load (const char *path, GError **error)
{
  muster_require (error, NULL, path);
  return muster_scaffold_load_with (path, NULL, error);
}

MusterScaffold *
muster_scaffold_ref (MusterScaffold *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_scaffold_unref (MusterScaffold *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->refs))
    return;
  clear_given (&self->given);
  g_strfreev (self->completed);
  g_clear_pointer (&self->meta_graph, muster_meta_graph_unref);
  g_clear_pointer (&self->graph, muster_graph_unref);
  g_free (self->init_op);
  g_free (self->local_init_op);
  g_free (self->ready_op);
  g_free (self->gate_op);
  g_free (self->summary_op);
  g_free (self->train_op);
  g_free (self->global_step);
  g_free (self);
}

MusterMetaGraph *
muster_scaffold_meta_graph (MusterScaffold *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->meta_graph;
}

const char *const *
muster_scaffold_completed (MusterScaffold *self)
{
  static const char *const none[] = {NULL};
  g_return_val_if_fail (self != NULL, NULL);
  return self->completed != NULL ? (const char *const *)self->completed : none;
}

MusterGraph *
muster_scaffold_graph (MusterScaffold *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->graph;
}

const char *
muster_scaffold_init_op (MusterScaffold *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->init_op;
}

const char *
muster_scaffold_local_init_op (MusterScaffold *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->local_init_op;
}

const char *
muster_scaffold_ready_op (MusterScaffold *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->ready_op;
}

const char *
muster_scaffold_ready_for_local_init_op (MusterScaffold *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->gate_op;
}

const char *
muster_scaffold_summary_op (MusterScaffold *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->summary_op;
}

const char *
muster_scaffold_train_op (MusterScaffold *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->train_op;
}

const char *
muster_scaffold_global_step (MusterScaffold *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->global_step;
}

const MusterFeed *
muster_scaffold_init_feeds (MusterScaffold *self, gsize *n)
{
  g_return_val_if_fail (self != NULL && n != NULL, NULL);

  *n = self->given.n_init_feeds;
  return *n > 0 ? self->given.init_feeds : NULL;
}

gboolean
muster_scaffold_has_init_func (MusterScaffold *self)
{
  g_return_val_if_fail (self != NULL, FALSE);
  return self->given.init_func != NULL;
}

gboolean
muster_scaffold_call_init_func (MusterSession *session, gint64 deadline_us,
                                GCancellable *cancellable, gpointer scaffold, GError **error)
{
  muster_require (error, FALSE, session, scaffold);

  MusterScaffold *self = scaffold;
  const MusterScaffoldOptions *given = &self->given;
  return given->init_func == NULL ||
         given->init_func (self, session, deadline_us, cancellable, given->init_func_data, error);
}

gsize
muster_scaffold_n_variables (MusterScaffold *self)
{
  g_return_val_if_fail (self != NULL, 0);
  gsize n = 0;
  muster_meta_graph_variables (self->meta_graph, &n);
  return n;
}

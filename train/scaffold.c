// SPDX-License-Identifier: Apache-2.0
#include "train/scaffold.h"

#include "base/error.h"
#include "bundle/checkpoint_look.h"
#include "graph/graph_builder.h"

#include <string.h>

#define META ".meta"

struct _MusterScaffold {
  gatomicrefcount refs;
  MusterMetaGraph *meta_graph; /* (owned) */
  MusterGraph *graph;          /* (owned) */
  char *init_op;               /* (owned) (nullable), as the ones below */
  char *local_init_op;
  char *ready_op;
  char *gate_op;
  char *global_step;
};

static char *
op_of (MusterMetaGraph *meta_graph, const char *key)
{
  const char *name = muster_meta_graph_op (meta_graph, key);
  return name == NULL || *name == '\0' ? NULL : g_strdup (name);
}

/* Adds a NoOp that waits for the initializers of the global or of the local variables; NULL if
 * there are none. */
static char *
build_init (MusterScaffold *self, gboolean local, const char *name, GError **error)
{
  gsize n = 0;
  const MusterVariableInfo *variables = muster_meta_graph_variables (self->meta_graph, &n);
  g_autoptr (GPtrArray) ops = g_ptr_array_new ();
  for (gsize i = 0; i < n; i++)
    if (variables[i].is_local == local && variables[i].initializer != NULL)
      g_ptr_array_add (ops, (gpointer)variables[i].initializer);
  if (ops->len == 0)
    return NULL;
  g_ptr_array_add (ops, NULL);
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  muster_graph_builder_group (builder, name, (const char *const *)ops->pdata);
  g_autoptr (MusterGraph) extra = muster_graph_builder_end (builder, error);
  if (extra == NULL)
    return NULL;
  MusterGraph *both = muster_graph_extended (self->graph, extra);
  muster_graph_unref (self->graph);
  self->graph = both;
  return g_strdup (name);
}

static gboolean
build_ready (MusterScaffold *self, GError **error)
{
  MusterGraph *graph = muster_graph_with_ready_op (self->meta_graph, TRUE, &self->ready_op, error);
  if (graph == NULL)
    return FALSE;
  muster_graph_unref (self->graph);
  self->graph = graph;
  return TRUE;
}

/* The tensor that reads the global step: a resource variable's snapshot, a reference variable's own
 * output. */
static char *
find_global_step (MusterMetaGraph *meta_graph)
{
  const char *item = muster_meta_graph_op (meta_graph, "global_step");
  const char *wanted = item != NULL ? item : "global_step";
  gsize length = strcspn (wanted, ":");
  gsize n = 0;
  const MusterVariableInfo *variables = muster_meta_graph_variables (meta_graph, &n);
  for (gsize i = 0; i < n; i++) {
    if (strncmp (variables[i].name, wanted, length) != 0 || variables[i].name[length] != '\0')
      continue;
    if (variables[i].is_resource && variables[i].snapshot != NULL)
      return g_strdup (variables[i].snapshot);
    return g_strdup_printf ("%s:0", variables[i].name);
  }
  return NULL;
}

MusterScaffold *
muster_scaffold_new (MusterMetaGraph *meta_graph, GError **error)
{
  g_autoptr (MusterScaffold) self = g_new0 (MusterScaffold, 1);
  g_atomic_ref_count_init (&self->refs);
  self->meta_graph = muster_meta_graph_ref (meta_graph);
  self->graph = muster_graph_ref (muster_meta_graph_graph (meta_graph));
  self->init_op = op_of (meta_graph, "init_op");
  self->local_init_op = op_of (meta_graph, "local_init_op");
  self->ready_op = op_of (meta_graph, "ready_op");
  self->gate_op = op_of (meta_graph, "ready_for_local_init_op");
  self->global_step = find_global_step (meta_graph);

  g_autoptr (GError) failure = NULL;
  if (self->ready_op == NULL && !build_ready (self, error))
    return NULL;
  if (self->init_op == NULL)
    self->init_op = build_init (self, FALSE, "muster/init", &failure);
  if (self->local_init_op == NULL && failure == NULL)
    self->local_init_op = build_init (self, TRUE, "muster/local_init", &failure);
  if (failure != NULL) {
    g_propagate_error (error, g_steal_pointer (&failure));
    return NULL;
  }
  if (self->local_init_op == NULL) /* a gate before nothing */
    g_clear_pointer (&self->gate_op, g_free);
  return g_steal_pointer (&self);
}

MusterScaffold *
muster_scaffold_load (const char *path, GError **error)
{
  if (g_str_has_suffix (path, META)) {
    g_autofree char *prefix = g_strndup (path, strlen (path) - strlen (META));
    if (!muster_checkpoint_check_meta_graph (NULL, prefix, error))
      return NULL;
  }
  g_autoptr (MusterMetaGraph) meta_graph = muster_meta_graph_load (path, error);
  if (meta_graph == NULL)
    return NULL;
  MusterScaffold *self = muster_scaffold_new (meta_graph, error);
  if (self == NULL)
    g_prefix_error (error, "'%s': ", path);
  return self;
}

MusterScaffold *
muster_scaffold_ref (MusterScaffold *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_scaffold_unref (MusterScaffold *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->refs))
    return;
  g_clear_pointer (&self->meta_graph, muster_meta_graph_unref);
  g_clear_pointer (&self->graph, muster_graph_unref);
  g_free (self->init_op);
  g_free (self->local_init_op);
  g_free (self->ready_op);
  g_free (self->gate_op);
  g_free (self->global_step);
  g_free (self);
}

MusterMetaGraph *
muster_scaffold_meta_graph (MusterScaffold *self)
{
  return self->meta_graph;
}

MusterGraph *
muster_scaffold_graph (MusterScaffold *self)
{
  return self->graph;
}

const char *
muster_scaffold_init_op (MusterScaffold *self)
{
  return self->init_op;
}

const char *
muster_scaffold_local_init_op (MusterScaffold *self)
{
  return self->local_init_op;
}

const char *
muster_scaffold_ready_op (MusterScaffold *self)
{
  return self->ready_op;
}

const char *
muster_scaffold_ready_for_local_init_op (MusterScaffold *self)
{
  return self->gate_op;
}

const char *
muster_scaffold_summary_op (MusterScaffold *self)
{
  const char *name = muster_meta_graph_op (self->meta_graph, "summary_op");
  return name != NULL && *name != '\0' ? name : NULL;
}

const char *
muster_scaffold_train_op (MusterScaffold *self)
{
  return muster_meta_graph_op (self->meta_graph, "train_op");
}

const char *
muster_scaffold_global_step (MusterScaffold *self)
{
  return self->global_step;
}

gsize
muster_scaffold_n_variables (MusterScaffold *self)
{
  gsize n = 0;
  muster_meta_graph_variables (self->meta_graph, &n);
  return n;
}

// SPDX-License-Identifier: Apache-2.0
#include "graph/meta_graph/ready_op.h"

#include "base/error.h"
#include "base/require_private.h"
#include "graph/graph_builder.h"

#include <string.h>

/* report_uninitialized_variables in TensorFlow's operations: is each variable initialised, which
 * are not, and what are these called. Names are fixed, so that every process adds the same bytes.
 *
 *   IsVariableInitialized / VarIsInitializedOp (one a variable) -> Pack -> LogicalNot -> Where ->
 *   Reshape to a vector -> GatherV2 of the names */

#define PREFIX_GLOBAL "muster/ready/global"
#define PREFIX_ALL    "muster/ready/all"

typedef struct {
  MusterGraphBuilder *builder;
  const char *prefix;
} Nodes;

static char *
node_name (const Nodes *self, const char *suffix)
{
  return g_strconcat (self->prefix, "/", suffix, NULL);
}

static void
begin (const Nodes *self, const char *op, const char *suffix)
{
  g_autofree char *name = node_name (self, suffix);
  muster_graph_builder_node (self->builder, op, name);
}

static void
take (const Nodes *self, const char *suffix)
{
  g_autofree char *name = node_name (self, suffix);
  muster_graph_builder_input (self->builder, name);
}

static void
constant (const Nodes *self, const char *suffix, MusterTensor *value)
{
  g_autofree char *name = node_name (self, suffix);
  muster_graph_builder_constant (self->builder, name, value);
}

/* A variable without a node could never become ready. */
static gboolean
add_check (const Nodes *self, guint i, const MusterVariableInfo *variable, GError **error)
{
  g_autofree char *suffix = g_strdup_printf ("is_initialized_%u", i);
  if (variable->dtype == MUSTER_INVALID) {
    return muster_fail (
        error, MUSTER_ERROR_INVALID_ARGUMENT,
        "Adding a ready op: the graph has no variable '%s', which its collections name",
        variable->name);
  }
  begin (self, variable->is_resource ? "VarIsInitializedOp" : "IsVariableInitialized", suffix);
  muster_graph_builder_input (self->builder, variable->name);
  if (!variable->is_resource)
    muster_graph_builder_attr_type (self->builder, "dtype", variable->dtype);
  muster_graph_builder_device (self->builder, variable->device);
  return TRUE;
}

static void
add_pack (const Nodes *self, guint n)
{
  begin (self, "Pack", "is_initialized");
  for (guint i = 0; i < n; i++) {
    g_autofree char *suffix = g_strdup_printf ("is_initialized_%u", i);
    take (self, suffix);
  }
  muster_graph_builder_attr_int (self->builder, "N", n);
  muster_graph_builder_attr_type (self->builder, "T", MUSTER_BOOL);
  muster_graph_builder_attr_int (self->builder, "axis", 0);
}

static void
add_indices (const Nodes *self)
{
  begin (self, "LogicalNot", "is_missing");
  take (self, "is_initialized");
  begin (self, "Where", "where");
  take (self, "is_missing");
  muster_graph_builder_attr_type (self->builder, "T", MUSTER_BOOL);

  const gint32 any = -1;
  const gint64 one = 1;
  g_autoptr (MusterTensor) vector =
      muster_tensor_new_from_data (MUSTER_INT32, 1, &one, &any, sizeof any, NULL);
  constant (self, "vector", vector);
  begin (self, "Reshape", "indices");
  take (self, "where");
  take (self, "vector");
  muster_graph_builder_attr_type (self->builder, "T", MUSTER_INT64);
  muster_graph_builder_attr_type (self->builder, "Tshape", MUSTER_INT32);
}

static void
add_gather (const Nodes *self)
{
  g_autoptr (MusterTensor) axis = muster_tensor_new_int32 (0);
  constant (self, "axis", axis);
  begin (self, "GatherV2", "missing");
  take (self, "names");
  take (self, "indices");
  take (self, "axis");
  muster_graph_builder_attr_type (self->builder, "Tparams", MUSTER_STRING);
  muster_graph_builder_attr_type (self->builder, "Tindices", MUSTER_INT64);
  muster_graph_builder_attr_type (self->builder, "Taxis", MUSTER_INT32);
  muster_graph_builder_attr_int (self->builder, "batch_dims", 0);
}

static gboolean
add_nodes (const Nodes *self, GPtrArray *variables, GError **error)
{
  g_autofree const char **names = g_new0 (const char *, variables->len + 1);
  for (guint i = 0; i < variables->len; i++) {
    const MusterVariableInfo *variable = g_ptr_array_index (variables, i);
    names[i] = variable->name;
    if (!add_check (self, i, variable, error))
      return FALSE;
  }
  g_autoptr (MusterTensor) all = muster_tensor_new_strv (names);
  if (variables->len == 0) {
    constant (self, "missing", all); /* nothing to wait for */
    return TRUE;
  }
  constant (self, "names", all);
  add_pack (self, variables->len);
  add_indices (self);
  add_gather (self);
  return TRUE;
}

static GPtrArray *
wanted_variables (MusterMetaGraph *meta_graph, gboolean include_local)
{
  gsize n;
  const MusterVariableInfo *all = muster_meta_graph_variables (meta_graph, &n);
  GPtrArray *wanted = g_ptr_array_new ();
  for (gsize i = 0; i < n; i++)
    if (include_local || !all[i].is_local)
      g_ptr_array_add (wanted, (gpointer)&all[i]);
  return wanted;
}

MusterGraph *
muster_graph_with_ready_op (MusterMetaGraph *meta_graph, gboolean include_local, char **op,
                            GError **error)
{
  muster_require (error, NULL, meta_graph, op);
  MusterGraph *graph = muster_meta_graph_graph (meta_graph);
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new_extension ();
  g_autoptr (GPtrArray) variables = wanted_variables (meta_graph, include_local);
  const Nodes nodes = {builder, include_local ? PREFIX_ALL : PREFIX_GLOBAL};
  g_autofree char *missing = node_name (&nodes, "missing");
  if (!muster_graph_parse (graph, error))
    return NULL;
  if (muster_graph_has_node (graph, missing)) { /* already added by the graph's author */
    *op = g_steal_pointer (&missing);
    return muster_graph_ref (graph);
  }
  if (!add_nodes (&nodes, variables, error))
    return NULL;
  g_autoptr (MusterGraph) extra = muster_graph_builder_end (builder, error);
  if (extra == NULL)
    return NULL;
  *op = g_steal_pointer (&missing);
  return muster_graph_extended (graph, extra);
}

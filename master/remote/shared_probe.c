// SPDX-License-Identifier: Apache-2.0
/* Sessions that bring a cluster of their own share no variables with others, unless their
 * ConfigProto asks for it and TensorFlow knows that option. What doesn't leaves them waiting for
 * variables that have long had values. */
#include "master/remote/shared_probe_private.h"

#include "base/clock.h"
#include "base/error.h"
#include "graph/graph_builder.h"

#define VARIABLE "muster/shared"

static void
node (MusterGraphBuilder *builder, const char *device, const char *op, const char *name)
{
  muster_graph_builder_node (builder, op, name);
  muster_graph_builder_device (builder, device);
  muster_graph_builder_input (builder, VARIABLE);
}

/* Others try at the same time: the variable has this name. */
static MusterGraph *
graph_of (const char *device, const char *name, GError **error)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  g_autoptr (MusterTensor) value = muster_tensor_new_int64 (1);
  muster_graph_builder_node (builder, "VarHandleOp", VARIABLE);
  muster_graph_builder_device (builder, device);
  muster_graph_builder_attr_type (builder, "dtype", MUSTER_INT64);
  muster_graph_builder_attr_shape (builder, "shape", 0, NULL);
  muster_graph_builder_attr_string (builder, "container", "");
  muster_graph_builder_attr_string (builder, "shared_name", name);
  muster_graph_builder_constant (builder, "value", value);
  muster_graph_builder_device (builder, device);
  node (builder, device, "AssignVariableOp", "set");
  muster_graph_builder_input (builder, "value");
  muster_graph_builder_attr_type (builder, "dtype", MUSTER_INT64);
  node (builder, device, "VarIsInitializedOp", "is_set");
  node (builder, device, "DestroyResourceOp", "clear");
  muster_graph_builder_attr_bool (builder, "ignore_lookup_error", TRUE);
  return muster_graph_builder_end (builder, error);
}

static gboolean
look (MusterSession *setting, MusterSession *looking, gboolean *is_shared, gint64 deadline_us,
      GCancellable *cancellable, GError **error)
{
  if (!muster_session_run_op (setting, "set", deadline_us, cancellable, error))
    return FALSE;
  g_autoptr (MusterTensor) is_set =
      muster_session_fetch (looking, "is_set:0", deadline_us, cancellable, error);
  *is_shared = is_set != NULL && *(const guint8 *)muster_tensor_data (is_set) != 0;
  return muster_session_run_op (setting, "clear", deadline_us, cancellable,
                                is_set != NULL ? error : NULL) &&
         is_set != NULL;
}

gboolean
muster_remote_probe_shared (MusterMaster *master, const char *address, const char *device,
                            GBytes *config, gint64 deadline_us, GCancellable *cancellable,
                            GError **error)
{
  g_autofree char *name =
      g_strdup_printf (VARIABLE "/%.15f", muster_clock_random (muster_system_clock ()));
  g_autoptr (MusterGraph) graph = graph_of (device, name, error);
  gboolean is_shared = FALSE;
  if (graph == NULL)
    return FALSE;
  g_autoptr (MusterSession) setting =
      muster_master_create_session (master, graph, config, deadline_us, cancellable, error);
  g_autoptr (MusterSession) looking =
      setting != NULL
          ? muster_master_create_session (master, graph, config, deadline_us, cancellable, error)
          : NULL;
  if (looking == NULL || !look (setting, looking, &is_shared, deadline_us, cancellable, error))
    return FALSE;
  return is_shared ||
         muster_fail (
             error, MUSTER_ERROR_UNIMPLEMENTED,
             "sessions at '%s' share no variables with the cluster's: its TensorFlow lacks "
             "share_session_state_in_clusterspec_propagation; use TensorFlow 1.14 or later "
             "there, or add the task to the cluster in TF_CONFIG",
             address);
}

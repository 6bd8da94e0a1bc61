// SPDX-License-Identifier: Apache-2.0
/* The counter of muster_job_limit_epochs (): it starts at n - 1, decreases by one in each epoch,
 * and has ended below 0. */
#include "base/require_private.h"
#include "graph/graph_builder.h"
#include "graph/meta_graph/meta_graph_edit.h"
#include "jobs/cluster_private.h"
#include "jobs/job.h"
#include "master/session_private.h"

#define COUNTER  MUSTER_EPOCH_COUNTER
#define READ     COUNTER "/read"
#define ASSIGN   COUNTER "/Assign"
#define INITIAL  COUNTER "/initial_value"
#define ONE      COUNTER "/one"
#define ZERO     COUNTER "/zero"
#define COUNT    COUNTER "/count_down"
#define FINISHED COUNTER "/finished"

static MusterGraph *
counter_nodes (GError **error)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new_extension ();
  g_autoptr (MusterTensor) zero = muster_tensor_new_int64 (0);
  g_autoptr (MusterTensor) one = muster_tensor_new_int64 (1);
  muster_graph_builder_variable (builder, COUNTER, zero);
  muster_graph_builder_constant (builder, ZERO, zero);
  muster_graph_builder_constant (builder, ONE, one);
  muster_graph_builder_node (builder, "AssignSub", COUNT);
  muster_graph_builder_input (builder, COUNTER);
  muster_graph_builder_input (builder, ONE);
  muster_graph_builder_attr_type (builder, "T", MUSTER_INT64);
  muster_graph_builder_node (builder, "Less", FINISHED);
  muster_graph_builder_input (builder, READ);
  muster_graph_builder_input (builder, ZERO);
  muster_graph_builder_attr_type (builder, "T", MUSTER_INT64);
  return muster_graph_builder_end (builder, error);
}

MusterMetaGraph *
muster_epoch_counter_add (MusterMetaGraph *meta_graph, GError **error)
{
  muster_require (error, NULL, meta_graph);

  MusterGraph *graph = muster_meta_graph_graph (meta_graph);
  const MusterVariableInfo counter = {
      .name = COUNTER, .initializer = ASSIGN, .snapshot = READ ":0", .dtype = MUSTER_INT64};
  if (!muster_graph_parse (graph, error))
    return NULL;
  if (muster_graph_has_node (graph, COUNTER))
    return muster_meta_graph_ref (meta_graph);
  g_autoptr (MusterGraph) nodes = counter_nodes (error);
  if (nodes == NULL)
    return NULL;
  g_autoptr (MusterGraph) both = muster_graph_extended (graph, nodes);
  return muster_meta_graph_with_variables (meta_graph, both, &counter, 1, NULL, 0, error);
}

/* Runs after the node's other tasks of the init group, because the model's own init op may set
 * the counter as well. */
static gboolean
make_counter (MusterClusterNode *node, gint64 deadline_us, GCancellable *cancellable,
              gpointer user_data, GError **error)
{
  const gint64 initial = *(const gint64 *)user_data - 1;
  g_autoptr (MusterTensor) value = muster_tensor_new_int64 (initial);
  if (initial < 0) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "negative init_count is not permitted. (%" G_GINT64_FORMAT " epochs)",
                        initial + 1);
  }
  return muster_session_run_op_fed (node->session, ASSIGN, INITIAL ":0", value, deadline_us,
                                    cancellable, error);
}

static gboolean
add_to_init (MusterJobGroup *init, const char *node, gint64 n, GError **error)
{
  const MusterJobStep make = {
      .func = make_counter, .user_data = g_memdup2 (&n, sizeof n), .destroy = g_free};
  g_autoptr (MusterJobSetup) setup = muster_job_setup_new (NULL, &make);
  /* Does nothing; it makes the node one of those to checkpoint. */
  g_autoptr (MusterJobTask) task = muster_job_task_new ("epoch_counter", node, 1);
  return muster_job_group_add (init, task, error) &&
         muster_job_group_add_setup (init, node, setup, error);
}

gboolean
muster_job_limit_epochs (MusterJob *self, const char *node, gint64 n, GError **error)
{
  muster_require (error, FALSE, self, node);

  static const char *const count[] = {COUNT, NULL};
  const MusterJobStep step = {.targets = count};
  g_autoptr (MusterJobTask) task = muster_job_task_new ("epoch_counter", node, 1);
  const char *finished[] = {FINISHED ":0", NULL};
  if (!muster_job_task_set_step (task, &step, error))
    return FALSE;
  MusterJobOutput *output = muster_job_task_add_output (task, finished, error);
  return output != NULL && add_to_init (muster_job_init_group (self), node, n, error) &&
         muster_job_add_task (self, task, error) &&
         muster_job_add_stop_output (self, output, error);
}

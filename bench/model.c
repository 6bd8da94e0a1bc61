// SPDX-License-Identifier: Apache-2.0
#include "bench/bench.h"
#include "graph/meta_graph/ready_op.h"

#include "base/unpack_private.h"
#include "graph/graph_builder.h"
#include "master/remote/remote_master.h"
#include "rpc/client/rpc_client_private.h"
#include "rpc/proto/muster.pb-c.h"

#include <glib/gstdio.h>

MusterMaster *
bench_remote (const char *address)
{
  g_autoptr (GError) error = NULL;
  MusterMaster *master = muster_remote_master_new (address, &error);
  bench_check (error, address);
  return master;
}

BenchStatus
bench_status (const char *address)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterRpcClient) client = muster_rpc_client_new (address, NULL);
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_auto (MusterRope) nothing = MUSTER_ROPE_INIT;
  MusterRpcOptions options = {.deadline_us = MUSTER_WAIT_FOREVER};
  g_autoptr (GBytes) response =
      muster_rpc_client_call (client, "/muster.Readiness/Status", &nothing, &options, NULL, &error);
  bench_check (error, "asking a server for its status");
  const Muster__StatusResponse *status =
      muster_unpack (&muster__status_response__descriptor, g_bytes_get_data (response, NULL),
                     g_bytes_get_size (response), arena, "StatusResponse", &error);
  bench_check (error, "asking a server for its status");
  return (BenchStatus){.sessions = status->sessions, .watchers = status->watchers};
}

MusterSession *
bench_create_session (MusterMaster *master, MusterGraph *graph)
{
  g_autoptr (GError) error = NULL;
  MusterSession *session =
      muster_master_create_session (master, graph, NULL, MUSTER_WAIT_FOREVER, NULL, &error);
  bench_check (error, "creating a session");
  return session;
}

void
bench_init (MusterSession *session)
{
  g_autoptr (GError) error = NULL;
  muster_session_run_op (session, "init", MUSTER_WAIT_FOREVER, NULL, &error);
  bench_check (error, "initialising");
}

MusterGraph *
bench_addition (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  g_autoptr (MusterTensor) two = muster_tensor_new_float (2);
  muster_graph_builder_placeholder (b, "x", MUSTER_FLOAT, 0, NULL);
  muster_graph_builder_constant (b, "two", two);
  muster_graph_builder_node (b, "AddV2", "sum");
  muster_graph_builder_input (b, "x");
  muster_graph_builder_input (b, "two");
  muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
  MusterGraph *graph = muster_graph_builder_end (b, &error);
  bench_check (error, "building an addition");
  return graph;
}

MusterGraph *
bench_negation (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  const gint64 dims[] = {-1};
  muster_graph_builder_placeholder (b, "x", MUSTER_FLOAT, 1, dims);
  muster_graph_builder_node (b, "Neg", "y");
  muster_graph_builder_input (b, "x");
  muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
  MusterGraph *graph = muster_graph_builder_end (b, &error);
  bench_check (error, "building a negation");
  return graph;
}

MusterTensor *
bench_ones (gint64 n)
{
  MusterTensor *tensor = muster_tensor_new (MUSTER_FLOAT, 1, &n);
  float *data = muster_tensor_data_mutable (tensor);
  for (gint64 i = 0; i < n; i++)
    data[i] = 1;
  return tensor;
}

double
bench_negate (MusterSession *session, MusterTensor *x)
{
  g_autoptr (GError) error = NULL;
  const MusterFeed feed = {"x:0", x};
  const char *fetch = "y:0";
  MusterTensor *y = NULL;
  const MusterStep step = {.feeds = &feed,
                           .n_feeds = 1,
                           .fetches = &fetch,
                           .n_fetches = 1,
                           .deadline_us = MUSTER_WAIT_FOREVER};
  const double begun = bench_now_s ();
  muster_session_run (session, &step, &y, NULL, NULL, &error);
  const double took = bench_now_s () - begun;
  bench_check (error, "running a negation");
  muster_tensor_unref (y);
  return took;
}

static MusterGraph *
build_variables (guint n)
{
  static const float zeros[4] = {0};
  const gint64 dims[] = {4};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  g_autoptr (MusterTensor) value =
      muster_tensor_new_from_data (MUSTER_FLOAT, 1, dims, zeros, sizeof zeros, &error);
  g_autoptr (GPtrArray) assigns = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < n; i++) {
    g_autofree char *name = g_strdup_printf ("layer_%u/block_%u/kernel", i / 100, i % 100);
    muster_graph_builder_variable (b, name, value);
    g_ptr_array_add (assigns, g_strconcat (name, "/Assign", NULL));
  }
  g_ptr_array_add (assigns, NULL);
  muster_graph_builder_group (b, "init", (const char *const *)assigns->pdata);
  MusterGraph *graph = muster_graph_builder_end (b, &error);
  bench_check (error, "building a model");
  return graph;
}

MusterGraph *
bench_model (guint n, char **ready_op)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraph) variables = build_variables (n);
  g_autoptr (MusterMetaGraph) meta_graph = muster_meta_graph_new_for_graph (variables);
  MusterGraph *graph = muster_graph_with_ready_op (meta_graph, FALSE, ready_op, &error);
  bench_check (error, "adding a ready op");
  return graph;
}

void
bench_add_variable (MusterGraphBuilder *b, const BenchVariable *variable)
{
  g_autofree char *filled = g_strconcat (variable->name, "/Initializer", NULL);
  g_autofree char *assign = g_strconcat (variable->name, "/Assign", NULL);
  muster_graph_builder_node (b, "VariableV2", variable->name);
  muster_graph_builder_attr_type (b, "dtype", MUSTER_FLOAT);
  muster_graph_builder_attr_shape (b, "shape", variable->n_dims, variable->shape);
  muster_graph_builder_node (b, "Fill", filled);
  muster_graph_builder_input (b, variable->dims);
  muster_graph_builder_input (b, variable->value);
  muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
  muster_graph_builder_attr_type (b, "index_type", variable->dims_type);
  muster_graph_builder_node (b, "Assign", assign);
  muster_graph_builder_input (b, variable->name);
  muster_graph_builder_input (b, filled);
  muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
}

char *
bench_model_file (GBytes *bytes)
{
  g_autoptr (GError) error = NULL;
  char *path = NULL;
  int fd = g_file_open_tmp ("muster-bench-XXXXXX", &path, &error);
  bench_check (error, "writing the model for TensorFlow");
  g_file_set_contents (path, g_bytes_get_data (bytes, NULL), (gssize)g_bytes_get_size (bytes),
                       &error);
  bench_check (error, "writing the model for TensorFlow");
  g_close (fd, NULL);
  return path;
}

MusterSessionManager *
bench_manager (MusterGraph *model, const char *ready_op)
{
  g_autoptr (GError) error = NULL;
  MusterSessionManagerOptions options = {.ready_op = ready_op};
  MusterSessionManager *manager = muster_session_manager_new (model, &options, &error);
  bench_check (error, "making a session manager");
  return manager;
}

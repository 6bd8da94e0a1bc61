// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/format/bundle_reader.h"
#include "engine/session/local_master.h"
#include "graph/graph_builder.h"
#include "graph/meta_graph/meta_graph.h"
#include "master/remote/target.h"
#include "saver/async/async_saver.h"
#include "saver/builder/saver_builder.h"
#include "server/server.h"
#include "tests/doubles/gate_storage.h"
#include "tests/gtest_shim.h"

/* Saving in the background once more on real sockets: on muster's own server, or on the one that
 * $MUSTER_TEST_TARGET names (tests/tensorflow/async_test.py starts TensorFlow's), with variables of
 * both kinds that training updates in place while they are being saved. */

#define N 1000

typedef struct {
  MusterMaster *local;  /* (owned) (nullable) behind the server of ours */
  MusterServer *server; /* (owned) (nullable) */
  MusterMaster *master;
  MusterSession *session;
  MusterGateStorage *gates;
  MusterMetaGraph *meta_graph;
  MusterSaver *saver;
  MusterAsyncSaver *async;
} Job;

static gint64
soon (void)
{
  return g_get_monotonic_time () + 60 * MUSTER_SECOND;
}

static char *
start_server (Job *job)
{
  job->local = muster_local_master_new ();
  job->server = muster_server_new (job->local, NULL);
  int port = muster_server_listen (job->server, "127.0.0.1:0", NULL);
  muster_server_start (job->server);
  return g_strdup_printf ("grpc://127.0.0.1:%d", port);
}

static void
add_filled (MusterGraphBuilder *b, const char *name, float value)
{
  const gint64 dims[] = {N};
  g_autoptr (MusterTensor) tensor = muster_tensor_new (MUSTER_FLOAT, 1, dims);
  for (gsize i = 0; i < N; i++)
    ((float *)muster_tensor_data_mutable (tensor))[i] = value;
  muster_graph_builder_constant (b, name, tensor);
}

/* An op on a handle and a value. */
static void
add_handle_op (MusterGraphBuilder *b, const char *op, const char *name, const char *value)
{
  muster_graph_builder_node (b, op, name);
  muster_graph_builder_input (b, "res");
  if (value != NULL)
    muster_graph_builder_input (b, value);
  muster_graph_builder_attr_type (b, "dtype", MUSTER_FLOAT);
}

static void
add_resource (MusterGraphBuilder *b)
{
  const gint64 dims[] = {N};
  muster_graph_builder_node (b, "VarHandleOp", "res");
  muster_graph_builder_attr_type (b, "dtype", MUSTER_FLOAT);
  muster_graph_builder_attr_shape (b, "shape", 1, dims);
  muster_graph_builder_attr_string (b, "shared_name", "res");
  muster_graph_builder_attr_string (b, "container", "");
  add_handle_op (b, "AssignVariableOp", "res/Assign", "zeros");
  add_handle_op (b, "ReadVariableOp", "res/Read", NULL);
  add_handle_op (b, "AssignAddVariableOp", "res/add", "ones");
}

static void
add_references (MusterGraphBuilder *b)
{
  const gint64 dims[] = {N};
  g_autoptr (MusterTensor) zeros = muster_tensor_new (MUSTER_FLOAT, 1, dims);
  g_autoptr (MusterTensor) text = muster_tensor_new_string ("before");
  g_autoptr (MusterTensor) after = muster_tensor_new_string ("after");
  memset (muster_tensor_data_mutable (zeros), 0, muster_tensor_n_bytes (zeros));
  muster_graph_builder_variable (b, "ref", zeros);
  muster_graph_builder_node (b, "AssignAdd", "ref/add");
  muster_graph_builder_input (b, "ref");
  muster_graph_builder_input (b, "ones");
  muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
  muster_graph_builder_variable (b, "text", text);
  muster_graph_builder_constant (b, "after", after);
  muster_graph_builder_node (b, "Assign", "text/change");
  muster_graph_builder_input (b, "text");
  muster_graph_builder_input (b, "after");
  muster_graph_builder_attr_type (b, "T", MUSTER_STRING);
}

static MusterMetaGraph *
build_model (gboolean sharded)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  g_autoptr (GError) error = NULL;
  add_filled (b, "zeros", 0);
  add_filled (b, "ones", 1);
  add_resource (b);
  add_references (b);
  muster_graph_builder_group (
      b, "init", (const char *const[]){"res/Assign", "ref/Assign", "text/Assign", NULL});
  muster_graph_builder_group (b, "train",
                              (const char *const[]){"res/add", "ref/add", "text/change", NULL});
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (b, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  g_autoptr (MusterMetaGraph) bare = muster_meta_graph_new_for_graph (graph);
  MusterMetaGraph *meta_graph =
      muster_saver_build (bare, &(MusterSaverBuild){.sharded = sharded}, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return meta_graph;
}

static void
run (Job *job, const char *op, int times)
{
  g_autoptr (GError) error = NULL;
  for (int i = 0; i < times; i++) {
    (void)muster_session_run_op (job->session, op, soon (), NULL, &error);
    MUSTER_EXPECT_NO_ERROR (error);
  }
}

static Job
job_new (gboolean sharded)
{
  Job job = {.gates = muster_gate_storage_new (), .meta_graph = build_model (sharded)};
  const char *given = g_getenv ("MUSTER_TEST_TARGET");
  g_autofree char *target = given != NULL ? g_strdup (given) : start_server (&job);
  MusterSaverOptions options = {.storage = MUSTER_STORAGE (job.gates)};
  g_autoptr (GError) error = NULL;

  job.master = muster_master_new_for_target (target, &error);
  muster_master_reset (job.master, NULL, soon (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  job.session = muster_master_create_session (job.master, muster_meta_graph_graph (job.meta_graph),
                                              NULL, soon (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  job.saver = muster_saver_new (job.meta_graph, &options, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  job.async = muster_async_saver_new (job.saver, job.session, MUSTER_SAVES_BLOCK, 0, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  run (&job, "init", 1);
  MUSTER_EXPECT_TRUE (muster_async_saver_prepare (job.async, soon (), NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  return job;
}

static void
job_clear (Job *job)
{
  muster_gate_storage_open_gate (job->gates, MUSTER_GATE_BEGIN);
  g_clear_object (&job->async);
  g_clear_object (&job->saver);
  g_clear_object (&job->session);
  g_clear_object (&job->master);
  g_clear_pointer (&job->server, muster_server_free);
  g_clear_object (&job->local);
  g_clear_object (&job->gates);
  g_clear_pointer (&job->meta_graph, muster_meta_graph_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Job, job_clear)

/* Every element of a variable has this value. */
static void
check_filled (MusterTensor *tensor, const char *name, float value)
{
  const float *data = tensor != NULL ? muster_tensor_data (tensor) : NULL;
  for (gsize i = 0; data != NULL && i < N; i++) {
    if (data[i] == value)
      continue;
    MUSTER_FAIL ("%s[%" G_GSIZE_FORMAT "] is %g, not %g", name, i, (double)data[i], (double)value);
    return;
  }
  MUSTER_EXPECT_TRUE (data != NULL);
}

static void
check_checkpoint (const char *prefix, float value, const char *text)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, prefix, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterTensor) ref = muster_bundle_reader_read (reader, "ref", &error);
  g_autoptr (MusterTensor) res = muster_bundle_reader_read (reader, "res", &error);
  g_autoptr (MusterTensor) string = muster_bundle_reader_read (reader, "text", &error);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_bundle_reader_n_entries (reader), 3u);
  check_filled (ref, "ref", value);
  check_filled (res, "res", value);
  MusterString got = muster_tensor_string (string, 0);
  MUSTER_EXPECT_MEMEQ (got.data, got.size, text, strlen (text));
}

/* Training goes on, in place, between the cut and the write. */
static void
save_while_training (gboolean sharded)
{
  g_auto (Job) job = job_new (sharded);
  g_autoptr (GError) error = NULL;
  muster_gate_storage_close_gate (job.gates, MUSTER_GATE_BEGIN);
  g_autoptr (MusterSaveTicket) first =
      muster_async_saver_save (job.async, muster_test_tmpdir (), -1, soon (), NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  run (&job, "train", 3);
  muster_gate_storage_open_gate (job.gates, MUSTER_GATE_BEGIN);
  MUSTER_EXPECT_TRUE (muster_save_ticket_wait (first, MUSTER_SAVE_DURABLE, soon (), NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);

  muster_gate_storage_close_gate (job.gates, MUSTER_GATE_BEGIN);
  g_autoptr (MusterSaveTicket) second =
      muster_async_saver_save (job.async, muster_test_tmpdir (), -1, soon (), NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  run (&job, "train", 2);
  muster_gate_storage_open_gate (job.gates, MUSTER_GATE_BEGIN);
  MUSTER_EXPECT_TRUE (muster_async_saver_sync (job.async, soon (), NULL, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  check_checkpoint (muster_save_ticket_path (first), 0, "before");
  check_checkpoint (muster_save_ticket_path (second), 3, "after");
  g_autoptr (MusterTensor) now =
      muster_session_fetch (job.session, "ref/read:0", soon (), NULL, NULL);
  check_filled (now, "ref now", 5);
  MUSTER_EXPECT_TRUE (
      muster_async_saver_read (job.async, muster_save_ticket_path (first), soon (), NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  g_autoptr (MusterTensor) then =
      muster_session_fetch (job.session, "res/Read:0", soon (), NULL, NULL);
  check_filled (then, "res restored", 0);
}

/* B001.35, B001.42, B001.49, B001.66 in graph mode */
MUSTER_TEST (AsyncServed, saves_a_consistent_cut_while_training_goes_on)
{
  save_while_training (FALSE);
}

MUSTER_TEST (AsyncServed, saves_shards_merged_as_the_original_does)
{
  save_while_training (TRUE);
}

/* The shadows' memory is given back, whether or not the save went well. */
MUSTER_TEST (AsyncServed, fails_as_a_save_does_and_goes_on)
{
  g_auto (Job) job = job_new (FALSE);
  g_autoptr (GError) error = NULL;
  muster_gate_storage_fail (job.gates, 1, MUSTER_ERROR_RESOURCE_EXHAUSTED, "no room");
  g_autoptr (MusterSaveTicket) failed =
      muster_async_saver_save (job.async, muster_test_tmpdir (), -1, soon (), NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (muster_async_saver_sync (job.async, soon (), NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED);
  g_clear_error (&error);
  run (&job, "train", 1);
  g_autoptr (MusterSaveTicket) next =
      muster_async_saver_save (job.async, muster_test_tmpdir (), -1, soon (), NULL, &error);
  MUSTER_EXPECT_TRUE (muster_async_saver_shutdown (job.async, soon (), NULL, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  check_checkpoint (muster_save_ticket_path (next), 1, "after");
}

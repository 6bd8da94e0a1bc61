// SPDX-License-Identifier: Apache-2.0
/* What training reads of messages: a scaffold and its queue runners from a .meta file's
 * collections, and a traced run's timeline from its metadata; the first byte picks. */
#include "base/protowire_private.h"
#include "graph/graph_builder.h"
#include "graph/meta_graph/meta_graph.h"
#include "saver/builder/saver_builder.h"
#include "tests/fuzz/fuzz.h"
#include "train/hooks/timeline_private.h"
#include "train/monitored/queue_runner_private.h"
#include "train/monitored/scaffold.h"

#include <string.h>

enum { SCAFFOLD, SCAFFOLD_WITH_SAVER, QUEUE_RUNNERS, TIMELINE, N_KINDS };

/* What a piece of a scaffold names is a node of its graph, or the master would be asked for it. */
static void
check_built (MusterScaffold *scaffold, const char *piece, const char *built)
{
  if (piece != NULL && g_str_has_prefix (piece, built))
    g_assert_true (muster_graph_has_node (muster_scaffold_graph (scaffold), built));
}

static void
try_scaffold (MusterMetaGraph *meta_graph, gboolean needs_saver)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) model =
      needs_saver ? muster_saver_default (meta_graph, &error) : muster_meta_graph_ref (meta_graph);
  g_autoptr (MusterScaffold) scaffold = model != NULL ? muster_scaffold_new (model, &error) : NULL;
  g_assert_true ((scaffold == NULL) == (error != NULL));
  if (scaffold == NULL)
    return;
  g_assert_nonnull (muster_scaffold_ready_op (scaffold));
  check_built (scaffold, muster_scaffold_init_op (scaffold), "muster/init");
  check_built (scaffold, muster_scaffold_local_init_op (scaffold), "muster/local_init");
  check_built (scaffold, muster_scaffold_summary_op (scaffold), "muster/summaries");
  g_assert_true ((muster_scaffold_local_init_op (scaffold) != NULL) ||
                 muster_scaffold_ready_for_local_init_op (scaffold) == NULL);
  g_autoptr (GBytes) bytes = g_bytes_ref (muster_graph_bytes (muster_scaffold_graph (scaffold)));
  g_autoptr (MusterGraph) again = muster_graph_new (bytes);
  g_assert_nonnull (again);
}

static void
try_queue_runners (MusterMetaGraph *meta_graph)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) runners = muster_queue_runners_of (meta_graph, &error);
  g_assert_true ((runners == NULL) == (error != NULL));
  g_assert_true (error == NULL || g_utf8_validate (error->message, -1, NULL));
}

static void
try_timeline (GBytes *metadata)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *json = muster_timeline_of (metadata, &error);
  g_assert_true (json == NULL || error == NULL);
  g_assert_true (json == NULL || g_utf8_validate (json, -1, NULL));
  for (const char *at = json; at != NULL && *at != '\0'; at++)
    g_assert_true ((guchar)*at >= ' ' || *at == '\n');
}

const gsize muster_fuzz_n_picks = 1;

int
LLVMFuzzerTestOneInput (const guint8 *data, gsize size)
{
  if (size == 0)
    return 0;
  const guint kind = data[0] % N_KINDS;
  g_autoptr (GBytes) message = g_bytes_new_static (data + 1, size - 1);
  if (kind == TIMELINE) {
    try_timeline (message);
    return 0;
  }
  g_autoptr (MusterMetaGraph) meta_graph = muster_meta_graph_new (message, NULL);
  if (meta_graph != NULL && kind == QUEUE_RUNNERS)
    try_queue_runners (meta_graph);
  else if (meta_graph != NULL)
    try_scaffold (meta_graph, kind == SCAFFOLD_WITH_SAVER);
  return 0;
}

/* --- seeds --- */

enum { META_COLLECTION = 4, KEY = 1, VALUE = 2 };              /* tensorflow.MetaGraphDef's map */
enum { NODE_LIST = 1, BYTES_LIST = 2, LIST_VALUE = 1 };        /* tensorflow.CollectionDef */
enum { QUEUE = 1, ENQUEUE, CLOSE, CANCEL, CLOSED_BY };         /* tensorflow.QueueRunnerDef */
enum { VARIABLE = 1, INITIALIZER, SNAPSHOT, IS_RESOURCE = 5 }; /* tensorflow.VariableDef */

static void
put_collection (GByteArray *meta, const char *key, guint32 kind, const void *item, gsize size)
{
  g_autoptr (GByteArray) list = g_byte_array_new ();
  g_autoptr (GByteArray) value = g_byte_array_new ();
  g_autoptr (GByteArray) entry = g_byte_array_new ();
  muster_proto_put_bytes (list, LIST_VALUE, item, size);
  muster_proto_put_bytes (value, kind, list->data, list->len);
  muster_proto_put_string (entry, KEY, key);
  muster_proto_put_bytes (entry, VALUE, value->data, value->len);
  muster_proto_put_bytes (meta, META_COLLECTION, entry->data, entry->len);
}

static void
put_variable (GByteArray *meta, const char *key)
{
  g_autoptr (GByteArray) variable = g_byte_array_new ();
  muster_proto_put_string (variable, VARIABLE, "v:0");
  muster_proto_put_string (variable, INITIALIZER, "assign");
  muster_proto_put_string (variable, SNAPSHOT, "read:0");
  muster_proto_put_uint (variable, IS_RESOURCE, 1);
  put_collection (meta, key, BYTES_LIST, variable->data, variable->len);
}

static void
put_runner (GByteArray *meta)
{
  g_autoptr (GByteArray) runner = g_byte_array_new ();
  muster_proto_put_string (runner, QUEUE, "q");
  muster_proto_put_string (runner, ENQUEUE, "enqueue");
  muster_proto_put_string (runner, CLOSE, "close");
  muster_proto_put_string (runner, CANCEL, "cancel");
  muster_proto_put_bytes (runner, CLOSED_BY, "\x0b\x0c", 2);
  put_collection (meta, "queue_runners", BYTES_LIST, runner->data, runner->len);
}

/* A graph of all that the collections name. */
static GByteArray *
new_meta_graph (void)
{
  static const char *const nodes[] = {"enqueue", "close", "cancel", "init", "table", "assign"};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  for (gsize i = 0; i < G_N_ELEMENTS (nodes); i++)
    muster_graph_builder_node (builder, "NoOp", nodes[i]);
  muster_graph_builder_node (builder, "VarHandleOp", "v");
  muster_graph_builder_attr_type (builder, "dtype", MUSTER_FLOAT);
  muster_graph_builder_node (builder, "ReadVariableOp", "read");
  muster_graph_builder_input (builder, "v");
  muster_graph_builder_attr_type (builder, "dtype", MUSTER_FLOAT);
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (builder, &error);
  g_assert_no_error (error);
  g_autoptr (MusterMetaGraph) plain = muster_meta_graph_new_for_graph (graph);
  gsize size;
  const guint8 *data = g_bytes_get_data (muster_meta_graph_bytes (plain), &size);
  GByteArray *meta = g_byte_array_new ();
  g_byte_array_append (meta, data, (guint)size);
  return meta;
}

static void
seed_meta_graphs (void)
{
  for (guint8 kind = SCAFFOLD; kind < TIMELINE; kind++) {
    g_autoptr (GByteArray) meta = new_meta_graph ();
    put_runner (meta);
    put_variable (meta, "variables");
    put_variable (meta, "local_variables");
    put_collection (meta, "table_initializer", NODE_LIST, "table", 5);
    put_collection (meta, "summaries", NODE_LIST, "read:0", 6);
    muster_fuzz_seed (&kind, meta->data, meta->len);
    put_collection (meta, "init_op", NODE_LIST, "init", 4);
    put_collection (meta, "train_op", NODE_LIST, "assign", 6);
    put_collection (meta, "global_step", NODE_LIST, "v:0", 3);
    muster_fuzz_seed (&kind, meta->data, meta->len);
  }
}

static void
seed_timeline (void)
{
  enum { STEP_STATS = 1, DEVICE = 1, DEVICE_NAME = 1, NODE = 2 };
  enum { NODE_NAME = 1, START = 2, OP_END = 4, ALL_END = 5, LABEL = 8, THREAD = 10 };
  const guint8 kind = TIMELINE;
  g_autoptr (GByteArray) node = g_byte_array_new ();
  g_autoptr (GByteArray) device = g_byte_array_new ();
  g_autoptr (GByteArray) stats = g_byte_array_new ();
  g_autoptr (GByteArray) metadata = g_byte_array_new ();
  muster_proto_put_string (node, NODE_NAME, "dense\"\n\\");
  muster_proto_put_uint (node, START, 1600000000000000);
  muster_proto_put_uint (node, OP_END, 12);
  muster_proto_put_uint (node, ALL_END, 15);
  muster_proto_put_string (node, LABEL, "dense = MatMul(x, w)");
  muster_proto_put_uint (node, THREAD, 3);
  muster_proto_put_string (device, DEVICE_NAME, "/cpu:0");
  muster_proto_put_bytes (device, NODE, node->data, node->len);
  muster_proto_put_bytes (stats, DEVICE, device->data, device->len);
  muster_proto_put_bytes (metadata, STEP_STATS, stats->data, stats->len);
  muster_fuzz_seed (&kind, metadata->data, metadata->len);
}

void
muster_fuzz_seeds (void)
{
  seed_meta_graphs ();
  seed_timeline ();
}

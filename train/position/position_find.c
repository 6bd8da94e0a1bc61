// SPDX-License-Identifier: Apache-2.0
/* Finds out whether a master's model has positions, for programs that aren't tasks of the job. */
#include "base/error.h"
#include "base/require.h"
#include "graph/graph_builder.h"
#include "graph/meta_graph/meta_graph.h"
#include "train/position/position_private.h"

#define IS_THERE "muster/find/is_there"
#define READ     "muster/find/read"

/* A graph that reads "muster/begun", whatever its length. */
static MusterGraph *
graph_to_read (MusterMetaGraph *meta_graph, GError **error)
{
  static const char *const readers[][2] = {{"VarIsInitializedOp", IS_THERE},
                                           {"ReadVariableOp", READ}};
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  const char *device = muster_position_device (meta_graph);

  muster_graph_builder_node (builder, "VarHandleOp", MUSTER_POSITION_BEGUN);
  muster_graph_builder_device (builder, device);
  muster_graph_builder_attr_type (builder, "dtype", MUSTER_INT64);
  muster_graph_builder_attr_shape (builder, "shape", -1, NULL);
  muster_graph_builder_attr_string (builder, "container", "");
  muster_graph_builder_attr_string (builder, "shared_name", MUSTER_POSITION_BEGUN);
  for (gsize i = 0; i < G_N_ELEMENTS (readers); i++) {
    muster_graph_builder_node (builder, readers[i][0], readers[i][1]);
    muster_graph_builder_device (builder, device);
    muster_graph_builder_input (builder, MUSTER_POSITION_BEGUN);
  }
  muster_graph_builder_attr_type (builder, "dtype", MUSTER_INT64);
  return muster_graph_builder_end (builder, error);
}

/* Sets *n_tasks to 0 if there are no positions. */
static gboolean
look (MusterSession *session, guint *n_tasks, gint64 deadline_us, GCancellable *cancellable,
      GError **error)
{
  g_autoptr (MusterTensor) is_there =
      muster_session_fetch (session, IS_THERE ":0", deadline_us, cancellable, error);

  *n_tasks = 0;
  if (is_there == NULL)
    return FALSE;
  if (muster_tensor_dtype (is_there) != MUSTER_BOOL || muster_tensor_n_elements (is_there) != 1 ||
      !*(const guint8 *)muster_tensor_data (is_there))
    return TRUE;
  g_autoptr (MusterTensor) begun =
      muster_session_fetch (session, READ ":0", deadline_us, cancellable, error);
  if (begun == NULL)
    return FALSE;
  const gint64 n = muster_tensor_n_elements (begun);
  if (n < 1 || n > MUSTER_POSITION_MOST_TASKS)
    return muster_fail (error, MUSTER_ERROR_DATA_LOSS,
                        "'%s' on the master holds %" G_GINT64_FORMAT
                        " elements instead of one for each task",
                        MUSTER_POSITION_BEGUN, n);
  *n_tasks = (guint)n;
  return muster_position_check_counts (begun, *n_tasks, error);
}

static MusterMetaGraph *
extend (MusterMetaGraph *meta_graph, guint n_tasks, GError **error)
{
  GError *failure = NULL;
  MusterMetaGraph *extended = n_tasks > 0 ? muster_position_add (meta_graph, n_tasks, &failure)
                                          : muster_meta_graph_ref (meta_graph);

  if (failure != NULL)
    g_propagate_prefixed_error (error, failure,
                                "the master has the positions of %u task%s, which a save with this "
                                "meta graph would lose; use the job's meta graph: ",
                                n_tasks, n_tasks == 1 ? "" : "s");
  return extended;
}

MusterMetaGraph *
muster_position_find (MusterMaster *master, MusterMetaGraph *meta_graph, GBytes *config,
                      gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  muster_require (error, NULL, master, meta_graph);

  guint n_tasks = 0;

  if (!MUSTER_IS_MASTER (master) || meta_graph == NULL) {
    (void)muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                       "finding positions needs a master and a meta graph");
    return NULL;
  }
  if (muster_position_n_tasks (meta_graph) > 0)
    return muster_meta_graph_ref (meta_graph);
  g_autoptr (MusterGraph) graph = graph_to_read (meta_graph, error);
  g_autoptr (MusterSession) session =
      graph != NULL
          ? muster_master_create_session (master, graph, config, deadline_us, cancellable, error)
          : NULL;
  if (session == NULL)
    return NULL;
  const gboolean is_known = look (session, &n_tasks, deadline_us, cancellable, error);
  muster_session_close_quietly (session);
  return is_known ? extend (meta_graph, n_tasks, error) : NULL;
}

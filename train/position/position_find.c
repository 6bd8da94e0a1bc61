// SPDX-License-Identifier: Apache-2.0
/* Finds out whether a master's model has positions, for programs that aren't tasks of the job. */
#include "base/error.h"
#include "base/require_private.h"
#include "graph/graph_builder.h"
#include "graph/meta_graph/meta_graph.h"
#include "train/position/position_private.h"

/* Where the master may have counts. A chief whose batches are dealt resets the master first, one
 * with a single task may leave an earlier job's slots. */
static const struct {
  const char *variable;
  const char *is_there;
  const char *read;
  gboolean is_dealt;
} places[] = {
    {MUSTER_POSITION_BEGUN, "muster/find/is_there", "muster/find/read", FALSE},
    {MUSTER_POSITION_SLOT_BEGUN, "muster/find/slot/is_there", "muster/find/slot/read", TRUE},
};

/* Adds a node that reads variable. */
static void
add_reader (MusterGraphBuilder *builder, const char *device, const char *op, const char *name,
            const char *variable)
{
  muster_graph_builder_node (builder, op, name);
  muster_graph_builder_device (builder, device);
  muster_graph_builder_input (builder, variable);
}

/* A graph that reads the counts, whatever their length. */
static MusterGraph *
graph_to_read (MusterMetaGraph *meta_graph, GError **error)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  const char *device = muster_position_device (meta_graph);
  for (gsize i = 0; i < G_N_ELEMENTS (places); i++) {
    const char *variable = places[i].variable;
    muster_graph_builder_node (builder, "VarHandleOp", variable);
    muster_graph_builder_device (builder, device);
    muster_graph_builder_attr_type (builder, "dtype", MUSTER_INT64);
    muster_graph_builder_attr_shape (builder, "shape", -1, NULL);
    muster_graph_builder_attr_string (builder, "container", "");
    muster_graph_builder_attr_string (builder, "shared_name", variable);
    add_reader (builder, device, "VarIsInitializedOp", places[i].is_there, variable);
    add_reader (builder, device, "ReadVariableOp", places[i].read, variable);
    muster_graph_builder_attr_type (builder, "dtype", MUSTER_INT64);
  }
  return muster_graph_builder_end (builder, error);
}

/* Whose positions a master keeps. */
typedef struct {
  guint n_tasks; /* 0: none */
  gboolean is_dealt;
} Found;

static MusterTensor *
fetch (MusterSession *session, const char *node, gint64 deadline_us, GCancellable *cancellable,
       GError **error)
{
  g_autofree char *tensor = g_strconcat (node, ":0", NULL);

  return muster_session_fetch (session, tensor, deadline_us, cancellable, error);
}

static gboolean
look_at (MusterSession *session, gsize place, Found *found, gint64 deadline_us,
         GCancellable *cancellable, GError **error)
{
  g_autoptr (MusterTensor) is_there =
      fetch (session, places[place].is_there, deadline_us, cancellable, error);

  if (is_there == NULL)
    return FALSE;
  if (!muster_position_is_true (is_there))
    return TRUE;
  g_autoptr (MusterTensor) begun =
      fetch (session, places[place].read, deadline_us, cancellable, error);
  if (begun == NULL)
    return FALSE;
  const gint64 n = muster_tensor_n_elements (begun);
  if (n < 1 || n > MUSTER_POSITION_MOST_TASKS)
    return muster_fail (error, MUSTER_ERROR_DATA_LOSS,
                        "'%s' on the master holds %" G_GINT64_FORMAT
                        " elements instead of one for each task",
                        places[place].variable, n);
  *found = (Found){(guint)n, places[place].is_dealt};
  g_auto (MusterPositionState)
      state = {.is_dealt = found->is_dealt, .begun = g_steal_pointer (&begun)};
  muster_position_read_fence (&state);
  return muster_position_check_counts (state.begun, found->n_tasks, error);
}

static gboolean
look (MusterSession *session, Found *found, gint64 deadline_us, GCancellable *cancellable,
      GError **error)
{
  for (gsize i = 0; i < G_N_ELEMENTS (places) && found->n_tasks == 0; i++)
    if (!look_at (session, i, found, deadline_us, cancellable, error))
      return FALSE;
  return TRUE;
}

static MusterMetaGraph *
add (MusterMetaGraph *meta_graph, const Found *found, GError **error)
{
  if (found->n_tasks == 0)
    return muster_meta_graph_ref (meta_graph);
  return found->is_dealt ? muster_position_add_dealt (meta_graph, found->n_tasks, error)
                         : muster_position_add (meta_graph, found->n_tasks, error);
}

static MusterMetaGraph *
extend (MusterMetaGraph *meta_graph, const Found *found, GError **error)
{
  const guint n_tasks = found->n_tasks;
  GError *failure = NULL;
  MusterMetaGraph *extended = add (meta_graph, found, &failure);
  if (failure != NULL)
    g_propagate_prefixed_error (error, failure,
                                "the master has the positions of %u task%s, which a save with this "
                                "meta graph would lose; use the job's meta graph: ",
                                n_tasks, n_tasks == 1 ? "" : "s");
  return extended;
}

static gboolean
look_at_master (MusterMaster *master, MusterMetaGraph *meta_graph, GBytes *config, Found *found,
                gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  g_autoptr (MusterGraph) graph = graph_to_read (meta_graph, error);
  g_autoptr (MusterSession) session =
      graph != NULL
          ? muster_master_create_session (master, graph, config, deadline_us, cancellable, error)
          : NULL;
  if (session == NULL)
    return FALSE;
  const gboolean is_known = look (session, found, deadline_us, cancellable, error);
  muster_session_close_quietly (session);
  return is_known;
}

gboolean
muster_position_refuse (MusterMaster *master, MusterMetaGraph *meta_graph, GBytes *config,
                        gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  Found found = {0};
  return look_at_master (master, meta_graph, config, &found, deadline_us, cancellable, error) &&
         (found.n_tasks == 0 ||
          muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                       "the model on the parameter servers has the positions of %u tasks, but this "
                       "task trains without; use positions in all tasks or in none, and restart "
                       "the parameter servers for a job without",
                       found.n_tasks));
}

MusterMetaGraph *
muster_position_find (MusterMaster *master, MusterMetaGraph *meta_graph, GBytes *config,
                      gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  muster_require (error, NULL, master, meta_graph);

  Found found = {0};
  if (!MUSTER_IS_MASTER (master) || meta_graph == NULL) {
    (void)muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                       "finding positions needs a master and a meta graph");
    return NULL;
  }
  if (muster_position_n_tasks (meta_graph) > 0)
    return muster_meta_graph_ref (meta_graph);
  return look_at_master (master, meta_graph, config, &found, deadline_us, cancellable, error)
             ? extend (meta_graph, &found, error)
             : NULL;
}

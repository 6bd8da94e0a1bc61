// SPDX-License-Identifier: Apache-2.0
#include "train/completion/step_waits_private.h"

#include "graph/graph_nodes_private.h"
#include "graph/graph_walk_private.h"
#include "train/completion/queue_runner_def_private.h"
#include "train/completion/sync_replicas_private.h"

static char *
describe_token (const MusterSyncReplicas *sync)
{
  return g_strdup_printf ("each step waits for a token in the queue '%s', which the chief fills "
                          "after %" G_GINT64_FORMAT " gradient%s of the replicas: check that the "
                          "chief and the other replicas train",
                          sync->queue, sync->n_tokens, sync->n_tokens == 1 ? "" : "s");
}

static gboolean
has_runner (const GPtrArray *runners, const char *queue)
{
  for (guint i = 0; runners != NULL && i < runners->len; i++)
    if (g_strcmp0 (((const MusterQueueRunner *)runners->pdata[i])->queue, queue) == 0)
      return TRUE;
  return FALSE;
}

/* Of the queues that the marked nodes take from, one that no queue runner fills, or else the first.
 */
static char *
describe_queue (MusterMetaGraph *meta_graph, const guint8 *needed)
{
  MusterGraph *graph = muster_meta_graph_graph (meta_graph);
  g_autoptr (GPtrArray) runners = muster_queue_runners_of (meta_graph, NULL);
  const char *found = NULL;
  for (gsize i = 0; i < muster_graph_n_nodes (graph); i++) {
    if (!needed[i] || !g_str_has_prefix (muster_graph_node (graph, i)->kind->op, "QueueDequeue"))
      continue;
    const gssize queue = muster_graph_origin (graph, i, 0);
    const char *name = queue >= 0 ? muster_graph_node (graph, (gsize)queue)->name : NULL;
    if (name != NULL && !has_runner (runners, name))
      return g_strdup_printf ("each step takes from the queue '%s', which no queue runner of the "
                              "graph fills: check what fills it",
                              name);
    if (found == NULL)
      found = name;
  }
  return found == NULL ? NULL
                       : g_strdup_printf ("each step takes from the queue '%s', which a queue "
                                          "runner fills: check its input",
                                          found);
}

char *
muster_step_waits_for (MusterMetaGraph *meta_graph, const guint8 *needed)
{
  g_auto (MusterSyncReplicas) sync = {0};
  if (muster_sync_replicas_find (meta_graph, &sync) &&
      needed[muster_graph_find_named (muster_meta_graph_graph (meta_graph), sync.token)])
    return describe_token (&sync);
  return describe_queue (meta_graph, needed);
}

// SPDX-License-Identifier: Apache-2.0
/* The nodes of a job: named masters with a model each. It opens and closes their sessions,
 * compiles groups for them, and runs groups on them. */
#include "jobs/cluster.h"

#include "base/require_private.h"
#include "graph/graph_nodes_private.h"
#include "graph/meta_graph/ready_op.h"
#include "jobs/cluster_private.h"
#include "jobs/job_group_private.h"
#include "session/manager.h"

#include <string.h>

struct _MusterCluster {
  GObject parent;
  MusterClock *clock; /* (owned) */
  GPtrArray *nodes;   /* (owned) (element-type MusterClusterNode) */
  gboolean is_open;
  gboolean is_closed;
};

G_DEFINE_FINAL_TYPE (MusterCluster, muster_cluster, G_TYPE_OBJECT)

MusterCluster *
muster_cluster_new (MusterClock *clock)
{
  MusterCluster *self = g_object_new (MUSTER_TYPE_CLUSTER, NULL);
  self->clock = g_object_ref (clock ? clock : muster_system_clock ());
  return self;
}

static gboolean
refuse_call (GError **error, const char *words)
{
  return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION, "%s", words);
}

/* --- nodes --- */

static void
node_free (gpointer data)
{
  MusterClusterNode *self = data;
  muster_session_close_quietly (self->session);
  g_clear_object (&self->session);
  g_clear_object (&self->master);
  muster_scaffold_unref (self->scaffold);
  g_clear_pointer (&self->graph, muster_graph_unref);
  g_free ((char *)self->missing_op);
  g_free ((char *)self->name);
  g_free (self);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterClusterNode, node_free)

/* The scaffold's graph, plus the op that lists uninitialised global variables. */
static gboolean
build_graph (MusterClusterNode *self, GError **error)
{
  MusterMetaGraph *meta_graph = muster_scaffold_meta_graph (self->scaffold);
  MusterGraph *own = muster_meta_graph_graph (meta_graph);
  g_autoptr (MusterGraph) with =
      muster_graph_with_ready_op (meta_graph, FALSE, (char **)&self->missing_op, error);

  if (with == NULL)
    return FALSE;
  g_autoptr (MusterGraph) extra = muster_graph_added (with, own);
  self->graph = muster_graph_extended (muster_scaffold_graph (self->scaffold), extra);
  return muster_graph_parse (self->graph, error);
}

static gboolean
fail_shared (const char *name, const MusterClusterNode *other, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "Node '%s' can't be on the master of node '%s' ('%s'): they would share "
                      "variables; give each node a master of its own",
                      name, other->name, muster_master_target (other->master));
}

static gboolean
check_name (MusterCluster *self, const char *name, GError **error)
{
  gboolean is_good = *name != '\0' && *name != '.';
  for (const char *c = name; *c; c++)
    is_good = is_good && (g_ascii_isalnum (*c) || strchr ("_-.", *c) != NULL);
  if (!is_good)
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "invalid node name '%s': it is used in file names", name);
  else if (muster_cluster_node (self, name) != NULL)
    muster_fail (error, MUSTER_ERROR_ALREADY_EXISTS, "The cluster has a node '%s' already", name);
  else
    return TRUE;
  return FALSE;
}

/* Nodes share nothing, but a master's variables are shared by name. */
static gboolean
check_master (MusterCluster *self, const char *name, MusterMaster *master, GError **error)
{
  const char *target = muster_master_target (master);
  for (guint i = 0; i < self->nodes->len; i++) {
    const MusterClusterNode *node = self->nodes->pdata[i];
    if (node->master == master || (muster_master_is_remote (master) &&
                                   g_str_equal (muster_master_target (node->master), target)))
      return fail_shared (name, node, error);
  }
  return TRUE;
}

gboolean
muster_cluster_add (MusterCluster *self, const char *name, MusterMaster *master,
                    MusterMetaGraph *meta_graph, GError **error)
{
  muster_require (error, FALSE, self, name, master, meta_graph);

  if (self->is_open || self->is_closed)
    return refuse_call (error, "nodes can be added only before the cluster is opened");
  if (!check_name (self, name, error) || !check_master (self, name, master, error))
    return FALSE;
  g_autoptr (MusterClusterNode) node = g_new0 (MusterClusterNode, 1);
  node->name = g_strdup (name);
  node->master = g_object_ref (master);
  node->scaffold = muster_scaffold_new (meta_graph, error);
  if (node->scaffold == NULL || !build_graph (node, error)) {
    g_prefix_error (error, "Node '%s': ", name);
    return FALSE;
  }
  g_ptr_array_add (self->nodes, g_steal_pointer (&node));
  return TRUE;
}

GPtrArray *
muster_cluster_nodes (MusterCluster *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->nodes;
}

MusterClusterNode *
muster_cluster_node (MusterCluster *self, const char *name)
{
  g_return_val_if_fail (self != NULL && name != NULL, NULL);

  for (guint i = 0; i < self->nodes->len; i++) {
    MusterClusterNode *node = self->nodes->pdata[i];
    if (g_str_equal (node->name, name))
      return node;
  }
  return NULL;
}

MusterClock *
muster_cluster_clock (MusterCluster *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->clock;
}

/* --- sessions --- */

static gboolean
open_node (MusterClusterNode *node, gint64 timeout_us, GCancellable *cancellable, GError **error)
{
  MusterSessionManagerOptions options = {.local_init_op =
                                             muster_scaffold_local_init_op (node->scaffold),
                                         .meta_graph = muster_scaffold_meta_graph (node->scaffold)};
  g_autoptr (MusterSessionManager) manager =
      muster_session_manager_new (node->graph, &options, error);

  if (manager != NULL)
    node->session = muster_session_manager_wait_for_session (manager, node->master, timeout_us,
                                                             NULL, cancellable, error);
  if (node->session == NULL)
    g_prefix_error (error, "Node '%s': ", node->name);
  return node->session != NULL;
}

/* One master may have two addresses: a process is identified by its first device's incarnation,
 * which is unique. seen: nodes by that. */
static gboolean
check_process (MusterClusterNode *node, GHashTable *seen, gint64 deadline_us,
               GCancellable *cancellable, GError **error)
{
  g_autoptr (GError) failure = NULL;
  g_autoptr (GPtrArray) devices =
      muster_master_list_devices (node->master, deadline_us, cancellable, &failure);

  if (muster_error_is (failure, MUSTER_ERROR_UNIMPLEMENTED))
    return TRUE;
  if (devices == NULL) {
    g_propagate_prefixed_error (error, g_steal_pointer (&failure), "Node '%s': ", node->name);
    return FALSE;
  }
  if (devices->len == 0)
    return TRUE;
  const MusterDevice *device = devices->pdata[0];
  const MusterClusterNode *other = g_hash_table_lookup (seen, &device->incarnation);
  if (other != NULL)
    return fail_shared (node->name, other, error);
  g_hash_table_insert (seen, g_memdup2 (&device->incarnation, sizeof device->incarnation), node);
  return TRUE;
}

static void
close_nodes (MusterCluster *self)
{
  for (guint i = 0; i < self->nodes->len; i++) {
    MusterClusterNode *node = self->nodes->pdata[i];
    muster_session_close_quietly (node->session);
    g_clear_object (&node->session);
  }
  self->is_open = FALSE;
}

gboolean
muster_cluster_open (MusterCluster *self, gint64 timeout_us, GCancellable *cancellable,
                     GError **error)
{
  muster_require (error, FALSE, self);

  MusterClock *clock = muster_system_clock ();
  const gint64 deadline_us = muster_deadline_after (muster_clock_now_us (clock), timeout_us);
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  if (self->is_closed)
    return refuse_call (error, "Session already closed.");
  if (self->is_open)
    return TRUE;
  if (self->nodes->len == 0)
    return refuse_call (error, "the cluster has no nodes; add them before opening it");
  for (guint i = 0; i < self->nodes->len; i++) {
    const gint64 left_us = muster_deadline_remaining (deadline_us, muster_clock_now_us (clock));
    if (open_node (self->nodes->pdata[i], left_us, cancellable, error) &&
        check_process (self->nodes->pdata[i], seen, deadline_us, cancellable, error))
      continue;
    close_nodes (self);
    return FALSE;
  }
  self->is_open = TRUE;
  return TRUE;
}

void
muster_cluster_close (MusterCluster *self)
{
  g_return_if_fail (self != NULL);
  close_nodes (self);
  self->is_closed = TRUE;
}

void
muster_cluster_leave (MusterCluster *self, const GError *failure)
{
  g_return_if_fail (self != NULL);
  if (failure == NULL)
    muster_cluster_close (self);
}

/* --- compiling --- */

static gboolean
fail_without (const MusterClusterNode *node, MusterJobTask *task, const char *name, GError **error)
{
  const gboolean is_counter = g_str_has_prefix (name, MUSTER_EPOCH_COUNTER "/");
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "Node '%s', %s: its graph has no '%s'%s", node->name,
                      task != NULL ? muster_job_task_name (task) : "around its tasks", name,
                      is_counter ? "; to count epochs there, add the counter to the node's meta "
                                   "graph with muster_epoch_counter_add ()"
                                 : "");
}

static gboolean
check_names (const MusterClusterNode *node, MusterJobTask *task, char *const *names, GError **error)
{
  for (gsize i = 0; names != NULL && names[i] != NULL; i++) {
    g_autofree char *op = NULL;
    if (muster_graph_split_input (names[i], &op) < 0 || !muster_graph_has_node (node->graph, op))
      return fail_without (node, task, names[i], error);
  }
  return TRUE;
}

static gboolean
check_step (const MusterClusterNode *node, MusterJobTask *task, const MusterJobStep *step,
            GError **error)
{
  if (step == NULL)
    return TRUE;
  for (gsize i = 0; i < step->n_feeds; i++) {
    char *names[] = {(char *)step->feeds[i].name, NULL};
    if (!check_names (node, task, names, error))
      return FALSE;
  }
  return check_names (node, task, (char **)step->targets, error);
}

static gboolean
check_setups (const MusterClusterNode *node, MusterJobTask *task, GPtrArray *setups, GError **error)
{
  for (guint i = 0; i < setups->len; i++) {
    const MusterJobSetup *setup = setups->pdata[i];
    if (!check_step (node, task, setup->init, error) ||
        !check_step (node, task, setup->exit, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
check_task (const MusterClusterNode *node, MusterJobTask *task, GError **error)
{
  for (guint i = 0; i < task->outputs->len; i++)
    if (!check_names (node, task, ((MusterJobOutput *)task->outputs->pdata[i])->tensors, error))
      return FALSE;
  return check_step (node, task, task->step, error) &&
         check_setups (node, task, task->setups, error) &&
         check_setups (node, task, task->instance_setups, error);
}

static gboolean
check_part (const MusterClusterNode *node, const MusterJobPart *part, GError **error)
{
  for (guint i = 0; i < part->tasks->len; i++)
    if (!check_task (node, part->tasks->pdata[i], error))
      return FALSE;
  for (guint i = 0; i < part->reports->len; i++)
    if (!check_step (node, NULL, ((MusterJobBeside *)part->reports->pdata[i])->report, error))
      return FALSE;
  return check_setups (node, NULL, part->setups, error);
}

/* Identifies the graphs that these parts are compiled for. */
static char *
kind_of (MusterCluster *self, GPtrArray *parts, GError **error)
{
  g_autoptr (GString) kind = g_string_new (NULL);
  for (guint i = 0; i < parts->len; i++) {
    const MusterJobPart *part = parts->pdata[i];
    const MusterClusterNode *node = muster_cluster_node (self, part->node);
    if (node == NULL) {
      muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                   "The cluster has no node '%s', which a group of tasks uses", part->node);
      return NULL;
    }
    g_string_append_printf (kind, "%s %016" G_GINT64_MODIFIER "x\n", node->name,
                            muster_graph_hash (node->graph));
  }
  return g_string_free (g_steal_pointer (&kind), FALSE);
}

gboolean
muster_cluster_compile (MusterCluster *self, MusterJobGroup *group, GError **error)
{
  muster_require (error, FALSE, self, group);

  GPtrArray *parts =
      group->parts != NULL ? group->parts : muster_job_group_tasks_by_node (group, NULL, error);
  g_autofree char *kind = parts != NULL ? kind_of (self, parts, error) : NULL;

  if (kind == NULL)
    return FALSE;
  if (group->compiled_for != NULL)
    return g_str_equal (kind, group->compiled_for) ||
           refuse_call (error, "Runnable was compiled for different session type");
  for (guint i = 0; i < parts->len; i++) {
    const MusterJobPart *part = parts->pdata[i];
    if (!check_part (muster_cluster_node (self, part->node), part, error))
      return FALSE;
  }
  group->compiled_for = g_steal_pointer (&kind);
  return TRUE;
}

/* --- running --- */

gboolean
muster_cluster_run (MusterCluster *self, MusterJobGroup *group, gint64 deadline_us,
                    GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self);

  if (group == NULL) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "Got a none runnable.");
  }
  if (!self->is_open)
    return refuse_call (error, "Session is closed.");
  return muster_cluster_compile (self, group, error) &&
         muster_job_group_run (group, self, deadline_us, cancellable, error);
}

gboolean
muster_cluster_run_task (MusterCluster *self, MusterJobTask *task, gint64 deadline_us,
                         GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self, task);

  g_autoptr (MusterJobGroup) group = muster_job_group_new ();
  if (task == NULL)
    return muster_cluster_run (self, NULL, deadline_us, cancellable, error);
  return muster_job_group_add (group, task, error) &&
         muster_cluster_run (self, group, deadline_us, cancellable, error);
}

static void
muster_cluster_finalize (GObject *object)
{
  MusterCluster *self = MUSTER_CLUSTER (object);
  g_ptr_array_unref (self->nodes);
  g_clear_object (&self->clock);
  G_OBJECT_CLASS (muster_cluster_parent_class)->finalize (object);
}

static void
muster_cluster_init (MusterCluster *self)
{
  self->nodes = g_ptr_array_new_with_free_func (node_free);
}

static void
muster_cluster_class_init (MusterClusterClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_cluster_finalize;
}

// SPDX-License-Identifier: Apache-2.0
/* A job: its groups of tasks (init, epoch, download, exit) and its stop conditions. */
#include "jobs/job.h"

#include "base/require_private.h"
#include "graph/graph_nodes_private.h"
#include "jobs/job_group_private.h"

struct _MusterJob {
  GObject parent;
  MusterJobGroup *init;       /* (owned) */
  MusterJobGroup *epoch;      /* (owned) */
  MusterJobGroup *download;   /* (owned) */
  MusterJobGroup *exit;       /* (owned) */
  GPtrArray *stop_conditions; /* (owned) (element-type MusterJobOutput) */
  char **given_nodes;         /* (owned) (nullable) */
  char **nodes;               /* (owned) (nullable) the last result */
  gboolean is_compiled;
};

G_DEFINE_FINAL_TYPE (MusterJob, muster_job, G_TYPE_OBJECT)

static MusterJobGroup *
own_group (MusterJobGroup *given)
{
  return given != NULL ? g_object_ref (given) : muster_job_group_new ();
}

MusterJob *
muster_job_new (void)
{
  return muster_job_new_with_groups (NULL, NULL, NULL, NULL, NULL, NULL);
}

MusterJob *
muster_job_new_with_groups (MusterJobGroup *init, MusterJobGroup *epoch, MusterJobGroup *download,
                            MusterJobGroup *exit, GPtrArray *stop_conditions,
                            const char *const *nodes_to_checkpoint)
{
  MusterJob *self = g_object_new (MUSTER_TYPE_JOB, NULL);
  self->init = own_group (init);
  self->epoch = own_group (epoch);
  self->download = own_group (download);
  self->exit = own_group (exit);
  self->stop_conditions = stop_conditions != NULL ? g_ptr_array_ref (stop_conditions)
                                                  : g_ptr_array_new_with_free_func (g_object_unref);
  if (nodes_to_checkpoint != NULL && *nodes_to_checkpoint != NULL)
    self->given_nodes = g_strdupv ((char **)nodes_to_checkpoint);
  return self;
}

MusterJobGroup *
muster_job_init_group (MusterJob *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->init;
}

MusterJobGroup *
muster_job_epoch_group (MusterJob *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->epoch;
}

MusterJobGroup *
muster_job_download_group (MusterJob *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->download;
}

MusterJobGroup *
muster_job_exit_group (MusterJob *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->exit;
}

gboolean
muster_job_add_task (MusterJob *self, MusterJobTask *task, GError **error)
{
  muster_require (error, FALSE, self, task);
  return muster_job_group_add (self->epoch, task, error);
}

/* --- stop conditions --- */

GPtrArray *
muster_job_stop_conditions (MusterJob *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->stop_conditions;
}

gboolean
muster_job_add_stop_output (MusterJob *self, MusterJobOutput *output, GError **error)
{
  muster_require (error, FALSE, self, output);

  if (output == NULL || output->n != 1) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "a stop condition must be a task's output of one tensor");
  }
  g_ptr_array_add (self->stop_conditions, g_object_ref (output));
  return TRUE;
}

gboolean
muster_job_add_stop_tensor (MusterJob *self, const char *node, const char *tensor, GError **error)
{
  muster_require (error, FALSE, self, node, tensor);

  g_autoptr (MusterJobTask) task = muster_job_task_new ("stop_condition", node, 1);
  const char *tensors[] = {tensor, NULL};
  if (tensor == NULL || !*tensor) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "a stop condition must be the name of a tensor");
  }
  MusterJobOutput *output = muster_job_task_add_output (task, tensors, error);
  return output != NULL && muster_job_group_add (self->epoch, task, error) &&
         muster_job_add_stop_output (self, output, error);
}

/* --- compiling --- */

const char *const *
muster_job_nodes_to_checkpoint (MusterJob *self)
{
  g_return_val_if_fail (self != NULL, NULL);

  if (self->given_nodes != NULL)
    return (const char *const *)self->given_nodes;
  if (!self->is_compiled || self->nodes == NULL) {
    g_strfreev (self->nodes);
    self->nodes = muster_job_group_nodes (self->init);
  }
  return (const char *const *)self->nodes;
}

/* The type of a node's first output, if an attribute has it, else MUSTER_INVALID. */
static MusterDType
known_type (const MusterNode *node)
{
  static const struct {
    const char *op, *attr;
  } kinds[] = {{"Const", "dtype"},       {"VariableV2", "dtype"},     {"Variable", "dtype"},
               {"Placeholder", "dtype"}, {"ReadVariableOp", "dtype"}, {"Identity", "T"}};

  for (gsize i = 0; i < G_N_ELEMENTS (kinds); i++)
    if (g_str_equal (node->kind->op, kinds[i].op))
      return muster_node_dtype (node, kinds[i].attr, MUSTER_INVALID);
  return MUSTER_INVALID;
}

static gboolean
check_condition (const MusterClusterNode *node, const MusterJobOutput *output, GError **error)
{
  g_autofree char *name = NULL;

  (void)muster_graph_split_input (output->tensors[0], &name);
  const MusterNode *def = muster_graph_find_node (node->graph, name);
  const MusterDType dtype = def != NULL ? known_type (def) : MUSTER_INVALID;
  if (dtype == MUSTER_INVALID || dtype == MUSTER_BOOL)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "Stop condition '%s' of node '%s' must be one bool; it is %s",
                      output->tensors[0], node->name, muster_dtype_name (dtype));
}

/* Checks those among the epoch's outputs, whose nodes are known. */
static gboolean
check_conditions (MusterJob *self, MusterCluster *cluster, GError **error)
{
  GPtrArray *parts = self->epoch->parts;
  for (guint i = 0; i < parts->len; i++) {
    const MusterJobPart *part = parts->pdata[i];
    for (guint j = 0; j < part->tasks->len; j++) {
      GPtrArray *outputs = ((MusterJobTask *)part->tasks->pdata[j])->outputs;
      for (guint k = 0; k < outputs->len; k++) {
        const MusterJobOutput *output = outputs->pdata[k];
        if (output->tensors != NULL && g_ptr_array_find (self->stop_conditions, output, NULL) &&
            !check_condition (muster_cluster_node (cluster, part->node), output, error))
          return FALSE;
      }
    }
  }
  return TRUE;
}

gboolean
muster_job_compile (MusterJob *self, MusterCluster *cluster, GError **error)
{
  muster_require (error, FALSE, self, cluster);

  MusterJobGroup *groups[] = {self->init, self->epoch, self->download, self->exit};
  static const char *const names[] = {"init", "epoch", "download", "exit"};
  (void)muster_job_nodes_to_checkpoint (self);
  self->is_compiled = TRUE;
  for (gsize i = 0; i < G_N_ELEMENTS (groups); i++) {
    if (muster_cluster_compile (cluster, groups[i], error))
      continue;
    g_prefix_error (error, "The job's %s group: ", names[i]);
    return FALSE;
  }
  return check_conditions (self, cluster, error);
}

static void
muster_job_finalize (GObject *object)
{
  MusterJob *self = MUSTER_JOB (object);
  g_clear_object (&self->init);
  g_clear_object (&self->epoch);
  g_clear_object (&self->download);
  g_clear_object (&self->exit);
  g_clear_pointer (&self->stop_conditions, g_ptr_array_unref);
  g_strfreev (self->given_nodes);
  g_strfreev (self->nodes);
  G_OBJECT_CLASS (muster_job_parent_class)->finalize (object);
}

static void
muster_job_init (MusterJob *self G_GNUC_UNUSED)
{
}

static void
muster_job_class_init (MusterJobClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_job_finalize;
}

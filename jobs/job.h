// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jobs/cluster.h"

G_BEGIN_DECLS

/**
 * MusterJob:
 *
 * Describes a training by epochs (behaviours B003.1 to B003.11): four groups of tasks (init,
 * epoch, download, exit), stop conditions, and the nodes to checkpoint. [class@JobRunner] runs it.
 * It corresponds to Caffe2's `Job`. One thread.
 */
#define MUSTER_TYPE_JOB (muster_job_get_type ())
G_DECLARE_FINAL_TYPE (MusterJob, muster_job, MUSTER, JOB, GObject)

/**
 * MUSTER_NO_EPOCH:
 *
 * No epoch; epochs are 0 or above.
 */
#define MUSTER_NO_EPOCH G_GINT64_CONSTANT (-1)

/**
 * muster_job_new:
 *
 * A job with groups of its own, which checkpoints the init group's nodes.
 *
 * Returns: (transfer full): the job
 */
MusterJob *muster_job_new (void);

/**
 * muster_job_new_with_groups:
 * @init: (nullable): NULL: created by the job, like the groups below
 * @epoch: (nullable): the tasks of an epoch
 * @download: (nullable): the tasks after the last epoch
 * @exit: (nullable): the last tasks
 * @stop_conditions: (nullable) (element-type MusterJobOutput): not copied
 * @nodes_to_checkpoint: (nullable) (array zero-terminated=1): NULL or empty: the init group's
 *   nodes
 *
 * A job of the caller's groups and conditions, which it references.
 *
 * Returns: (transfer full): the job
 */
MusterJob *muster_job_new_with_groups (MusterJobGroup *init, MusterJobGroup *epoch,
                                       MusterJobGroup *download, MusterJobGroup *exit,
                                       GPtrArray *stop_conditions,
                                       const char *const *nodes_to_checkpoint);

/**
 * muster_job_init_group:
 * @self: the job
 *
 * The tasks that are run first, unless the job resumes.
 *
 * Returns: (transfer none): the group
 */
MusterJobGroup *muster_job_init_group (MusterJob *self);

/**
 * muster_job_epoch_group:
 * @self: the job
 *
 * The tasks of an epoch.
 *
 * Returns: (transfer none): the group
 */
MusterJobGroup *muster_job_epoch_group (MusterJob *self);

/**
 * muster_job_download_group:
 * @self: the job
 *
 * The tasks after the last epoch.
 *
 * Returns: (transfer none): the group
 */
MusterJobGroup *muster_job_download_group (MusterJob *self);

/**
 * muster_job_exit_group:
 * @self: the job
 *
 * The tasks that are run last.
 *
 * Returns: (transfer none): the group
 */
MusterJobGroup *muster_job_exit_group (MusterJob *self);

/**
 * muster_job_add_task:
 * @self: the job
 * @task: a task in no group
 *
 * Adds to the epoch group; tasks for another group are added to that one.
 *
 * Returns: FALSE with an error
 */
gboolean muster_job_add_task (MusterJob *self, MusterJobTask *task, GError **error);

/**
 * muster_job_add_stop_tensor:
 * @self: the job
 * @node: the node that has it
 * @tensor: a tensor of one bool
 *
 * The job stops after an epoch at whose end a condition is true. A node's tensor is fetched by a
 * separate task, after the node's tasks of the epoch.
 *
 * Returns: FALSE with an error
 */
gboolean muster_job_add_stop_tensor (MusterJob *self, const char *node, const char *tensor,
                                     GError **error);

/**
 * muster_job_add_stop_output:
 * @self: the job
 * @output: a task's output, a tensor of one bool
 *
 * The same with a task's output. INVALID_ARGUMENT for an output of several tensors.
 *
 * Returns: FALSE with an error
 */
gboolean muster_job_add_stop_output (MusterJob *self, MusterJobOutput *output, GError **error);

/**
 * muster_job_stop_conditions:
 * @self: the job
 *
 * Its stop conditions.
 *
 * Returns: (transfer none) (element-type MusterJobOutput): the outputs
 */
GPtrArray *muster_job_stop_conditions (MusterJob *self);

/**
 * muster_job_nodes_to_checkpoint:
 * @self: the job
 *
 * The given nodes, or those of the init group's tasks in order of first use; fixed when the job is
 * compiled.
 *
 * Returns: (transfer none) (array zero-terminated=1): the names, borrowed until the next change
 */
const char *const *muster_job_nodes_to_checkpoint (MusterJob *self);

/**
 * muster_job_compile:
 * @self: the job
 * @cluster: the nodes
 *
 * Fixes the nodes, compiles the init, epoch, download and exit groups ([method@Cluster.compile]),
 * and checks that the conditions are bools, if the graph has their type.
 *
 * Returns: FALSE with an error
 */
gboolean muster_job_compile (MusterJob *self, MusterCluster *cluster, GError **error);

/* --- limiting the epochs --- */

/**
 * muster_epoch_counter_add:
 * @meta_graph: a model
 *
 * Adds a counter for [method@Job.limit_epochs]: an int64 variable that is saved and restored with
 * the others.
 *
 * Returns: (transfer full): the meta graph with the counter
 */
MusterMetaGraph *muster_epoch_counter_add (MusterMetaGraph *meta_graph, GError **error);

/**
 * muster_job_limit_epochs:
 * @self: the job
 * @node: where they are counted; its model must have the counter, otherwise compiling the job
 *   fails with this reason
 * @n: the last epoch
 *
 * Ends the job after n epochs, including those before a resume. n below 1 fails the init group
 * ("negative init_count is not permitted.").
 *
 * Returns: FALSE with an error
 */
gboolean muster_job_limit_epochs (MusterJob *self, const char *node, gint64 n, GError **error);

G_END_DECLS

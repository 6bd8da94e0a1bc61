// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jobs/cluster.h"

G_BEGIN_DECLS

/* MusterJob describes a training by epochs (behaviours B003.1 to B003.11): four groups of tasks
 * (init, epoch, download, exit), stop conditions, and the nodes to checkpoint. jobs/job_runner.h
 * runs it. One thread. */

#define MUSTER_TYPE_JOB (muster_job_get_type ())
G_DECLARE_FINAL_TYPE (MusterJob, muster_job, MUSTER, JOB, GObject)

/* Epochs are 0 or above; this is none. */
#define MUSTER_NO_EPOCH ((gint64)-1)

/* Groups and conditions of the caller, which the job references. NULL: created by the job. */
typedef struct {
  MusterJobGroup *init;
  MusterJobGroup *epoch;
  MusterJobGroup *download;
  MusterJobGroup *exit;
  GPtrArray *stop_conditions;             /* (element-type MusterJobOutput) not copied */
  const char *const *nodes_to_checkpoint; /* NULL or empty: the init group's nodes */
} MusterJobOptions;

MusterJob *muster_job_new (const MusterJobOptions *options);

/* (transfer none) */
MusterJobGroup *muster_job_init_group (MusterJob *self);
MusterJobGroup *muster_job_epoch_group (MusterJob *self);
MusterJobGroup *muster_job_download_group (MusterJob *self);
MusterJobGroup *muster_job_exit_group (MusterJob *self);

/* Adds to the epoch group; tasks for another group are added to that one. */
gboolean muster_job_add_task (MusterJob *self, MusterJobTask *task, GError **error);

/* The job stops after an epoch at whose end a condition is true; each is a tensor of one bool. A
 * node's tensor is fetched by a separate task, after the node's tasks of the epoch.
 * INVALID_ARGUMENT for an output of several tensors. */
gboolean muster_job_add_stop_tensor (MusterJob *self, const char *node, const char *tensor,
                                     GError **error);
gboolean muster_job_add_stop_output (MusterJob *self, MusterJobOutput *output, GError **error);
GPtrArray *muster_job_stop_conditions (MusterJob *self); /* (transfer none) */

/* The given nodes, or those of the init group's tasks in order of first use; fixed when the job is
 * compiled. Borrowed until the next change. */
const char *const *muster_job_nodes_to_checkpoint (MusterJob *self);

/* Fixes the nodes, compiles the init, epoch, download and exit groups (muster_cluster_compile ()),
 * and checks that the conditions are bools, if the graph has their type. */
gboolean muster_job_compile (MusterJob *self, MusterCluster *cluster, GError **error);

/* --- limiting the epochs --- */

/* The meta graph with a counter for muster_job_limit_epochs (): an int64 variable that is saved and
 * restored with the others. */
MusterMetaGraph *muster_epoch_counter_add (MusterMetaGraph *meta_graph, GError **error);

/* Ends the job after n epochs, including those before a resume. They are counted on node, whose
 * model must have the counter; otherwise compiling the job fails with this reason. n below 1 fails
 * the init group ("negative init_count is not permitted."). */
gboolean muster_job_limit_epochs (MusterJob *self, const char *node, gint64 n, GError **error);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jobs/cluster.h"

G_BEGIN_DECLS

/* MusterJob is what is trained by epochs (behaviours B003.1 to B003.11): four groups of tasks, to
 * initialise, for each epoch, to download what was trained, and to leave; conditions that stop it;
 * and which nodes go into its checkpoints. jobs/job_runner.h runs it. One thread. */

#define MUSTER_TYPE_JOB (muster_job_get_type ())
G_DECLARE_FINAL_TYPE (MusterJob, muster_job, MUSTER, JOB, GObject)

/* An epoch's number is 0 or above; "none" is a number of its own. */
#define MUSTER_NO_EPOCH ((gint64)-1)

/* What the caller made already; the job takes references. NULL: the job makes it. */
typedef struct {
  MusterJobGroup *init;
  MusterJobGroup *epoch;
  MusterJobGroup *download;
  MusterJobGroup *exit;
  GPtrArray *stop_conditions;             /* (element-type MusterJobOutput) used as it is */
  const char *const *nodes_to_checkpoint; /* NULL or empty: the init group's */
} MusterJobOptions;

MusterJob *muster_job_new (const MusterJobOptions *options);

/* (transfer none) */
MusterJobGroup *muster_job_init_group (MusterJob *self);
MusterJobGroup *muster_job_epoch_group (MusterJob *self);
MusterJobGroup *muster_job_download_group (MusterJob *self);
MusterJobGroup *muster_job_exit_group (MusterJob *self);

/* Adds to the epoch group; tasks for another group are added to that one. */
gboolean muster_job_add_task (MusterJob *self, MusterJobTask *task, GError **error);

/* The job stops after an epoch at whose end any of its conditions is true; each is a tensor of one
 * bool. A tensor of a node is fetched by a task of its own, after that node's tasks of the epoch
 * have ended. INVALID_ARGUMENT for an output of several tensors. */
gboolean muster_job_add_stop_tensor (MusterJob *self, const char *node, const char *tensor,
                                     GError **error);
gboolean muster_job_add_stop_output (MusterJob *self, MusterJobOutput *output, GError **error);
GPtrArray *muster_job_stop_conditions (MusterJob *self); /* (transfer none) */

/* Those given, or the nodes of the init group's tasks, first use first; once the job is compiled,
 * as they were then. Borrowed until the next change. */
const char *const *muster_job_nodes_to_checkpoint (MusterJob *self);

/* Fixes the nodes, then the init, epoch, download and exit groups (muster_cluster_compile ()), and
 * checks that the conditions are bools, as far as the graph says. */
gboolean muster_job_compile (MusterJob *self, MusterCluster *cluster, GError **error);

/* --- so many epochs --- */

/* The meta graph with a counter for muster_job_limit_epochs (): an int64 variable that is saved and
 * restored with the others. */
MusterMetaGraph *muster_epoch_counter_add (MusterMetaGraph *meta_graph, GError **error);

/* The job ends after n epochs, those before a resume among them, counted on node, whose model has
 * the counter: where it hasn't, compiling the job fails and says so. n below 1 fails the init group
 * ("negative init_count is not permitted."). */
gboolean muster_job_limit_epochs (MusterJob *self, const char *node, gint64 n, GError **error);

G_END_DECLS

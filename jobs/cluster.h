// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jobs/job_group.h"
#include "train/monitored/scaffold.h"

G_BEGIN_DECLS

/* MusterCluster is the nodes that a job runs on, in order: each is a name, a master (a process of
 * its own behind "grpc://HOST:PORT", or "local" in this one), a model, and a live session. It runs
 * groups of tasks (jobs/job_group.h): a node's tasks beside each other in that node's session,
 * which they share; those of different nodes share nothing, so two nodes on one master are refused.
 * It takes the place of Caffe2's Session. One thread at a time. */

#define MUSTER_TYPE_CLUSTER (muster_cluster_get_type ())
G_DECLARE_FINAL_TYPE (MusterCluster, muster_cluster, MUSTER, CLUSTER, GObject)

/* Borrowed from the cluster; nobody else writes to it. */
struct _MusterClusterNode {
  const char *name;
  MusterMaster *master;
  MusterScaffold *scaffold;
  MusterGraph *graph;     /* what the session was made with */
  const char *missing_op; /* yields the names of global variables that have no value */
  MusterSession *session; /* (nullable) while the cluster is open */
};

/* clock NULL: the machine's; it paces reports. Deadlines are on the machine's in any case. */
MusterCluster *muster_cluster_new (MusterClock *clock);

/* Adds a node before the cluster is opened. A name is part of file names: letters, digits, '_' and
 * '-', and '.' but at its beginning; INVALID_ARGUMENT for others, and for the master of another
 * node; ALREADY_EXISTS for a second. */
gboolean muster_cluster_add (MusterCluster *self, const char *name, MusterMaster *master,
                             MusterMetaGraph *meta_graph, GError **error);

/* Makes every node's session, waiting for masters that don't answer yet, and runs its model's local
 * init op, where it has one. "Session already closed." after a close (FAILED_PRECONDITION);
 * INVALID_ARGUMENT where two targets turn out to be one master. */
gboolean muster_cluster_open (MusterCluster *self, gint64 timeout_us, GCancellable *cancellable,
                              GError **error);

/* Closes the sessions; closing twice is fine. */
void muster_cluster_close (MusterCluster *self);
/* The end of a scope: closes unless the scope has failed, with failure (nullable), so that what was
 * left can be looked at.
 */
void muster_cluster_leave (MusterCluster *self, const GError *failure);

/* Its nodes, in order (transfer none) (element-type MusterClusterNode); one by its name, or NULL.
 */
GPtrArray *muster_cluster_nodes (MusterCluster *self);
MusterClusterNode *muster_cluster_node (MusterCluster *self, const char *name);
MusterClock *muster_cluster_clock (MusterCluster *self);

/* Fixes a group: every op and tensor that it names is looked up in its node's graph
 * (INVALID_ARGUMENT names what isn't there). Again for a cluster with the same graphs changes
 * nothing; for another: "Runnable was compiled for different session type". */
gboolean muster_cluster_compile (MusterCluster *self, MusterJobGroup *group, GError **error);

/* Runs a group, compiling it if that hasn't been done. The first failure cancels all other tasks of
 * the group, and is what is returned once they have ended, with its node and task in front; what
 * others finished stays. "Session is closed."; "Got a none runnable." for NULL. */
gboolean muster_cluster_run (MusterCluster *self, MusterJobGroup *group, gint64 deadline_us,
                             GCancellable *cancellable, GError **error);

/* A lone task, in a group of its own. */
gboolean muster_cluster_run_task (MusterCluster *self, MusterJobTask *task, gint64 deadline_us,
                                  GCancellable *cancellable, GError **error);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jobs/job_group.h"
#include "train/monitored/scaffold.h"

G_BEGIN_DECLS

/* MusterCluster is the nodes of a job, in order. Each has a name, a master (its own process at
 * "grpc://HOST:PORT", or "local" in this one), a model and a session. It runs groups of tasks
 * (jobs/job_group.h): tasks of a node run concurrently in its session, which they share; nodes
 * share nothing, so two nodes with one master are refused. It corresponds to Caffe2's Session. One
 * thread at a time. */

#define MUSTER_TYPE_CLUSTER (muster_cluster_get_type ())
G_DECLARE_FINAL_TYPE (MusterCluster, muster_cluster, MUSTER, CLUSTER, GObject)

/* Borrowed from the cluster; read only. */
struct _MusterClusterNode {
  const char *name;
  MusterMaster *master;
  MusterScaffold *scaffold;
  MusterGraph *graph;     /* the session's graph */
  const char *missing_op; /* fetches the names of uninitialised global variables */
  MusterSession *session; /* (nullable) while the cluster is open */
};

/* clock (nullable): the machine's. It is used for reports; deadlines are on the machine's clock in
 * any case. */
MusterCluster *muster_cluster_new (MusterClock *clock);

/* Adds a node, before the cluster is opened. Names are used in file names: letters, digits, '_',
 * '-', and '.' except at the start; others are INVALID_ARGUMENT, as is the master of another node;
 * a second node with that name is ALREADY_EXISTS. */
gboolean muster_cluster_add (MusterCluster *self, const char *name, MusterMaster *master,
                             MusterMetaGraph *meta_graph, GError **error);

/* Creates every node's session, waiting for masters that don't answer yet, and runs its model's
 * local init op, if any. "Session already closed." after a close (FAILED_PRECONDITION);
 * INVALID_ARGUMENT if two targets are the same master. */
gboolean muster_cluster_open (MusterCluster *self, gint64 timeout_us, GCancellable *cancellable,
                              GError **error);

/* Closes the sessions. Closing twice is allowed. */
void muster_cluster_close (MusterCluster *self);
/* Ends a scope: closes the cluster unless failure (nullable) is set, so that its state can be
 * inspected after a failure. */
void muster_cluster_leave (MusterCluster *self, const GError *failure);

/* Its nodes, in order (transfer none) (element-type MusterClusterNode); one by its name, or NULL.
 */
GPtrArray *muster_cluster_nodes (MusterCluster *self);
MusterClusterNode *muster_cluster_node (MusterCluster *self, const char *name);
MusterClock *muster_cluster_clock (MusterCluster *self);

/* Compiles a group: looks up every op and tensor in its node's graph (INVALID_ARGUMENT names a
 * missing one). Compiling it again for a cluster with the same graphs does nothing; with others:
 * "Runnable was compiled for different session type". */
gboolean muster_cluster_compile (MusterCluster *self, MusterJobGroup *group, GError **error);

/* Runs a group, after compiling it if necessary. The first failure cancels the group's other tasks
 * and is returned when they have ended, prefixed with its node and task; what others have done
 * isn't undone. "Session is closed."; "Got a none runnable." for NULL. */
gboolean muster_cluster_run (MusterCluster *self, MusterJobGroup *group, gint64 deadline_us,
                             GCancellable *cancellable, GError **error);

/* Runs a single task, in its own group. */
gboolean muster_cluster_run_task (MusterCluster *self, MusterJobTask *task, gint64 deadline_us,
                                  GCancellable *cancellable, GError **error);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jobs/job_group.h"
#include "train/monitored/scaffold.h"

G_BEGIN_DECLS

/**
 * MusterCluster:
 *
 * The nodes of a job, in order. Each has a name, a master (its own process at "grpc://HOST:PORT",
 * or "local" in this one), a model and a session. It runs groups of tasks ([class@JobGroup]): tasks
 * of a node run concurrently in its session, which they share; nodes share nothing, so two nodes
 * with one master are refused. It corresponds to Caffe2's `Session`. One thread at a time.
 */
#define MUSTER_TYPE_CLUSTER (muster_cluster_get_type ())
G_DECLARE_FINAL_TYPE (MusterCluster, muster_cluster, MUSTER, CLUSTER, GObject)

/**
 * MusterClusterNode:
 * @name: its name
 * @master: its master
 * @scaffold: its model
 * @graph: the session's graph
 * @missing_op: fetches the names of uninitialised global variables
 * @session: (nullable): its session, while the cluster is open
 *
 * A node of a cluster, borrowed from the cluster; read only.
 */
struct _MusterClusterNode {
  const char *name;
  MusterMaster *master;
  MusterScaffold *scaffold;
  MusterGraph *graph;
  const char *missing_op;
  MusterSession *session;
};

#define MUSTER_TYPE_CLUSTER_NODE (muster_cluster_node_get_type ())
GType muster_cluster_node_get_type (void);

/**
 * muster_cluster_new:
 * @clock: (nullable): NULL: the machine's. It is used for reports; deadlines are on the machine's
 *   clock in any case
 *
 * A cluster without nodes.
 *
 * Returns: (transfer full): the cluster
 */
MusterCluster *muster_cluster_new (MusterClock *clock);

/**
 * muster_cluster_add:
 * @self: the cluster
 * @name: its name, which is used in file names: letters, digits, '_', '-', and '.' except at the
 *   start
 * @master: its master, no other node's
 * @meta_graph: its model, which needs neither a saver nor an init op: checkpoints save its
 *   variables, and the job's init group initialises them
 *
 * Adds a node, before the cluster is opened. Other names are INVALID_ARGUMENT, as is the master of
 * another node; a second node with that name is ALREADY_EXISTS.
 *
 * Returns: FALSE with an error
 */
gboolean muster_cluster_add (MusterCluster *self, const char *name, MusterMaster *master,
                             MusterMetaGraph *meta_graph, GError **error);

/**
 * muster_cluster_open:
 * @self: the cluster
 * @timeout_us: for all nodes, in microseconds, or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the wait
 *
 * Creates every node's session, waiting for masters that don't answer yet, and runs its model's
 * local init op, if any. "Session already closed." after a close (FAILED_PRECONDITION);
 * INVALID_ARGUMENT if two targets are the same master.
 *
 * Returns: FALSE with an error
 */
gboolean muster_cluster_open (MusterCluster *self, gint64 timeout_us, GCancellable *cancellable,
                              GError **error);

/**
 * muster_cluster_close:
 * @self: the cluster
 *
 * Closes the sessions. Closing twice is allowed.
 */
void muster_cluster_close (MusterCluster *self);

/**
 * muster_cluster_leave:
 * @self: the cluster
 * @failure: (nullable): how a scope has ended
 *
 * Ends a scope: closes the cluster unless @failure is set, so that its state can be inspected after
 * a failure.
 */
void muster_cluster_leave (MusterCluster *self, const GError *failure);

/**
 * muster_cluster_nodes:
 * @self: the cluster
 *
 * Its nodes, in order.
 *
 * Returns: (transfer none) (element-type MusterClusterNode): the nodes, borrowed
 */
GPtrArray *muster_cluster_nodes (MusterCluster *self);

/**
 * muster_cluster_node:
 * @self: the cluster
 * @name: a node's name
 *
 * A node by its name.
 *
 * Returns: (transfer none) (nullable): the node, borrowed; NULL: there is none
 */
MusterClusterNode *muster_cluster_node (MusterCluster *self, const char *name);

/**
 * muster_cluster_clock:
 * @self: the cluster
 *
 * Its clock.
 *
 * Returns: (transfer none): the clock
 */
MusterClock *muster_cluster_clock (MusterCluster *self);

/**
 * muster_cluster_compile:
 * @self: the cluster
 * @group: tasks on its nodes
 *
 * Compiles a group: looks up every op and tensor in its node's graph (INVALID_ARGUMENT names a
 * missing one). Compiling it again for a cluster with the same graphs does nothing; with others:
 * "Runnable was compiled for different session type".
 *
 * Returns: FALSE with an error
 */
gboolean muster_cluster_compile (MusterCluster *self, MusterJobGroup *group, GError **error);

/**
 * muster_cluster_run:
 * @self: the cluster, open
 * @group: tasks on its nodes
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the run
 *
 * Runs a group, after compiling it if necessary. The first failure cancels the group's other tasks
 * and is returned when they have ended, prefixed with its node and task; what others have done
 * isn't undone. "Session is closed."; "Got a none runnable." for NULL.
 *
 * Returns: FALSE with an error
 */
gboolean muster_cluster_run (MusterCluster *self, MusterJobGroup *group, gint64 deadline_us,
                             GCancellable *cancellable, GError **error);

/**
 * muster_cluster_run_task:
 * @self: the cluster, open
 * @task: a task on one of its nodes, in no group
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the run
 *
 * Runs a single task, in its own group.
 *
 * Returns: FALSE with an error
 */
gboolean muster_cluster_run_task (MusterCluster *self, MusterJobTask *task, gint64 deadline_us,
                                  GCancellable *cancellable, GError **error);

G_END_DECLS

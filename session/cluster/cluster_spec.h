// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/master.h"
#include "rpc/credentials.h"

G_BEGIN_DECLS

/**
 * MusterClusterSpec:
 *
 * A TensorFlow cluster: its tasks, their addresses, and the task of this process. It is read from
 * TF_CONFIG like TensorFlow does, so that one environment serves a task's tf.distribute.Server and
 * muster:
 *
 * ```json
 * {"cluster": {"chief": ["a:2222"], "ps": ["b:2222"], "worker": ["c:2222", "d:2222"]},
 *  "task": {"type": "worker", "index": 0}}
 * ```
 *
 * A job is a list of addresses, or an object from index to address; an index may be a string.
 * Immutable. Any thread; strings are borrowed from it.
 */
typedef struct _MusterClusterSpec MusterClusterSpec;

#define MUSTER_TYPE_CLUSTER_SPEC (muster_cluster_spec_get_type ())
GType muster_cluster_spec_get_type (void);

/**
 * MusterClusterTask:
 * @job: "ps"
 * @index: its number in the job
 * @address: HOST:PORT
 *
 * A task of a cluster.
 */
typedef struct {
  const char *job;
  guint index;
  const char *address;
} MusterClusterTask;

#define MUSTER_TYPE_CLUSTER_TASK (muster_cluster_task_get_type ())
GType muster_cluster_task_get_type (void);

/**
 * muster_cluster_spec_new:
 * @tf_config: (nullable): the variable's value; %NULL and "" are a cluster without tasks
 *
 * Reads TF_CONFIG. INVALID_ARGUMENT names the mistake, its place and the remedy: text that isn't a
 * JSON object or contradicts itself, an address that isn't HOST:PORT, a job "chief" with several
 * tasks, a task that isn't in the cluster (except "evaluator", which never is).
 *
 * Returns: (transfer full): the cluster
 */
MusterClusterSpec *muster_cluster_spec_new (const char *tf_config, GError **error);

/**
 * muster_cluster_spec_new_for_task:
 * @tf_config: (nullable): the variable's value
 * @task: (nullable): JOB:INDEX, such as "ps:0", or JOB:INDEX=HOST:PORT; %NULL: as in @tf_config
 *
 * The same cluster for another task than TF_CONFIG's, so that one value serves all machines. With
 * "worker:3=HOST:PORT" it is a worker outside the cluster: the parameter servers don't know it, and
 * its sessions tell them where it is. INVALID_ARGUMENT as well if @task is neither.
 *
 * Returns: (transfer full): the cluster
 */
MusterClusterSpec *muster_cluster_spec_new_for_task (const char *tf_config, const char *task,
                                                     GError **error);

/**
 * muster_cluster_spec_ref: (skip)
 * @self: a cluster
 *
 * Adds a reference.
 *
 * Returns: @self
 */
MusterClusterSpec *muster_cluster_spec_ref (MusterClusterSpec *self);

/**
 * muster_cluster_spec_free: (skip)
 * @self: (nullable): a cluster
 *
 * Drops a reference; the last one frees it.
 */
void muster_cluster_spec_free (MusterClusterSpec *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterClusterSpec, muster_cluster_spec_free)

/**
 * muster_cluster_spec_is_empty:
 * @self: a cluster
 *
 * Tests whether it names neither a task nor a master.
 *
 * Returns: %TRUE if so
 */
gboolean muster_cluster_spec_is_empty (const MusterClusterSpec *self);

/**
 * muster_cluster_spec_tasks:
 * @self: a cluster
 * @n: (out): their number
 *
 * All tasks, in the order of the jobs in TF_CONFIG, each job's by index. A worker outside the
 * cluster is last.
 *
 * Returns: (array length=n) (transfer none): the tasks
 */
const MusterClusterTask *muster_cluster_spec_tasks (const MusterClusterSpec *self, gsize *n);

/**
 * muster_cluster_spec_find:
 * @self: a cluster
 * @job: a job: "ps"
 * @index: a task's number in it
 *
 * Finds a task.
 *
 * Returns: (nullable) (transfer none): the task, or %NULL
 */
const MusterClusterTask *muster_cluster_spec_find (const MusterClusterSpec *self, const char *job,
                                                   guint index);

/**
 * muster_cluster_spec_n_tasks:
 * @self: a cluster
 * @job: a job: "ps"
 *
 * Counts a job's tasks.
 *
 * Returns: their number
 */
guint muster_cluster_spec_n_tasks (const MusterClusterSpec *self, const char *job);

/**
 * muster_cluster_spec_job:
 * @self: a cluster
 *
 * The job of this process's task.
 *
 * Returns: (nullable): the job; %NULL if none is named
 */
const char *muster_cluster_spec_job (const MusterClusterSpec *self);

/**
 * muster_cluster_spec_index:
 * @self: a cluster
 *
 * The number of this process's task in its job.
 *
 * Returns: the index; 0 if none is named
 */
guint muster_cluster_spec_index (const MusterClusterSpec *self);

/**
 * muster_cluster_spec_is_chief:
 * @self: a cluster
 *
 * Tests for the task that prepares the model: the job "chief", else "master", else worker 0.
 *
 * Returns: %TRUE if this is it
 */
gboolean muster_cluster_spec_is_chief (const MusterClusterSpec *self);

/**
 * muster_cluster_spec_n_trainers:
 * @self: a cluster
 *
 * Counts the tasks that train: chief and workers.
 *
 * Returns: their number
 */
guint muster_cluster_spec_n_trainers (const MusterClusterSpec *self);

/**
 * muster_cluster_spec_trainer:
 * @self: a cluster
 *
 * This task's number among those that train.
 *
 * Returns: 0 for the chief; -1 if it doesn't train
 */
gint muster_cluster_spec_trainer (const MusterClusterSpec *self);

/**
 * muster_cluster_spec_target:
 * @self: a cluster
 *
 * The target of this task's sessions: "session_master" if given, "local" in a cluster of one task,
 * else the task's own server. INVALID_ARGUMENT if no task is named or it has no address.
 *
 * Returns: (transfer full): "local" or "grpc://HOST:PORT"
 */
char *muster_cluster_spec_target (const MusterClusterSpec *self, GError **error);

/**
 * muster_cluster_spec_coordinator:
 * @self: a cluster
 *
 * The coordinator of the cluster's job, "coordinator" in TF_CONFIG beside "cluster": see
 * [method@Master.set_coordinator]. TensorFlow ignores it.
 *
 * Returns: (transfer full) (nullable): "grpc://HOST:PORT"; %NULL if none is named
 */
char *muster_cluster_spec_coordinator (const MusterClusterSpec *self);

/**
 * muster_cluster_spec_master:
 * @self: a cluster
 * @credentials: (nullable): as for [func@Master.new_secured]
 *
 * The master of this task's sessions, at [method@ClusterSpec.target]: behind the gateway that
 * `muster serve --task` of this user runs for the task on this machine, if it does. It has the
 * coordinator that TF_CONFIG names.
 *
 * Returns: (transfer full): the master
 */
MusterMaster *muster_cluster_spec_master (const MusterClusterSpec *self,
                                          MusterRpcCredentials *credentials, GError **error);

/**
 * muster_cluster_spec_has_own_masters:
 * @self: a cluster
 *
 * Tests whether each task that trains uses its own server as master: there are several, and no
 * "session_master".
 *
 * Returns: %TRUE if so
 */
gboolean muster_cluster_spec_has_own_masters (const MusterClusterSpec *self);

/**
 * muster_cluster_spec_device_filters:
 * @self: a cluster
 *
 * The device filters of this task's sessions: the parameter servers and itself (for a parameter
 * server: the tasks that train), so that its master neither waits for the other workers nor is
 * stopped by them.
 *
 * Returns: (transfer full) (nullable) (array zero-terminated=1): "/job:ps", "/job:worker/task:1";
 *   %NULL for all devices, if the cluster has no job "ps" or no task is named
 */
char **muster_cluster_spec_device_filters (const MusterClusterSpec *self);

/**
 * muster_cluster_spec_config:
 * @self: a cluster
 * @config: (nullable): a serialised ConfigProto
 *
 * A ConfigProto for this task's sessions: @config with the device filters, unless it already has
 * some. A worker outside the cluster also gets the cluster_def that such a session needs.
 *
 * Returns: (transfer full) (nullable): it, serialised; %NULL without an error if there is nothing
 *   to set
 */
GBytes *muster_cluster_spec_config (const MusterClusterSpec *self, GBytes *config, GError **error);

/**
 * muster_cluster_spec_peers:
 * @self: a cluster
 *
 * The other tasks that such a session needs, for [struct@SessionManagerOptions].
 *
 * Returns: (transfer full) (array zero-terminated=1): "ps:0=HOST:PORT"
 */
char **muster_cluster_spec_peers (const MusterClusterSpec *self);

/**
 * muster_cluster_spec_chief:
 * @self: a cluster
 *
 * The chief, for [struct@SessionManagerOptions].
 *
 * Returns: (transfer full) (nullable): "chief:0=HOST:PORT"; %NULL for the chief itself, and if its
 *   sessions are at this task's master
 */
char *muster_cluster_spec_chief (const MusterClusterSpec *self);

G_END_DECLS

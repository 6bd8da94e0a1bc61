// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

/* MusterClusterSpec describes a TensorFlow cluster: its tasks, their addresses, and the task of
 * this process. It is read from TF_CONFIG like TensorFlow does, so that one environment serves a
 * task's tf.distribute.Server and muster:
 *
 *   {"cluster": {"chief": ["a:2222"], "ps": ["b:2222"], "worker": ["c:2222", "d:2222"]},
 *    "task": {"type": "worker", "index": 0}}
 *
 * A job is a list of addresses, or an object from index to address; an index may be a string.
 * Immutable. Any thread; strings are borrowed from it. */

typedef struct _MusterClusterSpec MusterClusterSpec;

typedef struct {
  const char *job; /* "ps" */
  guint index;
  const char *address; /* HOST:PORT */
} MusterClusterTask;

/* tf_config (nullable) is the variable's value; NULL and "" are a cluster without tasks.
 * INVALID_ARGUMENT names the mistake, its place and the remedy: text that isn't a JSON object or
 * contradicts itself, an address that isn't HOST:PORT, a job "chief" with several tasks, a task
 * that isn't in the cluster (except "evaluator", which never is). */
MusterClusterSpec *muster_cluster_spec_new (const char *tf_config, GError **error);
void muster_cluster_spec_free (MusterClusterSpec *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterClusterSpec, muster_cluster_spec_free)

/* TRUE if it names neither a task nor a master. */
gboolean muster_cluster_spec_is_empty (const MusterClusterSpec *self);
/* All tasks, in the order of the jobs in TF_CONFIG, each job's by index. */
const MusterClusterTask *muster_cluster_spec_tasks (const MusterClusterSpec *self, gsize *n);
/* The task, or NULL. */
const MusterClusterTask *muster_cluster_spec_find (const MusterClusterSpec *self, const char *job,
                                                   guint index);
guint muster_cluster_spec_n_tasks (const MusterClusterSpec *self, const char *job);

/* The job and the index of this process's task; NULL if none is named. */
const char *muster_cluster_spec_job (const MusterClusterSpec *self);
guint muster_cluster_spec_index (const MusterClusterSpec *self);

/* TRUE for the task that prepares the model: the job "chief", else "master", else worker 0. */
gboolean muster_cluster_spec_is_chief (const MusterClusterSpec *self);
/* The number of tasks that train (chief and workers), and this task's number among them: 0 for the
 * chief, -1 if it doesn't train. */
guint muster_cluster_spec_n_trainers (const MusterClusterSpec *self);
gint muster_cluster_spec_trainer (const MusterClusterSpec *self);

/* The target of this task's sessions (transfer full): "session_master" if given, "local" in a
 * cluster of one task, else the task's own server, "grpc://HOST:PORT". INVALID_ARGUMENT if no task
 * is named or it has no address. */
char *muster_cluster_spec_target (const MusterClusterSpec *self, GError **error);

/* TRUE if each task that trains uses its own server as master: there are several, and no
 * "session_master". */
gboolean muster_cluster_spec_has_own_masters (const MusterClusterSpec *self);

/* The device filters of this task's sessions: the parameter servers and itself (for a parameter
 * server: the tasks that train), so that its master neither waits for the other workers nor is
 * stopped by them. "/job:ps", "/job:worker/task:1" (transfer full). NULL for all devices, if the
 * cluster has no job "ps" or no task is named. */
char **muster_cluster_spec_device_filters (const MusterClusterSpec *self);

/* A ConfigProto for this task's sessions (transfer full): config (nullable, serialised) with these
 * filters, unless it already has some. NULL without an error if there is nothing to set. */
GBytes *muster_cluster_spec_config (const MusterClusterSpec *self, GBytes *config, GError **error);

/* The other tasks that such a session needs, for MusterSessionManagerOptions.cluster (transfer
 * full): "ps:0=HOST:PORT". */
char **muster_cluster_spec_peers (const MusterClusterSpec *self);

/* The chief, for MusterSessionManagerOptions.chief (transfer full): "chief:0=HOST:PORT". NULL for
 * the chief itself, and if its sessions are at this task's master. */
char *muster_cluster_spec_chief (const MusterClusterSpec *self);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

/* MusterClusterSpec is a TensorFlow cluster as its tasks are told of it: which there are, where
 * each is, and which one this process belongs to. It is read from TF_CONFIG as TensorFlow reads it,
 * so that the same environment serves a task's tf.distribute.Server and the muster beside it:
 *
 *   {"cluster": {"chief": ["a:2222"], "ps": ["b:2222"], "worker": ["c:2222", "d:2222"]},
 *    "task": {"type": "worker", "index": 0}}
 *
 * A job is a list of addresses, or an object from index to address; an index may be written as a
 * string. Immutable. Any thread; strings are borrowed from it. */

typedef struct _MusterClusterSpec MusterClusterSpec;

typedef struct {
  const char *job; /* "ps" */
  guint index;
  const char *address; /* HOST:PORT */
} MusterClusterTask;

/* tf_config (nullable) is what the variable holds; NULL and "" are a cluster without tasks.
 * INVALID_ARGUMENT says what is wrong with it, where, and what would be right: text that is no JSON
 * object or contradicts itself, an address that isn't HOST:PORT, a job "chief" of several tasks, a
 * task that isn't in its cluster (but for an "evaluator", which never is). */
MusterClusterSpec *muster_cluster_spec_new (const char *tf_config, GError **error);
void muster_cluster_spec_free (MusterClusterSpec *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterClusterSpec, muster_cluster_spec_free)

/* Whether it names no task at all, nor a master. */
gboolean muster_cluster_spec_is_empty (const MusterClusterSpec *self);
/* All tasks, job by job as they were written, each job's by index. */
const MusterClusterTask *muster_cluster_spec_tasks (const MusterClusterSpec *self, gsize *n);
/* One of them, or NULL. */
const MusterClusterTask *muster_cluster_spec_find (const MusterClusterSpec *self, const char *job,
                                                   guint index);
guint muster_cluster_spec_n_tasks (const MusterClusterSpec *self, const char *job);

/* Which job this process belongs to, and which of its tasks it is; NULL where none is named. */
const char *muster_cluster_spec_job (const MusterClusterSpec *self);
guint muster_cluster_spec_index (const MusterClusterSpec *self);

/* Who prepares the model: the job "chief", else "master", else worker 0. */
gboolean muster_cluster_spec_is_chief (const MusterClusterSpec *self);
/* How many tasks train: chief and workers; and the number of this one among them, the chief being
 * 0; -1: it is none of them. */
guint muster_cluster_spec_n_trainers (const MusterClusterSpec *self);
gint muster_cluster_spec_trainer (const MusterClusterSpec *self);

/* Where this task's sessions live (transfer full): "session_master" where it is given, "local" in a
 * cluster of one task, else the task's own server, "grpc://HOST:PORT". INVALID_ARGUMENT where no
 * task is named, or it has no address. */
char *muster_cluster_spec_target (const MusterClusterSpec *self, GError **error);

/* Whether each task that trains has a master of its own, its own server: several of them, and no
 * "session_master". */
gboolean muster_cluster_spec_has_own_masters (const MusterClusterSpec *self);

/* Which devices this task's sessions are about: the parameter servers' and its own (a parameter
 * server's: those of the tasks that train), so that its master neither waits for the other workers
 * nor is stopped by them. "/job:ps", "/job:worker/task:1" (transfer full); NULL: all, where the
 * cluster has no job "ps" or no task is named. */
char **muster_cluster_spec_device_filters (const MusterClusterSpec *self);

/* A ConfigProto for this task's sessions (transfer full): config (nullable, serialised), with these
 * filters unless it has some. NULL without an error: there is nothing to say. */
GBytes *muster_cluster_spec_config (const MusterClusterSpec *self, GBytes *config, GError **error);

/* The other tasks that such a session waits for, as MusterSessionManagerOptions.cluster takes them
 * (transfer full): "ps:0=HOST:PORT". */
char **muster_cluster_spec_peers (const MusterClusterSpec *self);

/* The chief, as MusterSessionManagerOptions.chief takes it (transfer full): "chief:0=HOST:PORT".
 * NULL for the chief itself, and where its sessions live at this task's master. */
char *muster_cluster_spec_chief (const MusterClusterSpec *self);

G_END_DECLS

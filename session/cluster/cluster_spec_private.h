// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/remote/remote_master.h"
#include "session/cluster/cluster_spec.h"

G_BEGIN_DECLS

#define MUSTER_MOST_TASKS 100000

struct _MusterClusterSpec {
  gatomicrefcount refs;
  GArray *tasks; /* (owned) of MusterClusterTask, which own their strings */
  char *job;     /* (owned) (nullable) */
  guint index;
  gboolean is_outside;  /* this task isn't in TF_CONFIG's cluster; it is the last of tasks */
  GPtrArray *admitted;  /* (owned) (element-type utf8) the names of other machines */
  char *session_master; /* (owned) (nullable) */
  char *coordinator;    /* (owned) (nullable) */
};

/* This process's task; NULL if none is named, or it has no address. Borrowed. */
const MusterClusterTask *muster_cluster_spec_own (const MusterClusterSpec *self);

/* The task that prepares the model; NULL: it isn't among them. Borrowed. */
const MusterClusterTask *muster_cluster_spec_chief_task (const MusterClusterSpec *self);

/* Tests whether this process's task isn't in the cluster that the other tasks know. */
gboolean muster_cluster_spec_is_outside (const MusterClusterSpec *self);

/* Machines whose workers aren't in the cluster, by which names they are known; borrowed. */
const GPtrArray *muster_cluster_spec_admitted (const MusterClusterSpec *self);

/* Tells the master of this task's sessions if the task is outside the cluster. */
void muster_cluster_spec_tell_master (const MusterClusterSpec *self, MusterRemoteMaster *master);

/* cluster_def.c: a serialised ClusterDef; the tasks of a job follow one another. */
GBytes *muster_cluster_def_pack (const MusterClusterTask *tasks, gsize n);

/* Where `muster serve` of this task listens for the task's own commands, which must be the same
 * user's: a Unix socket in /tmp, whose name has a digest of the cluster. (transfer full) NULL: it
 * has none, as an evaluator. */
char *muster_cluster_spec_gateway (const MusterClusterSpec *self);

/* tf_config.c: fills an empty spec. The result must still be validated. */
gboolean muster_cluster_spec_read (MusterClusterSpec *self, const char *text, GError **error);

/* Sets INVALID_ARGUMENT with the prefix "TF_CONFIG". Always returns FALSE. */
gboolean muster_tf_config_error (GError **error, const char *format, ...) G_GNUC_PRINTF (2, 3);

G_END_DECLS

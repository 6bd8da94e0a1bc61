// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "session/cluster/cluster_spec.h"

G_BEGIN_DECLS

/* The role of a process in a training job, from the command line or TF_CONFIG. A plain struct;
 * clear it. */

typedef struct {
  gboolean is_worker;
  gboolean is_elastic; /* "auto": the job's tasks are equal, and the master chooses the chief */
  guint index;         /* 0 for the chief; unique in the job */
  guint n_tasks;       /* chief and workers */
  char *task;          /* (owned) (nullable) "chief:0", "worker:3"; for "auto" a name or NULL */
  char *master;        /* (owned) (nullable) a target */
} MusterTrainRole;

void muster_train_role_clear (MusterTrainRole *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterTrainRole, muster_train_role_clear)

/* task (nullable) is "chief:0", "worker:N" or "auto", n_tasks 0 if not given, master (nullable) a
 * target; each overrides cluster. Without any of them: a chief alone, without a target.
 * INVALID_ARGUMENT names the mistake, its place and the remedy. */
gboolean muster_train_role_read (MusterTrainRole *self, const char *task, int n_tasks,
                                 const char *master, const MusterClusterSpec *cluster,
                                 GError **error);

G_END_DECLS

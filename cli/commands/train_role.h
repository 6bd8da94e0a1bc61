// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "session/cluster/cluster_spec.h"

G_BEGIN_DECLS

/* Which part of a training job a process has: from the command's line, or from TF_CONFIG, as
 * TensorFlow's clusters tell their tasks. A plain struct; clear it. */

typedef struct {
  gboolean is_worker;
  guint index;   /* 0 is the chief; each task has a number of its own */
  guint n_tasks; /* chief and workers */
  char *task;    /* (owned) "chief:0", "worker:3" */
  char *master;  /* (owned) (nullable) a target */
} MusterTrainRole;

void muster_train_role_clear (MusterTrainRole *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterTrainRole, muster_train_role_clear)

/* task (nullable) is "chief:0" or "worker:N", n_tasks 0 where it isn't given, master (nullable) a
 * target: each wins over what cluster says. Without any it is a chief alone, and without a target.
 * INVALID_ARGUMENT says what is wrong, where, and what would be right. */
gboolean muster_train_role_read (MusterTrainRole *self, const char *task, int n_tasks,
                                 const char *master, const MusterClusterSpec *cluster,
                                 GError **error);

G_END_DECLS

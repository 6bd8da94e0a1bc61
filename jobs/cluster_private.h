// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jobs/cluster.h"

G_BEGIN_DECLS

/* The variable of muster_epoch_counter_add (), and the scope of its ops. */
#define MUSTER_EPOCH_COUNTER "muster/epochs"

/* job_run.c: runs a group that is compiled for the cluster. */
gboolean muster_job_group_run (MusterJobGroup *self, MusterCluster *cluster, gint64 deadline_us,
                               GCancellable *cancellable, GError **error);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/bench.h"

G_BEGIN_DECLS

/* A job on a TensorFlow cluster: a parameter server, a chief and two workers, each on a machine of
 * its own; `muster serve --task` and `muster train`, or TensorFlow's server and
 * MonitoredTrainingSession in Python. */

typedef enum {
  CLUSTER_PS,
  CLUSTER_CHIEF,
  CLUSTER_WORKER_0,
  CLUSTER_WORKER_1,
  CLUSTER_TASKS
} ClusterTask;
#define CLUSTER_FIRST_TRAINER CLUSTER_CHIEF

/* What is waited for at the most. */
#define CLUSTER_LIMIT_S 120.0

/* Of what happened to one: 0 is what didn't. */
typedef struct {
  /* To a task's next step, from when the server serves again, the command is started again or the
   * cut ends. */
  double back_s[CLUSTER_TASKS];
  double failed_s[CLUSTER_TASKS]; /* from a cut's begin to the failure of a task's begun step */
} ClusterCost;

typedef struct _ClusterJob ClusterJob;

/* Starts all. In a namespace of its own, with TensorFlow. */
ClusterJob *cluster_job_new (gboolean is_tensorflow);
void cluster_job_free (ClusterJob *self);
/* Waits until every task has made steps for so long, or fails. */
void cluster_job_settle (ClusterJob *self, double seconds);

/* Each ends when all tasks make steps. */
ClusterCost cluster_job_kill_server (ClusterJob *self, ClusterTask task);
ClusterCost cluster_job_kill_trainer (ClusterJob *self, ClusterTask task);
ClusterCost cluster_job_cut (ClusterJob *self, ClusterTask task, double seconds);

G_END_DECLS

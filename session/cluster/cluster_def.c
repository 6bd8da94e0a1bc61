// SPDX-License-Identifier: Apache-2.0
/* Tasks as TensorFlow's ClusterDef. */
#include "base/unpack_private.h"
#include "rpc/proto/cluster.pb-c.h"
#include "session/cluster/cluster_spec_private.h"

static gboolean
is_first_of_job (const MusterClusterTask *tasks, gsize i)
{
  return i == 0 || !g_str_equal (tasks[i].job, tasks[i - 1].job);
}

GBytes *
muster_cluster_def_pack (const MusterClusterTask *tasks, gsize n)
{
  g_autofree Tensorflow__JobDef *jobs = g_new (Tensorflow__JobDef, n);
  g_autofree Tensorflow__JobDef **in_cluster = g_new (Tensorflow__JobDef *, n);
  g_autofree Tensorflow__JobDef__Task *entries = g_new (Tensorflow__JobDef__Task, n);
  g_autofree Tensorflow__JobDef__Task **in_jobs = g_new (Tensorflow__JobDef__Task *, n);
  Tensorflow__ClusterDef cluster = TENSORFLOW__CLUSTER_DEF__INIT;
  cluster.job = in_cluster;
  for (gsize i = 0; i < n; i++) {
    if (is_first_of_job (tasks, i)) {
      Tensorflow__JobDef *job = in_cluster[cluster.n_job] = &jobs[cluster.n_job];
      tensorflow__job_def__init (job);
      job->name = (char *)tasks[i].job;
      job->tasks = in_jobs + i;
      cluster.n_job++;
    }
    tensorflow__job_def__task__init (in_jobs[i] = &entries[i]);
    entries[i].key = (int)tasks[i].index;
    entries[i].value = (char *)tasks[i].address;
    jobs[cluster.n_job - 1].n_tasks++;
  }
  return muster_pack (&cluster.base);
}

// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/server_def_private.h"

#include "base/unpack_private.h"
#include "rpc/proto/cluster.pb-c.h"

#define PROTOCOL "grpc"

/* The tasks of a job follow each other. */
static gsize
n_jobs_of (const MusterClusterTask *tasks, gsize n)
{
  gsize n_jobs = 0;
  for (gsize i = 0; i < n; i++)
    n_jobs += i == 0 || !g_str_equal (tasks[i].job, tasks[i - 1].job);
  return n_jobs;
}

static GBytes *
pack (Tensorflow__ClusterDef *cluster, const char *job, guint index)
{
  Tensorflow__ServerDef server = TENSORFLOW__SERVER_DEF__INIT;
  server.cluster = cluster;
  server.job_name = (char *)job;
  server.task_index = (int)index;
  server.protocol = (char *)PROTOCOL;
  return muster_pack (&server.base);
}

/* The server of a job's task among those of its cluster. */
static GBytes *
define (const MusterClusterTask *tasks, gsize n, const char *own_job, guint own_index)
{
  const gsize n_jobs = n_jobs_of (tasks, n);
  g_autofree Tensorflow__JobDef *jobs = g_new (Tensorflow__JobDef, n_jobs);
  g_autofree Tensorflow__JobDef **in_cluster = g_new (Tensorflow__JobDef *, n_jobs);
  g_autofree Tensorflow__JobDef__Task *entries = g_new (Tensorflow__JobDef__Task, n);
  g_autofree Tensorflow__JobDef__Task **in_jobs = g_new (Tensorflow__JobDef__Task *, n);
  Tensorflow__ClusterDef cluster = TENSORFLOW__CLUSTER_DEF__INIT;
  cluster.job = in_cluster;
  for (gsize i = 0; i < n; i++) {
    if (i == 0 || !g_str_equal (tasks[i].job, tasks[i - 1].job)) {
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
  return pack (&cluster, own_job, own_index);
}

GBytes *
muster_server_def_alone (guint16 port)
{
  g_autofree char *address = g_strdup_printf ("localhost:%u", port);
  const MusterClusterTask task = {.job = "localhost", .address = address};
  return define (&task, 1, task.job, task.index);
}

GBytes *
muster_server_def_of_task (const MusterClusterSpec *spec)
{
  gsize n;
  const MusterClusterTask *tasks = muster_cluster_spec_tasks (spec, &n);
  return define (tasks, n, muster_cluster_spec_job (spec), muster_cluster_spec_index (spec));
}

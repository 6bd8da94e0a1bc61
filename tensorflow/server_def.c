// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/server_def_private.h"

#include "base/unpack_private.h"
#include "rpc/proto/cluster.pb-c.h"
#include "session/cluster/cluster_spec_private.h"

#define PROTOCOL "grpc"
#define ALONE    "localhost"

/* The server of a job's task among those of its cluster. */
static GBytes *
define (const MusterClusterTask *tasks, gsize n, const char *own_job, guint own_index)
{
  g_autoptr (GBytes) cluster = muster_cluster_def_pack (tasks, n);
  Tensorflow__ServerDef server = TENSORFLOW__SERVER_DEF__INIT;
  server.cluster =
      (ProtobufCBinaryData){g_bytes_get_size (cluster), (guint8 *)g_bytes_get_data (cluster, NULL)};
  server.job_name = (char *)own_job;
  server.task_index = (int)own_index;
  server.protocol = (char *)PROTOCOL;
  return muster_pack (&server.base);
}

static GBytes *
define_alone (const char *job, const char *address)
{
  const MusterClusterTask task = {.job = job, .address = address};
  return define (&task, 1, job, 0);
}

GBytes *
muster_server_def_alone (guint16 port)
{
  g_autofree char *address = g_strdup_printf ("localhost:%u", port);
  return define_alone (ALONE, address);
}

/* TensorFlow refuses sessions whose own cluster gives a server the name that it has already. */
GBytes *
muster_server_def_of_task (const MusterClusterSpec *spec)
{
  gsize n;
  const MusterClusterTask *tasks = muster_cluster_spec_tasks (spec, &n);
  if (muster_cluster_spec_is_outside (spec))
    return define_alone (ALONE, muster_cluster_spec_own (spec)->address);
  return define (tasks, n, muster_cluster_spec_job (spec), muster_cluster_spec_index (spec));
}

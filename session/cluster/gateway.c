// SPDX-License-Identifier: Apache-2.0
/* The address of a task's gateway, which its `muster serve` and its commands both find by the
 * cluster alone. */
#include "rpc/address_private.h"
#include "session/cluster/cluster_spec_private.h"

static guint
port_of (const MusterClusterTask *task)
{
  g_autofree char *host = NULL;
  guint16 port = 0;
  return muster_address_parse (task->address, &host, &port, NULL) ? port : 0;
}

/* Behind the highest port of all tasks each has one of its own: several may be on one machine, by
 * whatever names. */
char *
muster_cluster_spec_gateway (const MusterClusterSpec *self)
{
  const MusterClusterTask *own = muster_cluster_spec_own (self);
  gsize n;
  const MusterClusterTask *tasks = muster_cluster_spec_tasks (self, &n);
  guint port = 0;
  if (own == NULL || (self->session_master != NULL && *self->session_master))
    return NULL;
  for (gsize i = 0; i < n; i++)
    port = MAX (port, port_of (&tasks[i]));
  port += (guint)(own - tasks) + 1;
  return port_of (own) > 0 && port <= G_MAXUINT16 ? g_strdup_printf ("localhost:%u", port) : NULL;
}

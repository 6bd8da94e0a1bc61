// SPDX-License-Identifier: Apache-2.0
/* The address of a task's gateway, which its `muster serve` and its programs both find by the
 * cluster alone, and the master there. */
#include "base/gateway_private.h"
#include "base/require_private.h"
#include "master/remote/near_master_private.h"
#include "master/remote/remote_master_private.h"
#include "master/remote/target.h"
#include "rpc/address_private.h"
#include "session/cluster/cluster_spec_private.h"

#include <string.h>
#include <unistd.h>

#define DIGEST_CHARS 16

static int
compare (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *)a, *(const char *const *)b);
}

/* Other jobs of the same user have other sockets. (transfer full) */
static char *
digest_of (const MusterClusterSpec *self)
{
  gsize n;
  const MusterClusterTask *tasks = muster_cluster_spec_tasks (self, &n);
  g_autoptr (GPtrArray) lines = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GChecksum) sum = g_checksum_new (G_CHECKSUM_SHA256);
  for (gsize i = 0; i < n; i++)
    g_ptr_array_add (
        lines, g_strdup_printf ("%s:%u=%s\n", tasks[i].job, tasks[i].index, tasks[i].address));
  g_ptr_array_sort (lines, compare); /* TF_CONFIG may name the jobs in any order */
  for (guint i = 0; i < lines->len; i++)
    g_checksum_update (sum, lines->pdata[i], -1);
  return g_strndup (g_checksum_get_string (sum), DIGEST_CHARS);
}

char *
muster_cluster_spec_gateway (const MusterClusterSpec *self)
{
  const MusterClusterTask *own = muster_cluster_spec_own (self);
  if (own == NULL)
    return NULL;
  g_autofree char *digest = digest_of (self);
  g_autofree char *job = g_strndup (own->job, 32);
  g_strcanon (job, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_-", '_');
  return g_strdup_printf (MUSTER_GATEWAY_PREFIX "%u/%s-%u-%s", (guint)geteuid (), job, own->index,
                          digest);
}

void
muster_cluster_spec_tell_master (const MusterClusterSpec *self, MusterRemoteMaster *master)
{
  gsize n, i = 0;
  const MusterClusterTask *tasks = muster_cluster_spec_tasks (self, &n);
  if (!self->is_outside)
    return;
  while (!g_str_equal (tasks[i].job, "ps")) /* there is one */
    i++;
  g_autofree char *device = g_strdup_printf ("/job:ps/task:%u", tasks[i].index);
  muster_remote_master_set_outside (master, muster_cluster_spec_own (self)->address, device);
}

/* The master of the cluster's sessions, before it has a coordinator. */
static MusterMaster *
find_master (const MusterClusterSpec *self, MusterRpcCredentials *credentials, GError **error)
{
  const MusterClusterTask *own = muster_cluster_spec_own (self);
  g_autofree char *target = muster_cluster_spec_target (self, error);
  g_autoptr (MusterMaster) far =
      target != NULL ? muster_master_new_secured (target, credentials, error) : NULL;
  if (far == NULL || own == NULL ||
      g_strcmp0 (muster_address_in_target (target, NULL), own->address) != 0)
    return g_steal_pointer (&far);
  muster_cluster_spec_tell_master (self, MUSTER_REMOTE_MASTER (far));
  g_autofree char *gateway = muster_cluster_spec_gateway (self);
  return muster_near_master_new (far, gateway, error);
}

MusterMaster *
muster_cluster_spec_master (const MusterClusterSpec *self, MusterRpcCredentials *credentials,
                            GError **error)
{
  muster_require (error, NULL, self);

  g_autoptr (MusterMaster) master = find_master (self, credentials, error);
  g_autofree char *target = muster_cluster_spec_coordinator (self);
  if (master == NULL || target == NULL)
    return g_steal_pointer (&master);
  const gboolean is_secured = g_str_has_prefix (target, "grpcs://");
  g_autoptr (MusterMaster) coordinator = muster_remote_master_new_secured (
      target, muster_rpc_credentials_has_tls (credentials) == is_secured ? credentials : NULL,
      error);
  if (coordinator == NULL || !muster_master_set_coordinator (master, coordinator, error))
    return NULL;
  return g_steal_pointer (&master);
}

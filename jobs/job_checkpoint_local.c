// SPDX-License-Identifier: Apache-2.0
/* Partial loads without a group, one node after another. */
#include "base/log_private.h"
#include "jobs/job_checkpoint_private.h"
#include "jobs/job_checkpoint_tasks_private.h"

#include "base/require_private.h"

typedef struct {
  MusterJobCheckpoint *checkpoint;
  MusterCluster *cluster;
  const char *const *names;
  gint64 epoch;
  const char *on;
  GHashTable *loaded; /* (owned) a set of names */
  gint64 deadline_us;
  GCancellable *cancellable;
} LocalLoad;

static gboolean
check_exists (LocalLoad *self, const char *node, gboolean *is_there, GError **error)
{
  MusterJobOutput *exists = NULL;
  g_autoptr (MusterJobTask) task =
      muster_job_checkpoint_exists_task (self->checkpoint, node, self->epoch, &exists, error);

  if (task == NULL ||
      !muster_cluster_run_task (self->cluster, task, self->deadline_us, self->cancellable, error))
    return FALSE;
  g_autoptr (MusterTensor) value = muster_job_output_get (exists, error);
  gint64 truth;
  if (value == NULL || !muster_tensor_get_int64 (value, &truth, error))
    return FALSE;
  *is_there = truth != 0;
  if (!*is_there) {
    g_autofree char *path = muster_job_checkpoint_db_name (self->checkpoint, node, self->epoch);
    muster_log (G_LOG_LEVEL_INFO, "restore", "MESSAGE", "DB %s does not exist!", path);
  }
  return TRUE;
}

static gboolean
load_node (LocalLoad *self, const char *node, GError **error)
{
  MusterJobOutput *loaded = NULL;
  g_autoptr (MusterJobTask) task = muster_job_checkpoint_partial_load_task (
      self->checkpoint, node, self->names, self->epoch, self->on, &loaded, error);
  if (task == NULL ||
      !muster_cluster_run_task (self->cluster, task, self->deadline_us, self->cancellable, error))
    return FALSE;
  g_autoptr (MusterTensor) names = muster_job_output_get (loaded, NULL);
  for (gint64 i = 0; i < muster_tensor_n_elements (names); i++) {
    const MusterString name = muster_tensor_string (names, i);
    g_hash_table_add (self->loaded, g_strndup (name.data, name.size));
  }
  return TRUE;
}

/* Returns the names in the order of the request. */
static char **
loaded_names (const LocalLoad *self)
{
  g_autoptr (GStrvBuilder) names = g_strv_builder_new ();
  for (gsize i = 0; self->names[i]; i++)
    if (g_hash_table_remove (self->loaded, self->names[i]))
      g_strv_builder_add (names, self->names[i]);
  return g_strv_builder_end (names);
}

gboolean
muster_job_checkpoint_load_locally (MusterJobCheckpoint *self, const char *const *nodes,
                                    const char *const *names, gint64 epoch, MusterCluster *cluster,
                                    const char *on, gboolean *found, char ***loaded,
                                    gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self, nodes, names, cluster, found);

  g_autoptr (GHashTable) set = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  LocalLoad load = {self, cluster, names, epoch, on, set, deadline_us, cancellable};
  gboolean is_there = TRUE;
  if (!muster_job_checkpoint_know_nodes (self, nodes, error))
    return FALSE;
  for (guint i = 0; is_there && i < self->entries->len; i++) {
    const char *node = ((MusterJobEntry *)self->entries->pdata[i])->node;
    if (!check_exists (&load, node, &is_there, error) ||
        (is_there && !load_node (&load, node, error)))
      return FALSE;
  }
  *found = is_there;
  if (loaded != NULL)
    *loaded = loaded_names (&load);
  return TRUE;
}

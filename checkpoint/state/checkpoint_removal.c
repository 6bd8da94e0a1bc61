// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/state/checkpoint_removal_private.h"

#include "checkpoint/format/bundle_place_private.h"

#include <string.h>

gboolean
muster_checkpoint_is_read (MusterStorage *storage, const char *prefix)
{
  g_autofree char *index = muster_bundle_index_path (prefix);
  g_autoptr (GError) failure = NULL;
  MusterStorageLock *lock = muster_storage_lock (storage, index, MUSTER_LOCK_UNUSED, &failure);

  muster_storage_unlock (storage, lock);
  return lock == NULL && g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_BUSY);
}

gboolean
muster_checkpoint_state_forget (MusterCheckpointState *self, const char *prefix)
{
  g_autofree char *name = g_path_get_basename (prefix);
  const guint before = self->all->len;
  const gboolean has_times = self->timestamps->len == before;

  for (guint i = before; i-- > 0;) {
    g_autofree char *listed = g_path_get_basename (self->all->pdata[i]);
    if (strcmp (listed, name) != 0)
      continue;
    g_ptr_array_remove_index (self->all, i);
    if (has_times)
      g_array_remove_index (self->timestamps, i);
  }
  return self->all->len < before;
}

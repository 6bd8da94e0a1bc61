// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/store/alive_mark_private.h"

#include <string.h>

/* Without the host's name, only the age decides. */
static void
name_host_quietly (MusterStorage *storage, const char *path)
{
  const char *host = g_get_host_name ();
  MusterStorageFile *file = muster_storage_create (storage, path, NULL);
  if (file == NULL)
    return;
  (void)muster_storage_append (storage, file, host, strlen (host), NULL);
  (void)muster_storage_close (storage, file, NULL);
}

MusterStorageLock *
muster_alive_mark (MusterStorage *storage, const char *temporary, GError **error)
{
  g_autofree char *path = g_strconcat (temporary, MUSTER_ALIVE_SUFFIX, NULL);
  if (!muster_storage_can_rename (storage, path)) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED, "an object store has no locks");
    return NULL;
  }
  MusterStorageLock *lock = muster_storage_lock (storage, path, MUSTER_LOCK_EXCLUSIVE, error);

  if (lock != NULL && MUSTER_STORAGE_GET_IFACE (storage)->lock != NULL)
    name_host_quietly (storage, path);
  return lock;
}

/* The file is removed before it is unlocked: a file that can be locked belongs to a dead
 * process. */
void
muster_alive_unmark (MusterStorage *storage, const char *temporary, MusterStorageLock *lock)
{
  g_autofree char *path = g_strconcat (temporary, MUSTER_ALIVE_SUFFIX, NULL);

  if (lock != NULL)
    (void)muster_storage_remove (storage, path, NULL);
  muster_storage_unlock (storage, lock);
}

// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/faulty_storage.h"

#include "base/error.h"

#include <string.h>

struct _MusterFaultyStorage {
  MusterForwardingStorage parent;
  GMutex lock;
  GCond changed;
  /* guarded by lock */
  const char *directory;
  MusterFault fault;
  GHashTable *files; /* open ones under the directory */
};

static void faulty_storage_iface_init (MusterStorageInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterFaultyStorage, muster_faulty_storage,
                               MUSTER_TYPE_FORWARDING_STORAGE,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_STORAGE,
                                                      faulty_storage_iface_init))

static MusterStorage *
inner (void)
{
  return muster_local_storage ();
}

/* With the lock held. */
static gboolean
is_under (MusterFaultyStorage *self, const char *path)
{
  return self->directory != NULL && g_str_has_prefix (path, self->directory) &&
         (path[strlen (self->directory)] == '/' || path[strlen (self->directory)] == '\0');
}

static MusterFault
fault_at (MusterStorage *storage, const char *path)
{
  MusterFaultyStorage *self = MUSTER_FAULTY_STORAGE (storage);
  const gint64 until_us = g_get_monotonic_time () + 60 * G_USEC_PER_SEC;
  g_mutex_lock (&self->lock);
  while (self->fault == MUSTER_FAULT_HANGS && is_under (self, path) &&
         g_cond_wait_until (&self->changed, &self->lock, until_us))
    ;
  MusterFault fault = is_under (self, path) ? self->fault : MUSTER_FAULT_NONE;
  g_mutex_unlock (&self->lock);
  return fault;
}

static gboolean
passes (MusterStorage *storage, const char *path, GError **error)
{
  const MusterFault fault = fault_at (storage, path);
  if (fault == MUSTER_FAULT_BROKEN)
    g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_IO, "'%s': Input/output error", path);
  else if (fault == MUSTER_FAULT_AWAY)
    muster_fail (error, MUSTER_ERROR_UNAVAILABLE, "'%s': no connection", path);
  else if (fault == MUSTER_FAULT_ABSENT)
    g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_NOENT, "'%s': No such file", path);
  else
    return TRUE;
  return FALSE;
}

static MusterStorageFile *
faulty_create (MusterStorage *storage, const char *path, GError **error)
{
  MusterFaultyStorage *self = MUSTER_FAULTY_STORAGE (storage);
  MusterStorageFile *file =
      passes (storage, path, error) ? muster_storage_create (inner (), path, error) : NULL;

  g_mutex_lock (&self->lock);
  if (file != NULL && is_under (self, path))
    g_hash_table_add (self->files, file);
  else /* one that was abandoned may have had its address */
    g_hash_table_remove (self->files, file);
  g_mutex_unlock (&self->lock);
  return file;
}

/* Small files still fit. */
static gboolean
fits (MusterStorage *storage, MusterStorageFile *file, GError **error)
{
  MusterFaultyStorage *self = MUSTER_FAULTY_STORAGE (storage);
  g_mutex_lock (&self->lock);
  const gboolean is_ours = g_hash_table_contains (self->files, file);
  const MusterFault fault = is_ours ? self->fault : MUSTER_FAULT_NONE;
  g_mutex_unlock (&self->lock);
  if (fault == MUSTER_FAULT_NO_SPACE || fault == MUSTER_FAULT_FILLS_UP)
    g_set_error_literal (error, G_FILE_ERROR, G_FILE_ERROR_NOSPC, "could not write: no space left");
  else if (fault == MUSTER_FAULT_EXHAUSTED)
    g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED, "quota exceeded");
  else if (fault == MUSTER_FAULT_AWAY)
    muster_fail (error, MUSTER_ERROR_UNAVAILABLE, "the connection was lost");
  else if (fault == MUSTER_FAULT_BROKEN)
    g_set_error_literal (error, G_FILE_ERROR, G_FILE_ERROR_IO, "could not write: I/O error");
  else
    return TRUE;
  return FALSE;
}

static gboolean
faulty_append (MusterStorage *storage, MusterStorageFile *file, const void *data, gsize size,
               GError **error)
{
  return fits (storage, file, error) && muster_storage_append (inner (), file, data, size, error);
}

static gboolean
faulty_close (MusterStorage *storage, MusterStorageFile *file, GError **error)
{
  MusterFaultyStorage *self = MUSTER_FAULTY_STORAGE (storage);
  g_mutex_lock (&self->lock);
  g_hash_table_remove (self->files, file);
  g_mutex_unlock (&self->lock);
  return muster_storage_close (inner (), file, error);
}

static MusterStorageInput *
faulty_open (MusterStorage *storage, const char *path, guint64 *size, GError **error)
{
  return passes (storage, path, error) ? muster_storage_open (inner (), path, size, error) : NULL;
}

static gboolean
faulty_rename (MusterStorage *storage, const char *from, const char *to, GError **error)
{
  return passes (storage, from, error) && muster_storage_rename (inner (), from, to, error);
}

static gboolean
faulty_remove (MusterStorage *storage, const char *path, GError **error)
{
  return passes (storage, path, error) && muster_storage_remove (inner (), path, error);
}

static char **
faulty_list (MusterStorage *storage, const char *directory, GError **error)
{
  return passes (storage, directory, error) ? muster_storage_list (inner (), directory, error)
                                            : NULL;
}

static gboolean
faulty_stat (MusterStorage *storage, const char *path, MusterStorageInfo *info, GError **error)
{
  return passes (storage, path, error) && muster_storage_stat (inner (), path, info, error);
}

static gboolean
faulty_make_directory (MusterStorage *storage, const char *directory, GError **error)
{
  return passes (storage, directory, error) &&
         muster_storage_make_directory (inner (), directory, error);
}

static gboolean
faulty_free_space (MusterStorage *storage, const char *directory, guint64 *bytes, GError **error)
{
  const MusterFault fault = fault_at (storage, directory);
  if (fault == MUSTER_FAULT_NO_SPACE)
    *bytes = 0;
  return fault == MUSTER_FAULT_NO_SPACE ||
         muster_storage_free_space (
             muster_forwarding_storage_inner (MUSTER_FORWARDING_STORAGE (storage)), directory,
             bytes, error);
}

static MusterStorageLock *
faulty_lock (MusterStorage *storage, const char *path, MusterLockMode mode, GError **error)
{
  return passes (storage, path, error) ? muster_storage_lock (inner (), path, mode, error) : NULL;
}

static void
faulty_storage_iface_init (MusterStorageInterface *iface)
{
  iface->create = faulty_create;
  iface->append = faulty_append;
  iface->close = faulty_close;
  iface->open = faulty_open;
  iface->rename = faulty_rename;
  iface->remove = faulty_remove;
  iface->list = faulty_list;
  iface->stat = faulty_stat;
  iface->make_directory = faulty_make_directory;
  iface->free_space = faulty_free_space;
  iface->lock = faulty_lock;
}

static void
muster_faulty_storage_finalize (GObject *object)
{
  MusterFaultyStorage *self = MUSTER_FAULTY_STORAGE (object);
  g_hash_table_unref (self->files);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  G_OBJECT_CLASS (muster_faulty_storage_parent_class)->finalize (object);
}

static void
muster_faulty_storage_class_init (MusterFaultyStorageClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_faulty_storage_finalize;
}

static void
muster_faulty_storage_init (MusterFaultyStorage *self)
{
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  self->files = g_hash_table_new (g_direct_hash, g_direct_equal);
}

MusterFaultyStorage *
muster_faulty_storage_new (void)
{
  return g_object_new (MUSTER_TYPE_FAULTY_STORAGE, NULL);
}

void
muster_faulty_storage_set (MusterFaultyStorage *self, const char *directory, MusterFault fault)
{
  g_mutex_lock (&self->lock);
  self->directory = directory;
  self->fault = fault;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/watched_storage.h"

struct _MusterWatchedStorage {
  MusterForwardingStorage parent;
  const char *refused; /* (nullable) */
  const char *called;  /* (nullable) */
  void (*func) (gpointer user_data);
  gpointer user_data;
};

static void watched_storage_iface_init (MusterStorageInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterWatchedStorage, muster_watched_storage,
                               MUSTER_TYPE_FORWARDING_STORAGE,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_STORAGE,
                                                      watched_storage_iface_init))

static void
watch (MusterWatchedStorage *self, const char *path)
{
  if (self->called == NULL || !g_str_has_suffix (path, self->called))
    return;
  self->called = NULL;
  self->func (self->user_data);
}

static MusterStorageInput *
watched_open (MusterStorage *storage, const char *path, guint64 *size, GError **error)
{
  MusterWatchedStorage *self = MUSTER_WATCHED_STORAGE (storage);
  watch (self, path);
  if (self->refused != NULL && g_str_has_suffix (path, self->refused)) {
    g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_IO, "'%s': Input/output error", path);
    return NULL;
  }
  return muster_storage_open (muster_local_storage (), path, size, error);
}

static MusterStorageLock *
watched_lock (MusterStorage *storage, const char *path, MusterLockMode mode, GError **error)
{
  watch (MUSTER_WATCHED_STORAGE (storage), path);
  return muster_storage_lock (muster_local_storage (), path, mode, error);
}

static gboolean
watched_stat (MusterStorage *storage, const char *path, MusterStorageInfo *info, GError **error)
{
  watch (MUSTER_WATCHED_STORAGE (storage), path);
  return muster_storage_stat (muster_local_storage (), path, info, error);
}

static void
watched_storage_iface_init (MusterStorageInterface *iface)
{
  iface->stat = watched_stat;
  iface->open = watched_open;
  iface->lock = watched_lock;
}

static void
muster_watched_storage_class_init (MusterWatchedStorageClass *klass G_GNUC_UNUSED)
{
}

static void
muster_watched_storage_init (MusterWatchedStorage *self G_GNUC_UNUSED)
{
}

MusterWatchedStorage *
muster_watched_storage_new (void)
{
  return g_object_new (MUSTER_TYPE_WATCHED_STORAGE, NULL);
}

void
muster_watched_storage_refuse (MusterWatchedStorage *self, const char *path)
{
  self->refused = path;
}

void
muster_watched_storage_call (MusterWatchedStorage *self, const char *path,
                             void (*func) (gpointer user_data), gpointer user_data)
{
  self->called = path;
  self->func = func;
  self->user_data = user_data;
}

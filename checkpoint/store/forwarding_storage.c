// SPDX-License-Identifier: Apache-2.0
/* A store that passes every operation to another one. Derived classes override some of them. */
#include "checkpoint/store/forwarding_storage.h"

typedef struct {
  MusterStorage *inner; /* (owned) */
} MusterForwardingStoragePrivate;

static void muster_forwarding_storage_iface_init (MusterStorageInterface *iface);

G_DEFINE_TYPE_WITH_CODE (MusterForwardingStorage, muster_forwarding_storage, G_TYPE_OBJECT,
                         G_ADD_PRIVATE (MusterForwardingStorage)
                             G_IMPLEMENT_INTERFACE (MUSTER_TYPE_STORAGE,
                                                    muster_forwarding_storage_iface_init))

static MusterForwardingStoragePrivate *
private_of (gpointer self)
{
  return muster_forwarding_storage_get_instance_private (MUSTER_FORWARDING_STORAGE (self));
}

MusterStorage *
muster_forwarding_storage_inner (MusterForwardingStorage *self)
{
  g_return_val_if_fail (MUSTER_IS_FORWARDING_STORAGE (self), NULL);
  return private_of (self)->inner;
}

void
muster_forwarding_storage_set_inner (MusterForwardingStorage *self, MusterStorage *inner)
{
  g_return_if_fail (MUSTER_IS_FORWARDING_STORAGE (self) && MUSTER_IS_STORAGE (inner));
  g_set_object (&private_of (self)->inner, inner);
}

static MusterStorage *
inner_of (MusterStorage *self)
{
  return private_of (self)->inner;
}

static MusterStorageFile *
forward_create (MusterStorage *self, const char *path, GError **error)
{
  return muster_storage_create (inner_of (self), path, error);
}

static gboolean
forward_reserve (MusterStorage *self, MusterStorageFile *file, guint64 size, GError **error)
{
  return muster_storage_reserve (inner_of (self), file, size, error);
}

static gboolean
forward_append (MusterStorage *self, MusterStorageFile *file, const void *data, gsize size,
                GError **error)
{
  return muster_storage_append (inner_of (self), file, data, size, error);
}

static gboolean
forward_sync (MusterStorage *self, MusterStorageFile *file, GError **error)
{
  return muster_storage_sync (inner_of (self), file, error);
}

static gboolean
forward_close (MusterStorage *self, MusterStorageFile *file, GError **error)
{
  return muster_storage_close (inner_of (self), file, error);
}

static MusterStorageInput *
forward_open (MusterStorage *self, const char *path, guint64 *size, GError **error)
{
  return muster_storage_open (inner_of (self), path, size, error);
}

static gssize
forward_read_at (MusterStorage *self, MusterStorageInput *input, guint64 offset, void *buffer,
                 gsize size, GError **error)
{
  return muster_storage_read_at (inner_of (self), input, offset, buffer, size, error);
}

static void
forward_close_input (MusterStorage *self, MusterStorageInput *input)
{
  muster_storage_close_input (inner_of (self), input);
}

static gboolean
forward_rename (MusterStorage *self, const char *from, const char *to, GError **error)
{
  return muster_storage_rename (inner_of (self), from, to, error);
}

static gboolean
forward_remove (MusterStorage *self, const char *path, GError **error)
{
  return muster_storage_remove (inner_of (self), path, error);
}

static char **
forward_list (MusterStorage *self, const char *directory, GError **error)
{
  return muster_storage_list (inner_of (self), directory, error);
}

static gboolean
forward_stat (MusterStorage *self, const char *path, MusterStorageInfo *info, GError **error)
{
  return muster_storage_stat (inner_of (self), path, info, error);
}

static gboolean
forward_sync_directory (MusterStorage *self, const char *directory, GError **error)
{
  return muster_storage_sync_directory (inner_of (self), directory, error);
}

static gboolean
forward_make_directory (MusterStorage *self, const char *directory, GError **error)
{
  return muster_storage_make_directory (inner_of (self), directory, error);
}

static gboolean
forward_free_space (MusterStorage *self, const char *directory, guint64 *bytes, GError **error)
{
  return muster_storage_free_space (inner_of (self), directory, bytes, error);
}

static MusterStorageLock *
forward_lock (MusterStorage *self, const char *path, MusterLockMode mode, GError **error)
{
  return muster_storage_lock (inner_of (self), path, mode, error);
}

static void
forward_unlock (MusterStorage *self, MusterStorageLock *lock)
{
  muster_storage_unlock (inner_of (self), lock);
}

static gboolean
forward_takes (MusterStorage *self, const char *path)
{
  return muster_storage_check_path (inner_of (self), "path", path, NULL);
}

static gboolean
forward_can_rename (MusterStorage *self, const char *path)
{
  return muster_storage_can_rename (inner_of (self), path);
}

static void
forward_abandon (MusterStorage *self, MusterStorageFile *file)
{
  muster_storage_abandon (inner_of (self), file);
}

static gboolean
forward_copy (MusterStorage *self, const char *from, const char *to, GError **error)
{
  return muster_storage_copy (inner_of (self), from, to, error);
}

static GBytes *
forward_read_versioned (MusterStorage *self, const char *path, char **version, GError **error)
{
  return muster_storage_read_versioned (inner_of (self), path, version, error);
}

static gboolean
forward_replace (MusterStorage *self, const char *path, const void *data, gsize size,
                 const char *version, char **new_version, GError **error)
{
  return muster_storage_replace (inner_of (self), path, data, size, version, new_version, error);
}

static gboolean
forward_sweep (MusterStorage *self, const char *directory, gint64 before_us, GError **error)
{
  return muster_storage_sweep (inner_of (self), directory, before_us, error);
}

static void
muster_forwarding_storage_iface_init (MusterStorageInterface *iface)
{
  iface->create = forward_create;
  iface->reserve = forward_reserve;
  iface->append = forward_append;
  iface->sync = forward_sync;
  iface->close = forward_close;
  iface->open = forward_open;
  iface->read_at = forward_read_at;
  iface->close_input = forward_close_input;
  iface->rename = forward_rename;
  iface->remove = forward_remove;
  iface->list = forward_list;
  iface->stat = forward_stat;
  iface->sync_directory = forward_sync_directory;
  iface->make_directory = forward_make_directory;
  iface->free_space = forward_free_space;
  iface->lock = forward_lock;
  iface->unlock = forward_unlock;
  iface->takes = forward_takes;
  iface->can_rename = forward_can_rename;
  iface->abandon = forward_abandon;
  iface->copy = forward_copy;
  iface->read_versioned = forward_read_versioned;
  iface->replace = forward_replace;
  iface->sweep = forward_sweep;
}

static void
muster_forwarding_storage_finalize (GObject *object)
{
  g_clear_object (&private_of (object)->inner);
  G_OBJECT_CLASS (muster_forwarding_storage_parent_class)->finalize (object);
}

static void
muster_forwarding_storage_class_init (MusterForwardingStorageClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_forwarding_storage_finalize;
}

static void
muster_forwarding_storage_init (MusterForwardingStorage *self)
{
  private_of (self)->inner = g_object_ref (muster_local_storage ());
}

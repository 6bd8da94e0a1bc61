// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/narrow_storage.h"

struct _MusterNarrowStorage {
  MusterForwardingStorage parent;
  guint64 is_free;
  guint64 size; /* of a disk; 0: is_free counts */
};

static void narrow_storage_iface_init (MusterStorageInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterNarrowStorage, muster_narrow_storage,
                               MUSTER_TYPE_FORWARDING_STORAGE,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_STORAGE,
                                                      narrow_storage_iface_init))

guint64
muster_narrow_storage_used (MusterStorage *storage, const char *directory)
{
  g_auto (GStrv) files = muster_storage_list (storage, directory, NULL);
  guint64 used = 0;
  for (char **file = files; file != NULL && *file != NULL; file++) {
    g_autofree char *path = g_build_filename (directory, *file, NULL);
    MusterStorageInfo info;
    if (muster_storage_stat (storage, path, &info, NULL))
      used += info.size;
  }
  return used;
}

static gboolean
narrow_free_space (MusterStorage *storage, const char *directory, guint64 *bytes,
                   GError **error G_GNUC_UNUSED)
{
  const MusterNarrowStorage *self = MUSTER_NARROW_STORAGE (storage);
  const guint64 used = self->size > 0 ? muster_narrow_storage_used (storage, directory) : 0;
  *bytes = self->size > 0 ? self->size - MIN (self->size, used) : self->is_free;
  return TRUE;
}

static MusterStorageFile *
narrow_create (MusterStorage *storage, const char *path, GError **error)
{
  g_autofree char *directory = g_path_get_dirname (path);
  guint64 is_free = 0;

  (void)narrow_free_space (storage, directory, &is_free, NULL);
  if (is_free > 0)
    return muster_storage_create (
        muster_forwarding_storage_inner (MUSTER_FORWARDING_STORAGE (storage)), path, error);
  g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_NOSPC, "'%s': no space left", path);
  return NULL;
}

static void
narrow_storage_iface_init (MusterStorageInterface *iface)
{
  iface->create = narrow_create;
  iface->free_space = narrow_free_space;
}

static void
muster_narrow_storage_class_init (MusterNarrowStorageClass *klass G_GNUC_UNUSED)
{
}

static void
muster_narrow_storage_init (MusterNarrowStorage *self)
{
  self->is_free = G_MAXUINT64;
}

MusterNarrowStorage *
muster_narrow_storage_new (void)
{
  return g_object_new (MUSTER_TYPE_NARROW_STORAGE, NULL);
}

void
muster_narrow_storage_set_free (MusterNarrowStorage *self, guint64 bytes)
{
  self->is_free = bytes;
}

void
muster_narrow_storage_set_size (MusterNarrowStorage *self, guint64 bytes)
{
  self->size = bytes;
}

void
muster_narrow_storage_fill (MusterNarrowStorage *self, const char *directory, guint64 is_free)
{
  self->size = muster_narrow_storage_used (MUSTER_STORAGE (self), directory) + is_free;
}

// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/narrow_storage.h"

struct _MusterNarrowStorage {
  MusterForwardingStorage parent;
  guint64 is_free;
};

static void narrow_storage_iface_init (MusterStorageInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterNarrowStorage, muster_narrow_storage,
                               MUSTER_TYPE_FORWARDING_STORAGE,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_STORAGE,
                                                      narrow_storage_iface_init))

static gboolean
narrow_free_space (MusterStorage *storage, const char *directory G_GNUC_UNUSED, guint64 *bytes,
                   GError **error G_GNUC_UNUSED)
{
  *bytes = MUSTER_NARROW_STORAGE (storage)->is_free;
  return TRUE;
}

static void
narrow_storage_iface_init (MusterStorageInterface *iface)
{
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

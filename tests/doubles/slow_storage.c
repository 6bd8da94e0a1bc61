// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/slow_storage.h"

struct _MusterSlowStorage {
  MusterForwardingStorage parent;
  MusterFakeClock *clock; /* (owned) */
  guint64 bytes_per_second;
};

static void slow_storage_iface_init (MusterStorageInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterSlowStorage, muster_slow_storage,
                               MUSTER_TYPE_FORWARDING_STORAGE,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_STORAGE, slow_storage_iface_init))

static gboolean
slow_append (MusterStorage *storage, MusterStorageFile *file, const void *data, gsize size,
             GError **error)
{
  MusterSlowStorage *self = MUSTER_SLOW_STORAGE (storage);
  muster_fake_clock_pass (self->clock,
                          (gint64)(size * (guint64)MUSTER_SECOND / self->bytes_per_second));
  return muster_storage_append (muster_local_storage (), file, data, size, error);
}

static void
slow_storage_iface_init (MusterStorageInterface *iface)
{
  iface->append = slow_append;
}

static void
slow_storage_finalize (GObject *object)
{
  g_clear_object (&MUSTER_SLOW_STORAGE (object)->clock);
  G_OBJECT_CLASS (muster_slow_storage_parent_class)->finalize (object);
}

static void
muster_slow_storage_class_init (MusterSlowStorageClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = slow_storage_finalize;
}

static void
muster_slow_storage_init (MusterSlowStorage *self G_GNUC_UNUSED)
{
}

MusterSlowStorage *
muster_slow_storage_new (MusterFakeClock *clock, guint64 bytes_per_second)
{
  MusterSlowStorage *self = g_object_new (MUSTER_TYPE_SLOW_STORAGE, NULL);
  self->clock = g_object_ref (clock);
  self->bytes_per_second = bytes_per_second;
  return self;
}

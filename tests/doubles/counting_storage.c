// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/counting_storage.h"

#include <string.h>

struct _MusterCountingStorage {
  MusterForwardingStorage parent;
  GMutex lock;
  GHashTable *paths; /* (element-type MusterStorageInput utf8) of open data files */
  GHashTable *reads; /* (element-type utf8 GByteArray) how often each byte was read */
  guint64 n_bytes;
};

static void counting_storage_iface_init (MusterStorageInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterCountingStorage, muster_counting_storage,
                               MUSTER_TYPE_FORWARDING_STORAGE,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_STORAGE,
                                                      counting_storage_iface_init))

static MusterStorage *
inner_of (MusterCountingStorage *self)
{
  return muster_forwarding_storage_inner (MUSTER_FORWARDING_STORAGE (self));
}

static MusterStorageInput *
counting_open (MusterStorage *storage, const char *path, guint64 *size, GError **error)
{
  MusterCountingStorage *self = MUSTER_COUNTING_STORAGE (storage);
  MusterStorageInput *input = muster_storage_open (inner_of (self), path, size, error);
  if (input == NULL || strstr (path, ".data-") == NULL)
    return input;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  g_hash_table_insert (self->paths, input, g_strdup (path));
  if (!g_hash_table_contains (self->reads, path))
    g_hash_table_insert (self->reads, g_strdup (path), g_byte_array_new ());
  return input;
}

static gssize
counting_read_at (MusterStorage *storage, MusterStorageInput *input, guint64 offset, void *buffer,
                  gsize size, GError **error)
{
  MusterCountingStorage *self = MUSTER_COUNTING_STORAGE (storage);
  const gssize n = muster_storage_read_at (inner_of (self), input, offset, buffer, size, error);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  const char *path = g_hash_table_lookup (self->paths, input);
  if (path == NULL || n <= 0)
    return n;
  GByteArray *counts = g_hash_table_lookup (self->reads, path);
  const guint end = (guint)offset + (guint)n, before = counts->len;
  if (before < end) {
    g_byte_array_set_size (counts, end);
    memset (counts->data + before, 0, end - before);
  }
  for (guint i = (guint)offset; i < end; i++)
    counts->data[i]++;
  self->n_bytes += (guint64)n;
  return n;
}

static void
counting_close_input (MusterStorage *storage, MusterStorageInput *input)
{
  MusterCountingStorage *self = MUSTER_COUNTING_STORAGE (storage);
  g_mutex_lock (&self->lock);
  g_hash_table_remove (self->paths, input);
  g_mutex_unlock (&self->lock);
  muster_storage_close_input (inner_of (self), input);
}

static void
counting_storage_iface_init (MusterStorageInterface *iface)
{
  iface->open = counting_open;
  iface->read_at = counting_read_at;
  iface->close_input = counting_close_input;
}

static void
counting_storage_finalize (GObject *object)
{
  MusterCountingStorage *self = MUSTER_COUNTING_STORAGE (object);
  g_hash_table_unref (self->paths);
  g_hash_table_unref (self->reads);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (muster_counting_storage_parent_class)->finalize (object);
}

static void
muster_counting_storage_class_init (MusterCountingStorageClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = counting_storage_finalize;
}

static void
muster_counting_storage_init (MusterCountingStorage *self)
{
  g_mutex_init (&self->lock);
  self->paths = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  self->reads =
      g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_byte_array_unref);
}

MusterCountingStorage *
muster_counting_storage_new (void)
{
  return g_object_new (MUSTER_TYPE_COUNTING_STORAGE, NULL);
}

guint64
muster_counting_storage_take (MusterCountingStorage *self, guint *most_often)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  const guint64 n_bytes = self->n_bytes;
  GHashTableIter iter;
  gpointer value;
  *most_often = 0;
  g_hash_table_iter_init (&iter, self->reads);
  while (g_hash_table_iter_next (&iter, NULL, &value)) {
    const GByteArray *counts = value;
    for (guint i = 0; i < counts->len; i++)
      *most_often = MAX (*most_often, counts->data[i]);
  }
  g_hash_table_remove_all (self->reads);
  self->n_bytes = 0;
  return n_bytes;
}

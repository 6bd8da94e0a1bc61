// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/memory_storage.h"

#include <string.h>

struct _MusterMemoryStorage {
  GObject parent;
  GMutex lock;
  GHashTable *files; /* (owned) (element-type utf8 GByteArray); guarded by lock */
};

struct _MusterStorageFile {
  GByteArray *bytes; /* (owned) */
};

struct _MusterStorageInput {
  GByteArray *bytes; /* (owned) */
};

static void memory_storage_iface_init (MusterStorageInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterMemoryStorage, muster_memory_storage, G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_STORAGE,
                                                      memory_storage_iface_init))

MusterMemoryStorage *
memory_storage_new (void)
{
  return g_object_new (MUSTER_TYPE_MEMORY_STORAGE, NULL);
}

GByteArray *
memory_storage_file (MusterMemoryStorage *self, const char *path)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  return g_hash_table_lookup (self->files, path);
}

void
memory_storage_put (MusterMemoryStorage *self, const char *path, const void *data, gsize size)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  GByteArray *bytes = g_hash_table_lookup (self->files, path);
  if (bytes == NULL) {
    bytes = g_byte_array_new ();
    g_hash_table_insert (self->files, g_strdup (path), bytes);
  }
  g_byte_array_set_size (bytes, 0);
  g_byte_array_append (bytes, data, (guint)size);
}

/* A file to read or to rename; (transfer full). */
static GByteArray *
find (MusterStorage *storage, const char *path, GError **error)
{
  MusterMemoryStorage *self = MUSTER_MEMORY_STORAGE (storage);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  GByteArray *bytes = g_hash_table_lookup (self->files, path);
  if (bytes != NULL)
    return g_byte_array_ref (bytes);
  g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_NOENT, "'%s': there is no such file", path);
  return NULL;
}

static MusterStorageFile *
memory_create (MusterStorage *storage, const char *path, GError **error G_GNUC_UNUSED)
{
  MusterMemoryStorage *self = MUSTER_MEMORY_STORAGE (storage);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  MusterStorageFile *file = g_new (MusterStorageFile, 1);
  file->bytes = g_byte_array_new ();
  g_hash_table_insert (self->files, g_strdup (path), g_byte_array_ref (file->bytes));
  return file;
}

static gboolean
memory_append (MusterStorage *storage G_GNUC_UNUSED, MusterStorageFile *file, const void *data,
               gsize size, GError **error G_GNUC_UNUSED)
{
  g_byte_array_append (file->bytes, data, (guint)size);
  return TRUE;
}

static gboolean
memory_sync (MusterStorage *storage G_GNUC_UNUSED, MusterStorageFile *file G_GNUC_UNUSED,
             GError **error G_GNUC_UNUSED)
{
  return TRUE;
}

static gboolean
memory_close (MusterStorage *storage G_GNUC_UNUSED, MusterStorageFile *file,
              GError **error G_GNUC_UNUSED)
{
  g_byte_array_unref (file->bytes);
  g_free (file);
  return TRUE;
}

static MusterStorageInput *
memory_open (MusterStorage *storage, const char *path, guint64 *size, GError **error)
{
  GByteArray *bytes = find (storage, path, error);
  if (bytes == NULL)
    return NULL;
  MusterStorageInput *input = g_new (MusterStorageInput, 1);
  input->bytes = bytes;
  *size = bytes->len;
  return input;
}

static gssize
memory_read_at (MusterStorage *storage G_GNUC_UNUSED, MusterStorageInput *input, guint64 offset,
                void *buffer, gsize size, GError **error G_GNUC_UNUSED)
{
  if (offset >= input->bytes->len)
    return 0;
  const gsize n = MIN (size, (gsize)(input->bytes->len - offset));
  memcpy (buffer, input->bytes->data + offset, n);
  return (gssize)n;
}

static void
memory_close_input (MusterStorage *storage G_GNUC_UNUSED, MusterStorageInput *input)
{
  g_byte_array_unref (input->bytes);
  g_free (input);
}

static gboolean
memory_remove (MusterStorage *storage, const char *path, GError **error G_GNUC_UNUSED)
{
  MusterMemoryStorage *self = MUSTER_MEMORY_STORAGE (storage);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  g_hash_table_remove (self->files, path);
  return TRUE;
}

static gboolean
memory_rename (MusterStorage *storage, const char *from, const char *to, GError **error)
{
  MusterMemoryStorage *self = MUSTER_MEMORY_STORAGE (storage);
  GByteArray *bytes = find (storage, from, error);
  if (bytes == NULL)
    return FALSE;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  g_hash_table_remove (self->files, from);
  g_hash_table_insert (self->files, g_strdup (to), bytes);
  return TRUE;
}

static int
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *)a, *(const char *const *)b);
}

static char **
memory_list (MusterStorage *storage, const char *directory, GError **error G_GNUC_UNUSED)
{
  MusterMemoryStorage *self = MUSTER_MEMORY_STORAGE (storage);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  GHashTableIter iter;
  gpointer path;
  g_hash_table_iter_init (&iter, self->files);
  while (g_hash_table_iter_next (&iter, &path, NULL)) {
    g_autofree char *parent = g_path_get_dirname (path);
    if (g_str_equal (parent, directory))
      g_ptr_array_add (names, g_path_get_basename (path));
  }
  g_ptr_array_sort (names, compare_names);
  g_ptr_array_add (names, NULL);
  return (char **)g_ptr_array_free (g_steal_pointer (&names), FALSE);
}

static gboolean
memory_stat (MusterStorage *storage, const char *path, MusterStorageInfo *info, GError **error)
{
  g_autoptr (GByteArray) bytes = find (storage, path, error);
  if (bytes != NULL)
    *info = (MusterStorageInfo){.size = bytes->len};
  return bytes != NULL;
}

static gboolean
memory_sync_directory (MusterStorage *storage G_GNUC_UNUSED, const char *directory G_GNUC_UNUSED,
                       GError **error G_GNUC_UNUSED)
{
  return TRUE;
}

static void
memory_storage_iface_init (MusterStorageInterface *iface)
{
  iface->create = memory_create;
  iface->append = memory_append;
  iface->sync = memory_sync;
  iface->close = memory_close;
  iface->open = memory_open;
  iface->read_at = memory_read_at;
  iface->close_input = memory_close_input;
  iface->rename = memory_rename;
  iface->remove = memory_remove;
  iface->list = memory_list;
  iface->stat = memory_stat;
  iface->sync_directory = memory_sync_directory;
}

static void
memory_storage_finalize (GObject *object)
{
  MusterMemoryStorage *self = MUSTER_MEMORY_STORAGE (object);
  g_hash_table_unref (self->files);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (muster_memory_storage_parent_class)->finalize (object);
}

static void
muster_memory_storage_class_init (MusterMemoryStorageClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = memory_storage_finalize;
}

static void
muster_memory_storage_init (MusterMemoryStorage *self)
{
  self->files =
      g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_byte_array_unref);
  g_mutex_init (&self->lock);
}

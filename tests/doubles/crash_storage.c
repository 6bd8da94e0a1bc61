// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/crash_storage_private.h"

#include <string.h>

struct _MusterStorageFile {
  MusterCrashInode *inode; /* (owned) */
  char *path;              /* (owned) */
};

struct _MusterStorageInput {
  MusterCrashInode *inode; /* (owned) */
};

struct _MusterStorageLock {
  MusterCrashInode *inode; /* (owned) */
};

static void crash_storage_iface_init (MusterStorageInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterCrashStorage, muster_crash_storage, G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_STORAGE,
                                                      crash_storage_iface_init))

static gboolean
fail (GError **error, GFileError code, const char *path, const char *what)
{
  g_set_error (error, G_FILE_ERROR, code, "'%s': %s", path, what);
  return FALSE;
}

static gboolean
is_on (MusterCrashStorage *self, const char *path, GError **error)
{
  return !self->has_stopped || fail (error, G_FILE_ERROR_IO, path, "the machine is off");
}

/* Counts a call that changes something. */
static gboolean
begin_change (MusterCrashStorage *self, const char *path, GError **error)
{
  if (self->calls_left > 0 && --self->calls_left == 0)
    self->has_stopped = TRUE;
  return is_on (self, path, error);
}

/* One that may need room as well. */
static gboolean
begin_growth (MusterCrashStorage *self, const char *path, GError **error)
{
  if (!begin_change (self, path, error))
    return FALSE;
  if (self->calls_to_failure == 0 || --self->calls_to_failure > 0)
    return TRUE;
  self->has_failed = TRUE;
  return fail (error, G_FILE_ERROR_NOSPC, path, "no space left on device");
}

static gboolean
has_directory (MusterCrashStorage *self, const char *directory)
{
  return g_str_equal (directory, "/") || g_str_equal (directory, ".") ||
         g_hash_table_contains (self->directories, directory);
}

static gboolean
check_directory_of (MusterCrashStorage *self, const char *path, GError **error)
{
  g_autofree char *directory = g_path_get_dirname (path);
  return has_directory (self, directory) ||
         fail (error, G_FILE_ERROR_NOENT, path, "there is no such directory");
}

static MusterCrashInode *
find (MusterCrashStorage *self, const char *path, GError **error)
{
  MusterCrashInode *inode = g_hash_table_lookup (self->live, path);
  if (inode == NULL)
    fail (error, G_FILE_ERROR_NOENT, path, "there is no such file");
  return inode;
}

/* The file of that name, made where there is none. */
static MusterCrashInode *
find_or_make (MusterCrashStorage *self, const char *path)
{
  MusterCrashInode *inode = g_hash_table_lookup (self->live, path);
  if (inode != NULL)
    return inode;
  inode = muster_crash_inode_new (++self->n_inodes, "", 0);
  muster_crash_storage_change (self, NULL, path, inode);
  muster_crash_inode_unref (inode); /* its name holds it */
  return inode;
}

static MusterStorageFile *
crash_create (MusterStorage *storage, const char *path, GError **error)
{
  MusterCrashStorage *self = MUSTER_CRASH_STORAGE (storage);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  if (!begin_growth (self, path, error) || !check_directory_of (self, path, error))
    return NULL;
  MusterCrashInode *inode = find_or_make (self, path);
  inode->is_new = TRUE;
  g_byte_array_set_size (inode->live, 0);
  MusterStorageFile *file = g_new (MusterStorageFile, 1);
  *file = (MusterStorageFile){muster_crash_inode_ref (inode), g_strdup (path)};
  return file;
}

static gboolean
crash_reserve (MusterStorage *storage, MusterStorageFile *file, guint64 size G_GNUC_UNUSED,
               GError **error)
{
  MusterCrashStorage *self = MUSTER_CRASH_STORAGE (storage);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  return begin_growth (self, file->path, error);
}

static gboolean
crash_append (MusterStorage *storage, MusterStorageFile *file, const void *data, gsize size,
              GError **error)
{
  MusterCrashStorage *self = MUSTER_CRASH_STORAGE (storage);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  if (!begin_growth (self, file->path, error))
    return FALSE;
  g_byte_array_append (file->inode->live, data, (guint)size);
  return TRUE;
}

static gboolean
crash_sync (MusterStorage *storage, MusterStorageFile *file, GError **error)
{
  MusterCrashStorage *self = MUSTER_CRASH_STORAGE (storage);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  if (!begin_growth (self, file->path, error))
    return FALSE;
  if (!self->ignores_files && !(self->lazy != NULL && strstr (file->path, self->lazy) != NULL))
    muster_crash_inode_sync (file->inode);
  return TRUE;
}

static gboolean
crash_close (MusterStorage *storage, MusterStorageFile *file, GError **error)
{
  MusterCrashStorage *self = MUSTER_CRASH_STORAGE (storage);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  gboolean closed = is_on (self, file->path, error);
  muster_crash_inode_unref (file->inode);
  g_free (file->path);
  g_free (file);
  return closed;
}

static MusterStorageInput *
crash_open (MusterStorage *storage, const char *path, guint64 *size, GError **error)
{
  MusterCrashStorage *self = MUSTER_CRASH_STORAGE (storage);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  MusterCrashInode *inode = is_on (self, path, error) ? find (self, path, error) : NULL;
  if (inode == NULL)
    return NULL;
  MusterStorageInput *input = g_new (MusterStorageInput, 1);
  input->inode = muster_crash_inode_ref (inode);
  *size = inode->live->len;
  return input;
}

static gssize
crash_read_at (MusterStorage *storage, MusterStorageInput *input, guint64 offset, void *buffer,
               gsize size, GError **error)
{
  MusterCrashStorage *self = MUSTER_CRASH_STORAGE (storage);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  guint64 length = input->inode->live->len;
  if (!is_on (self, "a file that is open", error))
    return -1;
  gsize n = offset < length ? MIN (size, length - offset) : 0;
  if (n > 0)
    memcpy (buffer, input->inode->live->data + offset, n);
  return (gssize)n;
}

static void
crash_close_input (MusterStorage *storage, MusterStorageInput *input)
{
  MusterCrashStorage *self = MUSTER_CRASH_STORAGE (storage);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  muster_crash_inode_unref (input->inode);
  g_free (input);
}

static gboolean
crash_rename (MusterStorage *storage, const char *from, const char *to, GError **error)
{
  MusterCrashStorage *self = MUSTER_CRASH_STORAGE (storage);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  if (!begin_growth (self, from, error) || !check_directory_of (self, to, error))
    return FALSE;
  MusterCrashInode *inode = find (self, from, error);
  if (inode == NULL)
    return FALSE;
  if (g_str_equal (from, to))
    return TRUE;
  muster_crash_storage_change (self, from, to, inode);
  return TRUE;
}

static gboolean
is_empty_directory (MusterCrashStorage *self, const char *directory)
{
  g_autofree char *start = g_strconcat (directory, "/", NULL);
  GHashTable *const tables[] = {self->live, self->directories};

  for (gsize i = 0; i < G_N_ELEMENTS (tables); i++) {
    g_autoptr (GPtrArray) paths = muster_crash_sorted_keys (tables[i]);
    for (guint j = 0; j < paths->len; j++)
      if (g_str_has_prefix (paths->pdata[j], start))
        return FALSE;
  }
  return TRUE;
}

static gboolean
crash_remove (MusterStorage *storage, const char *path, GError **error)
{
  MusterCrashStorage *self = MUSTER_CRASH_STORAGE (storage);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  if (!begin_change (self, path, error))
    return FALSE;
  if (g_hash_table_contains (self->directories, path)) {
    if (!is_empty_directory (self, path))
      return fail (error, G_FILE_ERROR_FAILED, path, "the directory isn't empty");
    g_hash_table_remove (self->directories, path);
  } else if (g_hash_table_contains (self->live, path)) {
    muster_crash_storage_change (self, path, NULL, NULL);
  }
  return TRUE;
}

static void
add_names_in (GHashTable *found, GHashTable *table, const char *directory)
{
  g_autoptr (GPtrArray) paths = muster_crash_sorted_keys (table);
  for (guint i = 0; i < paths->len; i++) {
    g_autofree char *above = g_path_get_dirname (paths->pdata[i]);
    if (g_str_equal (above, directory))
      g_hash_table_add (found, g_path_get_basename (paths->pdata[i]));
  }
}

static char **
crash_list (MusterStorage *storage, const char *directory, GError **error)
{
  MusterCrashStorage *self = MUSTER_CRASH_STORAGE (storage);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  g_autoptr (GHashTable) found = muster_crash_set_new ();
  g_autoptr (GStrvBuilder) names = g_strv_builder_new ();
  if (!is_on (self, directory, error))
    return NULL;
  if (!has_directory (self, directory)) {
    fail (error, G_FILE_ERROR_NOENT, directory, "there is no such directory");
    return NULL;
  }
  add_names_in (found, self->live, directory);
  add_names_in (found, self->directories, directory);
  g_autoptr (GPtrArray) sorted = muster_crash_sorted_keys (found);
  for (guint i = 0; i < sorted->len; i++)
    g_strv_builder_add (names, sorted->pdata[i]);
  return g_strv_builder_end (names);
}

static gboolean
crash_stat (MusterStorage *storage, const char *path, MusterStorageInfo *info, GError **error)
{
  MusterCrashStorage *self = MUSTER_CRASH_STORAGE (storage);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  const MusterCrashInode *inode = is_on (self, path, error) ? find (self, path, error) : NULL;
  if (inode == NULL)
    return FALSE;
  *info = (MusterStorageInfo){.size = inode->live->len, .mtime_us = inode->number};
  return TRUE;
}

static gboolean
crash_sync_directory (MusterStorage *storage, const char *path, GError **error)
{
  MusterCrashStorage *self = MUSTER_CRASH_STORAGE (storage);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  if (!begin_growth (self, path, error))
    return FALSE;
  if (has_directory (self, path)) {
    if (!self->ignores_directories)
      muster_crash_storage_sync_names (self, path);
    return TRUE;
  }
  MusterCrashInode *inode = find (self, path, error);
  if (inode != NULL && !self->ignores_files)
    muster_crash_inode_sync (inode);
  return inode != NULL;
}

static gboolean
crash_make_directory (MusterStorage *storage, const char *directory, GError **error)
{
  MusterCrashStorage *self = MUSTER_CRASH_STORAGE (storage);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  if (has_directory (self, directory))
    return is_on (self, directory, error);
  if (!begin_growth (self, directory, error))
    return FALSE;
  muster_crash_storage_add_directory (self, directory);
  return TRUE;
}

static MusterStorageLock *
crash_lock (MusterStorage *storage, const char *path, MusterLockMode mode, GError **error)
{
  MusterCrashStorage *self = MUSTER_CRASH_STORAGE (storage);
  if (mode == MUSTER_LOCK_PROCESS || mode == MUSTER_LOCK_PROCESS_SHARED) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED, "'%s': there is one process", path);
    return NULL;
  }
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  gboolean makes = mode == MUSTER_LOCK_EXCLUSIVE && !g_hash_table_contains (self->live, path);

  if (!(makes ? begin_growth : is_on) (self, path, error) ||
      (makes && !check_directory_of (self, path, error)))
    return NULL;
  MusterCrashInode *inode = makes ? find_or_make (self, path) : find (self, path, error);
  if (inode == NULL)
    return NULL;
  if (mode == MUSTER_LOCK_SHARED ? inode->n_locks < 0 : inode->n_locks != 0) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_BUSY, "'%s': another holds its lock", path);
    return NULL;
  }
  inode->n_locks += mode == MUSTER_LOCK_SHARED ? 1 : -1;
  MusterStorageLock *lock = g_new (MusterStorageLock, 1);
  lock->inode = muster_crash_inode_ref (inode);
  return lock;
}

static void
crash_unlock (MusterStorage *storage, MusterStorageLock *lock)
{
  MusterCrashStorage *self = MUSTER_CRASH_STORAGE (storage);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  lock->inode->n_locks -= lock->inode->n_locks > 0 ? 1 : -1;
  muster_crash_inode_unref (lock->inode);
  g_free (lock);
}

static void
crash_storage_iface_init (MusterStorageInterface *iface)
{
  iface->create = crash_create;
  iface->reserve = crash_reserve;
  iface->append = crash_append;
  iface->sync = crash_sync;
  iface->close = crash_close;
  iface->open = crash_open;
  iface->read_at = crash_read_at;
  iface->close_input = crash_close_input;
  iface->rename = crash_rename;
  iface->remove = crash_remove;
  iface->list = crash_list;
  iface->stat = crash_stat;
  iface->sync_directory = crash_sync_directory;
  iface->make_directory = crash_make_directory;
  iface->lock = crash_lock;
  iface->unlock = crash_unlock;
}

MusterCrashStorage *
muster_crash_storage_new (void)
{
  return g_object_new (MUSTER_TYPE_CRASH_STORAGE, NULL);
}

void
muster_crash_storage_stop_at (MusterCrashStorage *self, guint n)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  self->calls_left = n;
  self->has_stopped = FALSE;
}

gboolean
muster_crash_storage_has_stopped (MusterCrashStorage *self)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  return self->has_stopped;
}

void
muster_crash_storage_fail_at (MusterCrashStorage *self, guint n)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  self->calls_to_failure = n;
  self->has_failed = FALSE;
}

gboolean
muster_crash_storage_has_failed (MusterCrashStorage *self)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  return self->has_failed;
}

void
muster_crash_storage_ignore_syncs (MusterCrashStorage *self, gboolean of_files,
                                   gboolean of_directories)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  self->ignores_files = of_files;
  self->ignores_directories = of_directories;
}

void
muster_crash_storage_set_lazy (MusterCrashStorage *self, const char *in_path)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  self->lazy = in_path;
}

static void
muster_crash_storage_finalize (GObject *object)
{
  MusterCrashStorage *self = MUSTER_CRASH_STORAGE (object);
  g_hash_table_unref (self->live);
  g_hash_table_unref (self->durable);
  g_hash_table_unref (self->directories);
  g_ptr_array_unref (self->changes);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (muster_crash_storage_parent_class)->finalize (object);
}

static void
muster_crash_storage_class_init (MusterCrashStorageClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_crash_storage_finalize;
}

static void
muster_crash_storage_init (MusterCrashStorage *self)
{
  g_mutex_init (&self->lock);
  self->live = muster_crash_names_new ();
  self->durable = muster_crash_names_new ();
  self->directories = muster_crash_set_new ();
  self->changes = g_ptr_array_new_with_free_func (muster_crash_change_free);
}

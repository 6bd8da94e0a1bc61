// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/store/storage_private.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Local files. */

struct _MusterStorageFile {
  int fd;
  char *path; /* (owned) */
};

struct _MusterStorageInput {
  int fd;
  char *path; /* (owned) */
};

struct _MusterStorageLock {
  int fd;
};

/* One write () or read () moves less than 2 GiB; less than that keeps signals answered. */
#define CHUNK_MAX (1 << 30)

G_DECLARE_FINAL_TYPE (MusterLocalStorage, muster_local_storage, MUSTER, LOCAL_STORAGE, GObject)

struct _MusterLocalStorage {
  GObject parent;
};

static void muster_local_storage_iface_init (MusterStorageInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterLocalStorage, muster_local_storage, G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_STORAGE,
                                                      muster_local_storage_iface_init))

MusterStorage *
muster_local_storage (void)
{
  static gsize storage;
  if (g_once_init_enter (&storage))
    g_once_init_leave (&storage, (gsize)g_object_new (muster_local_storage_get_type (), NULL));
  return MUSTER_STORAGE ((gpointer)storage);
}

/* Sets the error for errno. Always returns FALSE. */
static gboolean
fail_path (GError **error, const char *path, const char *what)
{
  const int code = errno;
  g_set_error (error, G_FILE_ERROR, g_file_error_from_errno (code), "'%s': could not %s: %s", path,
               what, g_strerror (code));
  return FALSE;
}

static int
open_retrying (const char *path, int flags, mode_t mode)
{
  int fd;
  do
    fd = open (path, flags | O_CLOEXEC, mode);
  while (fd < 0 && errno == EINTR);
  return fd;
}

static int
fsync_retrying (int fd)
{
  int result;
  do
    result = fsync (fd);
  while (result < 0 && errno == EINTR);
  return result;
}

static MusterStorageFile *
local_create (MusterStorage *self G_GNUC_UNUSED, const char *path, GError **error)
{
  const int fd = open_retrying (path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (fd < 0) {
    fail_path (error, path, "create the file");
    return NULL;
  }
  MusterStorageFile *file = g_new (MusterStorageFile, 1);
  *file = (MusterStorageFile){.fd = fd, .path = g_strdup (path)};
  return file;
}

/* Reserves without changing the length: after a crash a file must not end in zeros that look
 * written. */
static gboolean
local_reserve (MusterStorage *self G_GNUC_UNUSED, MusterStorageFile *file, guint64 size,
               GError **error)
{
  int result;
  do
    result = fallocate (file->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)size);
  while (result < 0 && errno == EINTR);
  /* Some file systems don't support it; then writing reports errors. */
  return result == 0 || errno == EOPNOTSUPP || errno == ENOSYS ||
         fail_path (error, file->path, "reserve space for it");
}

static gboolean
local_append (MusterStorage *self G_GNUC_UNUSED, MusterStorageFile *file, const void *data,
              gsize size, GError **error)
{
  const char *at = data;
  while (size > 0) {
    const ssize_t n = write (file->fd, at, MIN (size, CHUNK_MAX));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return fail_path (error, file->path, "write");
    at += n;
    size -= (gsize)n;
  }
  return TRUE;
}

static gboolean
local_sync (MusterStorage *self G_GNUC_UNUSED, MusterStorageFile *file, GError **error)
{
  return fsync_retrying (file->fd) == 0 || fail_path (error, file->path, "sync");
}

static gboolean
local_close (MusterStorage *self G_GNUC_UNUSED, MusterStorageFile *file, GError **error)
{
  /* On Linux the descriptor is gone even where close () was interrupted. */
  const gboolean is_closed =
      close (file->fd) == 0 || errno == EINTR || fail_path (error, file->path, "close");
  g_free (file->path);
  g_free (file);
  return is_closed;
}

static MusterStorageInput *
local_open (MusterStorage *self G_GNUC_UNUSED, const char *path, guint64 *size, GError **error)
{
  /* Not blocking: opening a pipe would wait for its writer. */
  const int fd = open_retrying (path, O_RDONLY | O_NONBLOCK, 0);
  struct stat st;
  if (fd < 0) {
    fail_path (error, path, "open the file");
    return NULL;
  }
  if (fstat (fd, &st) < 0)
    fail_path (error, path, "stat the file");
  else if (!S_ISREG (st.st_mode))
    g_set_error (error, G_FILE_ERROR,
                 S_ISDIR (st.st_mode) ? G_FILE_ERROR_ISDIR : G_FILE_ERROR_INVAL,
                 "'%s' is not a regular file", path);
  else {
    MusterStorageInput *input = g_new (MusterStorageInput, 1);
    *input = (MusterStorageInput){.fd = fd, .path = g_strdup (path)};
    *size = (guint64)st.st_size;
    return input;
  }
  close (fd);
  return NULL;
}

static gssize
local_read_at (MusterStorage *self G_GNUC_UNUSED, MusterStorageInput *input, guint64 offset,
               void *buffer, gsize size, GError **error)
{
  char *at = buffer;
  gsize filled = 0;
  while (filled < size) {
    const ssize_t n =
        pread (input->fd, at + filled, MIN (size - filled, CHUNK_MAX), (off_t)(offset + filled));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0) {
      fail_path (error, input->path, "read");
      return -1;
    }
    if (n == 0)
      break;
    filled += (gsize)n;
  }
  return (gssize)filled;
}

static void
local_close_input (MusterStorage *self G_GNUC_UNUSED, MusterStorageInput *input)
{
  close (input->fd);
  g_free (input->path);
  g_free (input);
}

static gboolean
local_rename (MusterStorage *self G_GNUC_UNUSED, const char *from, const char *to, GError **error)
{
  if (rename (from, to) == 0)
    return TRUE;
  const int code = errno;
  g_set_error (error, G_FILE_ERROR, g_file_error_from_errno (code),
               "'%s': could not rename it to '%s': %s", from, to, g_strerror (code));
  return FALSE;
}

static gboolean
local_remove (MusterStorage *self G_GNUC_UNUSED, const char *path, GError **error)
{
  return g_remove (path) == 0 || errno == ENOENT || fail_path (error, path, "remove");
}

static int
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *)a, *(const char *const *)b);
}

static char **
local_list (MusterStorage *self G_GNUC_UNUSED, const char *directory, GError **error)
{
  g_autoptr (GDir) dir = g_dir_open (directory, 0, error);
  if (dir == NULL)
    return NULL;
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  for (const char *name; (name = g_dir_read_name (dir)) != NULL;)
    g_ptr_array_add (names, g_strdup (name));
  g_ptr_array_sort (names, compare_names);
  g_ptr_array_add (names, NULL);
  return (char **)g_ptr_array_free (g_steal_pointer (&names), FALSE);
}

static gboolean
local_stat (MusterStorage *self G_GNUC_UNUSED, const char *path, MusterStorageInfo *info,
            GError **error)
{
  struct stat st;
  if (stat (path, &st) < 0)
    return fail_path (error, path, "stat the file");
  info->size = (guint64)st.st_size;
  info->mtime_us = (gint64)st.st_mtim.tv_sec * G_USEC_PER_SEC + st.st_mtim.tv_nsec / 1000;
  return TRUE;
}

static gboolean
local_sync_directory (MusterStorage *self G_GNUC_UNUSED, const char *directory, GError **error)
{
  const int fd = open_retrying (directory, O_RDONLY | O_NONBLOCK, 0);
  if (fd < 0)
    return fail_path (error, directory, "open it to sync it");
  /* Some network file systems can't sync a directory and return EINVAL: there a rename is as
   * durable as possible. */
  const gboolean is_synced =
      fsync_retrying (fd) == 0 || errno == EINVAL || fail_path (error, directory, "sync");
  close (fd);
  return is_synced;
}

/* Created directories are durable: each name is synced in its parent. */
static gboolean
local_make_directory (MusterStorage *self, const char *directory, GError **error)
{
  g_autoptr (GPtrArray) above = g_ptr_array_new_with_free_func (g_free);
  g_autofree char *at = g_strdup (directory);
  while (!g_file_test (at, G_FILE_TEST_EXISTS)) {
    char *parent = g_path_get_dirname (at);
    g_ptr_array_add (above, parent);
    g_free (at);
    at = g_strdup (parent);
  }
  if (g_mkdir_with_parents (directory, 0777) != 0)
    return fail_path (error, directory, "make it");
  for (guint i = 0; i < above->len; i++)
    if (!local_sync_directory (self, above->pdata[i], error))
      return FALSE;
  return TRUE;
}

static gboolean
local_free_space (MusterStorage *self G_GNUC_UNUSED, const char *directory, guint64 *bytes,
                  GError **error)
{
  struct statvfs vfs;
  if (statvfs (directory, &vfs) < 0)
    return fail_path (error, directory, "read its free space");
  /* Some file systems don't report sizes; that doesn't mean full. */
  *bytes = vfs.f_blocks > 0 ? (guint64)vfs.f_bavail * vfs.f_frsize : G_MAXUINT64;
  return TRUE;
}

/* flock: it belongs to the open file, so that two locks of one process exclude each other as well,
 * and it ends with the last process that holds it. */
static MusterStorageLock *
local_lock (MusterStorage *self G_GNUC_UNUSED, const char *path, MusterLockMode mode,
            GError **error)
{
  const gboolean makes = mode == MUSTER_LOCK_EXCLUSIVE;
  const int fd =
      open_retrying (path, makes ? O_RDWR | O_CREAT | O_NONBLOCK : O_RDONLY | O_NONBLOCK, 0666);
  if (fd < 0) {
    fail_path (error, path, "open it to lock it");
    return NULL;
  }
  int result;
  do
    result = flock (fd, (mode == MUSTER_LOCK_SHARED ? LOCK_SH : LOCK_EX) | LOCK_NB);
  while (result < 0 && errno == EINTR);
  /* Without locks in the file system, the store has none. */
  if (result == 0 || errno == EOPNOTSUPP || errno == ENOLCK || errno == ENOSYS) {
    MusterStorageLock *lock = g_new (MusterStorageLock, 1);
    lock->fd = fd;
    return lock;
  }
  if (errno == EWOULDBLOCK)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_BUSY, "'%s': another process holds its lock", path);
  else
    fail_path (error, path, "lock it");
  close (fd);
  return NULL;
}

static void
local_unlock (MusterStorage *self G_GNUC_UNUSED, MusterStorageLock *lock)
{
  close (lock->fd);
  g_free (lock);
}

static gboolean
local_takes (MusterStorage *self G_GNUC_UNUSED, const char *path)
{
  return muster_storage_is_file_path (path);
}

static void
muster_local_storage_iface_init (MusterStorageInterface *iface)
{
  iface->takes = local_takes;
  iface->create = local_create;
  iface->reserve = local_reserve;
  iface->append = local_append;
  iface->sync = local_sync;
  iface->close = local_close;
  iface->open = local_open;
  iface->read_at = local_read_at;
  iface->close_input = local_close_input;
  iface->rename = local_rename;
  iface->remove = local_remove;
  iface->list = local_list;
  iface->stat = local_stat;
  iface->sync_directory = local_sync_directory;
  iface->make_directory = local_make_directory;
  iface->free_space = local_free_space;
  iface->lock = local_lock;
  iface->unlock = local_unlock;
}

static void
muster_local_storage_class_init (MusterLocalStorageClass *klass G_GNUC_UNUSED)
{
}

static void
muster_local_storage_init (MusterLocalStorage *self G_GNUC_UNUSED)
{
}

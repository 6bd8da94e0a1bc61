// SPDX-License-Identifier: Apache-2.0
/* Local files as a MusterStorage: any file that the process may open, or only those within some
 * directories (data_dirs.c). Files are synced in their directory, too. Locks are flock () for
 * publishing, and fcntl () locks for a process. */
#include "base/error.h"
#include "base/require_private.h"
#include "checkpoint/store/data_dirs_private.h"
#include "checkpoint/store/process_lock_private.h"
#include "checkpoint/store/storage_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Local files: all that the process may open, or those within some directories. */

struct _MusterStorageFile {
  int fd;
  char *path; /* (owned) */
};

struct _MusterStorageInput {
  int fd;
  char *path; /* (owned) */
};

struct _MusterStorageLock {
  int fd;                     /* -1: the process's */
  MusterProcessLock *process; /* (owned) (nullable) */
};

/* One write () or read () moves less than 2 GiB; a smaller limit keeps signals answered. */
#define CHUNK_MAX (1 << 30)

G_DECLARE_FINAL_TYPE (MusterLocalStorage, muster_local_storage, MUSTER, LOCAL_STORAGE, GObject)

struct _MusterLocalStorage {
  GObject parent;
  MusterDataDirs *within; /* (owned) (nullable) NULL: any path */
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

MusterStorage *
muster_local_storage_new_within (const char *const *directories, GError **error)
{
  muster_require (error, NULL, directories);
  MusterDataDirs *within = muster_data_dirs_new (directories, error);
  if (within == NULL)
    return NULL;
  MusterLocalStorage *self = g_object_new (muster_local_storage_get_type (), NULL);
  self->within = within;
  return MUSTER_STORAGE (self);
}

static const MusterDataDirs *
dirs_of (MusterStorage *self)
{
  return MUSTER_LOCAL_STORAGE (self)->within;
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

/* Does the same for a path that wasn't opened: EXDEV means that it is outside the directories.
 * */
static gboolean
fail_open (MusterStorage *self, GError **error, const char *path, const char *what)
{
  if (dirs_of (self) == NULL || errno != EXDEV)
    return fail_path (error, path, what);
  g_autofree char *directories = muster_data_dirs_describe (dirs_of (self));
  return muster_fail (error, MUSTER_ERROR_PERMISSION_DENIED,
                      "'%s' is outside the server's data directories (%s); use a path in them",
                      path, directories);
}

static int
open_retrying (MusterStorage *self, const char *path, int flags, mode_t mode)
{
  int fd;
  if (dirs_of (self) != NULL)
    return muster_data_dirs_open (dirs_of (self), path, flags, mode);
  do
    fd = open (path, flags | O_CLOEXEC, mode);
  while (fd < 0 && errno == EINTR);
  return fd;
}

/* A name, and the descriptor of its directory, for calls that take no path below a root. */
typedef struct {
  int fd;
  char *name; /* (owned) */
} Place;

static void
place_clear (Place *self)
{
  if (self->fd >= 0)
    close (self->fd);
  g_free (self->name);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Place, place_clear)

/* Doesn't follow the last name if it is a symbolic link. FALSE with errno. */
static gboolean
find_place (MusterStorage *self, const char *path, Place *place)
{
  if (dirs_of (self) == NULL) {
    *place = (Place){AT_FDCWD, g_strdup (path)};
    return TRUE;
  }
  place->fd = muster_data_dirs_open_parent (dirs_of (self), path, &place->name);
  return place->fd >= 0;
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
local_create (MusterStorage *self, const char *path, GError **error)
{
  /* Non-blocking, because opening a pipe would wait for its reader. */
  const int fd = open_retrying (self, path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK, 0666);
  struct stat is;
  if (fd < 0) {
    fail_open (self, error, path, "create the file");
    return NULL;
  }
  if (fstat (fd, &is) == 0 && S_ISFIFO (is.st_mode)) { /* a pipe with a reader may be full */
    g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "'%s' is not a regular file", path);
    close (fd);
    return NULL;
  }
  MusterStorageFile *file = g_new (MusterStorageFile, 1);
  *file = (MusterStorageFile){.fd = fd, .path = g_strdup (path)};
  return file;
}

/* Reserves without changing the length: after a crash, a file must not end in zeros that look
 * written. */
static gboolean
local_reserve (MusterStorage *self G_GNUC_UNUSED, MusterStorageFile *file, guint64 size,
               GError **error)
{
  int result;
  do
    result = fallocate (file->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)size);
  while (result < 0 && errno == EINTR);
  /* Some file systems don't support it. Then writing reports errors. */
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
  /* On Linux the descriptor is closed even if close () was interrupted. */
  const gboolean is_closed =
      close (file->fd) == 0 || errno == EINTR || fail_path (error, file->path, "close");
  g_free (file->path);
  g_free (file);
  return is_closed;
}

static MusterStorageInput *
local_open (MusterStorage *self, const char *path, guint64 *size, GError **error)
{
  /* Non-blocking, because opening a pipe would wait for its writer. */
  const int fd = open_retrying (self, path, O_RDONLY | O_NONBLOCK, 0);
  struct stat st;
  if (fd < 0) {
    fail_open (self, error, path, "open the file");
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
local_rename (MusterStorage *self, const char *from, const char *to, GError **error)
{
  g_auto (Place) old = {-1, NULL}, new = {-1, NULL};
  if (!find_place (self, from, &old))
    return fail_open (self, error, from, "rename it");
  if (!find_place (self, to, &new))
    return fail_open (self, error, to, "rename a file to it");
  if (renameat (old.fd, old.name, new.fd, new.name) == 0)
    return TRUE;
  const int code = errno;
  g_set_error (error, G_FILE_ERROR, g_file_error_from_errno (code),
               "'%s': could not rename it to '%s': %s", from, to, g_strerror (code));
  return FALSE;
}

static gboolean
local_remove (MusterStorage *self, const char *path, GError **error)
{
  g_auto (Place) place = {-1, NULL};
  if (!find_place (self, path, &place))
    return errno == ENOENT || fail_open (self, error, path, "remove");
  if (unlinkat (place.fd, place.name, 0) == 0 || errno == ENOENT)
    return TRUE;
  return (errno == EISDIR && unlinkat (place.fd, place.name, AT_REMOVEDIR) == 0) ||
         fail_path (error, path, "remove");
}

static int
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *)a, *(const char *const *)b);
}

/* Adds all names but "." and "..". FALSE with errno. */
static gboolean
read_names (DIR *directory, GPtrArray *names)
{
  errno = 0;
  for (struct dirent *entry; (entry = readdir (directory)) != NULL; errno = 0)
    if (strcmp (entry->d_name, ".") != 0 && strcmp (entry->d_name, "..") != 0)
      g_ptr_array_add (names, g_strdup (entry->d_name));
  return errno == 0;
}

static char **
local_list (MusterStorage *self, const char *directory, GError **error)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new_null_terminated (0, g_free, TRUE);
  const int fd = open_retrying (self, directory, O_RDONLY | O_DIRECTORY, 0);
  DIR *opened = fd >= 0 ? fdopendir (fd) : NULL;
  if (opened == NULL) {
    fail_open (self, error, directory, "open the directory");
    return NULL;
  }
  const gboolean is_read =
      read_names (opened, names) || fail_path (error, directory, "read the directory");
  closedir (opened);
  if (!is_read)
    return NULL;
  g_ptr_array_sort (names, compare_names);
  return (char **)g_ptr_array_free (g_steal_pointer (&names), FALSE);
}

static gboolean
local_stat (MusterStorage *self, const char *path, MusterStorageInfo *info, GError **error)
{
  struct stat st;
  const int fd = open_retrying (self, path, O_PATH, 0);
  if (fd < 0)
    return fail_open (self, error, path, "stat the file");
  const gboolean is_known = fstat (fd, &st) == 0 || fail_path (error, path, "stat the file");
  close (fd);
  if (!is_known)
    return FALSE;
  info->size = (guint64)st.st_size;
  info->mtime_us = (gint64)st.st_mtim.tv_sec * G_USEC_PER_SEC + st.st_mtim.tv_nsec / 1000;
  return TRUE;
}

static gboolean
local_sync_directory (MusterStorage *self, const char *directory, GError **error)
{
  const int fd = open_retrying (self, directory, O_RDONLY | O_NONBLOCK, 0);
  if (fd < 0)
    return fail_open (self, error, directory, "open it to sync it");
  /* Some network file systems can't sync a directory and return EINVAL: there a rename is as
   * durable as possible. */
  const gboolean is_synced =
      fsync_retrying (fd) == 0 || errno == EINVAL || fail_path (error, directory, "sync");
  close (fd);
  return is_synced;
}

/* Returns -1 with errno, 0 if it exists, 1 if it must be created in its parent. */
static int
is_missing (MusterStorage *self, const char *directory)
{
  const int fd = open_retrying (self, directory, O_PATH | O_DIRECTORY, 0);
  if (fd < 0)
    return errno == ENOENT ? 1 : -1;
  close (fd);
  return 0;
}

static gboolean
make_one (MusterStorage *self, const char *directory, GError **error)
{
  g_auto (Place) place = {-1, NULL};
  g_autofree char *parent = g_path_get_dirname (directory);
  if (!find_place (self, directory, &place))
    return fail_open (self, error, directory, "make it");
  if (mkdirat (place.fd, place.name, 0777) != 0 && errno != EEXIST)
    return fail_path (error, directory, "make it");
  return local_sync_directory (self, parent, error);
}

/* Created directories are durable, because each name is synced in its parent. */
static gboolean
local_make_directory (MusterStorage *self, const char *directory, GError **error)
{
  g_autoptr (GPtrArray) missing = g_ptr_array_new_with_free_func (g_free);
  char *at =
      dirs_of (self) != NULL ? g_canonicalize_filename (directory, NULL) : g_strdup (directory);
  int state;
  while ((state = is_missing (self, at)) > 0) {
    g_ptr_array_add (missing, at);
    at = g_path_get_dirname (at);
  }
  if (missing->len > 0 && errno == EXDEV)
    errno = ENOENT; /* a data directory is missing; its parent is outside */
  const gboolean is_found = state == 0 || fail_open (self, error, directory, "make it");
  g_free (at);
  for (guint i = missing->len; is_found && i > 0; i--)
    if (!make_one (self, missing->pdata[i - 1], error))
      return FALSE;
  return is_found;
}

static gboolean
local_free_space (MusterStorage *self, const char *directory, guint64 *bytes, GError **error)
{
  struct statvfs vfs;
  const int fd = open_retrying (self, directory, O_PATH, 0);
  if (fd < 0)
    return fail_open (self, error, directory, "read its free space");
  const gboolean is_known =
      fstatvfs (fd, &vfs) == 0 || fail_path (error, directory, "read its free space");
  close (fd);
  /* Some file systems don't report sizes; that doesn't mean full. */
  if (is_known)
    *bytes = vfs.f_blocks > 0 ? (guint64)vfs.f_bavail * vfs.f_frsize : G_MAXUINT64;
  return is_known;
}

static MusterStorageLock *
fail_lock (GError **error, const char *path)
{
  if (errno == EWOULDBLOCK)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_BUSY, "'%s': another process holds its lock", path);
  else if (errno == ENOLCK)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
                 "'%s': its file system has no locks of a process", path);
  else
    fail_path (error, path, "lock it");
  return NULL;
}

/* Returns the process's own lock if it has one, without opening the file again: closing that
 * descriptor would drop the lock. */
static MusterStorageLock *
lock_for_process (MusterStorage *self, const char *path, gboolean is_shared, GError **error)
{
  gboolean known = FALSE;
  MusterProcessLock *process = NULL;
  const int there = open_retrying (self, path, O_PATH, 0);
  if (there >= 0) {
    process = muster_process_lock_again (there, is_shared, &known);
    const int code = errno;
    close (there);
    errno = code;
  }
  if (!known) {
    const int fd = open_retrying (self, path, O_RDWR | O_CREAT | O_NONBLOCK, 0666);
    if (fd < 0) {
      fail_open (self, error, path, "open it to lock it");
      return NULL;
    }
    process = muster_process_lock_new (fd, is_shared);
  }
  if (process == NULL)
    return fail_lock (error, path);
  MusterStorageLock *lock = g_new (MusterStorageLock, 1);
  *lock = (MusterStorageLock){-1, process};
  return lock;
}

/* Uses flock (): it belongs to the open file, so that two locks of one process exclude each
 * other as well, and it ends with the last process that holds it. */
static MusterStorageLock *
local_lock (MusterStorage *self, const char *path, MusterLockMode mode, GError **error)
{
  const gboolean makes = mode == MUSTER_LOCK_EXCLUSIVE;
  if (mode == MUSTER_LOCK_PROCESS || mode == MUSTER_LOCK_PROCESS_SHARED)
    return lock_for_process (self, path, mode == MUSTER_LOCK_PROCESS_SHARED, error);
  const int fd = open_retrying (
      self, path, makes ? O_RDWR | O_CREAT | O_NONBLOCK : O_RDONLY | O_NONBLOCK, 0666);
  if (fd < 0) {
    fail_open (self, error, path, "open it to lock it");
    return NULL;
  }
  int result;
  do
    result = flock (fd, (mode == MUSTER_LOCK_SHARED ? LOCK_SH : LOCK_EX) | LOCK_NB);
  while (result < 0 && errno == EINTR);
  /* A file system without locks makes a store without locks. */
  if (result == 0 || errno == EOPNOTSUPP || errno == ENOLCK || errno == ENOSYS) {
    MusterStorageLock *lock = g_new (MusterStorageLock, 1);
    *lock = (MusterStorageLock){fd, NULL};
    return lock;
  }
  fail_lock (error, path);
  close (fd);
  return NULL;
}

static void
local_unlock (MusterStorage *self G_GNUC_UNUSED, MusterStorageLock *lock)
{
  if (lock->fd >= 0)
    close (lock->fd);
  muster_process_lock_free (lock->process);
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
muster_local_storage_finalize (GObject *object)
{
  muster_data_dirs_free (MUSTER_LOCAL_STORAGE (object)->within);
  G_OBJECT_CLASS (muster_local_storage_parent_class)->finalize (object);
}

static void
muster_local_storage_class_init (MusterLocalStorageClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_local_storage_finalize;
}

static void
muster_local_storage_init (MusterLocalStorage *self G_GNUC_UNUSED)
{
}

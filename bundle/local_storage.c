// SPDX-License-Identifier: Apache-2.0
#include "bundle/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Local files. */

struct _MusterStorageFile {
  int fd;
  char *path; /* (owned) */
};

/* A file this large is mapped, so that its tensors are views; a smaller one is cheaper to copy. */
#define MAP_FROM (64 * 1024)
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

/* FALSE, with the error that errno stands for. */
static gboolean
fail (GError **error, const char *path, const char *what)
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
local_create (MusterStorage *self, const char *path, GError **error)
{
  (void)self;
  const int fd = open_retrying (path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (fd < 0) {
    fail (error, path, "create the file");
    return NULL;
  }
  MusterStorageFile *file = g_new (MusterStorageFile, 1);
  *file = (MusterStorageFile){.fd = fd, .path = g_strdup (path)};
  return file;
}

static gboolean
local_append (MusterStorage *self, MusterStorageFile *file, const void *data, gsize size,
              GError **error)
{
  (void)self;
  const char *at = data;
  while (size > 0) {
    const ssize_t n = write (file->fd, at, MIN (size, CHUNK_MAX));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return fail (error, file->path, "write");
    at += n;
    size -= (gsize)n;
  }
  return TRUE;
}

static gboolean
local_sync (MusterStorage *self, MusterStorageFile *file, GError **error)
{
  (void)self;
  return fsync_retrying (file->fd) == 0 || fail (error, file->path, "sync");
}

static gboolean
local_close (MusterStorage *self, MusterStorageFile *file, GError **error)
{
  (void)self;
  /* On Linux the descriptor is gone even where close () was interrupted. */
  const gboolean is_closed =
      close (file->fd) == 0 || errno == EINTR || fail (error, file->path, "close");
  g_free (file->path);
  g_free (file);
  return is_closed;
}

static GBytes *
map_file (int fd, const char *path, GError **error)
{
  g_autoptr (GError) why = NULL;
  g_autoptr (GMappedFile) map = g_mapped_file_new_from_fd (fd, FALSE, &why);
  if (map == NULL) {
    g_set_error (error, why->domain, why->code, "'%s': could not map the file: %s", path,
                 why->message);
    return NULL;
  }
  return g_mapped_file_get_bytes (map);
}

static GBytes *
read_small (int fd, gsize size, const char *path, GError **error)
{
  g_autofree guint8 *data = g_malloc (size + 1);
  gsize filled = 0;
  while (filled < size) {
    const ssize_t n = read (fd, data + filled, size - filled);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0) {
      fail (error, path, "read");
      return NULL;
    }
    if (n == 0)
      break; /* it has become shorter: what is there is what is read */
    filled += (gsize)n;
  }
  return g_bytes_new_take (g_steal_pointer (&data), filled);
}

static GBytes *
local_read (MusterStorage *self, const char *path, GError **error)
{
  (void)self;
  /* Not blocking: opening a pipe would wait for its writer. */
  const int fd = open_retrying (path, O_RDONLY | O_NONBLOCK, 0);
  struct stat st;
  if (fd < 0) {
    fail (error, path, "open the file");
    return NULL;
  }
  GBytes *bytes = NULL;
  if (fstat (fd, &st) < 0)
    fail (error, path, "look at the file");
  else if (!S_ISREG (st.st_mode))
    g_set_error (error, G_FILE_ERROR,
                 S_ISDIR (st.st_mode) ? G_FILE_ERROR_ISDIR : G_FILE_ERROR_INVAL,
                 "'%s' is not a regular file", path);
  else if (st.st_size >= MAP_FROM)
    bytes = map_file (fd, path, error);
  else
    bytes = read_small (fd, (gsize)st.st_size, path, error);
  close (fd);
  return bytes;
}

static gboolean
local_rename (MusterStorage *self, const char *from, const char *to, GError **error)
{
  (void)self;
  if (rename (from, to) == 0)
    return TRUE;
  const int code = errno;
  g_set_error (error, G_FILE_ERROR, g_file_error_from_errno (code),
               "'%s': could not rename it to '%s': %s", from, to, g_strerror (code));
  return FALSE;
}

static gboolean
local_remove (MusterStorage *self, const char *path, GError **error)
{
  (void)self;
  return g_remove (path) == 0 || errno == ENOENT || fail (error, path, "remove");
}

static int
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *)a, *(const char *const *)b);
}

static char **
local_list (MusterStorage *self, const char *directory, GError **error)
{
  (void)self;
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
local_sync_directory (MusterStorage *self, const char *directory, GError **error)
{
  (void)self;
  const int fd = open_retrying (directory, O_RDONLY | O_NONBLOCK, 0);
  if (fd < 0)
    return fail (error, directory, "open it to sync it");
  /* Some file systems over a network can't sync a directory, and say so with EINVAL: there a rename
   * is as durable as they make it. */
  const gboolean is_synced =
      fsync_retrying (fd) == 0 || errno == EINVAL || fail (error, directory, "sync");
  close (fd);
  return is_synced;
}

static void
muster_local_storage_iface_init (MusterStorageInterface *iface)
{
  iface->create = local_create;
  iface->append = local_append;
  iface->sync = local_sync;
  iface->close = local_close;
  iface->read = local_read;
  iface->rename = local_rename;
  iface->remove = local_remove;
  iface->list = local_list;
  iface->sync_directory = local_sync_directory;
}

static void
muster_local_storage_class_init (MusterLocalStorageClass *klass)
{
  (void)klass;
}

static void
muster_local_storage_init (MusterLocalStorage *self)
{
  (void)self;
}

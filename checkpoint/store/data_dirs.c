// SPDX-License-Identifier: Apache-2.0
/* Opens files only below given directories, with the kernel's openat2 (RESOLVE_BENEATH), so that
 * no symbolic link and no ".." leads out. A path that reaches a directory by another name is
 * resolved first and then checked in the same way. */
#include "checkpoint/store/data_dirs_private.h"

#include "base/error.h"
#include "base/files/local_path_private.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel returns EAGAIN when something was renamed while it resolved "..". */
#define MAX_TRIES 64

struct _MusterDataDirs {
  char **directories; /* (owned) absolute, without ".." */
};

/* --- opening below a directory --- */

/* O_CREAT alone takes a mode; the kernel refuses one without it. */
static int
open_below_fd (int root, const char *rest, int flags, mode_t mode)
{
  const struct open_how how = {
      .flags = (guint64)(flags | O_CLOEXEC),
      .mode = (flags & O_CREAT) != 0 ? mode : 0,
      .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
  };
  int fd = -1;
  for (int i = 0; i < MAX_TRIES; i++) {
    fd = (int)syscall (SYS_openat2, root, rest, &how, sizeof how);
    if (fd >= 0 || (errno != EINTR && errno != EAGAIN))
      break;
  }
  return fd;
}

/* The directory is opened each time, because it may have been removed and created again. */
static int
open_below (const char *root, const char *rest, int flags, mode_t mode)
{
  const int root_fd = open (root, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root_fd < 0)
    return -1;
  const int fd = open_below_fd (root_fd, rest, flags, mode);
  const int why = errno;
  close (root_fd);
  errno = why;
  return fd;
}

/* Returns what follows root in path, "." for root itself; NULL if path isn't below it. */
static const char *
rest_below (const char *root, const char *path)
{
  const gsize n = strlen (root);
  if (strncmp (root, path, n) != 0)
    return NULL;
  if (path[n] == '\0')
    return ".";
  if (path[n] == '/')
    return path + n + 1;
  return n > 0 && root[n - 1] == '/' ? path + n : NULL; /* the root directory */
}

/* --- paths by other names --- */

/* Returns the real path of the deepest existing directory of a path, and the rest as it is. NULL
 * if that can't be determined. */
static char *
real_path (const char *path)
{
  g_autofree char *at = g_strdup (path);
  g_autofree char *rest = NULL;
  for (;;) {
    char *real = realpath (at, NULL);
    if (real != NULL) {
      char *whole = rest != NULL ? g_build_filename (real, rest, NULL) : g_strdup (real);
      free (real);
      return whole;
    }
    if (errno != ENOENT || strcmp (at, "/") == 0)
      return NULL;
    g_autofree char *name = g_path_get_basename (at);
    char *longer = rest != NULL ? g_build_filename (name, rest, NULL) : g_strdup (name);
    g_free (rest);
    rest = longer;
    char *parent = g_path_get_dirname (at);
    g_free (at);
    at = parent;
  }
}

/* Fails with EXDEV unless the path is below a directory; of several, the first that allows it
 * counts. */
static int
open_as_given (const MusterDataDirs *self, const char *path, int flags, mode_t mode)
{
  errno = EXDEV;
  for (char **at = self->directories; *at != NULL; at++) {
    const char *rest = rest_below (*at, path);
    if (rest == NULL)
      continue;
    const int fd = open_below (*at, rest, flags, mode);
    if (fd >= 0 || errno != EXDEV)
      return fd;
  }
  return -1;
}

/* Does the same for a path that reaches a directory by another name, as through a symbolic link.
 * */
static int
open_as_real (const MusterDataDirs *self, const char *path, int flags, mode_t mode)
{
  g_autofree char *real = real_path (path);
  errno = EXDEV;
  for (char **at = self->directories; real != NULL && *at != NULL; at++) {
    char *root = realpath (*at, NULL);
    const char *rest = root != NULL ? rest_below (root, real) : NULL;
    errno = EXDEV;
    const int fd = rest != NULL ? open_below (root, rest, flags, mode) : -1;
    const int why = errno;
    free (root);
    errno = why;
    if (fd >= 0 || errno != EXDEV)
      return fd;
  }
  errno = EXDEV;
  return -1;
}

int
muster_data_dirs_open (const MusterDataDirs *self, const char *path, int flags, mode_t mode)
{
  g_autofree char *whole = g_canonicalize_filename (path, NULL);
  const int fd = open_as_given (self, whole, flags, mode);
  return fd < 0 && errno == EXDEV ? open_as_real (self, whole, flags, mode) : fd;
}

int
muster_data_dirs_open_parent (const MusterDataDirs *self, const char *path, char **name)
{
  g_autofree char *whole = g_canonicalize_filename (path, NULL);
  g_autofree char *parent = g_path_get_dirname (whole);
  const int fd = muster_data_dirs_open (self, parent, O_PATH | O_DIRECTORY, 0);
  if (fd >= 0)
    *name = g_path_get_basename (whole);
  return fd;
}

/* --- the directories --- */

static gboolean
check_directory (const char *directory, GError **error)
{
  const int fd = open_below (directory, ".", O_PATH | O_DIRECTORY, 0);
  if (fd >= 0) {
    close (fd);
    return TRUE;
  }
  if (errno == ENOSYS)
    return muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED,
                        "can't confine files to '%s': the kernel has no openat2 (Linux 5.6 has it)",
                        directory);
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "invalid data directory '%s': %s",
                      directory, g_strerror (errno));
}

MusterDataDirs *
muster_data_dirs_new (const char *const *directories, GError **error)
{
  g_autoptr (GPtrArray) found = g_ptr_array_new_with_free_func (g_free);
  for (; *directories != NULL; directories++) {
    char *directory = g_canonicalize_filename (muster_local_path (*directories), NULL);
    g_ptr_array_add (found, directory);
    if (!check_directory (directory, error))
      return NULL;
  }
  g_ptr_array_add (found, NULL);
  MusterDataDirs *self = g_new (MusterDataDirs, 1);
  self->directories = (char **)g_ptr_array_free (g_steal_pointer (&found), FALSE);
  return self;
}

void
muster_data_dirs_free (MusterDataDirs *self)
{
  if (self == NULL)
    return;
  g_strfreev (self->directories);
  g_free (self);
}

char *
muster_data_dirs_describe (const MusterDataDirs *self)
{
  g_autofree char *joined = g_strjoinv ("', '", self->directories);
  return g_strdup_printf ("'%s'", joined);
}

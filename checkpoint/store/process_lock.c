// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/store/process_lock_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

struct _MusterProcessLock {
  dev_t device;
  ino_t inode;
  pid_t process; /* after a fork the child's copy doesn't count */
  int fd;
  guint n; /* number of holders */
  gboolean is_shared;
};

static GMutex lock;
static GPtrArray *held; /* guarded by lock: (element-type MusterProcessLock) (not owned) */

static MusterProcessLock *
find (const struct stat *file)
{
  for (guint i = 0; held != NULL && i < held->len; i++) {
    MusterProcessLock *one = held->pdata[i];
    if (one->device == file->st_dev && one->inode == file->st_ino && one->process == getpid ())
      return one;
  }
  return NULL;
}

/* Also turns an own shared lock into an exclusive one. */
static gboolean
set (int fd, gboolean is_shared)
{
  struct flock how = {.l_type = is_shared ? F_RDLCK : F_WRLCK, .l_whence = SEEK_SET};
  int result;
  do
    result = fcntl (fd, F_SETLK, &how);
  while (result < 0 && errno == EINTR);
  if (result < 0 && errno == EACCES)
    errno = EAGAIN;
  if (result < 0 && (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP))
    errno = ENOLCK;
  return result == 0;
}

static MusterProcessLock *
hold_again (MusterProcessLock *self, gboolean is_shared)
{
  is_shared = is_shared && self->is_shared;
  if (!set (self->fd, is_shared))
    return NULL;
  self->is_shared = is_shared;
  self->n++;
  return self;
}

MusterProcessLock *
muster_process_lock_again (int path_fd, gboolean is_shared, gboolean *known)
{
  struct stat file;
  MusterProcessLock *found = NULL, *self = NULL;
  g_mutex_lock (&lock);
  if (fstat (path_fd, &file) == 0)
    found = find (&file);
  if (found != NULL)
    self = hold_again (found, is_shared);
  g_mutex_unlock (&lock);
  *known = found != NULL;
  return self;
}

/* Another thread may have locked the file in the meantime. Then this descriptor is kept, because
 * closing it would drop the lock. */
MusterProcessLock *
muster_process_lock_new (int fd, gboolean is_shared)
{
  struct stat file;
  MusterProcessLock *self = NULL;
  g_mutex_lock (&lock);
  if (fstat (fd, &file) == 0 && (self = find (&file)) != NULL) {
    self = hold_again (self, is_shared);
  } else if (set (fd, is_shared)) {
    self = g_new (MusterProcessLock, 1);
    *self = (MusterProcessLock){file.st_dev, file.st_ino, getpid (), fd, 1, is_shared};
    if (held == NULL)
      held = g_ptr_array_new ();
    g_ptr_array_add (held, self);
  } else {
    const int code = errno;
    close (fd);
    errno = code;
  }
  g_mutex_unlock (&lock);
  return self;
}

void
muster_process_lock_free (MusterProcessLock *self)
{
  if (self == NULL)
    return;
  g_mutex_lock (&lock);
  if (--self->n == 0) {
    g_ptr_array_remove_fast (held, self);
    close (self->fd);
    g_free (self);
  }
  g_mutex_unlock (&lock);
}

/* A line of /proc/locks, "1: POSIX  ADVISORY  READ 4711 fd:00:123 0 EOF"; one that waits has "->"
 * after the number. */
static gboolean
is_lock_of (const char *line, const struct stat *file, int *process)
{
  unsigned major_number, minor_number;
  unsigned long long inode;
  return sscanf (line, "%*d: POSIX %*s %*s %d %x:%x:%llu", process, &major_number, &minor_number,
                 &inode) == 4 &&
         inode == file->st_ino && makedev (major_number, minor_number) == file->st_dev;
}

GArray *
muster_process_lock_holders (const char *path)
{
  struct flock any = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  struct stat file;
  int process = 0;
  GArray *found = g_array_new (FALSE, FALSE, sizeof (int));
  g_autofree char *text = NULL;
  const int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const gboolean is_held =
      fd >= 0 && fstat (fd, &file) == 0 && fcntl (fd, F_GETLK, &any) == 0 && any.l_type != F_UNLCK;
  if (fd >= 0)
    close (fd);
  if (!is_held)
    return found;
  (void)g_file_get_contents ("/proc/locks", &text, NULL, NULL);
  g_auto (GStrv) lines = g_strsplit (text != NULL ? text : "", "\n", -1);
  for (char **line = lines; *line != NULL; line++)
    if (is_lock_of (*line, &file, &process))
      g_array_append_val (found, process);
  process = 0;
  if (found->len == 0)
    g_array_append_val (found, process);
  return found;
}

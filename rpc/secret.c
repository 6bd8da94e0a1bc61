// SPDX-License-Identifier: Apache-2.0
#include "rpc/secret_private.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void
muster_secret_clear (MusterSecret *self)
{
  if (self->text != NULL)
    explicit_bzero (self->text, self->size);
  g_clear_pointer (&self->text, g_free);
  self->size = 0;
}

gboolean
muster_secret_equal (const MusterSecret *self, const MusterSecret *other)
{
  return self->size == other->size &&
         (self->size == 0 || memcmp (self->text, other->text, self->size) == 0);
}

/* Reads until the end or until `buffer` is full; -1 with errno. */
static gssize
read_all (int fd, char *buffer, gsize size)
{
  gsize n_read = 0;
  while (n_read < size) {
    gssize n = read (fd, buffer + n_read, size - n_read);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return -1;
    if (n == 0)
      break;
    n_read += (gsize)n;
  }
  return (gssize)n_read;
}

/* PostgreSQL's rule: the group of root's files may read them, as system keys are handed out. */
static gboolean
check_mode (int fd, const MusterSecretFile *file, GError **error)
{
  struct stat is;
  if (fstat (fd, &is) != 0 || !S_ISREG (is.st_mode))
    return TRUE;
  mode_t forbidden = is.st_uid == 0 ? S_IWGRP | S_IXGRP | S_IRWXO : (mode_t)(S_IRWXG | S_IRWXO);
  if ((is.st_mode & forbidden) == 0)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "%s '%s' is open to other users (mode %04o); run `chmod 600` on it, or 640 "
                      "if root owns it",
                      file->what, file->path, (unsigned)is.st_mode & 07777);
}

static gboolean
read_fd (MusterSecret *self, int fd, const MusterSecretFile *file, GError **error)
{
  g_auto (MusterSecret) buffer = {g_malloc0 (file->max_size + 2), file->max_size + 2};
  gssize size = read_all (fd, buffer.text, file->max_size + 1);
  int why = errno;
  if (size < 0) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "can't read %s '%s': %s", file->what,
                        file->path, g_strerror (why));
  }
  if ((gsize)size > file->max_size) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "%s '%s' is too long: the limit is %" G_GSIZE_FORMAT " bytes", file->what,
                        file->path, file->max_size);
  }
  *self = (MusterSecret){g_malloc ((gsize)size + 1), (gsize)size};
  memcpy (self->text, buffer.text, (gsize)size + 1);
  return TRUE;
}

gboolean
muster_secret_read (MusterSecret *self, const MusterSecretFile *file, GError **error)
{
  int fd = open (file->path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "can't read %s '%s': %s", file->what,
                        file->path, g_strerror (errno));
  }
  gboolean is_read =
      (!file->is_private || check_mode (fd, file, error)) && read_fd (self, fd, file, error);
  close (fd);
  return is_read;
}

MusterFileMark
muster_file_mark (const char *path)
{
  struct stat is;
  if (path == NULL || stat (path, &is) != 0 || !S_ISREG (is.st_mode))
    return (MusterFileMark){0};
  return (MusterFileMark){is.st_dev, is.st_ino, is.st_size, is.st_mtim, is.st_ctim};
}

static gboolean
is_same_time (const struct timespec *a, const struct timespec *b)
{
  return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

gboolean
muster_file_mark_equal (const MusterFileMark *self, const MusterFileMark *other)
{
  return self->device == other->device && self->inode == other->inode &&
         self->size == other->size && is_same_time (&self->modified, &other->modified) &&
         is_same_time (&self->changed, &other->changed);
}

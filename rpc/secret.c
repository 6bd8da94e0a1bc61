// SPDX-License-Identifier: Apache-2.0
#include "rpc/secret_private.h"

#include "base/files/read_file_private.h"

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

/* PostgreSQL's rule: the group of root's files may read them, as system keys are handed out. */
static gboolean
check_mode (const MusterSecretFile *file, const struct stat *is, GError **error)
{
  const mode_t forbidden =
      is->st_uid == 0 ? S_IWGRP | S_IXGRP | S_IRWXO : (mode_t)(S_IRWXG | S_IRWXO);
  if (!S_ISREG (is->st_mode) || (is->st_mode & forbidden) == 0)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "%s '%s' is open to other users (mode %04o); run `chmod 600` on it, or 640 "
                      "if root owns it",
                      file->what, file->path, (unsigned)is->st_mode & 07777);
}

gboolean
muster_secret_read (MusterSecret *self, const MusterSecretFile *file, GError **error)
{
  const MusterFile opened = {file->path, file->what, file->max_size, FALSE};
  g_autoptr (GError) failure = NULL;
  struct stat is;
  const int fd = muster_file_open (&opened, &is, &failure);
  gboolean is_read = fd >= 0 && (!file->is_private || check_mode (file, &is, &failure)) &&
                     muster_file_read_fd (&opened, fd, &is, &self->text, &self->size, &failure);
  if (fd >= 0)
    close (fd);
  return is_read || muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "%s", failure->message);
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

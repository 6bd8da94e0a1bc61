// SPDX-License-Identifier: Apache-2.0
/* Reads a whole file, with a limit of its size. A pipe is waited for until a deadline. */
#include "base/files/read_file_private.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define FIRST_SIZE ((gsize)4096)
#define SILENCE_MS (30 * 1000) /* of a pipe */

/* "the token file '…'" (transfer full) */
static char *
name_of (const MusterFile *file)
{
  return g_strdup_printf ("%s%s'%s'", file->what != NULL ? file->what : "",
                          file->what != NULL ? " " : "", file->path);
}

static gboolean
fail_errno (const MusterFile *file, int why, GError **error)
{
  g_autofree char *name = name_of (file);
  g_set_error (error, G_FILE_ERROR, g_file_error_from_errno (why), "can't read %s: %s", name,
               g_strerror (why));
  return FALSE;
}

static gboolean
is_null_device (const struct stat *is)
{
  return S_ISCHR (is->st_mode) && is->st_rdev == makedev (1, 3);
}

static gboolean
check_kind (const MusterFile *file, const struct stat *is, GError **error)
{
  if (S_ISREG (is->st_mode) || is_null_device (is) || (file->takes_pipe && S_ISFIFO (is->st_mode)))
    return TRUE;
  g_autofree char *name = name_of (file);
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "can't read %s: it is a %s; use a regular file", name,
                      S_ISDIR (is->st_mode)    ? "directory"
                      : S_ISFIFO (is->st_mode) ? "pipe"
                      : S_ISSOCK (is->st_mode) ? "socket"
                                               : "device");
}

static gboolean
fail_too_large (const MusterFile *file, GError **error)
{
  g_autofree char *name = name_of (file);
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "%s is too large: the limit is %" G_GSIZE_FORMAT " bytes", name,
                      file->max_size);
}

int
muster_file_open (const MusterFile *file, struct stat *is, GError **error)
{
  int fd;
  do /* not blocking: opening a pipe would wait for its writer */
    fd = open (file->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  while (fd < 0 && errno == EINTR);
  if (fd < 0) {
    fail_errno (file, errno, error);
    return -1;
  }
  if (fstat (fd, is) != 0)
    fail_errno (file, errno, error);
  else if (check_kind (file, is, error))
    return fd;
  close (fd);
  return -1;
}

/* What was read; old places of it are wiped, since it may be a secret. */
typedef struct {
  char *text; /* (owned) (nullable) */
  gsize size, capacity;
} Buffer;

static void
buffer_clear (Buffer *self)
{
  if (self->text != NULL)
    explicit_bzero (self->text, self->capacity);
  g_clear_pointer (&self->text, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Buffer, buffer_clear)

static gboolean
buffer_grow (Buffer *self, gsize capacity, const MusterFile *file, GError **error)
{
  char *larger = g_try_malloc (capacity);
  if (larger == NULL) {
    g_autofree char *name = name_of (file);
    return muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                        "can't read %s: no memory for %" G_GSIZE_FORMAT " bytes", name, capacity);
  }
  if (self->size > 0)
    memcpy (larger, self->text, self->size);
  buffer_clear (self);
  self->text = larger;
  self->capacity = capacity;
  return TRUE;
}

/* Waits for more of a pipe, or for its first writer, without which a read finds the end. */
static gboolean
await (const MusterFile *file, int fd, GError **error)
{
  struct pollfd ready = {.fd = fd, .events = POLLIN};
  int n;
  do
    n = poll (&ready, 1, SILENCE_MS);
  while (n < 0 && errno == EINTR);
  if (n > 0)
    return TRUE;
  if (n < 0)
    return fail_errno (file, errno, error);
  g_autofree char *name = name_of (file);
  return muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED,
                      "can't read %s: nothing came through the pipe for 30 s", name);
}

/* Reads on. TRUE at the end as well, which *is_end tells. */
static gboolean
read_some (Buffer *self, const MusterFile *file, int fd, gboolean *is_end, GError **error)
{
  const ssize_t n = read (fd, self->text + self->size, self->capacity - self->size);
  *is_end = n == 0;
  if (n >= 0) {
    self->size += (gsize)n;
    return TRUE;
  }
  if (errno == EAGAIN)
    return await (file, fd, error);
  return errno == EINTR || fail_errno (file, errno, error);
}

gboolean
muster_file_read_fd (const MusterFile *file, int fd, const struct stat *is, char **text,
                     gsize *size, GError **error)
{
  g_auto (Buffer) buffer = {0};
  gboolean is_end = FALSE;
  if (S_ISREG (is->st_mode) && (guint64)is->st_size > file->max_size)
    return fail_too_large (file, error);
  if (S_ISFIFO (is->st_mode) && !await (file, fd, error))
    return FALSE;
  const gsize expected = S_ISREG (is->st_mode) ? (gsize)is->st_size + 1 : 0;
  if (!buffer_grow (&buffer, MAX (expected, FIRST_SIZE), file, error))
    return FALSE;
  while (!is_end) { /* it may have grown, and some files of the kernel have no size */
    if (buffer.size > file->max_size)
      return fail_too_large (file, error);
    if (buffer.size == buffer.capacity &&
        !buffer_grow (&buffer, buffer.capacity + MIN (buffer.capacity, file->max_size) + 1, file,
                      error))
      return FALSE;
    if (!read_some (&buffer, file, fd, &is_end, error))
      return FALSE;
  }
  if (buffer.size == buffer.capacity && !buffer_grow (&buffer, buffer.size + 1, file, error))
    return FALSE;
  buffer.text[buffer.size] = '\0';
  *size = buffer.size;
  *text = g_steal_pointer (&buffer.text);
  return TRUE;
}

gboolean
muster_file_read (const MusterFile *file, char **text, gsize *size, GError **error)
{
  struct stat is;
  gsize n;
  const int fd = muster_file_open (file, &is, error);
  if (fd < 0)
    return FALSE;
  const gboolean is_read =
      muster_file_read_fd (file, fd, &is, text, size != NULL ? size : &n, error);
  close (fd);
  return is_read;
}

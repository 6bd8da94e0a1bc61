// SPDX-License-Identifier: Apache-2.0
#include "rpc/server/unix_socket_private.h"

#include "rpc/server/local_peers_private.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct _MusterUnixSocket {
  char *path; /* (owned) */
  int lock;   /* held; -1 before */
  gboolean is_shared, is_allowed;
};

static gboolean
fail_listen (const char *path, const char *why, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_UNAVAILABLE, "can't listen on unix:%s: %s", path, why);
}

static gboolean
take_lock (MusterUnixSocket *self, GError **error)
{
  g_autofree char *name = g_strconcat (self->path, ".lock", NULL);
  self->lock = open (name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
  if (self->lock < 0) {
    g_autofree char *why = g_strdup_printf ("can't open '%s': %s", name, g_strerror (errno));
    return fail_listen (self->path, why, error);
  }
  int result;
  do
    result = flock (self->lock, LOCK_EX | LOCK_NB);
  while (result < 0 && errno == EINTR);
  if (result == 0)
    return TRUE;
  return fail_listen (self->path,
                      errno == EWOULDBLOCK ? "address already in use: another server listens there"
                                           : g_strerror (errno),
                      error);
}

/* 0 if a process listens there, else an errno. */
static int
try_connect (const char *path)
{
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  g_strlcpy (address.sun_path, path, sizeof address.sun_path);
  const int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return errno;
  const int why = connect (fd, (struct sockaddr *)&address, sizeof address) == 0 ? 0 : errno;
  close (fd);
  return why == EAGAIN ? 0 : why; /* its backlog is full */
}

/* A program that knows nothing of the lock may listen there, too. */
static gboolean
check_path (const char *path, GError **error)
{
  struct stat st;
  if (lstat (path, &st) != 0)
    return errno == ENOENT || fail_listen (path, g_strerror (errno), error);
  if (!S_ISSOCK (st.st_mode))
    return fail_listen (path, "a file that isn't a socket is in the way; remove it", error);
  const int why = try_connect (path);
  if (why == ECONNREFUSED) /* gRPC removes it */
    return TRUE;
  return fail_listen (path, why == 0 ? "address already in use" : g_strerror (why), error);
}

MusterUnixSocket *
muster_unix_socket_claim (const char *path, const guint32 *users, gsize n_users, GError **error)
{
  g_autoptr (MusterUnixSocket) self = g_new0 (MusterUnixSocket, 1);
  g_autoptr (GArray) all = g_array_new (FALSE, FALSE, sizeof *users);
  const guint32 own = geteuid ();
  self->path = g_strdup (path);
  self->lock = -1;
  self->is_shared = n_users > 0;
  if (!take_lock (self, error) || !check_path (path, error))
    return NULL;
  g_array_append_val (all, own);
  g_array_append_vals (all, users, (guint)n_users);
  muster_local_peers_allow (path, (const guint32 *)(gconstpointer)all->data, all->len);
  self->is_allowed = TRUE;
  return g_steal_pointer (&self);
}

gboolean
muster_unix_socket_open (MusterUnixSocket *self, GError **error)
{
  return g_chmod (self->path, self->is_shared ? 0666 : 0600) == 0 ||
         fail_listen (self->path, g_strerror (errno), error);
}

void
muster_unix_socket_free (MusterUnixSocket *self)
{
  if (self == NULL)
    return;
  if (self->is_allowed) {
    (void)unlink (self->path); /* gRPC has removed it unless it failed */
    muster_local_peers_forget (self->path);
  }
  if (self->lock >= 0)
    close (self->lock);
  g_free (self->path);
  g_free (self);
}

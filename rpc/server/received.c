// SPDX-License-Identifier: Apache-2.0
/* Reads what gRPC receives, by functions that take the place of recvmsg (), SSL_read () and
 * SSL_write (), because gRPC bounds HTTP/2 only once it knows the caller (docs/architecture.md). */
#include "rpc/server/received_private.h"

#include "base/log_private.h"
#include "rpc/server/frames_private.h"

#include <netdb.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Descriptors above it aren't followed; systemd's unit allows so many. */
#define MAX_FD (1 << 20)

typedef struct {
  guint64 cookie;       /* of the socket: a descriptor is used again */
  MusterFrames *frames; /* (owned) */
} Followed;

/* By descriptor; pages that aren't used take no memory. One thread at a time reads from a
 * connection, and another one follows its descriptor only after it was closed. */
static Followed *followed[MAX_FD]; /* atomic */
static guint64 n_ended;            /* atomic */

guint64
muster_received_n_ended (void)
{
  return __atomic_load_n (&n_ended, __ATOMIC_RELAXED);
}

/* Where a connection comes from; empty if that isn't known. */
static void
describe (int fd, char text[NI_MAXHOST])
{
  struct sockaddr_storage address;
  socklen_t size = sizeof address;
  text[0] = '\0';
  if (fd >= 0 && getpeername (fd, (struct sockaddr *)&address, &size) == 0)
    (void)getnameinfo ((struct sockaddr *)&address, size, text, NI_MAXHOST, NULL, 0,
                       NI_NUMERICHOST);
}

/* fd is -1 where it isn't known. */
static void
note_end (int fd, const char *why)
{
  static MusterLogLimit messages;
  char left_out[MUSTER_LOG_COUNT_SIZE], peer[NI_MAXHOST];
  __atomic_fetch_add (&n_ended, 1, __ATOMIC_RELAXED);
  if (!muster_log_bounded (G_LOG_LEVEL_MESSAGE, &messages, left_out))
    return;
  describe (fd, peer);
  muster_log (G_LOG_LEVEL_MESSAGE, "limit", "MUSTER_LIMIT", "streams", "MUSTER_PEER", peer,
              "MUSTER_LEFT_OUT", left_out, "MESSAGE", "ended a connection: %s", why);
}

static void
forget (int fd)
{
  Followed *self = __atomic_exchange_n (&followed[fd], NULL, __ATOMIC_ACQ_REL);
  if (self == NULL)
    return;
  muster_frames_free (self->frames);
  g_free (self);
}

static gboolean
find_cookie (int fd, guint64 *cookie)
{
  socklen_t size = sizeof *cookie;
  return getsockopt (fd, SOL_SOCKET, SO_COOKIE, cookie, &size) == 0;
}

void
muster_received_follow (int fd)
{
  guint64 cookie;
  if (fd >= MAX_FD)
    return;
  forget (fd);
  if (!find_cookie (fd, &cookie))
    return;
  Followed *self = g_new (Followed, 1);
  *self = (Followed){cookie, muster_frames_new ()};
  __atomic_store_n (&followed[fd], self, __ATOMIC_RELEASE);
}

static const char *
read_pieces (MusterFrames *frames, const struct msghdr *message, gsize size)
{
  const char *why = NULL;
  for (gsize i = 0; i < message->msg_iovlen && size > 0 && why == NULL; i++) {
    const gsize n = MIN (size, message->msg_iov[i].iov_len);
    why = muster_frames_read (frames, message->msg_iov[i].iov_base, n);
    size -= n;
  }
  return why;
}

/* Replaces libc's recvmsg () as accept4 () is replaced in open_files.c. A connection that asks for
 * too much is at its end. */
__attribute__ ((visibility ("default"))) ssize_t
recvmsg (int fd, struct msghdr *message, int flags)
{
  const ssize_t n = syscall (SYS_recvmsg, fd, message, flags);
  if (n <= 0 || fd >= MAX_FD || (flags & (MSG_PEEK | MSG_ERRQUEUE)) != 0)
    return n;
  Followed *self = __atomic_load_n (&followed[fd], __ATOMIC_ACQUIRE);
  guint64 cookie;
  if (self == NULL || !find_cookie (fd, &cookie) || cookie != self->cookie)
    return n;
  const char *why = read_pieces (self->frames, message, (gsize)n);
  if (why == NULL)
    return n;
  note_end (fd, why);
  forget (fd);
  (void)shutdown (fd, SHUT_RDWR);
  return 0;
}

/* --- TLS --- */

static void
free_frames (void *parent G_GNUC_UNUSED, void *frames, CRYPTO_EX_DATA *data G_GNUC_UNUSED,
             int index G_GNUC_UNUSED, long number G_GNUC_UNUSED, void *pointer G_GNUC_UNUSED)
{
  muster_frames_free (frames);
}

static int
index_of_frames (void)
{
  static gsize index; /* and 1 more */
  if (g_once_init_enter (&index))
    g_once_init_leave (&index,
                       (gsize)(SSL_get_ex_new_index (0, NULL, NULL, NULL, free_frames) + 1) + 1);
  return (int)index - 2;
}

/* The frames that a connection's other end sends; NULL where this isn't the server's. */
static MusterFrames *
frames_of (SSL *ssl)
{
  const int index = index_of_frames ();
  if (index < 0 || !SSL_is_server (ssl))
    return NULL;
  MusterFrames *frames = SSL_get_ex_data (ssl, index);
  if (frames != NULL)
    return frames;
  frames = muster_frames_new ();
  muster_frames_has_answered (frames, FALSE);
  if (SSL_set_ex_data (ssl, index, frames) == 1)
    return frames;
  muster_frames_free (frames);
  return NULL;
}

/* The two are made of OpenSSL's SSL_read_ex () and SSL_write_ex (), so that a library that has
 * OpenSSL in it needs no other name for what is replaced. SSL_get_error () finds why one failed,
 * whatever was returned.
 *
 * What the server sends first are the settings; gRPC reads and writes one at a time. Without this,
 * an acknowledgement that comes with the end of the handshake would be read before they are sent.
 */
__attribute__ ((visibility ("default"))) int
SSL_write (SSL *ssl, const void *buffer, int size)
{
  gsize n = 0;
  if (SSL_write_ex (ssl, buffer, (gsize)MAX (size, 0), &n) != 1)
    return -1;
  MusterFrames *frames = frames_of (ssl);
  if (frames != NULL)
    muster_frames_has_answered (frames, TRUE);
  return (int)n;
}

/* The same for TLS: replaces OpenSSL's. */
__attribute__ ((visibility ("default"))) int
SSL_read (SSL *ssl, void *buffer, int size)
{
  gsize n = 0;
  if (SSL_read_ex (ssl, buffer, (gsize)MAX (size, 0), &n) != 1)
    return -1;
  MusterFrames *frames = frames_of (ssl);
  const char *why = frames != NULL ? muster_frames_read (frames, buffer, n) : NULL;
  if (why == NULL)
    return (int)n;
  note_end (-1, why);
  return -1; /* without a reason that OpenSSL knows: gRPC closes the connection */
}

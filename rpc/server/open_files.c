// SPDX-License-Identifier: Apache-2.0
#include "rpc/server/open_files_private.h"

#include "rpc/server/local_peers_private.h"
#include "rpc/server/received_private.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* One of the few things that exist once per process: docs/decisions/0018. */

/* Maximum number of connections refused at a time; the rest are refused at the next connection. */
#define MAX_REFUSED 1000

static GMutex lock;
static int spare = -1; /* guarded by lock: given up for the moment of a refusal */

static rlim_t
find_limit (void)
{
  struct rlimit limit;
  return getrlimit (RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

int
muster_open_files_raise (void)
{
  struct rlimit limit;
  if (getrlimit (RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit (RLIMIT_NOFILE, &limit);
  }
  return (int)MIN (find_limit (), (rlim_t)G_MAXINT);
}

gboolean
muster_open_files_left (guint reserve)
{
  int lowest = eventfd (0, EFD_CLOEXEC);
  if (lowest < 0)
    return FALSE;
  close (lowest);
  return (rlim_t)lowest + reserve < find_limit ();
}

/* --- connections for which no descriptor is left --- */

/* Call with the lock held. */
static void
take_spare (void)
{
  if (spare < 0)
    spare = eventfd (0, EFD_CLOEXEC);
}

void
muster_open_files_keep_spare (void)
{
  g_mutex_lock (&lock);
  take_spare ();
  g_mutex_unlock (&lock);
}

/* Accepts one connection and closes it. */
static gboolean
refuse_one (int listener)
{
  g_mutex_lock (&lock);
  if (spare >= 0)
    close (spare);
  spare = -1;
  int refused = (int)syscall (SYS_accept4, listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (refused >= 0)
    close (refused);
  take_spare ();
  g_mutex_unlock (&lock);
  return refused >= 0;
}

/* TRUE for errors of accept (2) about the connection, not the listener, which are skipped. */
static gboolean
is_of_connection (int error)
{
  return error == ECONNABORTED || error == EPROTO || error == ENETDOWN || error == ENOPROTOOPT ||
         error == EHOSTDOWN || error == EHOSTUNREACH || error == ENETUNREACH || error == EPERM;
}

static gboolean
can_wait (int listener)
{
  int flags = fcntl (listener, F_GETFL);
  return flags >= 0 && (flags & O_NONBLOCK) == 0;
}

/* Replaces libc's accept4 () in the whole process, since a program's definition precedes it. On a
 * non-blocking listener, a lack of descriptors or memory is reported as no connection. Connections
 * of users that may not connect are closed. */
__attribute__ ((visibility ("default"))) int
accept4 (int listener, struct sockaddr *restrict address, socklen_t *restrict size, int flags)
{
  const socklen_t n_address = size != NULL ? *size : 0;
  for (int n_refused = 0; n_refused < MAX_REFUSED; n_refused++) {
    if (size != NULL)
      *size = n_address;
    int fd = (int)syscall (SYS_accept4, listener, address, size, flags);
    if (fd >= 0 && muster_local_peers_are_allowed (listener, fd)) {
      muster_received_follow (fd);
      return fd;
    }
    if (fd >= 0) {
      close (fd);
      continue;
    }
    int why = errno;
    gboolean is_full = why == EMFILE || why == ENFILE;
    if (is_of_connection (why) || (is_full && refuse_one (listener)))
      continue;
    gboolean is_short = is_full || why == ENOBUFS || why == ENOMEM;
    errno = is_short && !can_wait (listener) ? EAGAIN : why;
    return -1;
  }
  errno = EAGAIN;
  return -1;
}

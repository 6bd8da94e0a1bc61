// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/helper/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SILENCE_MS 3000
#define PROBE_S    1
#define MAX_PROBES 3
#define LOOK_US    200000
/* A connection with a higher descriptor has the kernel's limits alone. */
#define MOST_WATCHED 65536

static bool is_limited;
static atomic_bool is_watched[MOST_WATCHED];
static atomic_int n_watched; /* the highest one, and one more */

static void
set (int fd, int level, int name, int value)
{
  (void)syscall (SYS_setsockopt, fd, level, name, &value, (socklen_t)sizeof value);
}

/* A socket of another kind refuses these. */
static void
limit (int fd)
{
  set (fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set (fd, IPPROTO_TCP, TCP_KEEPIDLE, PROBE_S);
  set (fd, IPPROTO_TCP, TCP_KEEPINTVL, PROBE_S);
  set (fd, IPPROTO_TCP, TCP_KEEPCNT, MAX_PROBES);
  set (fd, IPPROTO_TCP, TCP_USER_TIMEOUT, SILENCE_MS);
}

/* --- what the kernel's limits leave --- */

static void
watch (int fd)
{
  if (fd < 0 || fd >= MOST_WATCHED)
    return;
  atomic_store (&is_watched[fd], true);
  int highest = atomic_load (&n_watched);
  while (highest <= fd && !atomic_compare_exchange_weak (&n_watched, &highest, fd + 1))
    ;
}

/* FALSE: the descriptor is closed, or another socket's by now. */
static bool
is_limited_still (int fd)
{
  unsigned silence_ms = 0;
  socklen_t size = sizeof silence_ms;
  return getsockopt (fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silence_ms, &size) == 0 &&
         silence_ms == SILENCE_MS;
}

static bool
is_silent (int fd)
{
  struct tcp_info info = {0};
  socklen_t size = sizeof info;
  return getsockopt (fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
         info.tcpi_state == TCP_ESTABLISHED && info.tcpi_last_ack_recv >= SILENCE_MS &&
         info.tcpi_last_data_recv >= SILENCE_MS;
}

/* What is sent into the silence, such as gRPC's ping, begins the kernel's count anew. The probes
 * have been answered each second until then. */
static void *
end_silent (void *data)
{
  (void)data;
  for (;;) {
    usleep (LOOK_US);
    for (int fd = 0; fd < atomic_load (&n_watched); fd++)
      if (!atomic_load (&is_watched[fd]))
        continue;
      else if (!is_limited_still (fd))
        atomic_store (&is_watched[fd], false);
      else if (is_silent (fd))
        (void)shutdown (fd, SHUT_RDWR);
  }
  return NULL;
}

bool
muster_connection_limit_silence (void)
{
  pthread_t watcher;
  is_limited = pthread_create (&watcher, NULL, end_silent, NULL) == 0;
  return is_limited;
}

/* --- in place of libc's --- */

__attribute__ ((visibility ("default"))) int
connect (int fd, const struct sockaddr *address, socklen_t size)
{
  if (is_limited && (address->sa_family == AF_INET || address->sa_family == AF_INET6)) {
    limit (fd);
    watch (fd);
  }
  return (int)syscall (SYS_connect, fd, address, size);
}

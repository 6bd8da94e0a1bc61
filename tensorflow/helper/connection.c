// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/helper/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SILENCE_MS 3000
#define PROBE_S    1
#define MAX_PROBES 3

static bool is_limited;

void
muster_connection_limit_silence (void)
{
  is_limited = true;
}

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

/* --- in place of libc's --- */

__attribute__ ((visibility ("default"))) int
connect (int fd, const struct sockaddr *address, socklen_t size)
{
  if (is_limited && (address->sa_family == AF_INET || address->sa_family == AF_INET6))
    limit (fd);
  return (int)syscall (SYS_connect, fd, address, size);
}

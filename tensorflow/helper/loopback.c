// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/helper/loopback.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef union {
  struct sockaddr any;
  struct sockaddr_in v4;
  struct sockaddr_in6 v6;
  struct sockaddr_storage storage;
} Address;

static uint16_t server_port;
static bool is_server_open;

void
muster_loopback_share (uint16_t port, bool is_open)
{
  server_port = port;
  is_server_open = is_open;
}

static int
option_of (int fd, int which)
{
  int value = 0;
  socklen_t size = sizeof value;
  return getsockopt (fd, SOL_SOCKET, which, &value, &size) == 0 ? value : -1;
}

/* 127.0.0.1 as an IPv4-mapped IPv6 address. */
static const struct in6_addr mapped = {
    .s6_addr = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1}};

static uint16_t
port_of (const Address *address)
{
  return ntohs (address->any.sa_family == AF_INET ? address->v4.sin_port : address->v6.sin6_port);
}

/* Binds a socket to loopback instead of *address. */
static void
bind_to_loopback (int fd, Address *address)
{
  static const int yes = 1, no = 0;
  const uint16_t port = port_of (address);
  if (server_port != 0 && port == server_port)
    setsockopt (fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes);
  if (is_server_open && port == server_port)
    return;
  if (address->any.sa_family == AF_INET) {
    address->v4.sin_addr.s_addr = htonl (INADDR_LOOPBACK);
  } else {
    setsockopt (fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    address->v6.sin6_addr = mapped;
    address->v6.sin6_scope_id = 0;
  }
}

/* Replaces libc's bind in this process: a program's own definition takes precedence. */
__attribute__ ((visibility ("default"))) int
bind (int fd, const struct sockaddr *address, socklen_t size)
{
  Address to;
  if (option_of (fd, SO_TYPE) != SOCK_STREAM || size > sizeof to)
    return (int)syscall (SYS_bind, fd, address, size);
  memset (&to, 0, sizeof to);
  memcpy (&to, address, size);
  if ((to.any.sa_family == AF_INET && size >= sizeof to.v4) ||
      (to.any.sa_family == AF_INET6 && size >= sizeof to.v6))
    bind_to_loopback (fd, &to);
  return (int)syscall (SYS_bind, fd, &to, size);
}

/* --- checking the result */

/* Returns false if fd isn't a listening TCP socket. */
static bool
listens_at (int fd, Address *address)
{
  socklen_t size = sizeof *address;
  memset (address, 0, sizeof *address);
  return option_of (fd, SO_ACCEPTCONN) == 1 && getsockname (fd, &address->any, &size) == 0 &&
         (address->any.sa_family == AF_INET || address->any.sa_family == AF_INET6);
}

static bool
is_loopback (const Address *address)
{
  if (address->any.sa_family == AF_INET)
    return ntohl (address->v4.sin_addr.s_addr) >> 24 == 127;
  const struct in6_addr *v6 = &address->v6.sin6_addr;
  return IN6_IS_ADDR_LOOPBACK (v6) || (IN6_IS_ADDR_V4MAPPED (v6) && v6->s6_addr[12] == 127);
}

bool
muster_loopback_check (char *text, size_t n_text)
{
  bool is_home = true, has_port = false;
  DIR *fds = opendir ("/proc/self/fd");
  if (fds == NULL) {
    snprintf (text, n_text, "can't read /proc/self/fd to check the listening address");
    return false;
  }
  for (struct dirent *entry = readdir (fds); entry != NULL && is_home; entry = readdir (fds)) {
    Address address;
    char host[INET6_ADDRSTRLEN] = "";
    if (!listens_at (atoi (entry->d_name), &address))
      continue;
    const bool is_server = port_of (&address) == server_port;
    has_port = has_port || is_server;
    is_home = is_loopback (&address) || (is_server && is_server_open);
    if (is_home)
      continue;
    bool is_v4 = address.any.sa_family == AF_INET;
    inet_ntop (address.any.sa_family,
               is_v4 ? (void *)&address.v4.sin_addr : (void *)&address.v6.sin6_addr, host,
               sizeof host);
    snprintf (text, n_text, "it listens on '%s' port %u, which other machines can reach", host,
              port_of (&address));
  }
  closedir (fds);
  if (is_home && !has_port)
    snprintf (text, n_text, "it doesn't listen on port %u as requested", server_port);
  return is_home && has_port;
}

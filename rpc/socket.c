// SPDX-License-Identifier: Apache-2.0
#include "rpc/grpc_private.h"

#include <grpc/support/sync.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <sys/socket.h>

/* A connection that a router forgot, or whose other machine is gone, carries nothing, and nobody
 * closes it. TCP asks after these, and ends a connection that has acknowledged nothing for
 * TIMEOUT_MS: whatever was sent, or KEEPALIVE_IDLE_S of silence and a question. TensorFlow's
 * servers refuse HTTP/2's pings; these they don't see. */
#define KEEPALIVE_IDLE_S     15
#define KEEPALIVE_INTERVAL_S 5
#define KEEPALIVE_PROBES     2
#define TIMEOUT_MS           20000

/* gRPC's argument "grpc.socket_mutator" is public, its type isn't: as in
 * src/core/lib/iomgr/socket_mutator.h, unchanged since gRPC 1.34. It is the only way to the socket
 * of a channel that touches no other socket of the process (docs/decisions/0002). */
typedef struct MusterSocketMutator MusterSocketMutator;

typedef struct {
  int fd;
  int usage;
} MusterSocketUse;

typedef struct {
  bool (*mutate) (int fd, MusterSocketMutator *self);
  int (*compare) (MusterSocketMutator *a, MusterSocketMutator *b);
  void (*destroy) (MusterSocketMutator *self);
  bool (*mutate_used) (const MusterSocketUse *use, MusterSocketMutator *self);
} MusterSocketVtable;

struct MusterSocketMutator {
  const MusterSocketVtable *vtable;
  gpr_refcount refs;
};

static void
set_option (int fd, int option, int value)
{
  /* Without it the connection works all the same. */
  (void)setsockopt (fd, IPPROTO_TCP, option, &value, sizeof value);
}

static void
keep_socket_alive (int fd)
{
  const int yes = 1;
  int domain = AF_UNSPEC;
  socklen_t size = sizeof domain;
  if (getsockopt (fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 ||
      (domain != AF_INET && domain != AF_INET6))
    return;
  (void)setsockopt (fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
  set_option (fd, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
  set_option (fd, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
  set_option (fd, TCP_KEEPCNT, KEEPALIVE_PROBES);
  set_option (fd, TCP_USER_TIMEOUT, TIMEOUT_MS);
}

static bool
mutate (int fd, MusterSocketMutator *self G_GNUC_UNUSED)
{
  keep_socket_alive (fd);
  return true;
}

static bool
mutate_used (const MusterSocketUse *use, MusterSocketMutator *self)
{
  return mutate (use->fd, self);
}

/* There is one, and nothing to free. */
static int
compare (MusterSocketMutator *a G_GNUC_UNUSED, MusterSocketMutator *b G_GNUC_UNUSED)
{
  return 0;
}

static void
destroy (MusterSocketMutator *self G_GNUC_UNUSED)
{
}

static void *
same (void *mutator)
{
  return mutator;
}

static void
leave (void *mutator G_GNUC_UNUSED)
{
}

static int
compare_pointers (void *a, void *b)
{
  return (a > b) - (a < b);
}

grpc_arg
muster_grpc_socket_arg (void)
{
  static const MusterSocketVtable vtable = {mutate, compare, destroy, mutate_used};
  static const grpc_arg_pointer_vtable pointer = {same, leave, compare_pointers};
  static MusterSocketMutator mutator = {.vtable = &vtable, .refs = {1}};
  return (grpc_arg){.type = GRPC_ARG_POINTER,
                    .key = (char *)GRPC_ARG_SOCKET_MUTATOR,
                    .value.pointer = {&mutator, &pointer}};
}

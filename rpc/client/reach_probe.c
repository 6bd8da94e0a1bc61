// SPDX-License-Identifier: Apache-2.0
/* Tries a TCP connection to a server's addresses, at a fraction of the cost of gRPC's own try.
 * */
#include "rpc/client/reach_probe_private.h"

#include "base/clock.h"
#include "rpc/address_private.h"
#include "rpc/client/resolve_private.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Maximum number of addresses that are tried. */
#define MAX_ADDRESSES 16
/* How long a name's addresses are cached. */
#define RESOLVE_EVERY_US (5 * MUSTER_SECOND)

/* One connection for each address; -1: failed. */
typedef struct {
  int fds[MAX_ADDRESSES];
  int n;
  int why;
} ReachProbes;

static void
init_unix (MusterReachProber *self, const char *path)
{
  struct sockaddr_storage native = {0};
  struct sockaddr_un *address = (struct sockaddr_un *)&native;
  address->sun_family = AF_UNIX;
  g_strlcpy (address->sun_path, path, sizeof address->sun_path);
  self->host = g_strdup (path);
  self->is_number = TRUE;
  self->addresses = g_array_new (FALSE, FALSE, sizeof native);
  g_array_append_val (self->addresses, native);
}

void
muster_reach_prober_init (MusterReachProber *self, const char *address)
{
  g_return_if_fail (self != NULL && address != NULL);
  *self = (MusterReachProber){0};
  const char *path = muster_address_unix_path (address);
  if (path != NULL)
    init_unix (self, path);
  else
    (void)muster_address_parse (address, &self->host, &self->port, NULL); /* without: ENOENT */
}

void
muster_reach_prober_clear (MusterReachProber *self)
{
  g_return_if_fail (self != NULL);
  g_clear_pointer (&self->host, g_free);
  g_clear_pointer (&self->addresses, g_array_unref);
}

static gint64
now_us (void)
{
  return muster_clock_now_us (muster_system_clock ());
}

/* In the form that a probe needs, without objects, which would cost more than the probe. */
static void
keep (MusterReachProber *self, GList *found)
{
  self->addresses = g_array_new (FALSE, FALSE, sizeof (struct sockaddr_storage));
  for (GList *at = found; at != NULL; at = at->next) {
    struct sockaddr_storage native = {0};
    g_autoptr (GSocketAddress) whole = g_inet_socket_address_new (at->data, self->port);
    if (g_socket_address_to_native (whole, &native, sizeof native, NULL))
      g_array_append_val (self->addresses, native);
  }
}

static void
resolve_host (MusterReachProber *self, gint64 deadline_us, GCancellable *cancellable)
{
  if (self->host == NULL || (self->addresses != NULL &&
                             (self->is_number || now_us () < self->resolved_us + RESOLVE_EVERY_US)))
    return;
  g_clear_pointer (&self->addresses, g_array_unref);
  GInetAddress *number = g_inet_address_new_from_string (self->host);
  g_autofree char *reason = NULL;
  GList *found = number != NULL
                     ? g_list_append (NULL, number)
                     : muster_resolve_host (self->host, deadline_us, cancellable, &reason);
  if (found != NULL)
    keep (self, found);
  self->is_number = number != NULL;
  self->resolved_us = now_us ();
  g_resolver_free_addresses (found);
}

/* A connection to an ephemeral port of this machine on which nothing listens may connect to itself.
 * That counts as refused, and the port mustn't be held by it. */
static gboolean
has_met_itself (int fd)
{
  struct sockaddr_storage own = {0}, other = {0};
  socklen_t own_size = sizeof own, other_size = sizeof other;
  const struct linger at_once = {.l_onoff = 1};
  if (getsockname (fd, (struct sockaddr *)&own, &own_size) != 0 ||
      getpeername (fd, (struct sockaddr *)&other, &other_size) != 0 || own_size != other_size ||
      memcmp (&own, &other, own_size) != 0)
    return FALSE;
  (void)setsockopt (fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  return TRUE;
}

/* Which of these a machine that is down causes depends on the routers on the way: treated as one.
 */
static gboolean
is_no_answer (int why)
{
  return why == ETIMEDOUT || why == EHOSTUNREACH || why == ENETUNREACH || why == EHOSTDOWN;
}

static int
settle (int fd, int why)
{
  if (is_no_answer (why))
    return ETIMEDOUT;
  return why == 0 && has_met_itself (fd) ? ECONNREFUSED : why;
}

static socklen_t
size_of (const struct sockaddr_storage *address)
{
  switch (address->ss_family) {
  case AF_INET:
    return sizeof (struct sockaddr_in);
  case AF_INET6:
    return sizeof (struct sockaddr_in6);
  default:
    return sizeof (struct sockaddr_un);
  }
}

/* Starts connecting; EINPROGRESS if that isn't complete. The socket goes to *fd. */
static int
begin (const struct sockaddr_storage *address, int *fd)
{
  const socklen_t size = size_of (address);
  *fd = socket (address->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (*fd < 0)
    return errno;
  int why = connect (*fd, (const struct sockaddr *)address, size) == 0 ? 0 : errno;
  /* On loopback it is complete by now, and a second call is the fastest way to the result. */
  if (why == EINPROGRESS)
    why = connect (*fd, (const struct sockaddr *)address, size) == 0 ? 0 : errno;
  if (why == EALREADY)
    return EINPROGRESS;
  if (why == ENOENT && address->ss_family == AF_UNIX)
    return ECONNREFUSED;
  return settle (*fd, why == EISCONN ? 0 : why);
}

/* The result of a connection that was started. */
static int
outcome_of (int fd)
{
  int why = 0;
  socklen_t size = sizeof why;
  if (getsockopt (fd, SOL_SOCKET, SO_ERROR, &why, &size) != 0)
    return errno;
  return settle (fd, why);
}

static void
drop (ReachProbes *self, int i, int why)
{
  /* Of several reasons, the one given by a machine is preferred. */
  if (self->why != ECONNREFUSED)
    self->why = why;
  if (self->fds[i] >= 0)
    (void)close (self->fds[i]); /* nothing was written to it */
  self->fds[i] = -1;
}

/* TRUE if one is connected, or all have failed. */
static gboolean
begin_all (ReachProbes *self, const MusterReachProber *prober)
{
  gboolean is_pending = FALSE;
  const guint n = prober->addresses != NULL ? MIN (prober->addresses->len, MAX_ADDRESSES) : 0;
  for (guint i = 0; i < n; i++) {
    int *fd = &self->fds[self->n++];
    int why = begin (&g_array_index (prober->addresses, struct sockaddr_storage, i), fd);
    if (why == 0)
      self->why = 0;
    if (why == 0)
      return TRUE;
    if (why == EINPROGRESS)
      is_pending = TRUE;
    else
      drop (self, self->n - 1, why);
  }
  return !is_pending;
}

/* Checks those that poll () reports. Returns the same. */
static gboolean
check_polled (ReachProbes *self, const GPollFD *polled)
{
  gboolean is_pending = FALSE;
  for (int i = 0; i < self->n; i++) {
    if (self->fds[i] < 0)
      continue;
    if (polled[i].revents == 0) {
      is_pending = TRUE;
      continue;
    }
    int why = outcome_of (self->fds[i]);
    if (why == 0)
      self->why = 0;
    if (why == 0)
      return TRUE;
    drop (self, i, why);
  }
  return !is_pending;
}

/* The same after timeout_ms at most. */
static gboolean
poll_all (ReachProbes *self, GPollFD *polled, guint n, int timeout_ms)
{
  for (int i = 0; i < self->n; i++) /* poll () ignores those below 0 */
    polled[i] = (GPollFD){.fd = self->fds[i], .events = G_IO_OUT};
  (void)g_poll (polled, n, timeout_ms);
  return check_polled (self, polled);
}

static void
await (ReachProbes *self, gint64 deadline_us, GCancellable *cancellable)
{
  GPollFD polled[MAX_ADDRESSES + 1];
  const gboolean can_cancel =
      cancellable != NULL && g_cancellable_make_pollfd (cancellable, &polled[self->n]);
  const guint n = (guint)self->n + (can_cancel ? 1 : 0);
  for (gboolean is_over = FALSE; !is_over;) {
    gint64 left_us = muster_deadline_remaining (deadline_us, now_us ());
    if (left_us == 0 || g_cancellable_is_cancelled (cancellable)) {
      self->why = ETIMEDOUT;
      break;
    }
    is_over = poll_all (self, polled, n, (int)MIN (left_us / MUSTER_MILLISECOND + 1, G_MAXINT));
  }
  if (can_cancel)
    g_cancellable_release_fd (cancellable);
}

int
muster_reach_probe (MusterReachProber *self, gint64 deadline_us, GCancellable *cancellable)
{
  g_return_val_if_fail (self != NULL, EINVAL);
  ReachProbes probes = {.why = ENOENT};
  resolve_host (self, deadline_us, cancellable);
  if (g_cancellable_is_cancelled (cancellable))
    return ETIMEDOUT;
  if (self->host != NULL && self->addresses == NULL && now_us () >= deadline_us)
    return EAGAIN;
  if (!begin_all (&probes, self))
    await (&probes, deadline_us, cancellable);
  for (int i = 0; i < probes.n; i++)
    if (probes.fds[i] >= 0)
      (void)close (probes.fds[i]);
  const gboolean has_untried = self->addresses != NULL && self->addresses->len > MAX_ADDRESSES;
  return probes.why != 0 && has_untried ? EAGAIN : probes.why;
}

// SPDX-License-Identifier: Apache-2.0
/* Counts the calls of each connection, those without a request apart, and ends the connection
 * with the most once a limit is exceeded. */
#include "rpc/server/rpc_peers_private.h"

#include "base/clock.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define OPEN_FILES_FOLDER "/proc/self/fd"
/* The time in which max_aborted calls count. */
#define ABORTED_WITHIN_US (10 * MUSTER_SECOND)

/* With more connections than this, those without a call are looked through. */
#define MANY_PEERS 1000

struct _MusterRpcPeer {
  char *name; /* (owned) */
  guint n_calls, n_bare, n_open;
  guint n_aborted;
  gint64 aborted_from_us; /* since when n_aborted counts */
  gboolean is_ended;
};

struct _MusterRpcPeers {
  MusterRpcPeerLimits limits;
  void (*on_ended) (const char *peer, const char *why, gpointer data);
  gpointer data;
  GMutex lock;
  GHashTable *table; /* (owned) (element-type utf8 MusterRpcPeer) guarded by lock; also the peers */
  guint many;        /* guarded by lock: size of the table at which it is looked through */
  guint n_calls;     /* guarded by lock */
  guint n_bare;      /* guarded by lock: without those of ended connections, as below */
  guint n_open;      /* guarded by lock: those of them that need no token */
};

/* --- connections --- */

typedef struct {
  struct in6_addr host;
  in_port_t port;
} Address;

/* IPv4 as IPv6 has it, so that the two forms of one address are equal. */
static gboolean
read_address (const char *text, Address *address)
{
  g_autofree char *plain = g_uri_unescape_string (text, NULL);
  const char *colon = plain != NULL ? strrchr (plain, ':') : NULL;
  if (colon == NULL)
    return FALSE;
  *address = (Address){.port = htons ((in_port_t)atoi (colon + 1))};
  if (g_str_has_prefix (plain, "ipv4:")) {
    g_autofree char *host =
        g_strdup_printf ("::ffff:%.*s", (int)(colon - plain - 5), plain + strlen ("ipv4:"));
    return inet_pton (AF_INET6, host, &address->host) == 1;
  }
  if (!g_str_has_prefix (plain, "ipv6:[") || colon[-1] != ']')
    return FALSE;
  const char *start = plain + strlen ("ipv6:[");
  g_autofree char *host = g_strndup (start, strcspn (start, "]%"));
  return inet_pton (AF_INET6, host, &address->host) == 1;
}

static gboolean
is_connected_to (int fd, const Address *address)
{
  struct sockaddr_storage found;
  socklen_t size = sizeof found;
  if (getpeername (fd, (struct sockaddr *)&found, &size) != 0)
    return FALSE;
  if (found.ss_family == AF_INET6) {
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&found;
    return in6->sin6_port == address->port &&
           memcmp (&in6->sin6_addr, &address->host, sizeof address->host) == 0;
  }
  const struct sockaddr_in *in = (const struct sockaddr_in *)&found;
  return found.ss_family == AF_INET && in->sin_port == address->port &&
         IN6_IS_ADDR_V4MAPPED (&address->host) &&
         memcmp (&in->sin_addr, &address->host.s6_addr[12], sizeof in->sin_addr) == 0;
}

/* Closes this process's connections whose other end is peer: FALSE if there is none.
 *
 * gRPC doesn't say which descriptor a call came by, and closes none on request: so all are looked
 * at. It reads the end of the connection, and ends all of its calls. */
static gboolean
end_connection (const char *peer)
{
  Address address;
  gboolean is_found = FALSE;
  g_autoptr (GDir) folder = g_dir_open (OPEN_FILES_FOLDER, 0, NULL);
  if (folder == NULL || !read_address (peer, &address))
    return FALSE;
  for (const char *name; (name = g_dir_read_name (folder)) != NULL;) {
    const int fd = atoi (name);
    if (is_connected_to (fd, &address) && shutdown (fd, SHUT_RDWR) == 0)
      is_found = TRUE;
  }
  return is_found;
}

/* --- counting --- */

static void
peer_free (gpointer data)
{
  MusterRpcPeer *self = data;
  g_free (self->name);
  g_free (self);
}

MusterRpcPeers *
muster_rpc_peers_new (const MusterRpcPeerLimits *limits,
                      void (*on_ended) (const char *peer, const char *why, gpointer data),
                      gpointer data)
{
  MusterRpcPeers *self = g_new0 (MusterRpcPeers, 1);
  self->limits = *limits;
  self->on_ended = on_ended;
  self->data = data;
  g_mutex_init (&self->lock);
  self->table = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, peer_free);
  self->many = MANY_PEERS;
  return self;
}

void
muster_rpc_peers_free (MusterRpcPeers *self)
{
  if (self == NULL)
    return;
  g_hash_table_unref (self->table);
  g_mutex_clear (&self->lock);
  g_free (self);
}

/* With the lock held, which it gives up for the time of the call. */
static void
end (MusterRpcPeers *self, MusterRpcPeer *peer, const char *why)
{
  if (peer->is_ended)
    return;
  peer->is_ended = TRUE;
  self->n_bare -= peer->n_bare;
  self->n_open -= peer->n_open;
  g_autofree char *name = g_strdup (peer->name);
  g_mutex_unlock (&self->lock);
  if (end_connection (name) && self->on_ended != NULL)
    self->on_ended (name, why, self->data);
  g_mutex_lock (&self->lock);
}

/* With the lock held. Many guests with a few calls each must not end who has a token, and is
 * sending more requests at once than each of them has calls. */
static MusterRpcPeer *
find_worst (MusterRpcPeers *self)
{
  const gboolean is_by_open = self->n_open > self->limits.max_bare / 2;
  MusterRpcPeer *worst = NULL;
  guint n_worst = 0;
  GHashTableIter iter;
  gpointer value;
  g_hash_table_iter_init (&iter, self->table);
  while (g_hash_table_iter_next (&iter, NULL, &value)) {
    MusterRpcPeer *peer = value;
    const guint n = is_by_open ? peer->n_open : peer->n_bare;
    if (!peer->is_ended && (worst == NULL || n > n_worst)) {
      worst = peer;
      n_worst = n;
    }
  }
  return worst;
}

static gboolean
is_idle (const MusterRpcPeer *peer, gint64 now_us)
{
  return peer->n_calls == 0 &&
         (peer->n_aborted == 0 || now_us - peer->aborted_from_us > ABORTED_WITHIN_US);
}

/* With the lock held. */
static void
remove_idle (MusterRpcPeers *self)
{
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  GHashTableIter iter;
  gpointer value;
  g_hash_table_iter_init (&iter, self->table);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    if (is_idle (value, now_us))
      g_hash_table_iter_remove (&iter);
  self->many = MAX (MANY_PEERS, 2 * g_hash_table_size (self->table));
}

/* With the lock held. */
static MusterRpcPeer *
add (MusterRpcPeers *self, const char *name)
{
  if (g_hash_table_size (self->table) > self->many)
    remove_idle (self);
  MusterRpcPeer *peer = g_new0 (MusterRpcPeer, 1);
  peer->name = g_strdup (name);
  g_hash_table_insert (self->table, peer->name, peer);
  return peer;
}

MusterRpcPeer *
muster_rpc_peers_enter (MusterRpcPeers *self, const char *name, gboolean is_open)
{
  if (!g_str_has_prefix (name, "ipv4:") && !g_str_has_prefix (name, "ipv6:"))
    return NULL;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  MusterRpcPeer *peer = g_hash_table_lookup (self->table, name);
  if (peer == NULL)
    peer = add (self, name);
  self->n_calls++;
  peer->n_calls++;
  peer->n_bare++;
  peer->n_open += is_open;
  if (!peer->is_ended) {
    self->n_bare++;
    self->n_open += is_open;
  }
  if (peer->n_calls > self->limits.max_calls)
    end (self, peer, "too many calls at once");
  else if (self->n_bare > self->limits.max_bare)
    end (self, find_worst (self), "too many calls without a message");
  return peer;
}

/* With the lock held. */
static void
count_arrival (MusterRpcPeers *self, MusterRpcPeer *peer)
{
  peer->n_bare--;
  if (!peer->is_ended)
    self->n_bare--;
}

void
muster_rpc_peers_arrived (MusterRpcPeers *self, MusterRpcPeer *peer)
{
  if (peer == NULL)
    return;
  g_mutex_lock (&self->lock);
  count_arrival (self, peer);
  g_mutex_unlock (&self->lock);
}

/* With the lock held. */
static void
count_aborted (MusterRpcPeers *self, MusterRpcPeer *peer)
{
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  if (now_us - peer->aborted_from_us > ABORTED_WITHIN_US) {
    peer->n_aborted = 0;
    peer->aborted_from_us = now_us;
  }
  if (++peer->n_aborted > self->limits.max_aborted)
    end (self, peer, "too many calls that ended without a message");
}

void
muster_rpc_peers_leave (MusterRpcPeers *self, MusterRpcPeer *peer, gboolean is_open,
                        gboolean had_message)
{
  if (peer == NULL)
    return;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  peer->n_open -= is_open;
  if (!peer->is_ended)
    self->n_open -= is_open;
  if (!had_message) {
    count_arrival (self, peer);
    count_aborted (self, peer);
  }
  self->n_calls--;
  peer->n_calls--;
  /* Another connection may come from the port of one that was ended. Others are kept for the next
   * call, until there are many. */
  if (peer->n_calls == 0 && peer->is_ended)
    g_hash_table_remove (self->table, peer->name);
}

guint
muster_rpc_peers_n_calls (MusterRpcPeers *self, guint *n_bare)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  if (n_bare != NULL)
    *n_bare = self->n_bare;
  return self->n_calls;
}

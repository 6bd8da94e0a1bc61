// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* MusterReachProber tests whether HOST:PORT or unix:/PATH accepts connections: it resolves the
 * name, connects to all addresses at once and closes. That takes about 10 µs, a fraction of a gRPC
 * connection, so a thousand clients can wait for one server for hours. One thread. */

typedef struct {
  char *host; /* (owned) or the path of a Unix socket */
  guint16 port;
  GArray *addresses;  /* (owned) (nullable) (element-type struct sockaddr_storage) from the last
                         lookup, for connect () */
  gboolean is_number; /* the host is a numeric address and needs no lookup */
  gint64 resolved_us; /* on muster_system_clock () */
} MusterReachProber;

/* address must be valid (muster_address_check ()). */
void muster_reach_prober_init (MusterReachProber *self, const char *address);
void muster_reach_prober_clear (MusterReachProber *self);

/* Returns 0 if the port accepts connections, else an errno: ECONNREFUSED, also for a Unix socket
 * that doesn't exist; ETIMEDOUT for no answer,
 * for no route, and at deadline_us or a cancellation; ENOENT for a name without an address; and
 * others of connect (). EAGAIN is inconclusive: the lookup was too slow, or there are more
 * addresses than are tried. EINVAL if self is NULL. */
int muster_reach_probe (MusterReachProber *self, gint64 deadline_us, GCancellable *cancellable);

G_END_DECLS

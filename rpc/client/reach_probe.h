// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* A probe finds out whether somebody listens at HOST:PORT: it looks the name up, connects to each
 * of its addresses at once, and hangs up. That costs some 10 µs, a fraction of what gRPC takes to
 * connect, so that a thousand clients may wait for one server for hours. One thread. */

typedef struct {
  char *host; /* (owned) */
  guint16 port;
  GArray *addresses;  /* (owned) (nullable) (element-type struct sockaddr_storage) as last looked
                         up, and as connect () takes them */
  gboolean is_number; /* the host is an address itself: it needn't be looked up again */
  gint64 resolved_us; /* on muster_system_clock () */
} MusterReachProber;

/* address was checked before. */
void muster_reach_prober_init (MusterReachProber *self, const char *address);
void muster_reach_prober_clear (MusterReachProber *self);

/* 0: somebody listens; else an errno that says why not: ECONNREFUSED; ETIMEDOUT: no answer, be it
 * that no way leads there, or that deadline_us came first, or a cancellation; ENOENT for a name
 * without an address; … EAGAIN: nothing is known, since the name wasn't looked up in time, or has
 * more addresses than are tried. EINVAL where self is NULL. */
int muster_reach_probe (MusterReachProber *self, gint64 deadline_us, GCancellable *cancellable);

G_END_DECLS

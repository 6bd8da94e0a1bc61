// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

G_BEGIN_DECLS

/* When a lease that isn't renewed ends, by the clock of the server that granted it.
 *
 * A server that was stopped, or got no CPU time, finds that time has passed before it has read the
 * renewals in its sockets. Therefore a lease ends only after two checks found no renewal, the
 * second at least a tenth of the lease after the first: the server has run in between. The first
 * check is due at nine tenths of the lease, so that a server that wasn't delayed ends the lease on
 * time. No I/O; the caller guards the values. */

/* Checks a lease that was last renewed at heard_us. Returns when to check again; the lease has
 * ended if that isn't later than now_us. *doubted_us is when the first check found no renewal. The
 * caller keeps it, initially 0; a renewal makes it invalid. */
gint64 muster_lease_look (gint64 lease_us, gint64 heard_us, gint64 now_us, gint64 *doubted_us);

G_END_DECLS

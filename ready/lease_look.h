// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

G_BEGIN_DECLS

/* When a lease ends that isn't renewed, by the clock of the server that granted it.
 *
 * A server that was stopped, or got no processor, finds that time has passed before it reads the
 * renewals that wait in its sockets. So a lease ends only when it was found silent by two looks,
 * the second at least a tenth of the lease after the first: the server has run in between. The
 * first look is due a tenth of the lease before its end, so that a silent holder is missed when the
 * lease is over. No I/O; the caller guards the values. */

/* Looks at a lease that was renewed at heard_us. Returns when to look again; the lease has ended if
 * that isn't later than now_us. *doubted_us is the first look that found it silent: initially 0,
 * kept by the caller; it has no meaning after a renewal. */
gint64 muster_lease_look (gint64 lease_us, gint64 heard_us, gint64 now_us, gint64 *doubted_us);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/lease.h"

G_BEGIN_DECLS

/* Announces why a chief's run has failed: the model may be why, as if its loss is NaN, so the next
 * chief restores it, and others say it while they wait. A failure of the master, the store or the
 * network, and a cancellation, say nothing of the model, and aren't announced. */
void muster_announce_failure (MusterLease *lease, const GError *failure, MusterClock *clock);

G_END_DECLS

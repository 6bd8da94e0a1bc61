// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

G_BEGIN_DECLS

/* Waits for what another thread of this process does. Such a deadline is on the machine's clock,
 * also where the caller has a clock of its own: time that a fake clock skips is no time in which
 * the other thread has worked (docs/decisions/0011). To wait for an instant: base/clock.h. */

/* Waits until changed is signalled; FALSE once deadline_us has passed. Call it with lock held and
 * in a loop: it may return without a signal. */
gboolean muster_wait_change (GCond *changed, GMutex *lock, gint64 deadline_us);

typedef gboolean (*MusterIsDone) (gpointer data);

/* Waits until is_done (data), deadline_us, or cancellable (nullable) is cancelled; returns is_done
 * (data). Call it with lock held; it returns with lock held, and releases it also before and after
 * a wait. is_done is called with lock held, and once more after it returned TRUE: what it takes for
 * its caller, it must remember. */
gboolean muster_wait_for (GCond *changed, GMutex *lock, MusterIsDone is_done, gpointer data,
                          gint64 deadline_us, GCancellable *cancellable);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

G_BEGIN_DECLS

/* Waits for another thread of this process. The deadlines are on the machine's clock, even if the
 * caller uses another one: while a fake clock skips time, the other thread makes no progress
 * (docs/decisions/0011). To wait for an instant: base/clock.h. */

/* Waits until changed is signalled; FALSE once deadline_us has passed. Call it with lock held and
 * in a loop: it may return without a signal. */
gboolean muster_wait_change (GCond *changed, GMutex *lock, gint64 deadline_us);

typedef gboolean (*MusterIsDone) (gpointer data);

/* Waits until is_done (data) returns TRUE, deadline_us has passed or cancellable (nullable) is
 * cancelled; returns is_done (data). Call it with lock held; it returns with lock held, but may
 * release it before, during and after a wait. is_done is called with lock held, and may be called
 * again after it returned TRUE: if it takes something for its caller, it must remember that. */
gboolean muster_wait_for (GCond *changed, GMutex *lock, MusterIsDone is_done, gpointer data,
                          gint64 deadline_us, GCancellable *cancellable);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#include "base/wait_private.h"

gboolean
muster_wait_change (GCond *changed, GMutex *lock, gint64 deadline_us)
{
  if (deadline_us != MUSTER_WAIT_FOREVER)
    return g_cond_wait_until (changed, lock, deadline_us);
  g_cond_wait (changed, lock);
  return TRUE;
}

typedef struct {
  GCond *changed;
  GMutex *lock;
} Waiter;

static void
on_cancelled (GCancellable *cancellable G_GNUC_UNUSED, gpointer data)
{
  const Waiter *waiter = data;
  g_mutex_lock (waiter->lock);
  g_cond_broadcast (waiter->changed);
  g_mutex_unlock (waiter->lock);
}

/* Connecting may call back at once, and disconnecting waits for a callback that runs: both happen
 * without the lock. What was done meanwhile may be taken by another waiter, which isn't the end. */
gboolean
muster_wait_for (GCond *changed, GMutex *lock, MusterIsDone is_done, gpointer data,
                 gint64 deadline_us, GCancellable *cancellable)
{
  Waiter waiter = {changed, lock};
  gboolean was_done = TRUE;
  while (!is_done (data)) {
    gulong id = 0;
    if (!was_done)
      return FALSE;
    g_mutex_unlock (lock);
    if (cancellable != NULL)
      id = g_cancellable_connect (cancellable, G_CALLBACK (on_cancelled), &waiter, NULL);
    g_mutex_lock (lock);
    while (!(was_done = is_done (data)) && !g_cancellable_is_cancelled (cancellable) &&
           muster_wait_change (changed, lock, deadline_us)) {
    }
    g_mutex_unlock (lock);
    g_cancellable_disconnect (cancellable, id);
    g_mutex_lock (lock);
  }
  return TRUE;
}

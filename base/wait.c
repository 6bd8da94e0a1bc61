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

gboolean
muster_wait_for (GCond *changed, GMutex *lock, MusterIsDone is_done, gpointer data,
                 gint64 deadline_us, GCancellable *cancellable)
{
  Waiter waiter = {changed, lock};
  gulong id = 0;
  if (is_done (data))
    return TRUE;
  /* Connecting may call back at once, and disconnecting waits for a callback that runs. */
  g_mutex_unlock (lock);
  if (cancellable != NULL)
    id = g_cancellable_connect (cancellable, G_CALLBACK (on_cancelled), &waiter, NULL);
  g_mutex_lock (lock);
  while (!is_done (data) && !g_cancellable_is_cancelled (cancellable) &&
         muster_wait_change (changed, lock, deadline_us)) {
  }
  g_mutex_unlock (lock);
  g_cancellable_disconnect (cancellable, id);
  g_mutex_lock (lock);
  return is_done (data);
}

// SPDX-License-Identifier: Apache-2.0
/* Signal handling, and the thread that enforces the grace. */
#include "train/preemption/preemption_private.h"

#include "base/require_private.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* The preemption that receives the process's signals; atomic, as handlers read it. */
static gpointer taker;
static struct sigaction before_term, before_int;

/* --- signals --- */

/* Uses only async-signal-safe functions. */
void
muster_preemption_wake (MusterPreemption *self)
{
  const guint64 one = 1;
  const int kept = errno;
  if (self->event_fd >= 0 && write (self->event_fd, &one, sizeof one) < 0) {
    /* If the pipe is full, the thread is woken anyway. */
  }
  errno = kept;
}

void
muster_preemption_notify (MusterPreemption *self, int signal_number)
{
  g_return_if_fail (self != NULL);
  g_atomic_int_set (&self->pending, signal_number);
  muster_preemption_wake (self);
}

static void
on_signal (int signal_number)
{
  MusterPreemption *self = g_atomic_pointer_get (&taker);
  if (self != NULL)
    muster_preemption_notify (self, signal_number);
}

gboolean
muster_preemption_take_signals (MusterPreemption *self, gboolean with_sigint, GError **error)
{
  muster_require (error, FALSE, self);

  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  if (!muster_preemption_watch (self, error))
    return FALSE;
  if (!g_atomic_pointer_compare_and_exchange (&taker, NULL, self)) {
    return muster_fail (error, MUSTER_ERROR_ALREADY_EXISTS,
                        "another preemption handles the signals of this process");
  }
  sigemptyset (&action.sa_mask);
  (void)sigaction (SIGTERM, &action, &before_term);
  self->has_signals = TRUE;
  self->has_sigint = with_sigint;
  action.sa_flags |= SA_RESETHAND;
  if (with_sigint)
    (void)sigaction (SIGINT, &action, &before_int);
  return TRUE;
}

/* --- the thread --- */

/* The instant at which the run is cancelled: before a save while one would still fit; during the
 * save when only the reserve is left; after it at the end of the grace. */
static gint64
cancel_at_locked (const MusterPreemption *self, gint64 needed_us)
{
  gint64 deadline_us = muster_preemption_deadline_locked (self);
  if (self->was_saved)
    return deadline_us + self->reserve_us;
  return self->is_saving ? deadline_us : deadline_us - MAX (needed_us, 0);
}

/* Cancels the run and the waits of hooks and threads. */
static void
cancel_run (MusterPreemption *self)
{
  g_mutex_lock (&self->lock);
  g_autoptr (MusterCoordinator) coordinator =
      self->coordinator != NULL ? g_object_ref (self->coordinator) : NULL;
  g_mutex_unlock (&self->lock);
  if (coordinator != NULL)
    (void)muster_coordinator_request_stop (coordinator, NULL, NULL);
  g_cancellable_cancel (self->cancellable);
}

/* Waits until the run must be cancelled, or has ended. */
static void
see_to_it (MusterPreemption *self)
{
  while (!g_atomic_int_get (&self->is_ending)) {
    g_mutex_lock (&self->lock);
    g_autoptr (MusterSaver) saver = self->saver != NULL ? g_object_ref (self->saver) : NULL;
    g_autoptr (GCancellable) nudge = g_object_ref (self->nudge);
    g_mutex_unlock (&self->lock);
    guint64 bytes = saver != NULL ? muster_saver_estimate_bytes (saver) : 0;
    g_mutex_lock (&self->lock);
    gint64 needed_us = saver != NULL ? muster_preemption_known_locked (self, bytes) : 0;
    gint64 cancel_us = cancel_at_locked (self, needed_us);
    gboolean is_late = muster_clock_now_us (self->clock) >= cancel_us;
    if (is_late && saver != NULL && !self->is_saving && !self->was_saved)
      (void)muster_preemption_fits_locked (self, needed_us, bytes, TRUE);
    g_mutex_unlock (&self->lock);
    if (is_late) {
      cancel_run (self);
      return;
    }
    (void)muster_clock_wait_until (self->clock, cancel_us, nudge, NULL);
  }
}

static gpointer
watch (gpointer data)
{
  MusterPreemption *self = data;
  guint64 count;
  while (!g_atomic_int_get (&self->is_ending)) {
    if (read (self->event_fd, &count, sizeof count) < 0 && errno != EINTR)
      break;
    if (muster_preemption_is_requested (self))
      see_to_it (self);
  }
  return NULL;
}

gboolean
muster_preemption_watch (MusterPreemption *self, GError **error)
{
  muster_require (error, FALSE, self);

  if (self->watcher != NULL)
    return TRUE;
  self->event_fd = eventfd (0, EFD_CLOEXEC);
  if (self->event_fd >= 0)
    self->watcher = g_thread_try_new ("muster-preempt", watch, self, NULL);
  if (self->watcher != NULL)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED, "can't watch for signals: %s",
                      g_strerror (errno));
}

void
muster_preemption_release_signals (MusterPreemption *self)
{
  g_return_if_fail (self != NULL);

  if (!self->has_signals)
    return;
  (void)sigaction (SIGTERM, &before_term, NULL);
  if (self->has_sigint)
    (void)sigaction (SIGINT, &before_int, NULL);
  self->has_signals = FALSE;
  g_atomic_pointer_set (&taker, NULL);
}

void
muster_preemption_stop_watching (MusterPreemption *self)
{
  muster_preemption_release_signals (self);
  if (self->watcher != NULL) {
    g_atomic_int_set (&self->is_ending, 1);
    g_mutex_lock (&self->lock);
    muster_preemption_nudge_locked (self);
    g_mutex_unlock (&self->lock);
    muster_preemption_wake (self);
    g_thread_join (self->watcher);
  }
  if (self->event_fd >= 0)
    close (self->event_fd);
}

// SPDX-License-Identifier: Apache-2.0
#include "train/hooks/drain_watch_private.h"

#include "base/cancel_link_private.h"
#include "base/error.h"
#include "saver/consistent_cut_private.h"
#include "session/manager.h"
#include "train/monitored/hook_private.h"
#include "train/monitored/run_context_private.h"

/* The time limit of an announcement; it is repeated with the next renewal of the lease. */
#define ANNOUNCE_US (5 * MUSTER_SECOND)
/* The interval and the timeout of asking the master whether it still runs. */
#define POLL_US   (20 * MUSTER_MILLISECOND)
#define ANSWER_US (5 * MUSTER_SECOND)
/* A master that still runs this long after its announced instant doesn't stop. */
#define PATIENCE_US (10 * MUSTER_SECOND)
/* What an instant that is told again differs by, without being another one. */
#define SAME_US MUSTER_SECOND

void
muster_drain_watch_clear (MusterDrainWatch *self)
{
  g_clear_object (&self->lease);
}

static void
announce (MusterDrainWatch *self, MusterChiefDrain drain, GCancellable *cancellable)
{
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  MusterAnnouncement announcement = MUSTER_ANNOUNCEMENT_INIT;
  announcement.drain = drain;
  (void)muster_lease_announce (self->lease, &announcement, now_us + ANNOUNCE_US, cancellable, NULL);
}

void
muster_drain_watch_open (MusterDrainWatch *self, const MusterSaveCall *call)
{
  g_set_object (&self->lease, muster_session_manager_lease (call->session));
  self->heard_us = self->until_us = self->held_us = 0;
  if (self->lease != NULL)
    announce (self, MUSTER_DRAIN_OFFERED, call->cancellable);
}

gboolean
muster_drain_watch_is_due (const MusterDrainWatch *self, gint64 *until_us)
{
  return self->lease != NULL && muster_lease_is_draining (self->lease, until_us) &&
         *until_us > muster_clock_now_us (muster_system_clock ()) &&
         (self->heard_us == 0 || *until_us > muster_deadline_after (self->heard_us, SAME_US));
}

void
muster_drain_watch_note_heard (MusterDrainWatch *self, gint64 until_us)
{
  self->heard_us = until_us;
  self->held_us = muster_clock_now_us (muster_system_clock ());
}

static gboolean
is_there (const MusterSaveCall *call, MusterScaffold *scaffold, GCancellable *cancellable,
          GError **why)
{
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  return muster_read_global_step (call->session, scaffold, now_us + ANSWER_US, cancellable, why) >=
         0;
}

void
muster_drain_watch_note_saved (MusterDrainWatch *self, gint64 until_us)
{
  self->until_us = MAX (until_us, 1);
}

gboolean
muster_drain_watch_is_saved (const MusterDrainWatch *self)
{
  return self->until_us != 0;
}

gboolean
muster_drain_watch_end (MusterDrainWatch *self)
{
  const gboolean was_saved = muster_drain_watch_is_saved (self);
  self->until_us = 0;
  return was_saved;
}

/* TRUE if the drain was prolonged for longer than the tasks hold: it needs another save. */
static gboolean
outlasts_hold (MusterDrainWatch *self, const MusterSaveCall *call)
{
  const gint64 before_us = self->heard_us;
  (void)muster_lease_is_draining (self->lease, &self->heard_us);
  if (self->heard_us <= muster_deadline_after (before_us, SAME_US))
    return FALSE;
  if (self->heard_us <= muster_deadline_after (self->held_us, MUSTER_HOLD_US)) {
    announce (self, MUSTER_DRAIN_SAVED, call->cancellable);
    return FALSE;
  }
  return TRUE;
}

/* A master that doesn't answer has changed nothing. */
gboolean
muster_drain_watch_is_unchanged (const MusterSaveCall *call, MusterSaver *saver)
{
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  gboolean is_unchanged = TRUE;
  return !muster_saver_check_cut (saver, call->session, &is_unchanged,
                                  MIN (call->deadline_us, now_us + ANSWER_US), call->cancellable,
                                  NULL) ||
         is_unchanged;
}

/* The other tasks hold for so long, whatever the drain; a save may have taken most of it, but not
 * where no task trains. */
static gboolean
is_held (const MusterDrainWatch *self, const MusterSaveCall *call, MusterSaver *saver,
         gint64 saved_us)
{
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  if (now_us < muster_deadline_after (self->held_us, MUSTER_HOLD_US))
    return TRUE;
  return now_us < muster_deadline_after (saved_us, MUSTER_HOLD_US) &&
         muster_drain_watch_is_unchanged (call, saver);
}

gboolean
muster_drain_watch_await_end (MusterDrainWatch *self, const MusterSaveCall *call,
                              MusterScaffold *scaffold, MusterSaver *saver, GCancellable *cancelled,
                              GError **error)
{
  MusterClock *clock = muster_system_clock ();
  const gint64 saved_us = muster_clock_now_us (clock);
  g_auto (MusterCancelLink) either = muster_cancel_link (call->cancellable, cancelled);
  self->until_us = 0;
  announce (self, MUSTER_DRAIN_SAVED, call->cancellable);
  for (;;) {
    const gint64 now_us = muster_clock_now_us (clock);
    g_autoptr (GError) gone = NULL;
    if (g_cancellable_is_cancelled (cancelled))
      return TRUE;
    if (outlasts_hold (self, call) || !is_held (self, call, saver, saved_us) ||
        now_us >= muster_deadline_after (self->heard_us, PATIENCE_US)) {
      self->heard_us = 0;
      announce (self, MUSTER_DRAIN_OFFERED, call->cancellable);
      return TRUE;
    }
    if (g_cancellable_set_error_if_cancelled (call->cancellable, error))
      return FALSE;
    if (!is_there (call, scaffold, either.cancellable, &gone) &&
        !g_cancellable_is_cancelled (either.cancellable))
      return muster_fail (error, MUSTER_ERROR_UNAVAILABLE,
                          "the master has stopped, after the model was saved: %s", gone->message);
    (void)muster_clock_wait_until (clock, now_us + POLL_US, either.cancellable, NULL);
  }
}

// SPDX-License-Identifier: Apache-2.0
#include "train/hooks/background_save_private.h"

#include "base/cancel_link_private.h"
#include "base/error.h"
#include "base/log_private.h"
#include "saver/async/async_private.h"

/* How long a save may still take, at most, after its session was lost or the run has failed. */
#define ABANDON_US (5 * MUSTER_SECOND)
/* … and at least, though it saves less work than that. */
#define ABANDON_MIN_US (500 * MUSTER_MILLISECOND)
/* A thread that is stuck in a save that was given up isn't waited for. */
#define DISPOSE_US (500 * MUSTER_MILLISECOND)
/* For the last words of a thread whose saves have all ended: it has a low priority, and the machine
 * may be busy. */
#define END_US (10 * MUSTER_SECOND)
/* A save that takes so long is reported, and again each time this has doubled. */
#define REPORT_SLOW_US (60 * MUSTER_SECOND)

void
muster_background_save_clear (MusterBackgroundSave *self)
{
  g_clear_pointer (&self->ticket, muster_save_ticket_unref);
  g_clear_pointer (&self->given_up, muster_save_ticket_unref);
  g_clear_object (&self->async);
  g_clear_object (&self->preemption);
}

gboolean
muster_background_save_open (MusterBackgroundSave *self, MusterSaver *saver, MusterSession *session,
                             GError **error)
{
  if (muster_saver_is_empty (saver))
    return TRUE;
  if (self->async == NULL) {
    self->async = muster_async_saver_new (saver, session, MUSTER_SAVES_SKIP, 0, error);
    if (self->async != NULL)
      muster_async_saver_set_dispose_wait (self->async, DISPOSE_US);
    return self->async != NULL;
  }
  muster_async_saver_set_model (self->async, saver, session);
  return TRUE;
}

/* The save in flight is the preemption's to know: it leaves that its time. Takes the ticket. */
static void
set_ticket (MusterBackgroundSave *self, MusterSaveTicket *ticket)
{
  self->ticket = ticket;
  if (self->preemption != NULL)
    muster_preemption_set_saving (self->preemption, ticket != NULL);
}

static MusterSaveTicket *
take_ticket (MusterBackgroundSave *self)
{
  MusterSaveTicket *ticket = self->ticket;
  set_ticket (self, NULL);
  return ticket;
}

static void
cancel (MusterBackgroundSave *self)
{
  g_clear_pointer (&self->given_up, muster_save_ticket_unref);
  self->given_up = take_ticket (self);
  muster_save_ticket_cancel (self->given_up);
}

static GCancellable *
preempted (MusterBackgroundSave *self)
{
  return self->preemption != NULL ? muster_preemption_cancellable (self->preemption) : NULL;
}

/* --- its start --- */

gboolean
muster_background_save_start (MusterBackgroundSave *self, const char *directory, gint64 step,
                              MusterTierSet due, const MusterSaveCall *call, GError **error)
{
  g_auto (MusterCancelLink) either = muster_cancel_link (call->cancellable, preempted (self));
  const gint64 began_us = muster_clock_now_us (muster_system_clock ());
  MusterSaveTicket *ticket = muster_async_saver_save_in_tiers (
      self->async, directory, step, due, call->deadline_us, either.cancellable, error);
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  if (ticket == NULL)
    return FALSE;
  set_ticket (self, ticket);
  self->began_us = now_us;
  self->staging_us = now_us - began_us;
  self->report_us = now_us + REPORT_SLOW_US;
  return TRUE;
}

gboolean
muster_background_save_must_block (MusterBackgroundSave *self, const GError *failure)
{
  gboolean for_good;
  if (!muster_snapshot_must_block (failure, "the model", &for_good))
    return FALSE;
  if (for_good)
    g_clear_object (&self->async);
  return TRUE;
}

/* --- while it is written --- */

/* The save that occupies the saver, in flight or given up; (nullable) borrowed. */
static MusterSaveTicket *
running_save (MusterBackgroundSave *self)
{
  if (self->given_up != NULL && muster_save_ticket_state (self->given_up) >= MUSTER_SAVE_DURABLE)
    g_clear_pointer (&self->given_up, muster_save_ticket_unref);
  return self->ticket != NULL ? self->ticket : self->given_up;
}

/* Reports a disk that hangs; training continues beside it. */
static void
report_slow (MusterBackgroundSave *self, MusterSaveTicket *running)
{
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  if (now_us < self->report_us)
    return;
  g_autofree char *elapsed = muster_format_duration (now_us - self->began_us);
  self->report_us = now_us + (now_us - self->began_us);
  muster_log (G_LOG_LEVEL_WARNING, "save-slow", "MESSAGE",
              "'%s' isn't durable after %s; no other checkpoint is saved until it is",
              muster_save_ticket_path (running), elapsed);
}

gboolean
muster_background_save_is_busy (MusterBackgroundSave *self, gint64 step)
{
  MusterSaveTicket *running = running_save (self);
  if (running == NULL)
    return FALSE;
  if (!self->has_deferred)
    muster_log (G_LOG_LEVEL_INFO, "save-slow", "MESSAGE",
                "checkpoints take longer than the time between them: the one due at step "
                "%" G_GINT64_FORMAT " is saved once '%s' is written; training continues",
                step, muster_save_ticket_path (running));
  self->has_deferred = TRUE;
  report_slow (self, running);
  return TRUE;
}

/* --- its end --- */

MusterSaveTicket *
muster_background_save_take_ended (MusterBackgroundSave *self, const MusterSaveCall *call,
                                   GError **failure)
{
  if (self->ticket == NULL || muster_save_ticket_state (self->ticket) < MUSTER_SAVE_DURABLE)
    return NULL;
  MusterSaveTicket *ticket = take_ticket (self);
  /* the saver reports an error once: here, not instead of the next save */
  if (muster_save_ticket_saved (ticket) == NULL &&
      muster_async_saver_sync_saves (self->async, call->deadline_us, call->cancellable, failure))
    (void)muster_save_ticket_wait (ticket, MUSTER_SAVE_DURABLE, call->deadline_us, NULL, failure);
  if (muster_save_ticket_state (ticket) == MUSTER_SAVE_DURABLE)
    self->durable_us = self->began_us;
  return ticket;
}

gboolean
muster_background_save_wait (MusterBackgroundSave *self, const MusterSaveCall *call, GError **error)
{
  g_autoptr (GError) failure = NULL;
  if (self->ticket == NULL)
    return TRUE;
  gint64 deadline_us = call->deadline_us;
  if (self->preemption != NULL)
    deadline_us = muster_preemption_bound (self->preemption, deadline_us);
  (void)muster_save_ticket_wait (self->ticket, MUSTER_SAVE_DURABLE, deadline_us, call->cancellable,
                                 &failure);
  if (muster_save_ticket_state (self->ticket) >= MUSTER_SAVE_DURABLE)
    return TRUE;
  cancel (self);
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

MusterSaveCall
muster_background_save_bound (MusterBackgroundSave *self, const MusterSaveCall *call)
{
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  const gint64 wait_us = CLAMP (self->began_us - self->durable_us, ABANDON_MIN_US, ABANDON_US);
  return (MusterSaveCall){call->session, MIN (call->deadline_us, now_us + wait_us),
                          preempted (self)};
}

MusterSaveCall
muster_background_save_bound_by_grace (MusterBackgroundSave *self)
{
  g_auto (MusterPreemptionReport) report = {.grace_us = MUSTER_DEFAULT_GRACE_US};
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  if (self->preemption != NULL)
    (void)muster_preemption_report (self->preemption, &report);
  return (MusterSaveCall){.deadline_us = muster_deadline_after (now_us, report.grace_us),
                          .cancellable = preempted (self)};
}

gboolean
muster_background_save_abandon (MusterBackgroundSave *self, const MusterSaveCall *bounded)
{
  g_autoptr (GError) failure = NULL;
  if (self->ticket == NULL ||
      muster_save_ticket_wait (self->ticket, MUSTER_SAVE_DURABLE, bounded->deadline_us,
                               bounded->cancellable, &failure))
    return TRUE;
  muster_log (G_LOG_LEVEL_WARNING, "save-failed", "MESSAGE",
              "the checkpoint of step %" G_GINT64_FORMAT " wasn't finished: %s",
              muster_save_ticket_step (self->ticket), failure->message);
  cancel (self);
  (void)muster_async_saver_sync_saves (self->async, bounded->deadline_us, bounded->cancellable,
                                       NULL);
  return FALSE;
}

gboolean
muster_background_save_shutdown (MusterBackgroundSave *self, GError **error)
{
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  if (self->async == NULL || running_save (self) != NULL)
    return TRUE;
  g_autoptr (MusterAsyncSaver) async = g_steal_pointer (&self->async);
  return muster_async_saver_shutdown (async, muster_deadline_after (now_us, END_US), NULL, error);
}

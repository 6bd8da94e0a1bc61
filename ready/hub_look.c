// SPDX-License-Identifier: Apache-2.0
#include "ready/hub_private.h"

/* Between two looks at a master that can't tell of changes, once everybody has heard that the model
 * is ready: only that it no longer is would be news. */
#define POLL_SETTLED (10 * MUSTER_SECOND)

void
muster_hub_plan_look (MusterReadinessHub *self, MusterQuestion *question, gboolean has_just_run)
{
  const MusterAnnouncement *chief = question->turn.chief;
  gboolean was_settled = question->is_settled;
  gint64 now_us = muster_clock_now_us (self->clock);
  question->is_settled =
      question->turn.is_ready || (chief != NULL && chief->phase == MUSTER_CHIEF_OVER);
  if (!has_just_run && question->is_settled == was_settled)
    return;
  if (question->is_settled != was_settled) { /* what comes now begins anew */
    gint64 cost_us = question->countdown.costs_us[0];
    muster_countdown_start (&question->countdown, now_us, MUSTER_WAIT_FOREVER,
                            MUSTER_HUB_POLL_CEILING);
    muster_countdown_looked (&question->countdown, cost_us);
  }
  if (question->is_settled) {
    question->look_us = muster_deadline_after (now_us, POLL_SETTLED);
  } else {
    question->look_us =
        muster_countdown_next_us (&question->countdown, now_us, muster_clock_random (self->clock));
  }
}

gboolean
muster_hub_is_old (MusterReadinessHub *self, const MusterQuestion *question, gint64 now_us)
{
  return self->changed_id == 0 && now_us - question->looked_us > MUSTER_HUB_POLL_CEILING;
}

/* Nobody who has heard that a model is ready waits for it not to be. */
void
muster_readiness_hub_may_have_changed (MusterReadinessHub *self)
{
  gint64 now_us = muster_clock_now_us (self->clock);
  gboolean is_wanted = FALSE;
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->questions->len && self->changed_id == 0; i++) {
    MusterQuestion *question = self->questions->pdata[i];
    if (question->is_settled)
      continue;
    muster_hunch_note (&question->hunch, now_us);
    is_wanted = TRUE;
  }
  if (is_wanted)
    muster_hub_wake_up (self);
  g_mutex_unlock (&self->lock);
}

/* Those whose time to be looked at again has come go on the agenda; returns when the next one's
 * will. */
static gint64
plan_agenda (MusterReadinessHub *self)
{
  gint64 now_us = muster_clock_now_us (self->clock);
  gint64 next_us = MUSTER_WAIT_FOREVER;
  for (guint i = 0; i < self->questions->len; i++) {
    MusterQuestion *question = self->questions->pdata[i];
    gint64 look_us = MIN (question->look_us, question->hunch.due_us);
    if (look_us <= now_us) {
      question->is_stale = TRUE;
      muster_hub_put_on_agenda (self, question);
    }
    next_us = MIN (next_us, look_us);
  }
  return next_us;
}

void
muster_hub_rest (MusterReadinessHub *self)
{
  if (self->changed_id != 0 || self->questions->len == 0) {
    g_cond_wait (&self->wake, &self->lock);
    return;
  }
  gint64 wake_us = plan_agenda (self);
  if (self->agenda.length > 0)
    return;
  g_autoptr (GCancellable) nap = g_cancellable_new ();
  self->nap = nap;
  g_mutex_unlock (&self->lock);
  /* Cut short by whoever has something to do for the thread: no failure. */
  (void)muster_clock_wait_until (self->clock, wake_us, nap, NULL);
  g_mutex_lock (&self->lock);
  self->nap = NULL;
}

// SPDX-License-Identifier: Apache-2.0
/* What tasks that are gone have left in their slots: a batch in hand, or a step that still runs.
 *
 * The task in the lowest slot looks for it when tasks came or went, any task when it has no batch
 * left itself. It claims such a slot, which no other process is in then, and makes the next step
 * there in place of its own, as soon as the gone task's last step has ended. */
#include "base/error.h"
#include "base/log_private.h"
#include "train/position/position_hook_private.h"

static const MusterPositionSlotsInterface *
slots_of (const MusterPositionHook *self)
{
  return MUSTER_POSITION_SLOTS_GET_IFACE (self->options.slots);
}

static gboolean
has_task (const MusterPositionHook *self, guint slot)
{
  return slots_of (self)->has_task (self->options.slots, slot);
}

static gboolean
is_lowest (const MusterPositionHook *self)
{
  for (guint slot = 0; slot < self->own.task; slot++)
    if (slot != self->claimed && has_task (self, slot))
      return FALSE;
  return TRUE;
}

gboolean
muster_position_is_left (const MusterPositionHook *self, const gint64 *begun, const gint64 *done,
                         const gint64 *taken, guint slot)
{
  return begun[slot] != done[slot] ||
         (taken[slot] >= 0 && !muster_position_is_beyond (self, taken[slot]));
}

static gboolean
is_left (const MusterPositionHook *self, const MusterPositionState *state, guint slot)
{
  return muster_position_is_left (self, muster_tensor_data (state->begun),
                                  muster_tensor_data (state->done),
                                  muster_tensor_data (state->taken), slot);
}

/* Another task may be quicker. */
static gboolean
claim (MusterPositionHook *self, guint slot)
{
  g_autoptr (GError) failure = NULL;
  if (!slots_of (self)->claim (self->options.slots, slot,
                               muster_position_in_us (MUSTER_POSITION_ANSWER_US), self->stopped,
                               &failure)) {
    muster_log (G_LOG_LEVEL_INFO, "position", "MESSAGE", "can't take over slot %u: %s", slot,
                failure != NULL ? failure->message : "another task has it");
    return FALSE;
  }
  self->claimed = slot;
  self->claimed_us = muster_clock_now_us (self->clock);
  return TRUE;
}

static gboolean
claim_one (MusterPositionHook *self, const MusterPositionState *state)
{
  for (guint slot = 0; slot < self->n_tasks; slot++)
    if (slot != self->own.task && is_left (self, state, slot) && !has_task (self, slot) &&
        claim (self, slot))
      return TRUE;
  return FALSE;
}

void
muster_position_give_back (MusterPositionHook *self)
{
  self->is_lent = FALSE;
  if (self->claimed == self->n_tasks)
    return;
  slots_of (self)->release (self->options.slots, self->claimed);
  self->claimed = self->n_tasks;
}

/* The next step may be made in the claimed slot, or it isn't needed, or a step still runs there. */
static gboolean
use_claimed (MusterPositionHook *self, const MusterPositionState *state, MusterSession *session,
             GError **error)
{
  const guint slot = self->claimed;
  if (muster_position_begun (state, slot) != muster_position_done (state, slot))
    return muster_clock_now_us (self->clock) <
               muster_deadline_after (self->claimed_us, self->options.settle_us) ||
           muster_position_undo (self, slot, session, error);
  if (!is_left (self, state, slot)) {
    muster_position_give_back (self);
    return TRUE;
  }
  self->lent = (MusterPositionPlace){slot, muster_position_done (state, slot),
                                     muster_position_taken (state, slot)};
  self->is_lent = TRUE;
  return TRUE;
}

static gboolean
read_state (MusterPositionHook *self, MusterSession *session, MusterPositionState *state,
            GError **error)
{
  return muster_position_read (session, self->n_tasks, state,
                               muster_position_in_us (MUSTER_POSITION_ANSWER_US), self->stopped,
                               error);
}

static gboolean
look (MusterPositionHook *self, MusterSession *session, GError **error)
{
  g_auto (MusterPositionState) state = {.is_dealt = TRUE};
  const guint64 version = slots_of (self)->version (self->options.slots);
  self->is_looking |= version != self->version || muster_position_is_over (self);
  self->version = version;
  if (!self->is_looking)
    return TRUE;
  if (self->claimed == self->n_tasks) {
    self->is_looking = muster_position_is_over (self) || is_lowest (self);
    if (!self->is_looking)
      return TRUE;
    if (!read_state (self, session, &state, error))
      return FALSE;
    self->is_looking = claim_one (self, &state);
    if (!self->is_looking)
      return TRUE;
  }
  /* what is there since the slot is this task's */
  return read_state (self, session, &state, error) && use_claimed (self, &state, session, error);
}

/* A stop ends the search: others find what is left. */
gboolean
muster_position_look (MusterPositionHook *self, MusterSession *session, GError **error)
{
  GError *failure = NULL;
  if (self->options.slots == NULL || self->is_lent || look (self, session, &failure))
    return TRUE;
  if (!g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_CANCELLED)) {
    g_propagate_error (error, failure);
    return FALSE;
  }
  g_error_free (failure);
  return TRUE;
}

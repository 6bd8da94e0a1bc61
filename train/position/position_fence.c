// SPDX-License-Identifier: Apache-2.0
/* A model whose tasks have a master each: no reset of one ends the others' steps. So the model is
 * fenced instead: the master of each then refuses each step that hasn't begun, until the chief has
 * restored the model, which lifts the fence. Additions commute, so no fence is lost to a step or to
 * another fence, and it is still known which steps had begun. */
#include "base/error.h"
#include "base/log_private.h"
#include "train/position/position_private.h"

void
muster_position_read_fence (MusterPositionState *state)
{
  MusterTensor *begun = state->begun;
  const gint64 n = muster_tensor_n_elements (begun);
  state->is_fenced = FALSE;
  if (state->is_dealt || muster_tensor_dtype (begun) != MUSTER_INT64 || n < 1 ||
      *(const gint64 *)muster_tensor_data (begun) < MUSTER_POSITION_FENCED)
    return;
  const gint64 *fenced = muster_tensor_data (begun);
  state->begun =
      muster_tensor_new (MUSTER_INT64, muster_tensor_n_dims (begun), muster_tensor_dims (begun));
  gint64 *counts = muster_tensor_data_mutable (state->begun);
  for (gint64 i = 0; i < n; i++)
    counts[i] = fenced[i] % MUSTER_POSITION_FENCED; /* less each of them */
  state->is_fenced = TRUE;
  muster_tensor_unref (begun);
}

gboolean
muster_position_fence (MusterSession *session, gint64 deadline_us, GCancellable *cancellable,
                       GError **error)
{
  return muster_session_run_op (session, MUSTER_POSITION_RAISE_FENCE, deadline_us, cancellable,
                                error);
}

gboolean
muster_position_refuse_fenced (GError **error)
{
  return muster_fail (error, MUSTER_ERROR_ABORTED,
                      "the model is to be restored: a step was interrupted, and has changed only a "
                      "part of it, or another chief has begun to restore it");
}

void
muster_position_rest (MusterSession *session, const MusterPositionQuiesce *quiesce, gint64 limit_us,
                      GCancellable *cancellable)
{
  const gint64 until_us = muster_deadline_after (muster_clock_now_us (quiesce->clock), limit_us);
  MusterPositionPause pause = {.clock = quiesce->clock};
  g_auto (MusterPositionState) state = {0};
  g_autoptr (GError) failure = NULL;
  gboolean is_first = TRUE;
  while (muster_position_read (session, quiesce->n_tasks, &state, quiesce->deadline_us, cancellable,
                               &failure)) {
    const guint running = muster_position_busy (&state, quiesce->n_tasks, quiesce->but);
    if (!state.is_fenced &&
        !muster_position_fence (session, quiesce->deadline_us, cancellable, &failure))
      break;
    /* Whoever finds the fence lifted by a restore that isn't over holds. */
    if (is_first && !muster_position_set_hold (session, MUSTER_POSITION_WAIT, quiesce->deadline_us,
                                               cancellable, &failure))
      break;
    if (state.is_fenced && !is_first && running == quiesce->n_tasks)
      return;
    is_first = FALSE;
    if (muster_clock_now_us (quiesce->clock) >= until_us ||
        muster_position_in_us (0) >= quiesce->deadline_us)
      muster_fail (&failure, MUSTER_ERROR_DEADLINE_EXCEEDED, "a step of task %u doesn't finish",
                   running);
    if (failure != NULL || !muster_position_pause (&pause, until_us, cancellable, &failure))
      break;
  }
  muster_log (G_LOG_LEVEL_INFO, "position", "MESSAGE", "no more steps are waited for: %s",
              failure->message);
}

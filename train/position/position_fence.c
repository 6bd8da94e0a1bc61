// SPDX-License-Identifier: Apache-2.0
/* A model whose tasks have a master each: no reset of one ends the others' steps. So the model is
 * fenced instead: the master of each then refuses each step that hasn't begun. Additions commute,
 * so no fence is lost to a step or to another fence, and it is still known which steps had begun.
 * The restore lifts the fence at any moment; MUSTER_POSITION_RESTORING outlasts it. */
#include "base/error.h"
#include "base/log_private.h"
#include "train/position/position_private.h"

void
muster_position_read_fence (MusterPositionState *state)
{
  MusterTensor *begun = state->begun;
  const gint64 n = muster_tensor_n_elements (begun);
  state->is_raised = FALSE;
  if (state->is_dealt || muster_tensor_dtype (begun) != MUSTER_INT64 || n < 1 ||
      *(const gint64 *)muster_tensor_data (begun) < MUSTER_POSITION_FENCED)
    return;
  const gint64 *fenced = muster_tensor_data (begun);
  state->begun =
      muster_tensor_new (MUSTER_INT64, muster_tensor_n_dims (begun), muster_tensor_dims (begun));
  gint64 *counts = muster_tensor_data_mutable (state->begun);
  for (gint64 i = 0; i < n; i++)
    counts[i] = fenced[i] % MUSTER_POSITION_FENCED; /* less each of them */
  state->is_raised = TRUE;
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

gboolean
muster_position_open (MusterSession *session, gint64 deadline_us, GCancellable *cancellable,
                      GError **error)
{
  return muster_session_run_op (session, MUSTER_POSITION_CLEAR_RESTORING, deadline_us, cancellable,
                                error);
}

gboolean
muster_position_is_marked (MusterSession *session, gboolean *is_marked, gint64 deadline_us,
                           GCancellable *cancellable, GError **error)
{
  MusterGraph *graph = muster_session_graph (session);
  if (graph != NULL && !muster_graph_has_node (graph, MUSTER_POSITION_MARK))
    return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                        "the positions in this graph lack what a cluster needs: its global step "
                        "isn't on a parameter server, or an older muster has added them; use the "
                        "model's own meta graph, exported with a replica_device_setter");
  g_autoptr (MusterTensor) is_set =
      muster_session_fetch (session, MUSTER_POSITION_IS_MARKED, deadline_us, cancellable, error);
  *is_marked = is_set != NULL && muster_position_is_true (is_set);
  return is_set != NULL;
}

gboolean
muster_position_mark (MusterSession *session, gint64 deadline_us, GCancellable *cancellable,
                      GError **error)
{
  return muster_session_run_op (session, MUSTER_POSITION_SET_MARK, deadline_us, cancellable, error);
}

static void
tell_of (guint running, gint64 left_us)
{
  g_autofree char *left = muster_format_duration (left_us);
  muster_log (G_LOG_LEVEL_MESSAGE, "position", "MESSAGE",
              "the model is restored when a step of task %u has ended, or in %s", running, left);
}

/* Until each step that has begun is done. One that doesn't end counts as cut off. */
static gboolean
await_steps (MusterSession *session, const MusterPositionQuiesce *quiesce, gint64 until_us,
             GCancellable *cancellable, GError **error)
{
  MusterPositionPause pause = {.clock = quiesce->clock};
  g_auto (MusterPositionState) state = {0};
  const gint64 tell_us =
      muster_deadline_after (muster_clock_now_us (quiesce->clock), MUSTER_POSITION_TELL_US);
  gboolean is_told = FALSE;
  for (;;) {
    if (!muster_position_read (session, quiesce->n_tasks, &state, quiesce->deadline_us, cancellable,
                               error))
      return FALSE;
    const guint running = muster_position_busy (&state, quiesce->n_tasks, quiesce->but);
    if (running == quiesce->n_tasks)
      return TRUE;
    const gint64 now_us = muster_clock_now_us (quiesce->clock);
    if (now_us >= until_us) {
      muster_log (G_LOG_LEVEL_MESSAGE, "position", "MESSAGE",
                  "a step of task %u doesn't end; the model is restored anyway", running);
      return TRUE;
    }
    if (!is_told && now_us >= tell_us)
      tell_of (running, until_us - now_us);
    is_told = is_told || now_us >= tell_us;
    if (!muster_position_pause (&pause, until_us, cancellable, error))
      return FALSE;
  }
}

static gboolean
fence_and_await (MusterSession *session, const MusterPositionQuiesce *quiesce, gint64 until_us,
                 GCancellable *cancellable, GError **error)
{
  g_auto (MusterPositionState) state = {0};
  return muster_position_read (session, quiesce->n_tasks, &state, quiesce->deadline_us, cancellable,
                               error) &&
         (state.is_raised ||
          muster_position_fence (session, quiesce->deadline_us, cancellable, error)) &&
         await_steps (session, quiesce, until_us, cancellable, error);
}

static gboolean
close_model (MusterSession *session, const MusterPositionQuiesce *quiesce,
             GCancellable *cancellable, GError **error)
{
  return muster_session_run_op (session, MUSTER_POSITION_SET_RESTORING, quiesce->deadline_us,
                                cancellable, error);
}

/* A step may have passed the fence before it was raised, and be counted only now: it is waited for
 * too, or finds the model closed. */
gboolean
muster_position_rest (MusterSession *session, const MusterPositionQuiesce *quiesce, gint64 limit_us,
                      GCancellable *cancellable, GError **error)
{
  const gint64 until_us = muster_deadline_after (
      muster_clock_now_us (quiesce->clock),
      muster_position_share (limit_us, quiesce->deadline_us, quiesce->clock));
  GError *failure = NULL;
  if (fence_and_await (session, quiesce, until_us, cancellable, &failure))
    return close_model (session, quiesce, cancellable, error) &&
           await_steps (session, quiesce, until_us, cancellable, error);
  if (!muster_error_is (failure, MUSTER_ERROR_FAILED_PRECONDITION)) {
    g_propagate_error (error, failure);
    return FALSE;
  }
  /* there are no counts, without which no step begins */
  muster_log (G_LOG_LEVEL_INFO, "position", "MESSAGE", "not waiting for steps: %s",
              failure->message);
  g_error_free (failure);
  return close_model (session, quiesce, cancellable, error);
}

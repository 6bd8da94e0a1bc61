// SPDX-License-Identifier: Apache-2.0
#include "saver/async/async_private.h"

/* Who may stage or restore now, and how many snapshots may be held: all of it with the lock held.
 */

guint
muster_async_core_n_slots (MusterAsyncCore *self)
{
  const guint64 budget = self->options.budget_bytes;

  if (budget == 0)
    return self->options.policy == MUSTER_SAVES_REPLACE ? 2 : 1;

  return (guint)MIN (budget / MAX (self->model->bytes, 1), MUSTER_MAX_SNAPSHOTS);
}

MusterAsyncSlot *
muster_async_core_free_slot (MusterAsyncCore *self)
{
  const guint n = muster_async_core_n_slots (self);

  for (guint i = 0; i < n; i++)
    if (!self->slots[i].is_taken)
      return &self->slots[i];

  return NULL;
}

static gboolean
may_claim (const MusterAsyncCall *call)
{
  MusterAsyncCore *core = call->core;

  if (core->holder)
    return FALSE;
  if (core->is_shut)
    return TRUE; /* to be refused */
  if (call->must_be_idle || muster_async_core_n_slots (core) == 0)
    return muster_async_core_is_idle (core);

  return core->options.policy != MUSTER_SAVES_BLOCK || muster_async_core_free_slot (core);
}

static gboolean
claim (gpointer data)
{
  MusterAsyncCall *call = data;

  if (!call->is_claimed && may_claim (call)) {
    call->is_claimed = TRUE;
    call->core->holder = g_thread_self ();
  }

  return call->is_claimed;
}

void
muster_async_call_release (MusterAsyncCall *call)
{
  call->core->holder = NULL;
  g_cond_broadcast (&call->core->changed);
}

gboolean
muster_async_refuse_shut (GError **error)
{
  g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION,
                       "The async saver has been shut down");

  return FALSE;
}

gboolean
muster_async_call_take_turn (MusterAsyncCall *call, GError **error)
{
  MusterAsyncCore *core = call->core;

  if (!muster_async_core_check_caller (core, error) ||
      !muster_wait_until_done (&core->lock, &core->changed, claim, call, "the save before",
                               call->deadline_us, call->cancellable, error))
    return FALSE;
  if (!core->is_shut)
    return TRUE;
  muster_async_call_release (call);

  return muster_async_refuse_shut (error);
}

gboolean
muster_async_core_report_failure (MusterAsyncCore *self, GError **error)
{
  if (!self->failure)
    return TRUE;
  g_info ("Propagating the most recent error from the async thread: %s", self->failure->message);
  g_propagate_error (error, g_steal_pointer (&self->failure));

  return FALSE;
}

// SPDX-License-Identifier: Apache-2.0
#include "engine/run/slots.h"

#include "base/clock.h"
#include "base/error.h"

void
muster_slot_clear (MusterSlot *slot)
{
  if (slot->kind == MUSTER_SLOT_TENSOR)
    muster_tensor_unref (slot->value);
  else if (slot->kind == MUSTER_SLOT_HANDLE)
    muster_resource_unref (slot->value);
  else if (slot->kind != MUSTER_SLOT_EMPTY)
    muster_variable_unref (slot->value);
  slot->kind = MUSTER_SLOT_EMPTY;
  slot->value = NULL;
}

MusterTensor *
muster_slot_handle_text (const MusterSlot *slot)
{
  const char *const text[] = {muster_resource_container (slot->value),
                              muster_resource_name (slot->value), NULL};
  return muster_tensor_new_strv (text);
}

void
muster_run_free_scratch (MusterRun *self)
{
  if (self == NULL)
    return;
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->news);
  g_free (self->kernel);
  g_free (self->dead);
  g_free (self->slots);
  g_free (self);
}

static void
set_stop_error (MusterRun *self, MusterStop why)
{
  switch (why) {
  case MUSTER_STOP_DEADLINE:
    muster_fail (&self->error, MUSTER_ERROR_DEADLINE_EXCEEDED,
                 "Deadline Exceeded: the step was stopped at its deadline");
    return;
  case MUSTER_STOP_CANCELLABLE:
    if (!g_cancellable_set_error_if_cancelled (self->context.cancellable, &self->error))
      g_set_error (&self->error, G_IO_ERROR, G_IO_ERROR_CANCELLED, "Operation was cancelled");
    return;
  case MUSTER_STOP_RESET:
    muster_fail (&self->error, MUSTER_ERROR_ABORTED, "Step was cancelled by a reset of the master");
    return;
  default:
    muster_fail (&self->error, MUSTER_ERROR_CANCELLED,
                 "Step was cancelled by an explicit call to `Session::Close()`.");
  }
}

MusterStop
muster_run_why_stop (MusterRun *self)
{
  gint why = g_atomic_int_get (&self->stop);
  if (why == MUSTER_STOP_NONE && self->context.cancellable != NULL &&
      g_cancellable_is_cancelled (self->context.cancellable))
    why = MUSTER_STOP_CANCELLABLE;
  if (why == MUSTER_STOP_NONE && self->context.deadline_us != MUSTER_WAIT_FOREVER &&
      muster_clock_now_us (muster_system_clock ()) >= self->context.deadline_us)
    why = MUSTER_STOP_DEADLINE;
  return (MusterStop)why;
}

gboolean
muster_run_is_stopped (MusterRun *self)
{
  if (self->error != NULL)
    return TRUE;
  const MusterStop why = muster_run_why_stop (self);
  if (G_LIKELY (why == MUSTER_STOP_NONE))
    return FALSE;
  set_stop_error (self, why);
  return TRUE;
}

void
muster_run_notify (MusterRun *self)
{
  self->has_news = TRUE;
  g_cond_signal (&self->news);
}

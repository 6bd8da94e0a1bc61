// SPDX-License-Identifier: Apache-2.0
#include "train/hooks/step_timer_private.h"

#include "base/require_private.h"

gboolean
muster_step_timer_init (MusterStepTimer *self, gint64 every_us, gint64 every_steps,
                        MusterClock *clock, GError **error)
{
  muster_require (error, FALSE, self);

  *self = (MusterStepTimer){.every_us = every_us,
                            .every_steps = every_steps,
                            .clock = clock != NULL ? clock : muster_system_clock ()};
  if (every_us < 0 || every_steps < 0 || (every_us == 0 && every_steps == 0))
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "Either every_secs or every_steps should be provided, and above 0.");
  else if (every_us > 0 && every_steps > 0)
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "Can not provide both every_secs and every_steps.");
  else
    return TRUE;
  return FALSE;
}

gboolean
muster_step_timer_is_due (const MusterStepTimer *self, gint64 step)
{
  g_return_val_if_fail (self != NULL, FALSE);

  if (!self->was_triggered)
    return TRUE;
  if (step == self->last_step)
    return FALSE;
  if (self->every_us > 0)
    return muster_clock_now_us (self->clock) - self->last_us >= self->every_us;
  return step >= self->last_step + self->every_steps;
}

gboolean
muster_step_timer_trigger (MusterStepTimer *self, gint64 step, gint64 *elapsed_us,
                           gint64 *elapsed_steps)
{
  g_return_val_if_fail (self != NULL, FALSE);

  gboolean had_before = self->was_triggered;
  gint64 now_us = muster_clock_now_us (self->clock);
  if (had_before && elapsed_us != NULL)
    *elapsed_us = now_us - self->last_us;
  if (had_before && elapsed_steps != NULL)
    *elapsed_steps = step - self->last_step;
  self->was_triggered = TRUE;
  self->last_us = now_us;
  self->last_step = step;
  return had_before;
}

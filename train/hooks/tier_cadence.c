// SPDX-License-Identifier: Apache-2.0
#include "train/hooks/tier_cadence_private.h"

void
muster_tier_cadence_open (MusterTierCadence *self, MusterSaver *saver, MusterClock *clock)
{
  muster_tier_cadence_clear (self); /* it was another session's */
  self->saver = saver;
  self->n = muster_saver_n_fast_tiers (saver);
  self->before = muster_saver_tiers_in_use (saver);
  for (guint i = 0; i < self->n; i++) {
    const MusterTier *tier = muster_saver_fast_tier (saver, i);
    if (self->timers[i].clock == NULL) /* the saver has checked them */
      (void)muster_step_timer_init (&self->timers[i], tier->save_us, tier->save_steps, clock, NULL);
  }
}

static MusterTierSet
fastest (MusterTierSet in_use)
{
  return in_use & (~in_use + 1);
}

MusterTierSet
muster_tier_cadence_due (const MusterTierCadence *self, gint64 step)
{
  MusterTierSet due = 0;
  if (self->n == 0)
    return 0;
  const MusterTierSet in_use = muster_saver_tiers_in_use (self->saver);
  for (guint i = 0; i < self->n; i++)
    if ((in_use & MUSTER_TIER_BIT (i)) != 0 && muster_step_timer_is_due (&self->timers[i], step))
      due |= MUSTER_TIER_BIT (i);
  return (self->before & ~in_use) != 0 ? due | fastest (in_use) : due;
}

void
muster_tier_cadence_trigger (MusterTierCadence *self, MusterTierSet due, gint64 step)
{
  if (self->n == 0)
    return;
  /* One was dropped: that is tried once. If it fails, the next comes at its own interval. */
  self->before = muster_saver_tiers_in_use (self->saver);
  due |= fastest (self->before); /* it gets every save */
  for (guint i = 0; i < self->n; i++)
    if ((due & MUSTER_TIER_BIT (i)) != 0)
      (void)muster_step_timer_trigger (&self->timers[i], step, NULL, NULL);
}

void
muster_tier_cadence_clear (MusterTierCadence *self)
{
  g_clear_pointer (&self->restored, g_free);
}

void
muster_tier_cadence_note_restored (MusterTierCadence *self, const char *prefix)
{
  g_free (self->restored);
  self->restored = g_strdup (prefix);
}

void
muster_tier_cadence_copy_restored (MusterTierCadence *self, const char *directory)
{
  g_autofree char *restored = g_steal_pointer (&self->restored);

  if (restored != NULL)
    muster_saver_copy_down (self->saver, directory, restored);
}

void
muster_tier_cadence_note_saved (MusterTierCadence *self)
{
  if (self->n > 0)
    self->before = muster_saver_tiers_in_use (self->saver);
}

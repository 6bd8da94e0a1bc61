// SPDX-License-Identifier: Apache-2.0
#include "master/save_status.h"

#include <string.h>

void
muster_save_status_clear (MusterSaveStatus *self)
{
  g_return_if_fail (self != NULL);
  g_free (self->saving);
  *self = (MusterSaveStatus)MUSTER_SAVE_STATUS_INIT;
}

MusterSaveStatus *
muster_save_status_copy (const MusterSaveStatus *self)
{
  if (self == NULL)
    return NULL;
  MusterSaveStatus *copy = g_memdup2 (self, sizeof *self);
  copy->saving = g_strdup (self->saving);
  return copy;
}

void
muster_save_status_free (MusterSaveStatus *self)
{
  if (self == NULL)
    return;
  muster_save_status_clear (self);
  g_free (self);
}

gboolean
muster_save_status_equal (const MusterSaveStatus *a, const MusterSaveStatus *b)
{
  if (a == NULL || b == NULL)
    return a == b;
  return memcmp (a->step, b->step, sizeof a->step) == 0 &&
         memcmp (a->last_us, b->last_us, sizeof a->last_us) == 0 &&
         memcmp (a->total_us, b->total_us, sizeof a->total_us) == 0 &&
         a->last_bytes == b->last_bytes && a->interval_us == b->interval_us &&
         a->n_durable == b->n_durable && a->n_failed == b->n_failed &&
         a->n_skipped == b->n_skipped && a->n_replaced == b->n_replaced &&
         a->saving_state == b->saving_state && a->saving_step == b->saving_step &&
         g_strcmp0 (a->saving, b->saving) == 0;
}

void
muster_save_status_add_age (MusterSaveStatus *self, gint64 passed_us)
{
  g_return_if_fail (self != NULL);
  for (guint i = 0; i < MUSTER_N_SAVE_STATES; i++)
    if (self->step[i] >= 0)
      self->age_us[i] += passed_us;
  if (self->saving != NULL)
    self->saving_age_us += passed_us;
}

const char *
muster_save_state_name (MusterSaveState state)
{
  static const char *const names[] = {"requested", "staged",  "written", "durable",
                                      "failed",    "skipped", "replaced"};
  return (guint)state < G_N_ELEMENTS (names) ? names[state] : "unknown";
}

const char *
muster_save_phase_name (MusterSavePhase phase)
{
  static const char *const names[] = {"blocked", "staging", "writing", "publishing"};
  return (guint)phase < G_N_ELEMENTS (names) ? names[phase] : "unknown";
}

// SPDX-License-Identifier: Apache-2.0
/* The pause of a task between two steps, while the job has fewer tasks than it needs. */
#include "train/elastic/elastic_state_private.h"

#include "base/error.h"
#include "ready/member_private.h"

/* A pause ends for a run without a step at least that often: a save may be due, or the session
 * lost. */
#define LOOK_US MUSTER_SECOND

guint
muster_elastic_n_needed (const MusterElastic *self, const MusterRoster *roster)
{
  return MAX (self->options.min_tasks, roster->min_tasks);
}

gboolean
muster_elastic_has_few (const MusterElastic *self, const MusterRoster *roster)
{
  return !roster->is_over && !roster->is_gathering &&
         roster->n_tasks < muster_elastic_n_needed (self, roster);
}

char *
muster_elastic_few_text (const MusterElastic *self, const MusterRoster *roster)
{
  return muster_waiting_for_tasks (roster->n_tasks, muster_elastic_n_needed (self, roster));
}

char *
muster_elastic_why_paused (MusterElastic *self, guint64 *version)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  *version = self->roster->version;
  if (!self->is_lost && !self->is_changing && muster_elastic_has_few (self, self->roster))
    return muster_elastic_few_text (self, self->roster);
  self->paused_us = 0;
  return NULL;
}

/* Ends the training as a stop does, so that a chief saves before. */
static void
give_up (MusterElastic *self, MusterCoordinator *coordinator)
{
  g_autoptr (MusterRoster) roster = muster_elastic_copy_roster (self);
  g_autofree char *waited = muster_format_duration (self->options.timeout_us);

  g_clear_error (&self->gave_up);
  self->gave_up = g_error_new (
      MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED,
      "'%s' had %u of at least %u tasks for %s; start more tasks, or restart all with a "
      "smaller --min-tasks",
      self->options.model, roster->n_tasks, muster_elastic_n_needed (self, roster), waited);
  (void)muster_coordinator_request_stop (coordinator, NULL, NULL);
}

void
muster_elastic_pause (MusterElastic *self, guint64 version, MusterCoordinator *coordinator)
{
  if (self->paused_us == 0)
    self->paused_us = muster_elastic_now_us ();
  const gint64 until_us = muster_deadline_after (self->paused_us, self->options.timeout_us);

  if (muster_elastic_now_us () >= until_us)
    give_up (self, coordinator);
  else
    (void)muster_membership_wait (self->membership, version,
                                  MIN (muster_elastic_in_us (LOOK_US), until_us),
                                  muster_coordinator_cancellable (coordinator), NULL);
}

gboolean
muster_elastic_check_pause (MusterElastic *self, GError **error)
{
  if (self->gave_up == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&self->gave_up));
  return FALSE;
}

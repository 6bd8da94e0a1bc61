// SPDX-License-Identifier: Apache-2.0
/* A task of an elastic job: it ends a round when the roster says that the role or the slot
 * should change, and decides whether another follows. Roles are in elastic_role.c, the membership
 * in elastic_member.c, pauses in elastic_pause.c. */
#include "train/elastic/elastic_state_private.h"

#include "base/error.h"

/* Refused claims of a task that gets no session between them. */
#define MOST_REFUSALS 20
/* Of one that trains between them without a chief: no more count, so that it goes on. */
#define MOST_KEPT 9

static void
cancel_round (GCancellable *callers G_GNUC_UNUSED, gpointer cancellable)
{
  g_cancellable_cancel (cancellable);
}

static void
unlink_cancellable (MusterElastic *self)
{
  if (self->callers != NULL)
    g_cancellable_disconnect (self->callers, self->callers_id);
  g_clear_object (&self->callers);
  g_clear_object (&self->cancellable);
}

MusterElastic *
muster_elastic_new (const MusterElasticOptions *options)
{
  MusterElastic *self = g_new0 (MusterElastic, 1);
  self->options = *options;
  self->slots = muster_elastic_slots_new (self);
  g_mutex_init (&self->lock);
  return self;
}

void
muster_elastic_free (MusterElastic *self)
{
  if (self == NULL)
    return;
  muster_elastic_leave (&self->lent);
  muster_elastic_leave (&self->membership);
  unlink_cancellable (self);
  g_clear_error (&self->gave_up);
  g_free (self->said);
  g_free (self->refusal);
  g_clear_object (&self->coordinator);
  g_clear_object (&self->slots);
  g_clear_pointer (&self->roster, muster_roster_free);
  g_mutex_clear (&self->lock);
  g_free (self);
}

/* --- a round --- */

/* Returns what is to be cancelled without the lock (transfer full) (nullable). */
static GCancellable *
change_if_due (MusterElastic *self, MusterCoordinator **coordinator)
{
  *coordinator = NULL;
  if (!self->is_in_round || self->is_changing || !muster_elastic_should_change (self))
    return NULL;
  self->is_changing = TRUE;
  if (self->coordinator == NULL)
    return g_object_ref (self->cancellable);
  *coordinator = g_object_ref (self->coordinator);
  return NULL;
}

void
muster_elastic_end_round_if_due (MusterElastic *self)
{
  g_autoptr (MusterCoordinator) coordinator = NULL;
  g_mutex_lock (&self->lock);
  g_autoptr (GCancellable) cancellable = change_if_due (self, &coordinator);
  g_mutex_unlock (&self->lock);
  if (cancellable != NULL)
    g_cancellable_cancel (cancellable);
  if (coordinator != NULL)
    (void)muster_coordinator_request_stop (coordinator, NULL, NULL);
}

void
muster_elastic_begin_round (MusterElastic *self, MusterElasticRole role, GCancellable *cancellable)
{
  self->role = role;
  self->n_rounds++;
  g_clear_pointer (&self->said, g_free);
  g_clear_error (&self->gave_up);
  unlink_cancellable (self);
  self->cancellable = g_cancellable_new ();
  if (g_set_object (&self->callers, cancellable))
    self->callers_id = g_cancellable_connect (cancellable, G_CALLBACK (cancel_round),
                                              g_object_ref (self->cancellable), g_object_unref);
  g_mutex_lock (&self->lock);
  self->is_changing = FALSE;
  self->is_in_round = TRUE;
  g_mutex_unlock (&self->lock);
  muster_elastic_end_round_if_due (self); /* by now */
}

guint
muster_elastic_slot (MusterElastic *self)
{
  return muster_membership_slot (self->membership);
}

MusterPositionSlots *
muster_elastic_slots (MusterElastic *self)
{
  return self->slots;
}

GCancellable *
muster_elastic_cancellable (MusterElastic *self)
{
  return self->cancellable;
}

void
muster_elastic_set_session (MusterElastic *self, MusterCoordinator *coordinator)
{
  g_mutex_lock (&self->lock);
  g_set_object (&self->coordinator, coordinator);
  if (coordinator != NULL)
    self->n_refusals = self->is_leaderless ? MIN (self->n_refusals, MOST_KEPT) : 0;
  self->is_brief = self->is_brief && coordinator == NULL;
  g_mutex_unlock (&self->lock);
  muster_elastic_end_round_if_due (self);
}

gboolean
muster_elastic_check (MusterElastic *self, GError **error)
{
  g_autoptr (GError) failure = NULL;
  if (muster_membership_check (self->membership, &failure))
    return TRUE;
  g_mutex_lock (&self->lock);
  self->is_changing = TRUE;
  g_mutex_unlock (&self->lock);
  return muster_fail (error, MUSTER_ERROR_CANCELLED, "%s", failure->message);
}

gboolean
muster_elastic_may_step (MusterElastic *self, gboolean has_trained)
{
  if (has_trained)
    muster_membership_report (self->membership, ++self->n_batches);
  muster_elastic_end_round_if_due (self);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  return !self->is_changing;
}

/* Failures of a round that was to end anyway: the wait for the model was cancelled or is over, or
 * the session was lost at the same time. */
static gboolean
is_passing (const GError *failure)
{
  static const MusterError codes[] = {MUSTER_ERROR_CANCELLED, MUSTER_ERROR_DEADLINE_EXCEEDED,
                                      MUSTER_ERROR_ABORTED};
  for (gsize i = 0; i < G_N_ELEMENTS (codes); i++)
    if (muster_error_is (failure, codes[i]))
      return TRUE;
  return failure == NULL || muster_failure_of (failure) == MUSTER_FAILURE_UNREACHABLE ||
         g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

gboolean
muster_elastic_goes_on (MusterElastic *self, gboolean is_fenced, const GError *failure)
{
  g_mutex_lock (&self->lock);
  const gboolean is_changing =
      self->is_changing ||
      (self->is_brief && muster_error_is (failure, MUSTER_ERROR_DEADLINE_EXCEEDED));
  self->is_in_round = FALSE;
  g_clear_object (&self->coordinator);
  g_mutex_unlock (&self->lock);
  if (is_fenced) {
    self->n_refusals++;
    muster_elastic_note_fenced (self, failure);
  }
  return (is_fenced && self->n_refusals < MOST_REFUSALS) || (is_changing && is_passing (failure));
}

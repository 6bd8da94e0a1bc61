// SPDX-License-Identifier: Apache-2.0
/* The role of a task, from the roster. If there is no chief, the task in the lowest slot is the
 * next at once, each other one 250 ms after the one before it (docs/decisions/0027). */
#include "train/elastic/elastic_state_private.h"

#include "base/error.h"
#include "base/log_private.h"

/* A member waits so much longer than the one in the next lower slot before it claims the model: a
 * process that is stopped keeps its slot for a lease. */
#define STAGGER_US (250 * MUSTER_MILLISECOND)
/* A task that couldn't be the chief works on for so long before it tries again. */
#define LEADERLESS_US (2 * MUSTER_SECOND)
/* So often the pause after a refused claim is doubled: up to about a minute. */
#define MOST_DOUBLED 8
/* A coordinator that was restarted knows no chief until that one has claimed the model again, for
 * which it tries every two seconds; and one that hasn't had a chief leaves the first task so much
 * time to start. */
#define FORGOTTEN_US (10 * MUSTER_SECOND)
/* A chief whose own master is away leads for so much longer. */
#define MASTERLESS_US (10 * MUSTER_SECOND)

/* --- the roster, with the lock held --- */

guint
muster_elastic_rank (const MusterElastic *self)
{
  guint rank = 0;
  while (rank < self->roster->n_members &&
         self->roster->slots[rank] < muster_membership_slot (self->membership))
    rank++;
  return rank;
}

/* TRUE if the coordinator may have a chief that it doesn't know. */
static gboolean
may_be_forgotten (const MusterElastic *self)
{
  const gboolean is_first = muster_membership_slot (self->membership) == 0;
  return self->options.is_apart &&
         (self->roster->epoch < self->known_epoch || (self->roster->epoch == 0 && !is_first));
}

/* When this task becomes the chief unless another does. Tasks in lower slots that aren't back yet
 * count: one of them may be the chief. */
static gint64
due_us (const MusterElastic *self)
{
  if (self->no_chief_us == 0 || self->roster->is_over || self->options.never_leads)
    return MUSTER_WAIT_FOREVER;
  if (may_be_forgotten (self))
    return MAX (self->no_chief_us + FORGOTTEN_US + muster_elastic_rank (self) * STAGGER_US,
                self->not_before_us);
  const guint rank = self->roster->is_gathering ? muster_membership_slot (self->membership)
                                                : muster_elastic_rank (self);
  return MAX (self->no_chief_us + rank * STAGGER_US, self->not_before_us);
}

gboolean
muster_elastic_should_change (const MusterElastic *self)
{
  if (self->is_lost)
    return TRUE;
  if (self->role != MUSTER_ELASTIC_WORKER || self->no_chief_us == 0 || self->roster->is_over ||
      self->options.never_leads)
    return FALSE;
  return (self->coordinator == NULL && !self->is_leaderless) ||
         muster_elastic_now_us () >= due_us (self);
}

/* --- the role --- */

typedef enum { DECIDED, TOO_FEW, NO_CHIEF } Situation;

/* NO_CHIEF: this task becomes it at *wake_us, unless another does. TOO_FEW: the task has still to
 * start; one that has started takes the role, and waits between two steps. One whose claims were
 * refused though no task leads can't be the chief: its directory may lack the model's checkpoints.
 */
static Situation
look (MusterElastic *self, const MusterRoster *roster, MusterElasticRole *role, gint64 *wake_us)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  *wake_us = MUSTER_WAIT_FOREVER;
  *role = MUSTER_ELASTIC_LOST;
  if (self->is_lost)
    return DECIDED;
  *role = roster->is_over && self->n_rounds > 0 ? MUSTER_ELASTIC_OVER : MUSTER_ELASTIC_WORKER;
  if (roster->is_over || roster->has_chief)
    return DECIDED;
  if (self->n_rounds == 0 && muster_elastic_has_few (self, roster))
    return TOO_FEW;
  if (self->options.never_leads)
    return DECIDED;
  *wake_us = due_us (self);
  const gboolean is_due = muster_elastic_now_us () >= *wake_us;
  self->is_leaderless |= self->n_refusals > 1 && !is_due;
  if (self->is_leaderless && !is_due)
    return DECIDED; /* it works on until then */
  *role = MUSTER_ELASTIC_CHIEF;
  return is_due ? DECIDED : NO_CHIEF;
}

void
muster_elastic_note_may_lead (MusterElastic *self, const GError *failure)
{
  if (failure != NULL)
    muster_elastic_say_waiting (self, failure->message);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  self->is_leaderless = failure != NULL;
  if (failure != NULL)
    self->not_before_us = muster_elastic_in_us (LEADERLESS_US);
}

gboolean
muster_elastic_is_leader_due (MusterElastic *self)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  return self->is_leaderless && !self->is_lost && muster_elastic_now_us () >= due_us (self);
}

static gboolean
wait_for_change (MusterElastic *self, const MusterRoster *roster, gint64 wake_us,
                 gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  g_autoptr (GError) failure = NULL;
  if (muster_membership_wait (self->membership, roster->version, MIN (wake_us, deadline_us),
                              cancellable, &failure) ||
      (muster_error_is (failure, MUSTER_ERROR_DEADLINE_EXCEEDED) &&
       muster_elastic_now_us () < deadline_us) ||
      muster_error_is (failure, MUSTER_ERROR_FAILED_PRECONDITION))
    return TRUE;
  if (muster_error_is (failure, MUSTER_ERROR_DEADLINE_EXCEEDED) && self->said != NULL)
    return muster_elastic_time_out (self, error);
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

static void
say_too_few (MusterElastic *self, const MusterRoster *roster)
{
  g_autofree char *text = muster_elastic_few_text (self, roster);
  muster_elastic_say_waiting (self, text);
}

static void
say_no_chief (MusterElastic *self)
{
  g_autofree char *text = g_strdup_printf (
      "no chief, so no checkpoints are written; start it again, or this task with its checkpoint "
      "directory: %s",
      self->refusal);
  muster_elastic_say_waiting (self, text);
}

gboolean
muster_elastic_find_role (MusterElastic *self, gint64 deadline_us, GCancellable *cancellable,
                          MusterElasticRole *role, GError **error)
{
  for (;;) {
    gint64 wake_us;
    g_autoptr (MusterRoster) roster = muster_elastic_copy_roster (self);
    const Situation situation = look (self, roster, role, &wake_us);
    if (situation == DECIDED && *role == MUSTER_ELASTIC_LOST)
      muster_elastic_leave (&self->membership);
    if (situation == DECIDED && *role == MUSTER_ELASTIC_WORKER && self->n_refusals > 1 &&
        !roster->has_chief)
      say_no_chief (self);
    if (situation == DECIDED)
      return TRUE;
    if (situation == TOO_FEW)
      say_too_few (self, roster);
    if (!wait_for_change (self, roster, wake_us, deadline_us, cancellable, error))
      return FALSE;
  }
}

gint64
muster_elastic_leads_until (MusterElastic *self)
{
  return self->role == MUSTER_ELASTIC_CHIEF && self->options.is_apart
             ? muster_elastic_in_us (MASTERLESS_US)
             : MUSTER_WAIT_FOREVER;
}

void
muster_elastic_give_way (MusterElastic *self)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  self->is_changing = TRUE;
}

gboolean
muster_elastic_is_takeover (MusterElastic *self)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  return self->role == MUSTER_ELASTIC_CHIEF && self->roster->epoch > 0;
}

gboolean
muster_elastic_has_worked (MusterElastic *self)
{
  return self->n_rounds > 1;
}

gint64
muster_elastic_timeout (MusterElastic *self, gint64 timeout_us)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  self->is_brief = self->role == MUSTER_ELASTIC_WORKER && self->is_leaderless;
  if (!self->is_brief)
    return timeout_us;
  return timeout_us > 0 ? MIN (timeout_us, LEADERLESS_US) : LEADERLESS_US;
}

void
muster_elastic_note_fenced (MusterElastic *self, const GError *failure)
{
  const guint n_doubled = MIN (MAX (self->n_refusals, 1) - 1, MOST_DOUBLED);
  g_free (self->refusal);
  self->refusal = g_strdup (failure != NULL ? failure->message : "");
  muster_log (G_LOG_LEVEL_INFO, "role", "MUSTER_MODEL", self->options.model, "MESSAGE",
              "another task is the chief of '%s': %s", self->options.model, self->refusal);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  self->not_before_us = muster_elastic_in_us (STAGGER_US << n_doubled);
}

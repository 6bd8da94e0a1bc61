// SPDX-License-Identifier: Apache-2.0
/* A task's membership: joins, notes each roster, and says what it waits for. */
#include "train/elastic/elastic_state_private.h"

#include "base/error.h"
#include "ready/situation_private.h"

/* A task for which there is no slot asks again after this. */
#define ASK_AGAIN_US MUSTER_SECOND
#define JOIN_US      (30 * MUSTER_SECOND)
#define LEAVE_US     (2 * MUSTER_SECOND)

MusterJoin
muster_elastic_request (const MusterElastic *self)
{
  return (MusterJoin){.model = self->options.model,
                      .task = self->options.task,
                      .slot = self->options.slot,
                      .n_slots = self->options.n_slots,
                      .min_tasks = self->options.min_tasks};
}

void
muster_elastic_leave (MusterMembership **membership)
{
  g_autoptr (MusterMembership) left = g_steal_pointer (membership);
  if (left == NULL)
    return;
  muster_membership_set_listener (left, NULL, NULL, NULL);
  (void)muster_membership_leave (left, muster_elastic_in_us (LEAVE_US), NULL, NULL);
}

/* --- changes of the roster --- */

/* On a thread of the client's. */
static void
on_changed (MusterMembership *membership, gpointer data)
{
  MusterElastic *self = data;
  g_mutex_lock (&self->lock);
  g_clear_pointer (&self->roster, muster_roster_free);
  self->roster =
      muster_membership_roster (membership); /* the latest, whichever thread comes last */
  self->is_lost = !muster_membership_check (membership, NULL);
  self->known_epoch =
      self->roster->has_chief ? self->roster->epoch : MAX (self->known_epoch, self->roster->epoch);
  if (self->roster->has_chief) {
    self->no_chief_us = 0;
    self->is_leaderless = FALSE;
  } else if (self->no_chief_us == 0) {
    self->no_chief_us = muster_elastic_now_us ();
  }
  g_mutex_unlock (&self->lock);
  muster_elastic_end_round_if_due (self);
}

MusterRoster *
muster_elastic_copy_roster (MusterElastic *self)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  return muster_roster_copy (self->roster);
}

/* --- a member --- */

/* FALSE if the job doesn't wait for tasks: then no more is known than that the master answers. */
static gboolean
fill_readiness (MusterElastic *self, MusterReadiness *readiness)
{
  if (self->membership == NULL)
    return FALSE;
  g_autoptr (MusterRoster) roster = muster_elastic_copy_roster (self);
  if (!muster_elastic_has_few (self, roster))
    return FALSE;
  readiness->keeps_announcements = TRUE;
  readiness->n_tasks = roster->n_tasks;
  readiness->min_tasks = muster_elastic_n_needed (self, roster);
  return TRUE;
}

GPtrArray *
muster_elastic_reasons (MusterElastic *self)
{
  MusterReadiness readiness = {0};
  const MusterSituation situation = {
      .version = 1, .target = muster_master_target (self->options.master), .readiness = &readiness};
  g_autoptr (MusterReasons) reasons = muster_reasons_new (NULL);
  if (!self->has_answered)
    return NULL;
  const gboolean has_few = fill_readiness (self, &readiness);
  muster_reasons_update (reasons, &situation);
  GPtrArray *known = muster_reasons_copy (reasons);
  if (!has_few)
    g_ptr_array_set_size (known, 1); /* the server */
  return known;
}

gboolean
muster_elastic_time_out (const MusterElastic *self, GError **error)
{
  const char *colon = g_str_has_prefix (self->said, "waiting ") ? "" : ":";
  return muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED, "timed out%s %s", colon, self->said);
}

void
muster_elastic_say_waiting (MusterElastic *self, const char *message)
{
  const MusterReadiness nothing = {0};
  if (g_strcmp0 (message, self->said) == 0)
    return;
  g_free (self->said);
  self->said = g_strdup (message);
  g_autoptr (GPtrArray) known = muster_elastic_reasons (self);
  g_autoptr (GPtrArray) reasons = known != NULL ? g_steal_pointer (&known) : g_ptr_array_new ();
  if (self->options.waiting != NULL)
    self->options.waiting (message, &nothing, reasons, self->options.waiting_data);
}

static void
wait_until (gint64 wake_us, gint64 deadline_us, GCancellable *cancellable)
{
  (void)muster_clock_wait_until (muster_system_clock (), MIN (wake_us, deadline_us), cancellable,
                                 NULL);
}

static gboolean
is_crowded (MusterElastic *self)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  return self->options.max_tasks > 0 && self->roster->n_tasks > self->options.max_tasks &&
         muster_elastic_rank (self) >= self->options.max_tasks;
}

static gboolean
is_no_answer (const GError *failure)
{
  return muster_error_is (failure, MUSTER_ERROR_UNAVAILABLE) ||
         muster_error_is (failure, MUSTER_ERROR_DEADLINE_EXCEEDED);
}

/* A slot of its own may be held by the task's earlier process for a lease. */
static gboolean
may_join_later (const MusterElastic *self, const GError *failure)
{
  return !self->has_answered || muster_error_is (failure, MUSTER_ERROR_RESOURCE_EXHAUSTED) ||
         (self->options.slot >= 0 && muster_error_is (failure, MUSTER_ERROR_FAILED_PRECONDITION));
}

/* FALSE if it may join later, or with an error. */
static gboolean
try_to_join (MusterElastic *self, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  const MusterJoin task = muster_elastic_request (self);
  g_autoptr (GError) failure = NULL;
  self->membership =
      muster_master_join (self->options.master, &task,
                          MIN (muster_elastic_in_us (JOIN_US), deadline_us), cancellable, &failure);
  self->has_answered = !is_no_answer (failure);
  if (self->membership == NULL && !may_join_later (self, failure)) {
    g_propagate_error (error, g_steal_pointer (&failure));
    return FALSE;
  }
  if (self->membership == NULL) {
    muster_elastic_say_waiting (self, failure->message);
    return FALSE;
  }
  g_mutex_lock (&self->lock);
  self->no_chief_us = 0;
  g_mutex_unlock (&self->lock);
  muster_membership_set_listener (self->membership, on_changed, self, NULL);
  on_changed (self->membership, self);
  if (!is_crowded (self))
    return TRUE;
  muster_elastic_leave (&self->membership);
  g_autofree char *full =
      g_strdup_printf ("waiting for a place: the job takes at most %u task%s",
                       self->options.max_tasks, self->options.max_tasks == 1 ? "" : "s");
  muster_elastic_say_waiting (self, full);
  return FALSE;
}

gboolean
muster_elastic_join (MusterElastic *self, gint64 deadline_us, GCancellable *cancellable,
                     GError **error)
{
  while (self->membership == NULL && !try_to_join (self, deadline_us, cancellable, error)) {
    if (*error != NULL)
      return FALSE;
    wait_until (muster_elastic_in_us (ASK_AGAIN_US), deadline_us, cancellable);
    if (g_cancellable_set_error_if_cancelled (cancellable, error))
      return FALSE;
    if (muster_elastic_now_us () >= deadline_us)
      return muster_elastic_time_out (self, error);
  }
  return TRUE;
}

// SPDX-License-Identifier: Apache-2.0
#include "train/elastic/elastic.h"

#include "base/error.h"
#include "base/log.h"
#include "train/position/position_private.h"

#include <string.h>

/* A member waits so much longer than the one in the next lower slot before it claims the model: a
 * process that is stopped keeps its slot for a lease. */
#define STAGGER_US (250 * MUSTER_MILLISECOND)
/* A task that couldn't be the chief works on for so long before it tries again. */
#define LEADERLESS_US (2 * MUSTER_SECOND)
/* A task for which there is no slot asks again after this. */
#define ASK_AGAIN_US MUSTER_SECOND
#define JOIN_US      (30 * MUSTER_SECOND)
#define LEAVE_US     (2 * MUSTER_SECOND)
/* Refused claims in a row while no chief is alive. */
#define MOST_REFUSALS 20
/* How long a task whose step was refused waits to hear that it isn't a member any more. */
#define HEAR_US MUSTER_SECOND

struct _MusterElastic {
  MusterElasticOptions options;
  MusterPositionSlots slots;
  MusterMembership *membership; /* (owned) (nullable) while it is a member */
  MusterMembership *lent;       /* (owned) (nullable) in another's slot */
  MusterElasticRole role;
  guint n_rounds;
  guint n_refusals;      /* of claims, in a row */
  guint n_refused_steps; /* in a row */
  gint64 n_batches;
  GCancellable *cancellable; /* (owned) (nullable) of the round */
  GCancellable *callers;     /* (owned) (nullable) what cancels it, too */
  gulong callers_id;

  GMutex lock;            /* guards what follows */
  MusterRoster *roster;   /* (owned) (nullable) the last one heard */
  gboolean is_lost;       /* the membership */
  gint64 no_chief_us;     /* since when there is none; 0: there is one */
  gint64 not_before_us;   /* when this task may claim the model again */
  gboolean is_leaderless; /* this task works on, since it can't be the chief now */
  gboolean is_in_round;
  gboolean is_changing;           /* the round ends for another role */
  MusterCoordinator *coordinator; /* (owned) (nullable) the round's, while it has a session */
};

static gint64
now_us (void)
{
  return muster_clock_now_us (muster_system_clock ());
}

static gint64
in_us (gint64 timeout_us)
{
  return muster_deadline_after (now_us (), timeout_us);
}

/* --- the roster, with the lock held --- */

/* How many members are in lower slots. */
static guint
rank_of (const MusterElastic *self)
{
  guint rank = 0;

  while (rank < self->roster->n_members &&
         self->roster->slots[rank] < muster_membership_slot (self->membership))
    rank++;
  return rank;
}

/* When this task becomes the chief unless another does. */
static gint64
due_us (const MusterElastic *self)
{
  if (self->no_chief_us == 0 || self->roster->is_over)
    return MUSTER_WAIT_FOREVER;
  return MAX (self->no_chief_us + rank_of (self) * STAGGER_US, self->not_before_us);
}

/* Whether the round of a worker ends, for its membership or its role. While it waits for the model
 * no chief prepares it: the wait has no other end. */
static gboolean
should_change (const MusterElastic *self)
{
  if (self->is_lost)
    return TRUE;
  if (self->role != MUSTER_ELASTIC_WORKER || self->no_chief_us == 0 || self->roster->is_over)
    return FALSE;
  return (self->coordinator == NULL && !self->is_leaderless) || now_us () >= due_us (self);
}

/* Returns what is to be cancelled without the lock (transfer full) (nullable). */
static GCancellable *
change_if_due (MusterElastic *self, MusterCoordinator **coordinator)
{
  *coordinator = NULL;
  if (!self->is_in_round || self->is_changing || !should_change (self))
    return NULL;
  self->is_changing = TRUE;
  if (self->coordinator == NULL)
    return g_object_ref (self->cancellable);
  *coordinator = g_object_ref (self->coordinator);
  return NULL;
}

/* Ends the round if its time has come: between two steps, or in a wait for the model. */
static void
end_round_if_due (MusterElastic *self)
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

/* --- hearing of changes --- */

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
  if (self->roster->has_chief) {
    self->no_chief_us = 0;
    self->is_leaderless = FALSE;
  } else if (self->no_chief_us == 0) {
    self->no_chief_us = now_us ();
  }
  g_mutex_unlock (&self->lock);
  end_round_if_due (self);
}

static MusterRoster *
copy_roster (MusterElastic *self)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  return muster_roster_copy (self->roster);
}

/* --- the slots of the job --- */

static guint64
slots_version (gpointer data)
{
  MusterElastic *self = data;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  return self->roster->version;
}

static gboolean
slots_has_task (guint slot, gpointer data)
{
  MusterElastic *self = data;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  return muster_roster_has (self->roster, slot);
}

static MusterMembership *
join_slot (MusterElastic *self, gint slot, gint64 deadline_us, GCancellable *cancellable,
           GError **error)
{
  const MusterJoin join = {.model = self->options.model,
                           .task = self->options.task,
                           .slot = slot,
                           .n_slots = self->options.n_slots};

  return muster_master_join (self->options.master, &join, deadline_us, cancellable, error);
}

/* Whoever leaves without an answer is missed by the server soon. */
static void
leave (MusterMembership **membership)
{
  g_autoptr (MusterMembership) left = g_steal_pointer (membership);

  if (left == NULL)
    return;
  muster_membership_set_listener (left, NULL, NULL, NULL);
  (void)muster_membership_leave (left, in_us (LEAVE_US), NULL, NULL);
}

static gboolean
slots_claim (guint slot, gint64 deadline_us, GCancellable *cancellable, gpointer data,
             GError **error)
{
  MusterElastic *self = data;

  leave (&self->lent);
  self->lent = join_slot (self, (gint)slot, deadline_us, cancellable, error);
  return self->lent != NULL;
}

static void
slots_release (guint slot G_GNUC_UNUSED, gpointer data)
{
  leave (&((MusterElastic *)data)->lent);
}

/* --- a member --- */

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
  self->slots = (MusterPositionSlots){.version = slots_version,
                                      .has_task = slots_has_task,
                                      .claim = slots_claim,
                                      .release = slots_release,
                                      .user_data = self};
  g_mutex_init (&self->lock);
  return self;
}

void
muster_elastic_free (MusterElastic *self)
{
  if (self == NULL)
    return;
  leave (&self->lent);
  leave (&self->membership);
  unlink_cancellable (self);
  g_clear_object (&self->coordinator);
  g_clear_pointer (&self->roster, muster_roster_free);
  g_mutex_clear (&self->lock);
  g_free (self);
}

static void
say_waiting (MusterElastic *self, const char *message)
{
  const MusterReadiness nothing = {0};
  g_autoptr (GPtrArray) reasons = g_ptr_array_new ();

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
  return self->options.max_tasks > 0 && rank_of (self) >= self->options.max_tasks;
}

/* FALSE if there is no place for this task, or with an error. */
static gboolean
join (MusterElastic *self, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  g_autoptr (GError) failure = NULL;

  self->membership =
      join_slot (self, -1, MIN (in_us (JOIN_US), deadline_us), cancellable, &failure);
  if (self->membership == NULL && !muster_error_is (failure, MUSTER_ERROR_RESOURCE_EXHAUSTED) &&
      !muster_error_is (failure, MUSTER_ERROR_UNAVAILABLE)) {
    g_propagate_error (error, g_steal_pointer (&failure));
    return FALSE;
  }
  if (self->membership == NULL) {
    say_waiting (self, failure->message);
    return FALSE;
  }
  g_mutex_lock (&self->lock);
  self->no_chief_us = 0;
  g_mutex_unlock (&self->lock);
  muster_membership_set_listener (self->membership, on_changed, self, NULL);
  on_changed (self->membership, self);
  if (!is_crowded (self))
    return TRUE;
  leave (&self->membership);
  g_autofree char *full =
      g_strdup_printf ("waiting for a place: the job takes at most %u task%s",
                       self->options.max_tasks, self->options.max_tasks == 1 ? "" : "s");
  say_waiting (self, full);
  return FALSE;
}

static gboolean
ensure_member (MusterElastic *self, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  while (self->membership == NULL && !join (self, deadline_us, cancellable, error)) {
    if (*error != NULL)
      return FALSE;
    wait_until (in_us (ASK_AGAIN_US), deadline_us, cancellable);
    if (g_cancellable_set_error_if_cancelled (cancellable, error))
      return FALSE;
    if (now_us () >= deadline_us)
      return muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED,
                          "'%s' had no place for this task in time", self->options.model);
  }
  return TRUE;
}

/* --- the role --- */

static void
begin_round (MusterElastic *self, MusterElasticRole role, GCancellable *cancellable)
{
  self->role = role;
  self->n_rounds++;
  unlink_cancellable (self);
  self->cancellable = g_cancellable_new ();
  if (g_set_object (&self->callers, cancellable))
    self->callers_id = g_cancellable_connect (cancellable, G_CALLBACK (cancel_round),
                                              g_object_ref (self->cancellable), g_object_unref);
  g_mutex_lock (&self->lock);
  self->is_changing = FALSE;
  self->is_in_round = TRUE;
  g_mutex_unlock (&self->lock);
  end_round_if_due (self); /* by now */
}

typedef enum { DECIDED, TOO_FEW, NO_CHIEF, LOST } Situation;

/* NO_CHIEF: this task becomes it at *wake_us, unless another does. */
static Situation
look (MusterElastic *self, const MusterRoster *roster, MusterElasticRole *role, gint64 *wake_us)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);

  *wake_us = MUSTER_WAIT_FOREVER;
  if (self->is_lost)
    return LOST;
  *role = roster->is_over && self->n_rounds > 0 ? MUSTER_ELASTIC_OVER : MUSTER_ELASTIC_WORKER;
  if (roster->is_over || roster->has_chief)
    return DECIDED;
  if (roster->n_members < self->options.min_tasks)
    return TOO_FEW;
  *role = MUSTER_ELASTIC_CHIEF;
  *wake_us = due_us (self);
  return now_us () >= *wake_us ? DECIDED : NO_CHIEF;
}

/* Where the checkpoints are locked by a chief that sleeps, the next one could do nothing. */
static gboolean
may_lead (MusterElastic *self)
{
  g_autoptr (GError) failure = NULL;
  const gboolean may =
      self->options.may_lead == NULL || self->options.may_lead (self->options.user_data, &failure);

  if (!may)
    say_waiting (self, failure->message);
  g_mutex_lock (&self->lock);
  self->is_leaderless = !may;
  if (!may)
    self->not_before_us = in_us (LEADERLESS_US);
  g_mutex_unlock (&self->lock);
  return may;
}

static gboolean
wait_for_change (MusterElastic *self, const MusterRoster *roster, gint64 wake_us,
                 gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  g_autoptr (GError) failure = NULL;

  if (muster_membership_wait (self->membership, roster->version, MIN (wake_us, deadline_us),
                              cancellable, &failure) ||
      (muster_error_is (failure, MUSTER_ERROR_DEADLINE_EXCEEDED) && now_us () < deadline_us) ||
      muster_error_is (failure, MUSTER_ERROR_FAILED_PRECONDITION))
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

static void
say_too_few (MusterElastic *self, const MusterRoster *roster)
{
  g_autofree char *text =
      g_strdup_printf ("waiting for tasks: %" G_GSIZE_FORMAT " of at least %u are here",
                       roster->n_members, self->options.min_tasks);
  say_waiting (self, text);
}

static gboolean
find_role (MusterElastic *self, gint64 deadline_us, GCancellable *cancellable,
           MusterElasticRole *role, GError **error)
{
  for (;;) {
    gint64 wake_us;
    if (!ensure_member (self, deadline_us, cancellable, error))
      return FALSE;
    g_autoptr (MusterRoster) roster = copy_roster (self);
    const Situation situation = look (self, roster, role, &wake_us);
    if (situation == DECIDED && *role == MUSTER_ELASTIC_CHIEF && !may_lead (self))
      *role = MUSTER_ELASTIC_WORKER;
    if (situation == DECIDED)
      return TRUE;
    if (situation == LOST)
      leave (&self->membership);
    if (situation == TOO_FEW)
      say_too_few (self, roster);
    if (situation != LOST &&
        !wait_for_change (self, roster, wake_us, deadline_us, cancellable, error))
      return FALSE;
  }
}

gboolean
muster_elastic_next (MusterElastic *self, gint64 timeout_us, GCancellable *cancellable,
                     MusterElasticRole *role, GError **error)
{
  GError *failure = NULL;

  if (!find_role (self, in_us (timeout_us), cancellable, role, &failure)) {
    g_propagate_error (error, failure);
    return FALSE;
  }
  if (*role != MUSTER_ELASTIC_OVER)
    begin_round (self, *role, cancellable);
  return TRUE;
}

/* --- a round --- */

guint
muster_elastic_slot (MusterElastic *self)
{
  return muster_membership_slot (self->membership);
}

const MusterPositionSlots *
muster_elastic_slots (MusterElastic *self)
{
  return &self->slots;
}

gboolean
muster_elastic_is_takeover (MusterElastic *self)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);

  return self->role == MUSTER_ELASTIC_CHIEF && self->roster->epoch > 0;
}

gint64
muster_elastic_timeout (MusterElastic *self, gint64 timeout_us)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);

  if (self->role != MUSTER_ELASTIC_WORKER || !self->is_leaderless)
    return timeout_us;
  return timeout_us > 0 ? MIN (timeout_us, LEADERLESS_US) : LEADERLESS_US;
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
  g_mutex_unlock (&self->lock);
  end_round_if_due (self);
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
  if (has_trained) {
    self->n_refused_steps = 0;
    muster_membership_report (self->membership, ++self->n_batches);
  }
  end_round_if_due (self);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  return !self->is_changing;
}

void
muster_elastic_judge (MusterElastic *self, GError **failure)
{
  if (!muster_error_is (*failure, MUSTER_ERROR_INVALID_ARGUMENT) ||
      strstr ((*failure)->message, MUSTER_POSITION_REFUSED) == NULL ||
      ++self->n_refused_steps > MOST_REFUSALS)
    return;
  g_autoptr (MusterRoster) roster = copy_roster (self);
  (void)muster_membership_wait (self->membership, roster->version, in_us (HEAR_US),
                                self->cancellable, NULL);
  g_mutex_lock (&self->lock);
  self->is_changing = TRUE;
  g_mutex_unlock (&self->lock);
  (*failure)->code = MUSTER_ERROR_CANCELLED;
}

static void
note_fenced (MusterElastic *self, const GError *failure)
{
  self->n_refusals++;
  muster_log (G_LOG_LEVEL_INFO, "role", "MUSTER_MODEL", self->options.model, "MESSAGE",
              "another task is the chief of '%s': %s", self->options.model,
              failure != NULL ? failure->message : "");
  g_mutex_lock (&self->lock);
  self->not_before_us = in_us (STAGGER_US);
  g_mutex_unlock (&self->lock);
}

/* Failures of a round that was to end anyway: the wait for the model was cancelled or is over, or
 * the session was lost at the same time. */
static gboolean
is_passing (const GError *failure)
{
  static const MusterError codes[] = {MUSTER_ERROR_CANCELLED, MUSTER_ERROR_DEADLINE_EXCEEDED,
                                      MUSTER_ERROR_ABORTED, MUSTER_ERROR_UNAVAILABLE};

  for (gsize i = 0; i < G_N_ELEMENTS (codes); i++)
    if (muster_error_is (failure, codes[i]))
      return TRUE;
  return failure == NULL || g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

gboolean
muster_elastic_goes_on (MusterElastic *self, gboolean is_fenced, const GError *failure)
{
  g_mutex_lock (&self->lock);
  const gboolean is_changing =
      self->is_changing ||
      (self->is_leaderless && muster_error_is (failure, MUSTER_ERROR_DEADLINE_EXCEEDED));
  self->is_in_round = FALSE;
  g_clear_object (&self->coordinator);
  g_mutex_unlock (&self->lock);
  if (is_fenced)
    note_fenced (self, failure);
  else
    self->n_refusals = 0;
  return (is_fenced && self->n_refusals < MOST_REFUSALS) || (is_changing && is_passing (failure));
}

// SPDX-License-Identifier: Apache-2.0
/* The lease of a chief whose master has a coordinator. The coordinator's decides who is chief, and
 * what is announced there is repeated until it is heard, so that training doesn't depend on the
 * coordinator. The master's own lease, if it keeps any, follows: it ends the steps of a chief that
 * was replaced, and reports that the master is about to stop, as the coordinator's does when the
 * job is to be drained. */
#include "base/log_bounded_private.h"
#include "master/coordinated_private.h"
#include "master/lease.h"
#include "master/remote/remote_private.h"

/* The same as MUSTER_COORDINATOR_LIMIT_US, of what a process says last … */
#define LAST_LIMIT_US (30 * MUSTER_SECOND)
/* … and how often it says that the model is prepared, or the job over. */
#define REPEAT_US (200 * MUSTER_MILLISECOND)

#define MUSTER_TYPE_COORDINATED_LEASE (muster_coordinated_lease_get_type ())
G_DECLARE_FINAL_TYPE (MusterCoordinatedLease, muster_coordinated_lease, MUSTER, COORDINATED_LEASE,
                      MusterLease)

struct _MusterCoordinatedLease {
  MusterLease parent;
  MusterLease *first; /* (owned) the coordinator's */
  MusterLease *own;   /* (owned) (nullable) the master's */
  char *coordinator;  /* (owned) its address */
  gint is_away;       /* atomic: the coordinator didn't answer */
};

G_DEFINE_FINAL_TYPE (MusterCoordinatedLease, muster_coordinated_lease, MUSTER_TYPE_LEASE)

static void
note_coordinator (MusterCoordinatedLease *self, const GError *failure)
{
  const gboolean is_away = failure != NULL;
  if (g_atomic_int_exchange (&self->is_away, is_away) == is_away)
    return;
  if (is_away)
    muster_log_at_most (0, G_LOG_LEVEL_WARNING, "coordinator-away", "MUSTER_MODEL",
                        muster_lease_model (self->first), "MESSAGE",
                        "the coordinator '%s' doesn't answer; training continues, and it is "
                        "updated when it is back: %s",
                        self->coordinator, failure->message);
  else
    muster_log_at_most (0, G_LOG_LEVEL_INFO, "coordinator-back", "MUSTER_MODEL",
                        muster_lease_model (self->first), "MESSAGE",
                        "the coordinator '%s' answers again", self->coordinator);
}

static gboolean
is_refusal (const GError *error)
{
  return muster_error_is (error, MUSTER_ERROR_FAILED_PRECONDITION) ||
         muster_error_is (error, MUSTER_ERROR_OUT_OF_RANGE);
}

/* What a process says before it ends: nobody says it later. */
static gboolean
is_last (const MusterAnnouncement *announcement)
{
  return announcement->phase == MUSTER_CHIEF_OVER || announcement->phase == MUSTER_CHIEF_PREPARED ||
         announcement->failed || announcement->ended != NULL;
}

/* A part of the time is the own master's. */
static gint64
until_us_of (const MusterCoordinatedLease *self, const MusterAnnouncement *announcement,
             gint64 deadline_us)
{
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  const gint64 limit_us = is_last (announcement) ? LAST_LIMIT_US : MUSTER_COORDINATOR_LIMIT_US;
  const gint64 left_us = muster_deadline_remaining (deadline_us, now_us);
  return muster_deadline_after (now_us,
                                MIN (limit_us, self->own != NULL ? left_us / 4 * 3 : left_us));
}

static gboolean
is_unanswered (const GError *failure)
{
  return muster_error_is (failure, MUSTER_ERROR_UNAVAILABLE) ||
         muster_error_is (failure, MUSTER_ERROR_CANCELLED) || /* it stops */
         muster_error_is (failure, MUSTER_ERROR_DEADLINE_EXCEEDED);
}

/* What decides whether others wait or train is repeated: the coordinator may be restarting. */
static gboolean
may_repeat (const MusterAnnouncement *announcement, const GError *failure, gint64 until_us,
            GCancellable *cancellable)
{
  MusterClock *clock = muster_system_clock ();
  const gint64 next_us = muster_deadline_after (muster_clock_now_us (clock), REPEAT_US);
  return (announcement->phase == MUSTER_CHIEF_OVER ||
          announcement->phase == MUSTER_CHIEF_PREPARED) &&
         is_unanswered (failure) && next_us < until_us &&
         muster_clock_wait_until (clock, next_us, cancellable, NULL);
}

static gboolean
tell_first (MusterCoordinatedLease *self, const MusterAnnouncement *announcement, gint64 until_us,
            GCancellable *cancellable, GError **error)
{
  for (;;) {
    g_autoptr (GError) failure = NULL;
    if (muster_lease_announce (self->first, announcement, until_us, cancellable, &failure)) {
      note_coordinator (self, NULL);
      return TRUE;
    }
    if (!is_refusal (failure) && !muster_error_is (failure, MUSTER_ERROR_INVALID_ARGUMENT))
      note_coordinator (self, failure);
    if (!may_repeat (announcement, failure, until_us, cancellable)) {
      g_propagate_error (error, g_steal_pointer (&failure));
      return FALSE;
    }
  }
}

/* While the coordinator is away, nobody waits for it: the lease's renewals try. */
static gboolean
announce_first (MusterCoordinatedLease *self, const MusterAnnouncement *announcement,
                gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  const gint64 until_us = until_us_of (self, announcement, deadline_us);
  g_autoptr (GError) failure = NULL;
  if (g_atomic_int_get (&self->is_away) && !is_last (announcement) &&
      !muster_remote_lease_is_heard (self->first)) {
    muster_remote_lease_post (self->first, announcement);
    return muster_lease_check (self->first, error);
  }
  if (tell_first (self, announcement, until_us, cancellable, &failure))
    return TRUE;
  if (is_refusal (failure) || muster_error_is (failure, MUSTER_ERROR_INVALID_ARGUMENT)) {
    g_propagate_error (error, g_steal_pointer (&failure));
    return FALSE;
  }
  muster_remote_lease_post (self->first, announcement);
  return TRUE;
}

static gboolean
coordinated_announce (MusterLease *lease, const MusterAnnouncement *announcement,
                      gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  MusterCoordinatedLease *self = MUSTER_COORDINATED_LEASE (lease);
  return announce_first (self, announcement, deadline_us, cancellable, error) &&
         (self->own == NULL ||
          muster_lease_announce (self->own, announcement, deadline_us, cancellable, error));
}

static gboolean
coordinated_check (MusterLease *lease, GError **error)
{
  MusterCoordinatedLease *self = MUSTER_COORDINATED_LEASE (lease);
  return muster_lease_check (self->first, error) &&
         (self->own == NULL || muster_lease_check (self->own, error));
}

static gboolean
coordinated_is_draining (MusterLease *lease, gint64 *until_us)
{
  MusterCoordinatedLease *self = MUSTER_COORDINATED_LEASE (lease);
  gint64 first_us = 0, own_us = 0;
  const gboolean is_first = muster_lease_is_draining (self->first, &first_us);
  const gboolean is_own = self->own != NULL && muster_lease_is_draining (self->own, &own_us);
  *until_us = MAX (first_us, own_us);
  return is_first || is_own;
}

/* Tells whether the master's registry is the coordinator's: a gateway has several addresses. */
static gboolean
is_same_registry (MusterCoordinatedLease *self, const MusterRemoteClaimant *own, const char *model,
                  gint64 deadline_us, GCancellable *cancellable)
{
  g_auto (MusterReadiness) now = {0};
  const MusterWatchFor what = {.model = model};
  g_autofree char *who = muster_remote_who ();
  g_autoptr (MusterWatch) watch =
      muster_remote_watch_new (own->client, NULL, own->session_handle, &what, deadline_us, NULL);
  return watch != NULL && muster_watch_next (watch, &now, cancellable, NULL) && now.chief != NULL &&
         now.chief->alive && now.chief->epoch == muster_lease_epoch (self->first) &&
         g_strcmp0 (now.chief->who, who) == 0;
}

/* Claims at the master, whose rules don't count where the coordinator has granted the model. */
static gboolean
claim_own (MusterCoordinatedLease *self, const MusterRemoteClaimant *own, const MusterClaim *claim,
           gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  MusterClaim what = *claim;
  GError *failure = NULL;
  what.epoch = 0;
  what.take_over = what.spares_living = FALSE;
  self->own = muster_remote_lease_claim (own, &what, NULL, deadline_us, cancellable, &failure);
  if (is_refusal (failure) &&
      is_same_registry (self, own, claim->model, deadline_us, cancellable)) {
    g_error_free (failure);
    return TRUE;
  }
  if (is_refusal (failure)) {
    g_clear_error (&failure);
    what.take_over = TRUE;
    self->own = muster_remote_lease_claim (own, &what, NULL, deadline_us, cancellable, &failure);
  }
  const gboolean is_good = failure == NULL || muster_error_is (failure, MUSTER_ERROR_UNIMPLEMENTED);
  if (is_good)
    g_clear_error (&failure);
  else
    g_propagate_error (error, failure);
  return is_good;
}

/* A job without leases isn't what was asked for. */
static void
refuse_server (GError **error)
{
  if (error == NULL || !muster_error_is (*error, MUSTER_ERROR_UNIMPLEMENTED))
    return;
  g_clear_error (error);
  muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
               "it keeps no announcements; use the address of a `muster serve`");
}

/* The claim has failed after all: the model is as its last chief has left it. */
static void
put_back (MusterCoordinatedLease *self, const MusterAnnouncement *before)
{
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  if (before == NULL || !before->prepared)
    return;
  MusterAnnouncement stood = *before;
  if (muster_chief_phase_is_preparing (stood.phase) || stood.phase == MUSTER_CHIEF_UNKNOWN)
    stood.phase = MUSTER_CHIEF_PREPARED;
  (void)muster_lease_announce (
      self->first, &stood, muster_deadline_after (now_us, MUSTER_COORDINATOR_LIMIT_US), NULL, NULL);
}

MusterLease *
muster_coordinated_lease_claim (const MusterRemoteClaimant *coordinator,
                                const MusterRemoteClaimant *own, const MusterClaim *claim,
                                MusterAnnouncement **before, gint64 deadline_us,
                                GCancellable *cancellable, GError **error)
{
  g_autoptr (MusterCoordinatedLease) self = g_object_new (MUSTER_TYPE_COORDINATED_LEASE, NULL);
  g_autoptr (MusterAnnouncement) stood = NULL;
  MusterClaim first = *claim;
  first.ready_op = NULL; /* it can't ask */
  self->coordinator = g_strdup (muster_rpc_client_address (coordinator->client));
  self->first =
      muster_remote_lease_claim (coordinator, &first, &stood, deadline_us, cancellable, error);
  if (self->first == NULL) {
    refuse_server (error);
    g_prefix_error (error, "the coordinator '%s': ", self->coordinator);
    return NULL;
  }
  if (!claim_own (self, own, claim, deadline_us, cancellable, error)) {
    put_back (self, stood);
    return NULL;
  }
  if (before != NULL)
    *before = g_steal_pointer (&stood);
  muster_lease_set_identity (MUSTER_LEASE (self), claim->model, muster_lease_epoch (self->first));
  return MUSTER_LEASE (g_steal_pointer (&self));
}

static void
muster_coordinated_lease_finalize (GObject *object)
{
  MusterCoordinatedLease *self = MUSTER_COORDINATED_LEASE (object);
  g_clear_object (&self->own);
  g_clear_object (&self->first);
  g_free (self->coordinator);
  G_OBJECT_CLASS (muster_coordinated_lease_parent_class)->finalize (object);
}

static void
muster_coordinated_lease_class_init (MusterCoordinatedLeaseClass *klass)
{
  MUSTER_LEASE_CLASS (klass)->announce = coordinated_announce;
  MUSTER_LEASE_CLASS (klass)->check = coordinated_check;
  MUSTER_LEASE_CLASS (klass)->is_draining = coordinated_is_draining;
  G_OBJECT_CLASS (klass)->finalize = muster_coordinated_lease_finalize;
}

static void
muster_coordinated_lease_init (MusterCoordinatedLease *self G_GNUC_UNUSED)
{
}

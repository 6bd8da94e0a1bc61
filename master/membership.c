// SPDX-License-Identifier: Apache-2.0
/* A task's membership in a job: its slot, the current roster, waits for a newer one, and one
 * listener. How it is kept at a server is master/remote/remote_membership.c. */
#include "master/membership.h"

#include "base/fields_private.h"
#include "base/require_private.h"
#include "base/wait_private.h"

/* --- values --- */

MUSTER_DEFINE_OPTIONS (MusterJoin, muster_join)

MusterJoin *
muster_join_new (const char *model, const char *task, guint n_slots)
{
  g_return_val_if_fail (model != NULL, NULL);
  const MusterJoin join = {.model = model, .task = task, .slot = -1, .n_slots = n_slots};
  return muster_join_copy (&join);
}

G_DEFINE_BOXED_TYPE (MusterRoster, muster_roster, muster_roster_copy, muster_roster_free)

MusterRoster *
muster_roster_copy (const MusterRoster *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  MusterRoster *copy = g_memdup2 (self, sizeof *self);
  copy->slots = g_memdup2 (self->slots, self->n_members * sizeof *self->slots);
  return copy;
}

void
muster_roster_free (MusterRoster *self)
{
  if (self == NULL)
    return;
  g_free (self->slots);
  g_free (self);
}

const guint *
muster_roster_slots (const MusterRoster *self, gsize *n)
{
  g_return_val_if_fail (self != NULL && n != NULL, NULL);
  *n = self->n_members;
  return self->slots;
}

gboolean
muster_roster_has (const MusterRoster *self, guint slot)
{
  g_return_val_if_fail (self != NULL, FALSE);
  for (gsize i = 0; i < self->n_members; i++)
    if (self->slots[i] == slot)
      return TRUE;
  return FALSE;
}

/* --- the membership --- */

typedef struct {
  GMutex lock;
  GCond changed; /* of roster and lost */
  /* guarded by lock */
  guint slot;
  MusterRoster *roster; /* (owned) (nullable) NULL before the first one */
  GError *lost;         /* (owned) (nullable) */
  gint64 n_batches;

  GMutex telling; /* guards the listener, and is held while its function is called; taken without
                     lock */
  MusterMembershipFunc func; /* (nullable) */
  gpointer user_data;
  GDestroyNotify destroy; /* (nullable) */
} MusterMembershipPrivate;

G_DEFINE_ABSTRACT_TYPE_WITH_PRIVATE (MusterMembership, muster_membership, G_TYPE_OBJECT)

static MusterMembershipPrivate *
private_of (MusterMembership *self)
{
  return muster_membership_get_instance_private (self);
}

guint
muster_membership_slot (MusterMembership *self)
{
  g_return_val_if_fail (self != NULL, 0);
  MusterMembershipPrivate *own = private_of (self);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&own->lock);
  return own->slot;
}

MusterRoster *
muster_membership_roster (MusterMembership *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  MusterMembershipPrivate *own = private_of (self);
  const MusterRoster none = {0};
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&own->lock);
  return muster_roster_copy (own->roster != NULL ? own->roster : &none);
}

gint64
muster_membership_n_batches (MusterMembership *self)
{
  g_return_val_if_fail (self != NULL, 0);
  MusterMembershipPrivate *own = private_of (self);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&own->lock);
  return own->n_batches;
}

void
muster_membership_report (MusterMembership *self, gint64 n_batches)
{
  g_return_if_fail (self != NULL);
  MusterMembershipPrivate *own = private_of (self);
  g_mutex_lock (&own->lock);
  const gboolean is_news = n_batches > own->n_batches;
  if (is_news)
    own->n_batches = n_batches;
  g_mutex_unlock (&own->lock);
  if (is_news && MUSTER_MEMBERSHIP_GET_CLASS (self)->report != NULL)
    MUSTER_MEMBERSHIP_GET_CLASS (self)->report (self, n_batches);
}

static gboolean
check_locked (MusterMembershipPrivate *own, GError **error)
{
  if (own->lost != NULL)
    g_propagate_error (error, g_error_copy (own->lost));
  return own->lost == NULL;
}

gboolean
muster_membership_check (MusterMembership *self, GError **error)
{
  muster_require (error, FALSE, self);
  MusterMembershipPrivate *own = private_of (self);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&own->lock);
  return check_locked (own, error);
}

gboolean
muster_membership_leave (MusterMembership *self, gint64 deadline_us, GCancellable *cancellable,
                         GError **error)
{
  muster_require (error, FALSE, self);
  if (!muster_deadline_check (deadline_us, error))
    return FALSE;
  return MUSTER_MEMBERSHIP_GET_CLASS (self)->leave (self, deadline_us, cancellable, error);
}

/* --- waiting --- */

typedef struct {
  MusterMembershipPrivate *own;
  guint64 after_version;
} Wait;

static gboolean
has_newer_locked (const Wait *wait)
{
  return wait->own->roster != NULL && wait->own->roster->version > wait->after_version;
}

static gboolean
is_decided (gpointer data)
{
  const Wait *wait = data;
  return wait->own->lost != NULL || has_newer_locked (wait);
}

gboolean
muster_membership_wait (MusterMembership *self, guint64 after_version, gint64 deadline_us,
                        GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self);
  if (!muster_deadline_check (deadline_us, error))
    return FALSE;
  MusterMembershipPrivate *own = private_of (self);
  Wait wait = {own, after_version};
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&own->lock);
  const gboolean is_over =
      muster_wait_for (&own->changed, &own->lock, is_decided, &wait, deadline_us, cancellable);
  if (!check_locked (own, error))
    return FALSE;
  if (is_over)
    return TRUE;
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  return muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED,
                      "the job's members haven't changed since roster %" G_GUINT64_FORMAT,
                      after_version);
}

/* --- listening --- */

void
muster_membership_set_listener (MusterMembership *self, MusterMembershipFunc func,
                                gpointer user_data, GDestroyNotify destroy)
{
  g_return_if_fail (self != NULL);
  MusterMembershipPrivate *own = private_of (self);
  g_mutex_lock (&own->telling);
  GDestroyNotify destroy_before = own->destroy;
  gpointer data_before = own->user_data;
  own->func = func;
  own->user_data = user_data;
  own->destroy = destroy;
  g_mutex_unlock (&own->telling);
  if (destroy_before != NULL)
    destroy_before (data_before);
}

static void
tell (MusterMembership *self)
{
  MusterMembershipPrivate *own = private_of (self);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&own->telling);
  if (own->func != NULL)
    own->func (self, own->user_data);
}

void
muster_membership_set_roster (MusterMembership *self, guint slot, const MusterRoster *roster)
{
  g_return_if_fail (self != NULL && roster != NULL);
  MusterMembershipPrivate *own = private_of (self);
  MusterRoster *heard = muster_roster_copy (roster);
  if (heard->n_tasks == 0)
    heard->n_tasks = (guint)heard->n_members;
  g_mutex_lock (&own->lock);
  heard->version = own->roster != NULL ? own->roster->version + 1 : 1;
  muster_roster_free (own->roster);
  own->roster = heard;
  own->slot = slot;
  g_cond_broadcast (&own->changed);
  g_mutex_unlock (&own->lock);
  tell (self);
}

void
muster_membership_lose (MusterMembership *self, const GError *why)
{
  g_return_if_fail (self != NULL && why != NULL);
  MusterMembershipPrivate *own = private_of (self);
  g_mutex_lock (&own->lock);
  const gboolean is_first = own->lost == NULL;
  if (is_first)
    own->lost = g_error_copy (why);
  g_cond_broadcast (&own->changed);
  g_mutex_unlock (&own->lock);
  if (is_first)
    tell (self);
}

static void
muster_membership_finalize (GObject *object)
{
  MusterMembershipPrivate *own = private_of (MUSTER_MEMBERSHIP (object));
  if (own->destroy != NULL)
    own->destroy (own->user_data);
  muster_roster_free (own->roster);
  g_clear_error (&own->lost);
  g_cond_clear (&own->changed);
  g_mutex_clear (&own->telling);
  g_mutex_clear (&own->lock);
  G_OBJECT_CLASS (muster_membership_parent_class)->finalize (object);
}

static void
muster_membership_class_init (MusterMembershipClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_membership_finalize;
}

static void
muster_membership_init (MusterMembership *self)
{
  MusterMembershipPrivate *own = private_of (self);
  g_mutex_init (&own->lock);
  g_mutex_init (&own->telling);
  g_cond_init (&own->changed);
}

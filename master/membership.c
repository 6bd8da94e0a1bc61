// SPDX-License-Identifier: Apache-2.0
#include "master/membership.h"

#include "base/fields.h"
#include "base/require.h"
#include "base/wait.h"

/* --- values --- */

static const MusterField join_fields[] = {
    MUSTER_STRING_FIELD (MusterJoin, model),
    MUSTER_STRING_FIELD (MusterJoin, task),
};
MUSTER_DEFINE_OPTIONS (MusterJoin, muster_join, join_fields)

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
  MusterRoster *roster; /* (owned) (nullable) until the first */
  GError *lost;         /* (owned) (nullable) */
  gint64 n_batches;

  GMutex telling; /* guards what follows, and is held while func is called; taken without lock */
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
  MusterMembershipPrivate *private = private_of (self);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&private->lock);
  return private->slot;
}

MusterRoster *
muster_membership_roster (MusterMembership *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  MusterMembershipPrivate *private = private_of (self);
  const MusterRoster none = {0};
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&private->lock);
  return muster_roster_copy (private->roster != NULL ? private->roster : &none);
}

gint64
muster_membership_n_batches (MusterMembership *self)
{
  g_return_val_if_fail (self != NULL, 0);
  MusterMembershipPrivate *private = private_of (self);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&private->lock);
  return private->n_batches;
}

void
muster_membership_report (MusterMembership *self, gint64 n_batches)
{
  g_return_if_fail (self != NULL);
  MusterMembershipPrivate *private = private_of (self);
  g_mutex_lock (&private->lock);
  const gboolean is_news = n_batches > private->n_batches;
  if (is_news)
  private->n_batches = n_batches;
  g_mutex_unlock (&private->lock);
  if (is_news && MUSTER_MEMBERSHIP_GET_CLASS (self)->report != NULL)
    MUSTER_MEMBERSHIP_GET_CLASS (self)->report (self, n_batches);
}

static gboolean
check_locked (MusterMembershipPrivate *private, GError **error)
{
  if (private->lost != NULL)
    g_propagate_error (error, g_error_copy (private->lost));
  return private->lost == NULL;
}

gboolean
muster_membership_check (MusterMembership *self, GError **error)
{
  muster_require (error, FALSE, self);
  MusterMembershipPrivate *private = private_of (self);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&private->lock);
  return check_locked (private, error);
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
  MusterMembershipPrivate *private;
  guint64 after_version;
} Wait;

static gboolean
has_newer_locked (const Wait *wait)
{
  return wait->private->roster != NULL && wait->private->roster->version > wait->after_version;
}

static gboolean
is_decided (gpointer data)
{
  const Wait *wait = data;
  return wait->private->lost != NULL || has_newer_locked (wait);
}

gboolean
muster_membership_wait (MusterMembership *self, guint64 after_version, gint64 deadline_us,
                        GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self);
  if (!muster_deadline_check (deadline_us, error))
    return FALSE;
  MusterMembershipPrivate *private = private_of (self);
  Wait wait = {private, after_version};
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&private->lock);
  const gboolean is_over = muster_wait_for (&private->changed, &private->lock, is_decided, &wait,
                                            deadline_us, cancellable);
  if (!check_locked (private, error))
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
  MusterMembershipPrivate *private = private_of (self);
  g_mutex_lock (&private->telling);
  GDestroyNotify destroy_before = private->destroy;
  gpointer data_before = private->user_data;
  private->func = func;
  private->user_data = user_data;
  private->destroy = destroy;
  g_mutex_unlock (&private->telling);
  if (destroy_before != NULL)
    destroy_before (data_before);
}

static void
tell (MusterMembership *self)
{
  MusterMembershipPrivate *private = private_of (self);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&private->telling);
  if (private->func != NULL)
  private->func (self, private->user_data);
}

void
muster_membership_set_roster (MusterMembership *self, guint slot, const MusterRoster *roster)
{
  g_return_if_fail (self != NULL && roster != NULL);
  MusterMembershipPrivate *private = private_of (self);
  MusterRoster *heard = muster_roster_copy (roster);
  g_mutex_lock (&private->lock);
  heard->version = private->roster != NULL ? private->roster->version + 1 : 1;
  muster_roster_free (private->roster);
  private->roster = heard;
  private->slot = slot;
  g_cond_broadcast (&private->changed);
  g_mutex_unlock (&private->lock);
  tell (self);
}

void
muster_membership_lose (MusterMembership *self, const GError *why)
{
  g_return_if_fail (self != NULL && why != NULL);
  MusterMembershipPrivate *private = private_of (self);
  g_mutex_lock (&private->lock);
  const gboolean is_first = private->lost == NULL;
  if (is_first)
  private->lost = g_error_copy (why);
  g_cond_broadcast (&private->changed);
  g_mutex_unlock (&private->lock);
  if (is_first)
    tell (self);
}

static void
muster_membership_finalize (GObject *object)
{
  MusterMembershipPrivate *private = private_of (MUSTER_MEMBERSHIP (object));
  if (private->destroy != NULL)
  private->destroy (private->user_data);
  muster_roster_free (private->roster);
  g_clear_error (&private->lost);
  g_cond_clear (&private->changed);
  g_mutex_clear (&private->telling);
  g_mutex_clear (&private->lock);
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
  MusterMembershipPrivate *private = private_of (self);
  g_mutex_init (&private->lock);
  g_mutex_init (&private->telling);
  g_cond_init (&private->changed);
}

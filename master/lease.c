// SPDX-License-Identifier: Apache-2.0
#include "master/lease.h"

#include "base/require_private.h"

typedef struct {
  char *model; /* (owned) (nullable) until set_identity */
  gint64 epoch;
} MusterLeasePrivate;

G_DEFINE_ABSTRACT_TYPE_WITH_PRIVATE (MusterLease, muster_lease, G_TYPE_OBJECT)

static MusterLeasePrivate *
private_of (MusterLease *self)
{
  return muster_lease_get_instance_private (self);
}

MusterLease *
muster_session_claim (MusterSession *self, const MusterClaim *claim, MusterAnnouncement **before,
                      gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  muster_require (error, NULL, self, claim);
  if (before != NULL)
    *before = NULL;
  if (!muster_deadline_check (deadline_us, error))
    return NULL;
  MusterSessionClass *klass = MUSTER_SESSION_GET_CLASS (self);
  if (klass->claim != NULL)
    return klass->claim (self, claim, before, deadline_us, cancellable, error);
  muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED, "this kind of master keeps no announcements");
  return NULL;
}

gint64
muster_lease_epoch (MusterLease *self)
{
  g_return_val_if_fail (self != NULL, 0);
  return private_of (self)->epoch;
}

const char *
muster_lease_model (MusterLease *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return private_of (self)->model;
}

gboolean
muster_lease_announce (MusterLease *self, const MusterAnnouncement *announcement,
                       gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self, announcement);
  if (!muster_deadline_check (deadline_us, error))
    return FALSE;
  return MUSTER_LEASE_GET_CLASS (self)->announce (self, announcement, deadline_us, cancellable,
                                                  error);
}

gboolean
muster_lease_announce_phase (MusterLease *self, MusterChiefPhase phase, gint64 deadline_us,
                             GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self);
  MusterAnnouncement announcement = MUSTER_ANNOUNCEMENT_INIT;
  announcement.phase = phase;
  return muster_lease_announce (self, &announcement, deadline_us, cancellable, error);
}

gboolean
muster_lease_check (MusterLease *self, GError **error)
{
  muster_require (error, FALSE, self);
  return MUSTER_LEASE_GET_CLASS (self)->check (self, error);
}

gboolean
muster_lease_is_draining (MusterLease *self, gint64 *until_us)
{
  g_return_val_if_fail (self != NULL, FALSE);
  MusterLeaseClass *klass = MUSTER_LEASE_GET_CLASS (self);
  gint64 unread_us;
  return klass->is_draining != NULL &&
         klass->is_draining (self, until_us != NULL ? until_us : &unread_us);
}

void
muster_lease_set_identity (MusterLease *self, const char *model, gint64 epoch)
{
  g_return_if_fail (self != NULL && model != NULL);
  MusterLeasePrivate *private = private_of (self);
  private->model = g_strdup (model);
  private->epoch = epoch;
}

static void
muster_lease_finalize (GObject *object)
{
  g_free (private_of (MUSTER_LEASE (object))->model);
  G_OBJECT_CLASS (muster_lease_parent_class)->finalize (object);
}

static void
muster_lease_class_init (MusterLeaseClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_lease_finalize;
}

static void
muster_lease_init (MusterLease *self G_GNUC_UNUSED)
{
}

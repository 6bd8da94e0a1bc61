// SPDX-License-Identifier: Apache-2.0
#include "jobs/job_metadata.h"

#include "base/check_time_private.h"
#include "base/require_private.h"

G_DEFINE_INTERFACE (MusterJobMetadata, muster_job_metadata, G_TYPE_OBJECT)

static void
muster_job_metadata_default_init (MusterJobMetadataInterface *iface G_GNUC_UNUSED)
{
}

static gboolean
check_time (gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  return muster_check_time ("Asking the metadata of the job", deadline_us, cancellable, error);
}

gboolean
muster_job_metadata_set_params (MusterJobMetadata *self, const MusterJobParams *params,
                                GError **error)
{
  muster_require (error, FALSE, self, params);

  MusterJobMetadataInterface *iface = MUSTER_JOB_METADATA_GET_IFACE (self);
  return iface->set_params == NULL ||
         muster_require_error (error, iface->set_params (self, params, error),
                               G_OBJECT_TYPE_NAME (self), "set_params");
}

gboolean
muster_job_metadata_write (MusterJobMetadata *self, gint64 epoch, gboolean finished,
                           gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self);

  MusterJobMetadataInterface *iface = MUSTER_JOB_METADATA_GET_IFACE (self);
  return check_time (deadline_us, cancellable, error) &&
         (iface->write == NULL ||
          muster_require_error (
              error, iface->write (self, epoch, finished, deadline_us, cancellable, error),
              G_OBJECT_TYPE_NAME (self), "write"));
}

gboolean
muster_job_metadata_last_epoch (MusterJobMetadata *self, gint64 user_epoch, gint64 *epoch,
                                gboolean *finished, gint64 deadline_us, GCancellable *cancellable,
                                GError **error)
{
  muster_require (error, FALSE, self, epoch, finished);

  MusterJobMetadataInterface *iface = MUSTER_JOB_METADATA_GET_IFACE (self);
  if (!check_time (deadline_us, cancellable, error))
    return FALSE;
  if (iface->last_epoch != NULL)
    return muster_require_error (
        error,
        iface->last_epoch (self, user_epoch, epoch, finished, deadline_us, cancellable, error),
        G_OBJECT_TYPE_NAME (self), "last_epoch");
  *epoch = user_epoch;
  *finished = FALSE;
  return TRUE;
}

gboolean
muster_job_metadata_accessible (MusterJobMetadata *self, gint64 epoch, gboolean *accessible,
                                gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self, accessible);

  MusterJobMetadataInterface *iface = MUSTER_JOB_METADATA_GET_IFACE (self);
  if (!check_time (deadline_us, cancellable, error))
    return FALSE;
  if (iface->accessible != NULL)
    return muster_require_error (
        error, iface->accessible (self, epoch, accessible, deadline_us, cancellable, error),
        G_OBJECT_TYPE_NAME (self), "accessible");
  *accessible = TRUE;
  return TRUE;
}

gboolean
muster_job_metadata_report (MusterJobMetadata *self, const char *action, GPtrArray *stats,
                            gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self, action, stats);

  MusterJobMetadataInterface *iface = MUSTER_JOB_METADATA_GET_IFACE (self);
  return check_time (deadline_us, cancellable, error) &&
         (iface->report == NULL ||
          muster_require_error (
              error, iface->report (self, action, stats, deadline_us, cancellable, error),
              G_OBJECT_TYPE_NAME (self), "report"));
}

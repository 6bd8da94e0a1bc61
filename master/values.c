// SPDX-License-Identifier: Apache-2.0
#include "base/fields_private.h"
#include "base/names_private.h"
#include "master/lease.h"
#include "master/master.h"

/* Copies of values that masters and sessions are given or return. */

MUSTER_DEFINE_OPTIONS (MusterClaim, muster_claim)

MusterClaim *
muster_claim_new (const char *model, const char *task)
{
  g_return_val_if_fail (model != NULL, NULL);
  return muster_claim_copy (&(MusterClaim){.model = model, .task = task});
}

MUSTER_DEFINE_OPTIONS (MusterWatchFor, muster_watch_for)

static MusterReadiness *
muster_readiness_copy (const MusterReadiness *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  MusterReadiness *copy = g_memdup2 (self, sizeof *self);
  copy->why_gate = g_strdup (self->why_gate);
  copy->why_not_ready = g_strdup (self->why_not_ready);
  if (self->missing != NULL)
    copy->missing = muster_names_pack (self->missing, g_strv_length (self->missing));
  if (self->chief != NULL)
    copy->chief = muster_announcement_copy (self->chief);
  copy->graph_difference = g_strdup (self->graph_difference);
  copy->coordinator_failure = g_strdup (self->coordinator_failure);
  return copy;
}

static void
muster_readiness_free (MusterReadiness *self)
{
  if (self == NULL)
    return;
  muster_readiness_clear (self);
  g_free (self);
}

G_DEFINE_BOXED_TYPE (MusterReadiness, muster_readiness, muster_readiness_copy,
                     muster_readiness_free)

MusterDevice *
muster_device_copy (const MusterDevice *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  MusterDevice *copy = g_memdup2 (self, sizeof *self);
  copy->name = g_strdup (self->name);
  copy->type = g_strdup (self->type);
  return copy;
}

G_DEFINE_BOXED_TYPE (MusterDevice, muster_device, muster_device_copy, muster_device_free)

MusterAnnouncement *
muster_announcement_new (void)
{
  return g_memdup2 (&(MusterAnnouncement)MUSTER_ANNOUNCEMENT_INIT, sizeof (MusterAnnouncement));
}

G_DEFINE_BOXED_TYPE (MusterAnnouncement, muster_announcement, muster_announcement_copy,
                     muster_announcement_free)

void
muster_announcement_set_saves (MusterAnnouncement *self, const MusterSaveStatus *saves)
{
  g_return_if_fail (self != NULL);
  MusterSaveStatus *copy = muster_save_status_copy (saves);
  muster_save_status_free (self->saves);
  self->saves = copy;
}

void
muster_announcement_set_goodput (MusterAnnouncement *self, const MusterGoodput *goodput)
{
  g_return_if_fail (self != NULL);
  MusterGoodput *copy = muster_goodput_copy (goodput);
  muster_goodput_free (self->goodput);
  self->goodput = copy;
}

MusterSaveStatus *
muster_save_status_new (void)
{
  return g_memdup2 (&(MusterSaveStatus)MUSTER_SAVE_STATUS_INIT, sizeof (MusterSaveStatus));
}

G_DEFINE_BOXED_TYPE (MusterSaveStatus, muster_save_status, muster_save_status_copy,
                     muster_save_status_free)

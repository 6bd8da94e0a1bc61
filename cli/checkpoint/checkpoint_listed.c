// SPDX-License-Identifier: Apache-2.0
#include "cli/checkpoint/checkpoint_listed.h"

#include "checkpoint/state/checkpoint_check.h"
#include "checkpoint/state/quarantine.h"
#include "checkpoint/store/storage_failure_private.h"
#include "cli/checkpoint/checkpoint_open.h"

#include <string.h>

void
muster_listed_free (MusterListed *self)
{
  g_free (self->prefix);
  g_free (self->name);
  g_free (self->damage);
  g_clear_error (&self->unread);
  g_free (self->reason);
  g_free (self->directory);
  g_free (self->refused);
  g_clear_pointer (&self->metrics, g_array_unref);
  g_strfreev (self->kept_for);
  g_free (self);
}

void
muster_listed_set_failure (MusterListed *self, const GError *error)
{
  const gboolean is_damaged = muster_storage_failure_is_damage (error);
  g_free (self->damage);
  g_clear_error (&self->unread);
  self->damage = is_damaged ? g_strdup (error->message) : NULL;
  self->unread = is_damaged ? NULL : g_error_copy (error);
  self->state = is_damaged ? "damaged" : "unread";
}

const char *
muster_listed_failure (const MusterListed *self)
{
  return self->unread != NULL ? self->unread->message : self->damage;
}

MusterListed *
muster_listed_new (const char *prefix, const MusterCheckpointRecord *record, const char *latest)
{
  MusterListed *self = g_new0 (MusterListed, 1);
  g_autoptr (GError) error = NULL;
  MusterCheckpointOverview overview;
  const MusterSideCheckpoint *known =
      record != NULL ? muster_checkpoint_record_find (record, prefix) : NULL;
  self->prefix = g_strdup (prefix);
  self->name = g_path_get_basename (prefix);
  self->step = muster_checkpoint_step (prefix);
  self->latest = latest != NULL && muster_cli_checkpoint_is_same (prefix, latest);
  self->state = known != NULL && known->verified ? "verified" : "good";
  self->kept = known != NULL && (known->preserved || known->pinned);
  self->metrics = known != NULL ? g_array_ref (known->metrics) : NULL;
  if (!muster_checkpoint_inspect (muster_cli_storage (), prefix, &overview, &error))
    muster_listed_set_failure (self, error);
  self->when_us = overview.when_us;
  self->bytes = (gint64)overview.bytes;
  self->shards = overview.n_shards;
  self->tensors = (gint)MIN (overview.n_tensors, G_MAXINT);
  if (known != NULL && known->time > 0 && known->time < 1e12)
    self->when_us = (gint64)(known->time * MUSTER_SECOND);
  if (known != NULL && known->step >= 0)
    self->step = known->step;
  if (muster_checkpoint_is_quarantined (prefix)) {
    self->state = "set aside";
    self->reason = g_strdup (known != NULL ? known->bad : NULL);
  }
  return self;
}

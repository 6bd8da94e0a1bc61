// SPDX-License-Identifier: Apache-2.0
#include "saver/directory/checkpoint_directory_private.h"

/* The job's account of its time in the side file, written with each checkpoint. */

void
muster_checkpoint_directory_set_goodput (MusterCheckpointDirectory *self,
                                         const MusterGoodput *goodput)
{
  const double now = muster_checkpoint_directory_now (self);
  g_mutex_lock (&self->lock);
  self->goodput = *goodput;
  self->goodput_time = now - (double)goodput->age_us / MUSTER_SECOND;
  self->goodput.age_us = 0;
  g_mutex_unlock (&self->lock);
}

void
muster_checkpoint_directory_put_goodput (MusterCheckpointDirectory *self,
                                         MusterCheckpointRecord *record)
{
  g_mutex_lock (&self->lock);
  if (self->goodput.began_us != 0) {
    record->goodput = self->goodput;
    record->goodput_time = self->goodput_time;
  }
  g_mutex_unlock (&self->lock);
}

static gboolean
put_it (MusterCheckpointDirectory *self, MusterCheckpointRecord *record, gboolean *changed,
        gpointer data G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
  muster_checkpoint_directory_put_goodput (self, record);
  *changed = TRUE;
  return TRUE;
}

gboolean
muster_checkpoint_directory_write_goodput (MusterCheckpointDirectory *self, MusterLease *lease,
                                           const char *directory, gint64 deadline_us,
                                           GCancellable *cancellable, GError **error)
{
  return muster_checkpoint_directory_change (self, lease, directory, put_it, NULL, deadline_us,
                                             cancellable, error);
}

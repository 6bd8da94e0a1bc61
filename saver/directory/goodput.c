// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/store/directory_lock.h"
#include "saver/directory/checkpoint_directory_private.h"

/* What the job has spent its time on, in the side file: it is written with each checkpoint. */

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

gboolean
muster_checkpoint_directory_write_goodput (MusterCheckpointDirectory *self, MusterLease *lease,
                                           const char *directory, gint64 deadline_us,
                                           GCancellable *cancellable, GError **error)
{
  gboolean changed = FALSE;

  g_autoptr (MusterDirectoryLock) lock = muster_directory_lock (
      self->storage, directory, deadline_us, self->clock, cancellable, error);
  g_autoptr (MusterCheckpointRecord) record =
      muster_checkpoint_directory_read_claimed (self, lease, lock, directory, &changed, error);
  if (record == NULL)
    return FALSE;
  muster_checkpoint_directory_put_goodput (self, record);
  return muster_checkpoint_record_write (self->storage, directory, record, error);
}

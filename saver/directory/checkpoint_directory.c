// SPDX-License-Identifier: Apache-2.0
#include "saver/directory/checkpoint_directory_private.h"

MusterKept *
muster_kept_new (const char *prefix, double time)
{
  MusterKept *kept = g_new (MusterKept, 1);

  kept->prefix = g_strdup (prefix);
  kept->time = time;
  return kept;
}

void
muster_kept_free (gpointer kept)
{
  g_free (((MusterKept *)kept)->prefix);
  g_free (kept);
}

void
muster_claimed_clear (gpointer claimed)
{
  g_free (((MusterClaimed *)claimed)->directory);
}

void
muster_checkpoint_directory_init (MusterCheckpointDirectory *self)
{
  *self = (MusterCheckpointDirectory){0};
  g_mutex_init (&self->lock);
  self->claimed = g_array_new (FALSE, FALSE, sizeof (MusterClaimed));
  g_array_set_clear_func (self->claimed, muster_claimed_clear);
  self->kept = g_ptr_array_new_with_free_func (muster_kept_free);
  self->pending_deletes = g_ptr_array_new_with_free_func (g_free);
  self->swept = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
}

void
muster_checkpoint_directory_clear (MusterCheckpointDirectory *self)
{
  g_clear_object (&self->storage);
  g_clear_object (&self->clock);
  g_clear_object (&self->lease);
  g_free (self->base_name);
  g_free (self->latest_filename);
  g_array_unref (self->claimed);
  g_ptr_array_unref (self->kept);
  g_ptr_array_unref (self->pending_deletes);
  g_hash_table_unref (self->swept);
  g_mutex_clear (&self->lock);
}

void
muster_checkpoint_directory_open (MusterCheckpointDirectory *self, MusterStorage *storage,
                                  MusterClock *clock)
{
  self->storage = g_object_ref (storage);
  self->clock = g_object_ref (clock);
  /* Nothing has been kept yet: as either of TensorFlow's begins. */
  self->mark =
      muster_checkpoint_directory_now (self) - (self->keep_rule == MUSTER_KEEP_MANAGER ? 1 : 0);
}

void
muster_checkpoint_directory_set_lease (MusterCheckpointDirectory *self, MusterLease *lease)
{
  g_mutex_lock (&self->lock);
  g_autoptr (MusterLease) before = self->lease;
  self->lease = lease != NULL ? g_object_ref (lease) : NULL;
  if (before != lease)
    g_array_set_size (self->claimed, 0);
  g_mutex_unlock (&self->lock);
}

MusterLease *
muster_checkpoint_directory_lease (MusterCheckpointDirectory *self)
{
  g_mutex_lock (&self->lock);
  MusterLease *lease = self->lease != NULL ? g_object_ref (self->lease) : NULL;
  g_mutex_unlock (&self->lock);
  return lease;
}

double
muster_checkpoint_directory_now (MusterCheckpointDirectory *self)
{
  return (double)muster_clock_wall_us (self->clock) / (double)MUSTER_SECOND;
}

char *
muster_path_for_master (MusterStorage *storage, const char *path)
{
  return storage == muster_local_storage () ? g_canonicalize_filename (path, NULL)
                                            : g_strdup (path);
}

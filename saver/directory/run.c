// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/store/storage_failure_private.h"
#include "saver/directory/checkpoint_directory_private.h"

/* The lineage of a directory: which run writes there, and from which run's checkpoint it
 * started. A step alone doesn't tell whether a checkpoint is this model's: a run that starts again
 * from an older checkpoint reaches the same steps with other values. */

static gboolean
write_run (MusterCheckpointDirectory *self, MusterCheckpointRecord *record, gboolean *changed,
           gpointer data, GError **error G_GNUC_UNUSED)
{
  const MusterRun *run = data;
  g_free (record->run);
  g_free (record->resumed_run);
  g_free (record->durable_dir);
  record->run = g_strdup (run->run);
  record->resumed_run = g_strdup (run->resumed_run);
  record->resumed_step = run->resumed_step;
  record->over = FALSE;
  record->final_step = -1;
  record->durable_dir = g_strdup (run->durable_dir);
  muster_checkpoint_directory_put_goodput (self, record);
  *changed = TRUE;
  return TRUE;
}

/* Creates a missing directory. */
gboolean
muster_checkpoint_directory_begin_run (MusterCheckpointDirectory *self, MusterLease *lease,
                                       const char *directory, const MusterRun *run,
                                       gint64 deadline_us, GCancellable *cancellable,
                                       GError **error)
{
  g_autoptr (GError) failure = NULL;
  gboolean is_written = muster_checkpoint_directory_change (
      self, lease, directory, write_run, (gpointer)run, deadline_us, cancellable, &failure);
  if (!is_written && muster_storage_failure_is_absent (failure)) {
    g_autoptr (MusterStorage) storage =
        muster_storage_bound (self->storage, deadline_us, self->clock, cancellable);
    g_clear_error (&failure);
    is_written =
        muster_storage_make_directory (storage, directory, &failure) &&
        muster_checkpoint_directory_change (self, lease, directory, write_run, (gpointer)run,
                                            deadline_us, cancellable, &failure);
  }
  if (!is_written) {
    g_propagate_error (error, g_steal_pointer (&failure));
    return FALSE;
  }
  g_mutex_lock (&self->lock);
  g_free (self->run);
  self->run = g_strdup (run->run);
  g_mutex_unlock (&self->lock);
  return TRUE;
}

static gboolean
write_end (MusterCheckpointDirectory *self, MusterCheckpointRecord *record, gboolean *changed,
           gpointer data, GError **error G_GNUC_UNUSED)
{
  const gint64 *step = data;
  record->over = TRUE;
  record->final_step = *step;
  muster_checkpoint_directory_put_goodput (self, record);
  *changed = TRUE;
  return TRUE;
}

gboolean
muster_checkpoint_directory_end_run (MusterCheckpointDirectory *self, MusterLease *lease,
                                     const char *directory, gint64 step, gint64 deadline_us,
                                     GCancellable *cancellable, GError **error)
{
  return muster_checkpoint_directory_change (self, lease, directory, write_end, &step, deadline_us,
                                             cancellable, error);
}

/* What the directory's record knows of a checkpoint, which lives as long as *record (out) (transfer
 * full). */
static const MusterSideCheckpoint *
look_up (MusterStorage *storage, const char *prefix, MusterCheckpointRecord **record)
{
  g_autofree char *directory = g_path_get_dirname (prefix);
  *record = muster_checkpoint_record_read (storage, directory, NULL);
  return *record != NULL ? muster_checkpoint_record_find (*record, prefix) : NULL;
}

char *
muster_checkpoint_run (MusterStorage *storage, const char *prefix)
{
  g_autoptr (MusterCheckpointRecord) record = NULL;
  const MusterSideCheckpoint *one = look_up (storage, prefix, &record);
  return one != NULL ? g_strdup (one->run) : NULL;
}

double
muster_checkpoint_time (MusterStorage *storage, const char *prefix)
{
  g_autoptr (MusterCheckpointRecord) record = NULL;
  const MusterSideCheckpoint *one = look_up (storage, prefix, &record);
  return one != NULL ? one->time : 0;
}

GArray *
muster_checkpoint_metrics (MusterStorage *storage, const char *prefix)
{
  g_autoptr (MusterCheckpointRecord) record = NULL;
  const MusterSideCheckpoint *one = look_up (storage, prefix, &record);
  return one != NULL ? g_array_ref (one->metrics) : NULL;
}

char *
muster_directory_run (MusterStorage *storage, const char *directory)
{
  g_autoptr (MusterCheckpointRecord) record =
      muster_checkpoint_record_read (storage, directory, NULL);
  return record != NULL ? g_strdup (record->run) : NULL;
}

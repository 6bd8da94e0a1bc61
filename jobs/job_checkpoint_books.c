// SPDX-License-Identifier: Apache-2.0
/* What a job knows of its checkpoints: their durations, its metadata, and which epochs there are.
 */
#include "base/log_private.h"
#include "base/require_private.h"
#include "jobs/job_checkpoint_private.h"
#include "jobs/job_checkpoint_tasks_private.h"
#include "jobs/job_epochs_private.h"

static void
stat_free (gpointer data)
{
  MusterJobStat *self = data;
  g_free (self->path);
  g_free (self->node);
  g_free (self);
}

GPtrArray *
muster_job_checkpoint_stats (MusterJobCheckpoint *self)
{
  g_return_val_if_fail (self != NULL, NULL);

  GPtrArray *stats = g_ptr_array_new_with_free_func (stat_free);
  for (guint i = 0; self->entries != NULL && i < self->entries->len; i++) {
    const MusterJobEntry *entry = self->entries->pdata[i];
    g_autoptr (GError) why = NULL;
    g_autoptr (MusterTensor) span =
        entry->span != NULL ? muster_job_output_get (entry->span, &why) : NULL;
    if (span == NULL) {
      muster_log (G_LOG_LEVEL_INFO, "save", "MESSAGE",
                  "Failed to collect checkpoint stats: node '%s': %s", entry->node,
                  why ? why->message : "no timings yet");
      continue;
    }
    MusterJobStat *stat = g_new0 (MusterJobStat, 1);
    stat->path = g_strdup (entry->path);
    stat->node = g_strdup (entry->node);
    stat->epoch = entry->epoch;
    (void)muster_tensor_get_int64 (span, &stat->duration_us,
                                   NULL); /* it is an integer: set_span () */
    g_ptr_array_add (stats, stat);
  }
  return stats;
}

gboolean
muster_job_checkpoint_report (MusterJobCheckpoint *self, const char *action, gint64 deadline_us,
                              GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self, action);

  if (self->metadata == NULL)
    return TRUE;
  g_autoptr (GPtrArray) stats = muster_job_checkpoint_stats (self);
  return muster_job_metadata_report (self->metadata, action, stats, deadline_us, cancellable,
                                     error);
}

gboolean
muster_job_checkpoint_write_metadata (MusterJobCheckpoint *self, gint64 epoch, gboolean finished,
                                      gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self);
  return self->metadata == NULL || muster_job_metadata_write (self->metadata, epoch, finished,
                                                              deadline_us, cancellable, error);
}

gboolean
muster_job_checkpoint_resume_epoch (MusterJobCheckpoint *self, gint64 user_epoch, gint64 *epoch,
                                    gboolean *finished, gint64 deadline_us,
                                    GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self, epoch, finished);

  if (self->metadata != NULL)
    return muster_job_metadata_last_epoch (self->metadata, user_epoch, epoch, finished, deadline_us,
                                           cancellable, error);
  *epoch = user_epoch;
  *finished = FALSE;
  return TRUE;
}

gboolean
muster_job_checkpoint_accessible (MusterJobCheckpoint *self, gint64 epoch, gboolean *accessible,
                                  gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self, accessible);

  if (self->metadata != NULL)
    return muster_job_metadata_accessible (self->metadata, epoch, accessible, deadline_us,
                                           cancellable, error);
  *accessible = TRUE;
  return TRUE;
}

gboolean
muster_job_checkpoint_epoch_before (MusterJobCheckpoint *self, gint64 epoch, gint64 *before,
                                    gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  g_autoptr (MusterStorage) storage =
      muster_storage_bound (self->storage, deadline_us, NULL, cancellable);
  g_autoptr (GPtrArray) names = g_ptr_array_new ();

  for (guint i = 0; self->entries != NULL && i < self->entries->len; i++)
    g_ptr_array_add (names, ((MusterJobEntry *)self->entries->pdata[i])->name);
  g_ptr_array_add (names, NULL);
  return muster_job_newest_epoch (storage, self->directory, (const char *const *)names->pdata,
                                  epoch, before, error);
}

gboolean
muster_job_checkpoint_lacks_directory (MusterJobCheckpoint *self, gint64 deadline_us,
                                       GCancellable *cancellable)
{
  g_autoptr (MusterStorage) storage =
      muster_storage_bound (self->storage, deadline_us, NULL, cancellable);
  g_autoptr (GError) failure = NULL;

  if (!*self->directory)
    return FALSE;
  g_auto (GStrv) names = muster_storage_list (storage, self->directory, &failure);
  return names == NULL && g_error_matches (failure, G_FILE_ERROR, G_FILE_ERROR_NOENT);
}

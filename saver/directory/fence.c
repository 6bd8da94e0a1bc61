// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "checkpoint/store/directory_lock.h"
#include "saver/directory/checkpoint_directory_private.h"

#include <unistd.h>

/* One chief writes to a directory: the one that claimed it last. A master counts its chiefs' epochs
 * anew when it is started again, so the directory counts on for itself, in the side file. */

static gpointer
copy_id (gpointer id, gpointer user_data G_GNUC_UNUSED)
{
  return g_strdup (id);
}

/* Who holds a directory, so that two savers of one chief are one. Host and process don't tell one
 * chief from another: in a container both are often what they were a life before. */
static char *
name_of (MusterLease *lease)
{
  char *id = g_uuid_string_random ();

  if (!g_object_replace_data (G_OBJECT (lease), "muster-chief", NULL, id, g_free, NULL))
    g_free (id); /* it has one */
  id = g_object_dup_data (G_OBJECT (lease), "muster-chief", copy_id, NULL);
  char *name = g_strdup_printf ("the chief of '%s', epoch %" G_GINT64_FORMAT ", at %s:%d (%.8s)",
                                muster_lease_model (lease), muster_lease_epoch (lease),
                                g_get_host_name (), (int)getpid (), id);
  g_free (id);
  return name;
}

gint64
muster_checkpoint_directory_claimed_epoch (MusterCheckpointDirectory *self, const char *directory)
{
  gint64 epoch = 0;

  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->claimed->len; i++) {
    const MusterClaimed *claimed = &g_array_index (self->claimed, MusterClaimed, i);
    if (strcmp (claimed->directory, directory) == 0)
      epoch = claimed->epoch;
  }
  g_mutex_unlock (&self->lock);
  return epoch;
}

static void
note_claim (MusterCheckpointDirectory *self, MusterLease *lease, const char *directory,
            gint64 epoch)
{
  MusterClaimed claimed = {.directory = g_strdup (directory), .epoch = epoch};

  g_mutex_lock (&self->lock);
  if (self->lease == lease)
    g_array_append_val (self->claimed, claimed);
  else
    muster_claimed_clear (&claimed);
  g_mutex_unlock (&self->lock);
}

static void
write_holder (MusterCheckpointRecord *record, const char *chief, gint64 epoch, gboolean *changed)
{
  g_free (record->chief);
  record->chief = g_strdup (chief);
  record->epoch = epoch;
  *changed = TRUE;
}

gboolean
muster_checkpoint_directory_check_claim (MusterCheckpointDirectory *self, MusterLease *lease,
                                         const char *directory, MusterCheckpointRecord *record,
                                         gboolean *changed, GError **error)
{
  if (lease == NULL)
    return TRUE;
  gint64 epoch = muster_checkpoint_directory_claimed_epoch (self, directory);
  g_autofree char *chief = name_of (lease);
  gboolean is_noted = g_strcmp0 (record->chief, chief) == 0;

  if (epoch == 0) {
    epoch = is_noted ? record->epoch : MAX (muster_lease_epoch (lease), record->epoch + 1);
    note_claim (self, lease, directory, epoch);
  }
  if (record->epoch > epoch || (record->epoch == epoch && !is_noted)) {
    return muster_fail (
        error, MUSTER_ERROR_FAILED_PRECONDITION,
        "'%s' was taken over by %s, with epoch %" G_GINT64_FORMAT
        " (this chief's is %" G_GINT64_FORMAT "); this chief saves no more checkpoints there",
        directory, record->chief != NULL ? record->chief : "another chief", record->epoch, epoch);
  }
  if (record->epoch < epoch)
    write_holder (record, chief, epoch, changed);
  return TRUE;
}

gboolean
muster_checkpoint_directory_claim (MusterCheckpointDirectory *self, MusterLease *lease,
                                   const char *directory, gint64 deadline_us,
                                   GCancellable *cancellable, GError **error)
{
  gboolean changed = FALSE;

  if (lease == NULL)
    return TRUE;
  g_autoptr (MusterDirectoryLock) lock = muster_directory_lock (
      self->storage, directory, deadline_us, self->clock, cancellable, error);
  g_autoptr (MusterCheckpointRecord) record =
      lock != NULL ? muster_checkpoint_record_read_to_write (self->storage, directory, error)
                   : NULL;
  return record != NULL &&
         muster_checkpoint_directory_check_claim (self, lease, directory, record, &changed,
                                                  error) &&
         (!changed || muster_checkpoint_record_write (self->storage, directory, record, error));
}

// SPDX-License-Identifier: Apache-2.0
/* A directory of checkpoints as one saver uses it: its rules, its lease, and whose it is. One
 * chief writes to a directory: the one that claimed it last (second part). retention.c publishes,
 * adopt.c takes over what is there. */
#include "saver/directory/checkpoint_directory_private.h"

#include "base/error.h"
#include "base/files/local_path_private.h"
#include "base/log_private.h"
#include "checkpoint/store/directory_lock_private.h"
#include "checkpoint/stores/default_storage.h"

#include <unistd.h>

/* The time limit for announcing which directory a chief holds. */
#define ANNOUNCE_US MUSTER_SECOND

/* A directory claimed by this chief. */
typedef struct {
  char *directory; /* (owned) */
  gint64 epoch;    /* in its side file */
} Claimed;

MusterKept *
muster_kept_new (const char *prefix, double time)
{
  MusterKept *kept = g_new (MusterKept, 1);
  kept->prefix = g_strdup (prefix);
  kept->time = time;
  kept->is_beside = FALSE;
  return kept;
}

void
muster_kept_free (gpointer kept)
{
  g_free (((MusterKept *)kept)->prefix);
  g_free (kept);
}

static void
claimed_clear (gpointer claimed)
{
  g_free (((Claimed *)claimed)->directory);
}

void
muster_checkpoint_directory_init (MusterCheckpointDirectory *self)
{
  *self = (MusterCheckpointDirectory){0};
  g_mutex_init (&self->publishing);
  g_mutex_init (&self->lock);
  self->claimed = g_array_new (FALSE, FALSE, sizeof (Claimed));
  g_array_set_clear_func (self->claimed, claimed_clear);
  self->kept = g_ptr_array_new_with_free_func (muster_kept_free);
  self->pending_deletes = g_ptr_array_new_with_free_func (g_free);
  self->causes = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  self->swept = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  self->strangers = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  self->left = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  self->held = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  self->id = g_uuid_string_random ();
}

static void
unlock_all (MusterCheckpointDirectory *self)
{
  GHashTableIter iter;
  gpointer lock;
  g_hash_table_iter_init (&iter, self->held);
  while (g_hash_table_iter_next (&iter, NULL, &lock))
    muster_storage_unlock (self->storage, lock);
  g_hash_table_unref (self->held);
}

void
muster_checkpoint_directory_clear (MusterCheckpointDirectory *self)
{
  unlock_all (self);
  g_free (self->id);
  g_clear_object (&self->storage);
  g_clear_object (&self->clock);
  g_clear_object (&self->lease);
  g_free (self->base_name);
  g_free (self->latest_filename);
  muster_keep_rules_clear (&self->rules);
  g_clear_pointer (&self->meta_graph, g_bytes_unref);
  g_array_unref (self->claimed);
  g_ptr_array_unref (self->kept);
  g_ptr_array_unref (self->pending_deletes);
  g_hash_table_unref (self->causes);
  g_hash_table_unref (self->swept);
  g_hash_table_unref (self->strangers);
  g_hash_table_unref (self->left);
  g_free (self->run);
  g_mutex_clear (&self->publishing);
  g_mutex_clear (&self->lock);
}

void
muster_checkpoint_directory_open (MusterCheckpointDirectory *self, MusterStorage *storage,
                                  MusterClock *clock)
{
  self->storage = g_object_ref (storage);
  self->clock = g_object_ref (clock);
  /* Nothing is preserved at first, as in both of TensorFlow's classes. */
  self->mark = muster_checkpoint_directory_now (self) - (self->rules.by_last_kept ? 1 : 0);
}

void
muster_checkpoint_directory_set_lease (MusterCheckpointDirectory *self, MusterLease *lease)
{
  g_mutex_lock (&self->lock);
  g_autoptr (MusterLease) before = self->lease;
  self->lease = lease != NULL ? g_object_ref (lease) : NULL;
  if (before != lease) {
    g_array_set_size (self->claimed, 0);
    self->least_epoch = 0;
  }
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
  return muster_checkpoint_record_now (self->clock);
}

char *
muster_path_for_master (MusterStorage *storage, const char *path)
{
  return muster_storage_is_local (storage, path)
             ? g_canonicalize_filename (muster_local_path (path), NULL)
             : muster_path_without_slash (path);
}

char *
muster_path_without_slash (const char *path)
{
  gsize n = strlen (path);
  while (n > 1 && path[n - 1] == '/')
    n--;
  return g_strndup (path, n);
}

/* --- whose a directory is --- */

/* The directory counts epochs itself, in the side file, because a restarted master begins its
 * own count anew. A job without a lease claims with an id of its own. A saver that isn't a job's
 * claims nothing (`muster save` beside the job's chief). */

static gpointer
copy_id (gpointer id, gpointer user_data G_GNUC_UNUSED)
{
  return g_strdup (id);
}

/* Returns the name of a directory's holder, the same for two savers of one chief. Host and
 * process don't distinguish chiefs: in a container both are often the same after a restart. */
static char *
name_of (const MusterCheckpointDirectory *self, MusterLease *lease)
{
  if (lease == NULL)
    return g_strdup_printf ("the job at %s:%d (%.8s)", g_get_host_name (), (int)getpid (),
                            self->id);
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
    const Claimed *claimed = &g_array_index (self->claimed, Claimed, i);
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
  Claimed claimed = {.directory = g_strdup (directory), .epoch = epoch};
  g_mutex_lock (&self->lock);
  if (self->lease == lease)
    g_array_append_val (self->claimed, claimed);
  else
    claimed_clear (&claimed);
  g_mutex_unlock (&self->lock);
}

static gboolean
is_job (MusterCheckpointDirectory *self)
{
  g_mutex_lock (&self->lock);
  const gboolean is_one = self->is_job;
  g_mutex_unlock (&self->lock);
  return is_one;
}

static gboolean
claims (MusterCheckpointDirectory *self, MusterLease *lease)
{
  return lease != NULL || is_job (self);
}

void
muster_checkpoint_directory_begin_job (MusterCheckpointDirectory *self)
{
  g_mutex_lock (&self->lock);
  self->is_job = TRUE;
  g_mutex_unlock (&self->lock);
}

/* Returns the epoch for a claim that wasn't made yet. */
static gint64
epoch_for (MusterLease *lease, const MusterCheckpointRecord *record, gboolean is_noted)
{
  const gint64 own = lease != NULL ? muster_lease_epoch (lease) : 0;
  return is_noted ? record->epoch : MAX (own, record->epoch + 1);
}

gint64
muster_checkpoint_directory_next_epoch (MusterCheckpointDirectory *self, MusterStorage *storage,
                                        MusterLease *lease, const char *directory)
{
  const gint64 claimed = muster_checkpoint_directory_claimed_epoch (self, directory);
  if (!claims (self, lease) || claimed != 0)
    return claimed;
  g_autoptr (MusterCheckpointRecord) record =
      muster_checkpoint_record_read (storage, directory, NULL);
  g_autofree char *chief = name_of (self, lease);
  return record != NULL ? epoch_for (lease, record, g_strcmp0 (record->chief, chief) == 0) : 0;
}

void
muster_checkpoint_directory_raise_epoch (MusterCheckpointDirectory *self, gint64 epoch)
{
  g_mutex_lock (&self->lock);
  self->least_epoch = MAX (self->least_epoch, epoch);
  g_mutex_unlock (&self->lock);
}

static gint64
least_epoch (MusterCheckpointDirectory *self)
{
  g_mutex_lock (&self->lock);
  gint64 epoch = self->least_epoch;
  g_mutex_unlock (&self->lock);
  return epoch;
}

static void
write_holder (MusterCheckpointRecord *record, const char *chief, gint64 epoch, gboolean *changed)
{
  g_free (record->chief);
  record->chief = g_strdup (chief);
  record->epoch = epoch;
  *changed = TRUE;
}

/* Warns about the holder before, which is gone: this process has the lock. */
static void
warn_of_other (MusterCheckpointDirectory *self, const char *directory,
               const MusterCheckpointRecord *record)
{
  if (record->chief != NULL && !muster_checkpoint_directory_is_held (self, directory))
    muster_log (G_LOG_LEVEL_WARNING, "taken-over", "MESSAGE",
                "'%s' is taken over from %s, which hasn't ended its run there; if that job still "
                "runs, its next save is refused",
                directory, record->chief);
}

/* Claims the directory for the lease's chief, or checks that it still holds it. Needs the
 * directory's lock and its record. *changed: the record must be written. TRUE without a lease,
 * except for a job's. */
static gboolean
check_claim (MusterCheckpointDirectory *self, MusterLease *lease, const char *directory,
             MusterCheckpointRecord *record, gboolean *changed, GError **error)
{
  if (!claims (self, lease))
    return TRUE;
  gint64 epoch = muster_checkpoint_directory_claimed_epoch (self, directory);
  g_autofree char *chief = name_of (self, lease);
  gboolean is_noted = g_strcmp0 (record->chief, chief) == 0;

  if (epoch == 0) {
    epoch = epoch_for (lease, record, is_noted);
    note_claim (self, lease, directory, epoch);
    if (lease == NULL && !is_noted)
      warn_of_other (self, directory, record);
  }
  if (record->epoch > epoch || (record->epoch == epoch && !is_noted)) {
    return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                        "'%s'" MUSTER_TAKEN_OVER "%s, with epoch %" G_GINT64_FORMAT
                        " (this chief's is %" G_GINT64_FORMAT
                        "); this chief saves no more checkpoints there; end that "
                        "job, or use another directory, before you start this one again",
                        directory, record->chief != NULL ? record->chief : "another chief",
                        record->epoch, epoch);
  }
  const gint64 least = least_epoch (self);
  if (epoch < least) {
    epoch = least;
    note_claim (self, lease, directory, epoch);
  }
  if (record->epoch < epoch)
    write_holder (record, chief, epoch, changed);
  return TRUE;
}

MusterCheckpointRecord *
muster_checkpoint_directory_read_claimed (MusterCheckpointDirectory *self, MusterLease *lease,
                                          const MusterDirectoryLock *lock, const char *directory,
                                          gboolean *changed, GError **error)
{
  g_autoptr (MusterCheckpointRecord) record =
      lock != NULL ? muster_checkpoint_record_read_to_write (muster_directory_lock_storage (lock),
                                                             directory, error)
                   : NULL;

  if (record == NULL || !check_claim (self, lease, directory, record, changed, error))
    return NULL;
  return g_steal_pointer (&record);
}

void
muster_checkpoint_directory_forget_claim (MusterCheckpointDirectory *self, const char *directory)
{
  g_mutex_lock (&self->lock);
  for (guint i = self->claimed->len; i-- > 0;)
    if (strcmp (g_array_index (self->claimed, Claimed, i).directory, directory) == 0) {
      g_array_remove_index (self->claimed, i);
      break;
    }
  g_mutex_unlock (&self->lock);
}

static gboolean
change_once (MusterCheckpointDirectory *self, MusterLease *lease, const char *directory,
             MusterRecordChange change, gpointer data, gint64 deadline_us,
             GCancellable *cancellable, GError **error)
{
  gboolean is_claimed = FALSE, changed = FALSE;
  g_autoptr (GError) why = NULL;
  g_autoptr (MusterDirectoryLock) lock = muster_directory_lock (
      self->storage, directory, deadline_us, self->clock, cancellable, error);
  g_autoptr (MusterCheckpointRecord) record =
      muster_checkpoint_directory_read_claimed (self, lease, lock, directory, &is_claimed, error);

  if (record == NULL || (change != NULL && !change (self, record, &changed, data, error)))
    return FALSE;
  if ((!is_claimed && !changed) ||
      muster_checkpoint_record_write (muster_directory_lock_storage (lock), directory, record,
                                      &why))
    return TRUE;
  if (is_claimed && muster_error_is (why, MUSTER_ERROR_ABORTED))
    muster_checkpoint_directory_forget_claim (self, directory);
  g_propagate_error (error, g_steal_pointer (&why));
  return FALSE;
}

gboolean
muster_checkpoint_directory_change (MusterCheckpointDirectory *self, MusterLease *lease,
                                    const char *directory, MusterRecordChange change, gpointer data,
                                    gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  for (guint n_tries = 0;;) {
    GError *why = NULL;
    if (change_once (self, lease, directory, change, data, deadline_us, cancellable, &why))
      return TRUE;
    if (!muster_directory_try_again (&n_tries, deadline_us, self->clock, cancellable, why, error))
      return FALSE;
  }
}

gboolean
muster_checkpoint_directory_claim (MusterCheckpointDirectory *self, MusterLease *lease,
                                   const char *directory, gint64 deadline_us,
                                   GCancellable *cancellable, GError **error)
{
  g_autoptr (MusterStorage) storage =
      muster_storage_bound (self->storage, deadline_us, self->clock, cancellable);

  return !claims (self, lease) ||
         ((!is_job (self) ||
           muster_checkpoint_directory_hold (self, storage, lease, directory, error)) &&
          muster_checkpoint_directory_change (self, lease, directory, NULL, NULL, deadline_us,
                                              cancellable, error));
}

char *
muster_checkpoint_directory_holding (MusterCheckpointDirectory *self, const char *chief,
                                     const char *directory)
{
  g_autofree char *path = muster_path_for_master (self->storage, directory);
  return g_strdup_printf ("%s, in %s", chief, path);
}

void
muster_checkpoint_directory_announce (MusterCheckpointDirectory *self, MusterLease *lease,
                                      const char *directory, gint64 deadline_us,
                                      GCancellable *cancellable)
{
  const gint64 soon_us =
      muster_deadline_after (muster_clock_now_us (muster_system_clock ()), ANNOUNCE_US);
  g_autofree char *chief = name_of (self, lease);
  g_autofree char *holder = muster_checkpoint_directory_holding (self, chief, directory);
  MusterAnnouncement announcement = MUSTER_ANNOUNCEMENT_INIT;

  announcement.holder = holder;
  (void)muster_lease_announce (lease, &announcement, MIN (deadline_us, soon_us), cancellable, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "base/cancel_link.h"
#include "base/require.h"
#include "checkpoint/format/bundle_publish.h"
#include "checkpoint/format/bundle_writer.h"
#include "checkpoint/store/directory_lock.h"
#include "graph/graph_nodes.h"
#include "saver/probe_private.h"
#include "saver/saver_private.h"

#include <unistd.h>

#define STATE_FILE "checkpoint"

/* That a checkpoint is durable is told within this time, or not. */
#define WARN_FULL_AFTER_US (5 * MUSTER_SECOND)

/* A model that moves each time has somebody who won't rest. */
#define MOST_TRIES 5

/* Until the model has been at rest all through the work. */
static gboolean
work_quiesced (MusterSaver *self, MusterSession *session, MusterSaverWork work, gpointer data,
               gint64 *step, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  for (guint i = 0; i < MOST_TRIES; i++) {
    gboolean is_consistent = FALSE;
    if (!self->consistent_cut.quiesce (session, deadline_us, cancellable, self->consistent_cut_data,
                                       error) ||
        !work (data, error) ||
        (step != NULL && self->consistent_cut.number != NULL &&
         !self->consistent_cut.number (session, step, deadline_us, cancellable,
                                       self->consistent_cut_data, error)) ||
        !self->consistent_cut.check (session, &is_consistent, deadline_us, cancellable,
                                     self->consistent_cut_data, error))
      return FALSE;
    if (is_consistent)
      return TRUE;
    g_info ("the model changed during the save; saving again");
  }
  return muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED,
                      "the model changed during each of %d saves: a task doesn't pause for saves",
                      MOST_TRIES);
}

gboolean
muster_saver_work_in_consistent_cut (MusterSaver *self, MusterSession *session,
                                     MusterSaverWork work, gpointer data, gint64 *step,
                                     gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  if (self->consistent_cut.quiesce == NULL)
    return work (data, error);
  gboolean done = work_quiesced (self, session, work, data, step, deadline_us, cancellable, error);
  self->consistent_cut.release (session, self->consistent_cut_data);
  return done;
}

/* The files "TEMPORARY.*", as names in its directory. */
static char **
list_written (MusterSaver *self, const char *temporary, GError **error)
{
  g_autofree char *directory = g_path_get_dirname (temporary);
  g_autofree char *name = g_path_get_basename (temporary);
  g_autofree char *start = g_strconcat (name, ".", NULL);
  g_auto (GStrv) all = muster_storage_list (self->storage, directory, error);
  g_autoptr (GStrvBuilder) written = g_strv_builder_new ();

  if (all == NULL)
    return NULL;
  for (char **file = all; *file; file++)
    if (g_str_has_prefix (*file, start))
      g_strv_builder_add (written, *file);
  return g_strv_builder_end (written);
}

static const char *
device_that_wrote (MusterSaver *self)
{
  g_autofree char *name = NULL;

  muster_graph_split_input (self->info.save_tensor, &name);
  const Tensorflow__NodeDef *node =
      muster_graph_find_node (muster_meta_graph_graph (self->meta_graph), name);
  return node != NULL && node->device != NULL && *node->device ? node->device
                                                               : "its default device";
}

static gboolean
refuse_unseen (MusterSaver *self, const char *temporary, GError **error)
{
  g_autofree char *directory = g_path_get_dirname (temporary);
  return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                      "the master saved on %s, but host '%s' doesn't see the files in '%s': the "
                      "directory isn't shared; use a shared directory",
                      device_that_wrote (self), g_get_host_name (), directory);
}

static gboolean
has_index (MusterSaver *self, const char *temporary, char **written, GError **error)
{
  for (char **file = written; *file; file++)
    if (g_str_has_suffix (*file, ".index"))
      return TRUE;
  return refuse_unseen (self, temporary, error);
}

/* Makes durable what the session's master wrote at temporary, without the directory's lock. In this
 * process its writer has synced it. */
static gboolean
muster_saver_sync_written (MusterSaver *self, MusterSession *session, const char *temporary,
                           GError **error)
{
  g_autofree char *directory = g_path_get_dirname (temporary);
  g_auto (GStrv) written = list_written (self, temporary, error);

  if (written == NULL || !has_index (self, temporary, written, error))
    return FALSE;
  for (char **file = written; *file != NULL && !muster_session_is_here (session); file++) {
    g_autofree char *path = g_build_filename (directory, *file, NULL);
    if (!muster_storage_sync_directory (self->storage, path, error))
      return FALSE;
  }
  return TRUE;
}

/* PREFIX.meta, unless the options say otherwise. */
static gboolean
muster_saver_write_meta_graph (MusterSaver *self, const char *prefix, GError **error)
{
  g_autofree char *path = g_strconcat (prefix, ".meta", NULL);
  gsize size;
  const void *data = g_bytes_get_data (muster_meta_graph_bytes (self->meta_graph), &size);
  return !self->directory.with_meta_graph ||
         muster_storage_publish (self->storage, path, data, size, error);
}

/* Turns it into the checkpoint prefix, under the directory's lock; *published tells how far it has
 * come, and another call goes on from there. */
static gboolean
muster_saver_publish (MusterSaver *self, MusterSession *session, const char *temporary,
                      const char *prefix, gboolean *published, GError **error)
{
  if (!*published)
    *published = muster_session_is_here (session)
                     ? muster_bundle_publish_own (self->storage, temporary, prefix, error)
                     : muster_bundle_publish (self->storage, temporary, prefix, error);
  return *published && muster_saver_write_meta_graph (self, prefix, error);
}

/* A sharded save's parts lie in a directory of their own, TEMPORARY_temp_UNIQUE. */
static void
remove_quietly (MusterSaver *self, const char *path, const char *rest)
{
  g_auto (GStrv) parts =
      strstr (rest, "_temp_") != NULL ? muster_storage_list (self->storage, path, NULL) : NULL;

  for (char **part = parts; part != NULL && *part != NULL; part++) {
    g_autofree char *inside = g_build_filename (path, *part, NULL);
    (void)muster_storage_remove (self->storage, inside, NULL);
  }
  (void)muster_storage_remove (self->storage, path, NULL);
}

/* Takes away what is left of a save that failed. */
static void
muster_saver_discard_quietly (MusterSaver *self, const char *temporary)
{
  g_autofree char *directory = g_path_get_dirname (temporary);
  g_autofree char *name = g_path_get_basename (temporary);
  g_auto (GStrv) all = muster_storage_list (self->storage, directory, NULL);

  for (char **file = all; file != NULL && *file != NULL; file++) {
    const char *rest = g_str_has_prefix (*file, name) ? *file + strlen (name) : "";
    g_autofree char *path = g_build_filename (directory, *file, NULL);
    if (*rest == '.' || g_str_has_prefix (rest, "_temp_"))
      remove_quietly (self, path, rest);
  }
}

/* Asks the master, by an announcement that says nothing new. */
static gboolean
check_lease (MusterLease *lease, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  MusterAnnouncement nothing = MUSTER_ANNOUNCEMENT_INIT;
  return lease == NULL || muster_lease_announce (lease, &nothing, deadline_us, cancellable, error);
}

/* --- one save --- */

/* One save on its way. */
typedef struct {
  MusterSaver *saver;
  MusterSession *session;
  const MusterSaveHow *how;
  MusterLease *lease;       /* (owned) (nullable) */
  char *prefix;             /* (owned) */
  char *directory;          /* (owned) */
  char *temporary;          /* (owned) */
  GPtrArray *copied;        /* (owned) (nullable) what the saveables hold */
  const GPtrArray *tensors; /* those, or how's */
  MusterStorageLock *alive; /* (owned) (nullable) while it is written */
  gint64 step;
  gboolean is_unlisted;
  gboolean is_written; /* by the master */
  gboolean is_published;
  gboolean was_full; /* that is what the last stage failed with */
  guint64 bytes;
  char *trouble; /* (owned) (nullable) */
  MusterSpaceCheck space;
  gint64 began_us;
  gint64 deadline_us;
  GCancellable *cancellable; /* (nullable) */
} Save;

static void
save_clear (Save *self)
{
  g_clear_object (&self->lease);
  g_free (self->prefix);
  g_free (self->directory);
  g_free (self->temporary);
  g_clear_pointer (&self->copied, g_ptr_array_unref);
  g_free (self->trouble);
  g_free (self->space.why);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Save, save_clear)

static char *
name_for (MusterSaver *self, gint64 step, GError **error)
{
  const char *state_file =
      self->directory.latest_filename != NULL ? self->directory.latest_filename : STATE_FILE;

  if (step >= 0)
    return g_strdup_printf (self->pad_step_number ? "%s-%08" G_GINT64_FORMAT
                                                  : "%s-%" G_GINT64_FORMAT,
                            self->directory.base_name, step);
  if (self->info.sharded || strcmp (self->directory.base_name, state_file) != 0)
    return g_strdup (self->directory.base_name);
  muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
               "'latest_filename' collides with 'save_path': '%s' and '%s'", state_file,
               self->directory.base_name);
  return NULL;
}

char *
muster_saver_prefix_for (MusterSaver *self, const char *directory, gint64 step, GError **error)
{
  g_autofree char *name = name_for (self, step, error);
  return name != NULL ? g_build_filename (directory, name, NULL) : NULL;
}

/* What is to be saved, and as what; nothing has happened yet. */
static gboolean
name_it (Save *self, const char *directory, GError **error)
{
  const MusterSaveHow *how = self->how;

  self->prefix = how->prefix != NULL
                     ? g_strdup (how->prefix)
                     : muster_saver_prefix_for (self->saver, directory, self->step, error);
  if (self->prefix == NULL)
    return FALSE;
  self->directory = g_path_get_dirname (self->prefix);
  if (how->tensors == NULL && !self->saver->is_empty)
    self->copied = muster_saveables_copy (self->saver->saveables, NULL, error);
  self->tensors = how->tensors != NULL ? how->tensors : self->copied;
  return self->tensors != NULL || self->saver->is_empty;
}

/* Beside the checkpoint to be, so that a rename is enough; hidden from those who list checkpoints.
 * A forked process draws its parent's numbers: the process's own tells them apart. */
static char *
temporary_for (const Save *self, double drawn)
{
  g_autofree char *name = g_path_get_basename (self->prefix);
  guint32 own = (guint32)getpid () * 2654435761u;
  g_autofree char *temporary =
      g_strdup_printf (MUSTER_SAVING_PREFIX "%08x-%s", (guint32)(drawn * G_MAXUINT32) ^ own, name);
  return g_build_filename (self->directory, temporary, NULL);
}

/* The one reading of the clock from which all that the save may take is counted. */
static void
start (Save *self, gint64 deadline_us)
{
  MusterSaver *saver = self->saver;
  const gint64 limit_us = saver->save_timeout_us > 0 ? saver->save_timeout_us : MUSTER_WAIT_FOREVER;

  self->began_us = muster_clock_now_us (saver->clock);
  self->deadline_us = MIN (deadline_us, muster_deadline_after (self->began_us, limit_us));
  self->temporary = temporary_for (self, muster_clock_random (saver->clock));
  self->lease = muster_checkpoint_directory_lease (&saver->directory);
  self->is_unlisted = self->how->unlisted || saver->directory.unlisted;
  self->space = (MusterSpaceCheck){.directory = self->directory,
                                   .bytes = muster_saver_estimate (saver, self->tensors),
                                   .deadline_us = self->deadline_us,
                                   .cancellable = self->cancellable,
                                   .started_us = self->began_us};
}

/* --- the lock: one save at a time --- */

/* What is cancelled when the lock is free (transfer full); NULL: it was, and is ours. */
static GCancellable *
try_lock (MusterSaver *self)
{
  GCancellable *unlocked = NULL;

  g_mutex_lock (&self->lock);
  if (self->is_saving && self->save_unlocked == NULL)
    self->save_unlocked = g_cancellable_new ();
  if (self->is_saving)
    unlocked = g_object_ref (self->save_unlocked);
  self->is_saving = TRUE;
  g_mutex_unlock (&self->lock);
  return unlocked;
}

static gboolean
take_lock (Save *self, GError **error)
{
  MusterSaver *saver = self->saver;
  gboolean is_late = FALSE;

  for (;;) {
    if (g_cancellable_set_error_if_cancelled (self->cancellable, error))
      return FALSE;
    g_autoptr (GCancellable) unlocked = try_lock (saver);
    if (unlocked == NULL)
      return TRUE;
    if (is_late)
      return muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED,
                          "the previous save hasn't finished");
    g_auto (MusterCancelLink) either = muster_cancel_link (unlocked, self->cancellable);
    is_late = muster_clock_wait_until (saver->clock, self->deadline_us, either.cancellable, NULL);
  }
}

static void
release_lock (MusterSaver *self)
{
  g_mutex_lock (&self->lock);
  self->is_saving = FALSE;
  g_autoptr (GCancellable) unlocked = g_steal_pointer (&self->save_unlocked);
  g_mutex_unlock (&self->lock);
  if (unlocked != NULL)
    g_cancellable_cancel (unlocked);
}

/* --- its stages, with the lock --- */

/* A chief that was replaced finds that out before anything is written. */
static gboolean
begin (Save *self, GError **error)
{
  MusterSaver *saver = self->saver;

  if (!check_lease (self->lease, self->deadline_us, self->cancellable, error) ||
      !muster_saver_probe_once (saver, self->session, self->directory, self->deadline_us,
                                self->cancellable, error) ||
      !muster_storage_make_directory (saver->storage, self->directory, error) ||
      !muster_checkpoint_directory_claim (&saver->directory, self->lease, self->directory,
                                          self->deadline_us, self->cancellable, error))
    return FALSE;
  muster_checkpoint_directory_sweep_once (&saver->directory, self->directory);
  if (self->alive == NULL)
    self->alive = muster_checkpoint_directory_mark_alive (&saver->directory, self->temporary);
  return TRUE;
}

/* Runs the save op with the prefix fed: its tensor depends on the files being there. */
static gboolean
run_save (const Save *self, const char *prefix, GError **error)
{
  const MusterSaverInfo *info = &self->saver->info;
  g_autofree char *path = muster_path_for_master (self->saver->storage, prefix);
  g_autoptr (MusterTensor) name = muster_tensor_new_string (path);
  g_autoptr (MusterTensor) written = NULL;
  const char *save_tensor =
      self->how->save_tensor != NULL ? self->how->save_tensor : info->save_tensor;
  MusterFeed feed = {info->filename_tensor, name};
  gboolean is_tensor = strchr (save_tensor, ':') != NULL;
  MusterStep step = {.feeds = &feed,
                     .n_feeds = 1,
                     .fetches = &save_tensor,
                     .n_fetches = is_tensor ? 1 : 0,
                     .targets = &save_tensor,
                     .n_targets = is_tensor ? 0 : 1,
                     .deadline_us = self->deadline_us};
  return muster_session_run (self->session, &step, &written, NULL, self->cancellable, error);
}

/* What the master holds, and what lies outside the graph beside it: two parts of one checkpoint. */
static gboolean
write_files (const Save *self, GError **error)
{
  if (self->tensors->len == 0)
    return run_save (self, self->temporary, error);
  g_autofree char *masters = g_strconcat (self->temporary, ".master", NULL);
  g_autofree char *chiefs = g_strconcat (self->temporary, ".chief", NULL);
  const char *parts[] = {masters, chiefs, NULL};
  MusterStorage *storage = self->saver->storage;
  return run_save (self, masters, error) &&
         muster_named_tensors_write (self->tensors, storage, chiefs, error) &&
         muster_bundle_merge (storage, parts, self->temporary, error);
}

/* Over what a try before has written, where the model had moved. */
static gboolean
write_once (gpointer data, GError **error)
{
  Save *self = data;

  if (self->is_written)
    muster_saver_discard_quietly (self->saver, self->temporary);
  self->is_written = write_files (self, error);
  return self->is_written;
}

/* By the step that the cut says, unless the caller has told the name. */
static gboolean
rename_to (Save *self, gint64 step, GError **error)
{
  if (step == self->step)
    return TRUE;
  char *renamed = muster_saver_prefix_for (self->saver, self->directory, step, error);
  if (renamed == NULL)
    return FALSE;
  g_free (self->prefix);
  self->prefix = renamed;
  self->step = step;
  return TRUE;
}

/* A snapshot is a cut already. */
static gboolean
write_consistent_cut (Save *self, GError **error)
{
  gint64 step = self->step;

  if (self->how->save_tensor != NULL)
    return write_once (self, error);
  return muster_saver_work_in_consistent_cut (self->saver, self->session, write_once, self,
                                              self->how->prefix != NULL ? NULL : &step,
                                              self->deadline_us, self->cancellable, error) &&
         rename_to (self, step, error);
}

static gboolean
write_all (Save *self, GError **error)
{
  MusterSaver *saver = self->saver;
  g_autoptr (GError) failure = NULL;

  if (!muster_free_space_find (&saver->free_space, &self->space, error))
    return FALSE;
  if (self->space.why != NULL)
    return TRUE;
  if (write_consistent_cut (self, &failure)) {
    if (self->how->written != NULL)
      self->how->written (self->how->written_data);
    return TRUE;
  }
  self->was_full = muster_free_space_was_full (&saver->free_space, &self->space, failure);
  muster_saver_discard_quietly (saver, self->temporary);
  self->is_written = FALSE;
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

/* With the directory's lock: publishes and records. */
static gboolean
publish_locked (Save *self, MusterCheckpointRecord *record, GError **error)
{
  MusterSaver *saver = self->saver;
  gboolean changed = FALSE;

  if (!muster_checkpoint_directory_check_claim (&saver->directory, self->lease, self->directory,
                                                record, &changed, error) ||
      !muster_saver_publish (saver, self->session, self->temporary, self->prefix,
                             &self->is_published, error))
    return FALSE;
  return self->is_unlisted || muster_checkpoint_directory_record (
                                  &saver->directory, self->directory, self->prefix, self->step,
                                  record, &self->bytes, &self->trouble, error);
}

static gboolean
publish (Save *self, GError **error)
{
  MusterSaver *saver = self->saver;

  /* What takes long comes before the lock. */
  if ((!self->is_published &&
       !muster_saver_sync_written (saver, self->session, self->temporary, error)) ||
      !check_lease (self->lease, self->deadline_us, self->cancellable, error))
    return FALSE;
  g_autoptr (MusterDirectoryLock) lock = muster_directory_lock (
      saver->storage, self->directory, self->deadline_us, saver->clock, self->cancellable, error);
  g_autoptr (MusterCheckpointRecord) record =
      lock != NULL ? muster_checkpoint_record_read_to_write (saver->storage, self->directory, error)
                   : NULL;
  return record != NULL && publish_locked (self, record, error);
}

/* The checkpoint is there, whether or not the master hears of it; only a lease that is lost
 * counts. */
static gboolean
announce (Save *self, GError **error)
{
  MusterAnnouncement durable = MUSTER_ANNOUNCEMENT_INIT;
  g_autoptr (GError) failure = NULL;

  if (self->space.why != NULL || self->is_unlisted || self->lease == NULL || self->step < 0)
    return TRUE;
  gint64 soon_us =
      muster_deadline_after (muster_clock_now_us (self->saver->clock), WARN_FULL_AFTER_US);
  durable.durable_step = self->step;
  durable.durable = self->prefix;
  if (muster_lease_announce (self->lease, &durable, MIN (self->deadline_us, soon_us),
                             self->cancellable, &failure) ||
      !muster_error_is (failure, MUSTER_ERROR_FAILED_PRECONDITION))
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

/* Tries a stage until it is done, the save is to be skipped, or it has failed. */
static gboolean
go_through (Save *self, gboolean (*stage) (Save *self, GError **error), GError **error)
{
  const MusterFreeSpace *free_space = &self->saver->free_space;

  for (;;) {
    GError *failure = NULL;
    self->was_full = FALSE;
    if (self->space.why != NULL || stage (self, &failure))
      return TRUE;
    if (!self->was_full && !muster_free_space_was_full (free_space, &self->space, failure)) {
      g_propagate_error (error, failure);
      return FALSE;
    }
    if (!muster_free_space_after_full (free_space, &self->space, failure, error))
      return FALSE;
  }
}

/* Leaves nothing of one that was given up, and lets the next one in. */
static void
end (Save *self)
{
  if (self->is_written && !self->is_published)
    muster_saver_discard_quietly (self->saver, self->temporary);
  muster_checkpoint_directory_unmark_alive (&self->saver->directory, self->temporary, self->alive);
  release_lock (self->saver);
}

/* SAV.25: the meta graph alone. */
static gboolean
write_nothing (Save *self, GError **error)
{
  MusterSaver *saver = self->saver;

  self->space.why = g_strdup ("the model has no variables to save");
  return !saver->directory.with_meta_graph ||
         (muster_storage_make_directory (saver->storage, self->directory, error) &&
          muster_saver_write_meta_graph (saver, self->prefix, error));
}

static void
report (Save *self, MusterSaved *saved)
{
  gboolean skipped = self->space.why != NULL;

  *saved = (MusterSaved){
      .prefix = skipped ? NULL : g_steal_pointer (&self->prefix),
      .step = MAX (self->step, -1),
      .bytes = self->bytes,
      .took_us = muster_clock_now_us (self->saver->clock) - self->began_us,
      .skipped = skipped,
      .why = g_strdup (skipped ? self->space.why : self->trouble),
  };
}

gboolean
muster_saver_save_with (MusterSaver *self, MusterSession *session, const char *directory,
                        gint64 step, const MusterSaveHow *how, MusterSaved *saved,
                        gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  static const MusterSaveHow plain;

  muster_require (error, FALSE, self, session, directory, saved);

  g_auto (Save) save = {.saver = self,
                        .session = session,
                        .how = how != NULL ? how : &plain,
                        .step = step,
                        .cancellable = cancellable};
  if (!muster_saver_check_session (self, session, error) ||
      !muster_saver_check_directory (self, directory, error) ||
      !muster_deadline_check (deadline_us, error) || !name_it (&save, directory, error))
    return FALSE;
  start (&save, deadline_us);
  g_autofree char *named = g_strdup (save.prefix); /* the cut may call it otherwise */
  gboolean done = FALSE;
  if (self->is_empty) {
    done = write_nothing (&save, error);
  } else if (take_lock (&save, error)) {
    done = go_through (&save, begin, error) && go_through (&save, write_all, error) &&
           go_through (&save, publish, error) && announce (&save, error);
    end (&save);
  }
  if (done)
    report (&save, saved);
  else
    g_prefix_error (error, "Saving '%s': ", named);
  return done;
}

char *
muster_saver_save (MusterSaver *self, MusterSession *session, const char *directory, gint64 step,
                   gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  muster_require (error, NULL, self, session, directory);

  g_auto (MusterSaved) saved = {0};

  if (!muster_saver_save_with (self, session, directory, step, NULL, &saved, deadline_us,
                               cancellable, error))
    return NULL;
  if (!saved.skipped)
    return g_steal_pointer (&saved.prefix);
  muster_fail (error,
               self->is_empty ? MUSTER_ERROR_FAILED_PRECONDITION : MUSTER_ERROR_RESOURCE_EXHAUSTED,
               "Saving in '%s': skipped: %s", directory, saved.why);
  return NULL;
}

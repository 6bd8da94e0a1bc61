// SPDX-License-Identifier: Apache-2.0
#include "base/require.h"
#include "checkpoint/format/bundle_publish.h"
#include "checkpoint/format/bundle_writer.h"
#include "checkpoint/store/directory_lock.h"
#include "graph/graph_nodes.h"
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
    gboolean is_shortened = FALSE;
    if (!self->consistent_cut.quiesce (session, deadline_us, cancellable, self->consistent_cut_data,
                                       error) ||
        !work (data, error) ||
        (step != NULL && self->consistent_cut.number != NULL &&
         !self->consistent_cut.number (session, step, deadline_us, cancellable,
                                       self->consistent_cut_data, error)) ||
        !self->consistent_cut.check (session, &is_shortened, deadline_us, cancellable,
                                     self->consistent_cut_data, error))
      return FALSE;
    if (is_shortened)
      return TRUE;
    g_info ("The model has moved while it was saved: it is saved again");
  }
  return muster_fail (
      error, MUSTER_ERROR_DEADLINE_EXCEEDED,
      "the model has moved during each of %d saves: some task doesn't wait while it is "
      "told to hold",
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
  return muster_fail (
      error, MUSTER_ERROR_FAILED_PRECONDITION,
      "The master saved, on %s, and host '%s' sees nothing of it in '%s': the directory "
      "isn't shared between them. Give one that both see",
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

/* The checkpoint is there, whether or not the master hears of it; only a lease that is lost
 * counts. */
static gboolean
announce_durable (MusterSaver *self, MusterLease *lease, const char *prefix, gint64 step,
                  gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  MusterAnnouncement durable = MUSTER_ANNOUNCEMENT_INIT;
  g_autoptr (GError) failure = NULL;
  gint64 soon_us = muster_deadline_after (muster_clock_now_us (self->clock), WARN_FULL_AFTER_US);

  if (lease == NULL || step < 0)
    return TRUE;
  durable.durable_step = step;
  durable.durable = (char *)prefix;
  if (muster_lease_announce (lease, &durable, MIN (deadline_us, soon_us), cancellable, &failure) ||
      !muster_error_is (failure, MUSTER_ERROR_FAILED_PRECONDITION))
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

/* Runs the save op with the prefix fed: its tensor depends on the files being there. */
static gboolean
run_save (MusterSaver *self, MusterSession *session, const char *prefix, const MusterSaveHow *how,
          gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  g_autofree char *path = muster_path_for_master (self->storage, prefix);
  g_autoptr (MusterTensor) name = muster_tensor_new_string (path);
  g_autoptr (MusterTensor) written = NULL;
  const char *save_tensor = how->save_tensor != NULL ? how->save_tensor : self->info.save_tensor;
  MusterFeed feed = {self->info.filename_tensor, name};
  gboolean is_tensor = strchr (save_tensor, ':') != NULL;
  MusterStep step = {.feeds = &feed,
                     .n_feeds = 1,
                     .fetches = &save_tensor,
                     .n_fetches = is_tensor ? 1 : 0,
                     .targets = &save_tensor,
                     .n_targets = is_tensor ? 0 : 1,
                     .deadline_us = deadline_us};
  return muster_session_run (session, &step, &written, NULL, cancellable, error);
}

/* Beside the checkpoint to be, so that a rename is enough; hidden from those who list checkpoints.
 * A forked process draws its parent's numbers: the process's own tells them apart. */
static char *
temporary_for (MusterSaver *self, const char *prefix)
{
  g_autofree char *directory = g_path_get_dirname (prefix);
  g_autofree char *name = g_path_get_basename (prefix);
  guint32 drawn = (guint32)(muster_clock_random (self->clock) * G_MAXUINT32);
  guint32 own = (guint32)getpid () * 2654435761u;
  g_autofree char *temporary = g_strdup_printf (MUSTER_SAVING_PREFIX "%08x-%s", drawn ^ own, name);
  return g_build_filename (directory, temporary, NULL);
}

/* What the master holds, and what lies outside the graph beside it: two parts of one checkpoint. */
static gboolean
write_files (MusterSaver *self, MusterSession *session, const char *temporary,
             const MusterSaveHow *how, gint64 deadline_us, GCancellable *cancellable,
             GError **error)
{
  if (how->tensors == NULL || how->tensors->len == 0)
    return run_save (self, session, temporary, how, deadline_us, cancellable, error);
  g_autofree char *masters = g_strconcat (temporary, ".master", NULL);
  g_autofree char *chiefs = g_strconcat (temporary, ".chief", NULL);
  const char *parts[] = {masters, chiefs, NULL};
  return run_save (self, session, masters, how, deadline_us, cancellable, error) &&
         muster_named_tensors_write (how->tensors, self->storage, chiefs, error) &&
         muster_bundle_merge (self->storage, parts, temporary, error);
}

/* One save on its way. */
typedef struct {
  MusterSaver *saver;
  MusterSession *session;
  MusterLease *lease; /* (nullable) */
  const char *prefix;
  char *renamed;            /* (owned) (nullable) prefix, where the cut names it */
  char *directory;          /* (owned) */
  char *temporary;          /* (owned) */
  MusterStorageLock *alive; /* (owned) (nullable) while it is written */
  gint64 step;
  const MusterSaveHow *how;
  gboolean is_unlisted;
  gboolean is_written; /* by the master */
  gboolean is_published;
  gboolean was_full; /* that is what the last stage failed with */
  guint64 bytes;
  char *trouble; /* (owned) (nullable) */
  MusterSpaceCheck space;
  gint64 deadline_us;
  GCancellable *cancellable; /* (nullable) */
} Save;

static void
save_clear (Save *self)
{
  g_free (self->renamed);
  g_free (self->directory);
  g_free (self->temporary);
  g_free (self->trouble);
  g_free (self->space.why);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Save, save_clear)

/* A chief that was replaced finds that out before anything is written. */
static gboolean
begin (Save *self, GError **error)
{
  if (!check_lease (self->lease, self->deadline_us, self->cancellable, error) ||
      !muster_saver_probe_once (self->saver, self->session, self->directory, self->deadline_us,
                                self->cancellable, error) ||
      !muster_storage_make_directory (self->saver->storage, self->directory, error) ||
      !muster_checkpoint_directory_claim (&self->saver->directory, self->lease, self->directory,
                                          self->deadline_us, self->cancellable, error))
    return FALSE;
  muster_checkpoint_directory_sweep_once (&self->saver->directory, self->directory);
  if (self->alive == NULL)
    self->alive = muster_checkpoint_directory_mark_alive (&self->saver->directory, self->temporary);
  return TRUE;
}

/* Over what a try before has written, where the model had moved. */
static gboolean
write_once (gpointer data, GError **error)
{
  Save *self = data;

  if (self->is_written)
    muster_saver_discard_quietly (self->saver, self->temporary);
  self->is_written = write_files (self->saver, self->session, self->temporary, self->how,
                                  self->deadline_us, self->cancellable, error);
  return self->is_written;
}

/* The step that the cut says. */
static gboolean
rename_to (Save *self, gint64 step, GError **error)
{
  g_free (self->renamed);
  self->renamed = muster_saver_prefix_for (self->saver, self->directory, step, error);
  self->prefix = self->renamed;
  self->step = step;
  return self->renamed != NULL;
}

/* A snapshot is a cut already. */
static gboolean
write_consistent_cut (Save *self, GError **error)
{
  if (self->how->save_tensor != NULL)
    return write_once (self, error);

  gint64 step = self->step;
  if (!muster_saver_work_in_consistent_cut (self->saver, self->session, write_once, self,
                                            self->how->keeps_name ? NULL : &step, self->deadline_us,
                                            self->cancellable, error))
    return FALSE;
  return step == self->step || rename_to (self, step, error);
}

static gboolean
write_all (Save *self, GError **error)
{
  g_autoptr (GError) failure = NULL;

  if (!muster_free_space_find (&self->saver->free_space, &self->space, error))
    return FALSE;
  if (self->space.why != NULL)
    return TRUE;
  if (write_consistent_cut (self, &failure)) {
    if (self->how->written != NULL)
      self->how->written (self->how->written_data);
    return TRUE;
  }
  self->was_full = muster_free_space_was_full (&self->saver->free_space, &self->space, failure);
  muster_saver_discard_quietly (self->saver, self->temporary);
  self->is_written = FALSE;
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

/* With the directory's lock. */
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

/* Tries a stage until it is done, the save is to be skipped, or it has failed. */
static gboolean
go_through (Save *self, gboolean (*stage) (Save *self, GError **error), GError **error)
{
  for (;;) {
    GError *failure = NULL;
    self->was_full = FALSE;
    if (self->space.why != NULL || stage (self, &failure))
      return TRUE;
    if (!self->was_full &&
        !muster_free_space_was_full (&self->saver->free_space, &self->space, failure)) {
      g_propagate_error (error, failure);
      return FALSE;
    }
    if (!muster_free_space_after_full (&self->saver->free_space, &self->space, failure, error))
      return FALSE;
  }
}

static gboolean
save_locked (Save *self, GError **error)
{
  gboolean done = go_through (self, begin, error) && go_through (self, write_all, error) &&
                  (self->space.why != NULL || go_through (self, publish, error));

  if ((!done || self->space.why != NULL) && self->is_written && !self->is_published)
    muster_saver_discard_quietly (self->saver, self->temporary);
  if (!done || self->space.why != NULL || self->is_unlisted)
    return done;
  return announce_durable (self->saver, self->lease, self->prefix, self->step, self->deadline_us,
                           self->cancellable, error);
}

/* How often whoever waits for the turn looks at its own deadline. */
#define POLL_US (50 * MUSTER_MILLISECOND)

static gboolean
muster_saver_lock_save (MusterSaver *self, gint64 deadline_us, GCancellable *cancellable,
                        GError **error)
{
  gboolean is_ours = FALSE;

  g_mutex_lock (&self->lock);
  while (!is_ours && !g_cancellable_is_cancelled (cancellable)) {
    is_ours = !self->is_saving;
    if (is_ours || muster_clock_now_us (self->clock) >= deadline_us)
      break;
    (void)g_cond_wait_until (&self->save_unlocked, &self->lock, g_get_monotonic_time () + POLL_US);
  }
  self->is_saving = self->is_saving || is_ours;
  g_mutex_unlock (&self->lock);
  if (!is_ours && !g_cancellable_set_error_if_cancelled (cancellable, error))
    muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED, "the save before hasn't ended yet");
  return is_ours;
}

static void
muster_saver_unlock_save (MusterSaver *self)
{
  g_mutex_lock (&self->lock);
  self->is_saving = FALSE;
  g_cond_broadcast (&self->save_unlocked);
  g_mutex_unlock (&self->lock);
}

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

/* Tells of a save that has ended well. */
static gboolean
tell (Save *self, GError **error)
{
  MusterSaved *saved = self->how->saved;

  if (saved == NULL && self->space.why != NULL) {
    return muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED, "skipped: %s", self->space.why);
  }
  if (saved == NULL)
    return TRUE;
  *saved = (MusterSaved){
      .step = MAX (self->step, -1),
      .bytes = self->bytes,
      .took_us = muster_clock_now_us (self->saver->clock) - self->space.started_us,
      .skipped = self->space.why != NULL,
  };
  saved->prefix = saved->skipped ? NULL : g_strdup (self->prefix);
  saved->why = g_strdup (saved->skipped ? self->space.why : self->trouble);
  return TRUE;
}

gboolean
muster_saver_save_how (MusterSaver *self, MusterSession *session, const char *prefix, gint64 step,
                       const MusterSaveHow *how, gint64 deadline_us, GCancellable *cancellable,
                       GError **error)
{
  const gint64 limit_us = self->save_timeout_us > 0 ? self->save_timeout_us : MUSTER_WAIT_FOREVER;

  if (!muster_deadline_check (deadline_us, error))
    return FALSE;
  deadline_us =
      MIN (deadline_us, muster_deadline_after (muster_clock_now_us (self->clock), limit_us));
  g_autoptr (MusterLease) lease = muster_checkpoint_directory_lease (&self->directory);
  g_auto (Save) save = {.saver = self,
                        .session = session,
                        .lease = lease,
                        .prefix = prefix,
                        .directory = g_path_get_dirname (prefix),
                        .temporary = temporary_for (self, prefix),
                        .step = step,
                        .how = how,
                        .is_unlisted = how->unlisted || self->directory.unlisted,
                        .deadline_us = deadline_us,
                        .cancellable = cancellable};
  save.space = (MusterSpaceCheck){.directory = save.directory,
                                  .bytes = muster_saver_estimate (self, how->tensors),
                                  .deadline_us = deadline_us,
                                  .cancellable = cancellable,
                                  .started_us = muster_clock_now_us (self->clock)};
  gboolean saved = muster_saver_lock_save (self, deadline_us, cancellable, error);
  if (saved) {
    saved = save_locked (&save, error);
    muster_checkpoint_directory_unmark_alive (&self->directory, save.temporary, save.alive);
    muster_saver_unlock_save (self);
  }
  if (saved && tell (&save, error))
    return TRUE;
  g_prefix_error (error, "Saving '%s': ", prefix);
  return FALSE;
}

/* SAV.25 */
static gboolean
save_nothing (MusterSaver *self, const char *prefix, gint64 step, MusterSaved *saved,
              GError **error)
{
  g_autofree char *directory = g_path_get_dirname (prefix);

  if (self->directory.with_meta_graph &&
      (!muster_storage_make_directory (self->storage, directory, error) ||
       !muster_saver_write_meta_graph (self, prefix, error))) {
    g_prefix_error (error, "Saving '%s': ", prefix);
    return FALSE;
  }
  if (saved != NULL)
    *saved = (MusterSaved){.step = MAX (step, -1),
                           .skipped = TRUE,
                           .why = g_strdup ("the model has no variables to save")};
  return TRUE;
}

gboolean
muster_saver_save_full (MusterSaver *self, MusterSession *session, const char *directory,
                        gint64 step, MusterSaved *saved, gint64 deadline_us,
                        GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self, session, directory, saved);

  if (!muster_saver_check_session (self, session, error) ||
      !muster_saver_check_directory (self, directory, error))
    return FALSE;
  g_autofree char *prefix = muster_saver_prefix_for (self, directory, step, error);
  if (prefix != NULL && self->is_empty)
    return save_nothing (self, prefix, step, saved, error);
  g_autoptr (GPtrArray) tensors =
      prefix != NULL ? muster_saveables_copy (self->saveables, NULL, error) : NULL;
  MusterSaveHow how = {.tensors = tensors, .saved = saved};
  return tensors != NULL &&
         muster_saver_save_how (self, session, prefix, step, &how, deadline_us, cancellable, error);
}

char *
muster_saver_save (MusterSaver *self, MusterSession *session, const char *directory, gint64 step,
                   gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  muster_require (error, NULL, self, session, directory);

  g_auto (MusterSaved) saved = {0};

  if (!muster_saver_save_full (self, session, directory, step, &saved, deadline_us, cancellable,
                               error))
    return NULL;
  if (!saved.skipped)
    return g_steal_pointer (&saved.prefix);
  muster_fail (error,
               self->is_empty ? MUSTER_ERROR_FAILED_PRECONDITION : MUSTER_ERROR_RESOURCE_EXHAUSTED,
               "Saving in '%s': skipped: %s", directory, saved.why);
  return NULL;
}

// SPDX-License-Identifier: Apache-2.0
/* One save, from its name to the announcement. save_in_tier () has the stages, with the saver's
 * lock: begin (lease, place, claim, space), write_all (the master's part and what lies outside the
 * graph, under a hidden name), publish, announce. A stage that finds the disk full is repeated once
 * there is space. A fast tier that fails is dropped, and the next tier takes the save. */
#include "base/cancel_link_private.h"
#include "base/require_private.h"
#include "checkpoint/format/bundle_place_private.h"
#include "checkpoint/format/bundle_publish_private.h"
#include "checkpoint/format/bundle_writer.h"
#include "checkpoint/state/record_keys_private.h"
#include "checkpoint/store/alive_mark_private.h"
#include "checkpoint/store/storage_failure_private.h"
#include "checkpoint/store/storage_private.h"
#include "graph/graph_nodes_private.h"
#include "master/step_check_private.h"
#include "saver/consistent_cut_private.h"
#include "saver/gather_private.h"
#include "saver/probe_private.h"
#include "saver/saver_private.h"

#include <math.h>
#include <unistd.h>

#define STATE_FILE "checkpoint"

/* Timeout of announcing a durable checkpoint. */
#define WARN_FULL_AFTER_US (5 * MUSTER_SECOND)

/* A fast tier whose directory stays locked for longer is dropped. */
#define FAST_LOCK_US (30 * MUSTER_SECOND)

/* --- one save --- */

/* One save under way. */
typedef struct {
  MusterSaver *saver;
  MusterSession *session;
  const MusterSaveHow *how;
  MusterSaveTicket *ticket; /* (owned) (nullable) NULL if there is nothing to save */
  guint tier;
  MusterStorage
      *storage; /* (owned) (nullable) the saver's, bound like the save; from start () on */
  MusterCheckpointDirectory *home;   /* the tier's */
  const MusterFreeSpace *free_space; /* the tier's */
  MusterLease *lease;                /* (owned) (nullable) */
  MusterNewCheckpoint made;          /* its names are owned */
  char *path;                        /* (owned) where the master writes, by the master's path */
  char *staged;  /* (owned) (nullable) the staging directory's path, if the master can't write into
                    the directory */
  char *gathers; /* (owned) (nullable) why this process writes what it reads through the session */
  GArray *metrics;          /* (owned) (nullable) (element-type MusterSideMetric) */
  GPtrArray *copied;        /* (owned) (nullable) the saveables' tensors, of the last try */
  char **left_out;          /* (owned) (nullable) those that couldn't be copied */
  MusterStorageLock *alive; /* (owned) (nullable) while it is written */
  gboolean has_parts;       /* the master writes one part, this process another */
  gboolean is_written;      /* by the master */
  gboolean was_full;        /* the last stage failed because the disk was full */
  gboolean has_begun;       /* it had the lock */
  gboolean gave_up_full;    /* it failed because the disk was full */
  MusterSpaceCheck space;
  gint64 began_us;
  gint64 deadline_us;
  GCancellable *cancellable; /* (nullable) */
} Save;

static void
save_clear (Save *self)
{
  g_clear_pointer (&self->ticket, muster_save_ticket_unref);
  g_clear_object (&self->storage);
  g_clear_object (&self->lease);
  g_free (self->made.prefix);
  g_free (self->made.directory);
  g_free (self->made.temporary);
  g_free (self->made.trouble);
  g_clear_pointer (&self->metrics, g_array_unref);
  g_free (self->path);
  g_free (self->staged);
  g_free (self->gathers);
  g_clear_pointer (&self->copied, g_ptr_array_unref);
  g_strfreev (self->left_out);
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
  if (step > MUSTER_RECORD_MAX_NUMBER) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "invalid step '%" G_GINT64_FORMAT "': the largest is %" G_GINT64_FORMAT, step,
                 MUSTER_RECORD_MAX_NUMBER);
    return NULL;
  }
  g_autofree char *name = name_for (self, step, error);
  return name != NULL ? g_build_filename (directory, name, NULL) : NULL;
}

/* Returns a hidden name beside the checkpoint, so that a rename is enough; in a store without
 * renames, only the index has it. A forked process draws the same random numbers as its parent, so
 * the name contains the process's own number. */
static char *
temporary_for (const Save *self, double drawn)
{
  g_autofree char *name = g_path_get_basename (self->made.prefix);
  guint32 own = (guint32)getpid () * 2654435761u;
  const char *prefix = muster_storage_can_rename (self->saver->storage, self->made.prefix)
                           ? MUSTER_SAVING_PREFIX
                           : MUSTER_PLACING_PREFIX;
  g_autofree char *temporary =
      g_strdup_printf ("%s%08x-%s", prefix, (guint32)(drawn * G_MAXUINT32) ^ own, name);
  return g_build_filename (self->made.directory, temporary, NULL);
}

/* Decides the checkpoint's name, and reads the clock once: everything that the save may take is
 * counted from there. Nothing has happened yet. */
static gboolean
start (Save *self, const char *directory, gint64 deadline_us, GError **error)
{
  MusterSaver *saver = self->saver;
  const MusterSaveHow *how = self->how;
  const gint64 limit_us = saver->save_timeout_us > 0 ? saver->save_timeout_us : MUSTER_WAIT_FOREVER;
  self->began_us = muster_clock_now_us (saver->clock);
  self->deadline_us = MIN (deadline_us, muster_deadline_after (self->began_us, limit_us));
  self->storage =
      muster_storage_bound (saver->storage, self->deadline_us, saver->clock, self->cancellable);
  self->made.prefix = how->prefix != NULL
                          ? g_strdup (how->prefix)
                          : muster_saver_prefix_for (saver, directory, self->made.step, error);
  if (self->made.prefix == NULL)
    return FALSE;
  self->made.directory = g_path_get_dirname (self->made.prefix);
  self->made.temporary = temporary_for (self, muster_clock_random (saver->clock));
  self->made.is_unlisted = how->unlisted || saver->directory.unlisted;
  return TRUE;
}

/* Returns the tensors outside the graph, as far as they are known yet. */
static const GPtrArray *
tensors_beside (const Save *self)
{
  return self->how->tensors != NULL ? self->how->tensors : self->copied;
}

/* Gathers what the save needs. The saveables' part of the size is known from the checkpoint
 * before, or once they are copied. */
static void
gather (Save *self)
{
  MusterSaver *saver = self->saver;
  self->space = (MusterSpaceCheck){.home = self->home,
                                   .made = &self->made,
                                   .directory = self->made.directory,
                                   .bytes = muster_saver_estimate (saver, tensors_beside (self)),
                                   .deadline_us = self->deadline_us,
                                   .cancellable = self->cancellable,
                                   .started_us = self->began_us};
  self->made.is_here = muster_session_is_here (self->session);
  self->lease = muster_checkpoint_directory_lease (&saver->directory);
  self->space.lease = self->lease;
  self->path = muster_path_for_master (saver->storage, self->made.temporary);
}

/* --- the lock: one save at a time --- */

/* Returns what is cancelled when the lock becomes free (transfer full), or NULL if the lock was
 * free and is taken now. */
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

/* Returns the deadline for the directory's lock. It is short for a fast tier, which is dropped
 * if another process keeps it locked. */
static gint64
lock_deadline (const Save *self)
{
  const gint64 limit_us =
      muster_deadline_after (muster_clock_now_us (self->saver->clock), FAST_LOCK_US);
  return self->tier < self->saver->tiers->n ? MIN (self->deadline_us, limit_us) : self->deadline_us;
}

/* Asks the master whether the lease is held, by an announcement of the saves' states. */
static gboolean
check_lease (const Save *self, GError **error)
{
  g_auto (MusterSaveStatus) status = MUSTER_SAVE_STATUS_INIT;
  MusterAnnouncement announcement = MUSTER_ANNOUNCEMENT_INIT;
  if (self->lease == NULL)
    return TRUE;
  muster_saver_status (self->saver, &status);
  announcement.saves = &status;
  return muster_lease_announce (self->lease, &announcement, self->deadline_us, self->cancellable,
                                error);
}

/* Lets the master write to a staging directory on this host, because it can't write into the
 * object store; send_staged () uploads the files. */
static gboolean
stage (Save *self, GError **error)
{
  g_autofree char *name = g_path_get_basename (self->made.prefix);
  g_autofree char *hidden = g_strconcat (MUSTER_SAVING_PREFIX "00000000-", name, NULL);
  const char *directory = muster_saver_staging (self->saver, error);

  if (directory == NULL)
    return FALSE;
  if (!muster_saver_probe_once (self->saver, self->session, directory, self->deadline_us,
                                self->cancellable, error))
    return FALSE;
  g_free (self->staged);
  g_free (self->path);
  self->staged = g_build_filename (directory, hidden, NULL);
  self->path = g_strdup (self->staged);
  return TRUE;
}

/* From now on this process writes what it reads through the session, and syncs it. */
static void
gather_because (Save *self, const char *why)
{
  self->gathers = g_strdup (why);
  self->made.is_here = TRUE;
}

static gboolean
find_place (Save *self, GError **error)
{
  MusterSaver *saver = self->saver;
  const char *directory = self->made.directory;
  g_autoptr (GError) why = NULL, no_stage = NULL;
  if (self->made.is_here)
    return TRUE;
  if (saver->gathered) {
    gather_because (self, "save-gathered is set");
    return TRUE;
  }
  if (muster_saver_probe_once (saver, self->session, directory, self->deadline_us,
                               self->cancellable, &why))
    return TRUE;
  if (!muster_error_is (why, MUSTER_ERROR_FAILED_PRECONDITION)) {
    g_propagate_error (error, g_steal_pointer (&why));
    return FALSE;
  }
  if (!muster_storage_can_rename (saver->storage, directory)) {
    if (stage (self, &no_stage))
      return TRUE;
    if (!muster_error_is (no_stage, MUSTER_ERROR_FAILED_PRECONDITION)) {
      g_propagate_error (error, g_steal_pointer (&no_stage));
      return FALSE;
    }
  }
  gather_because (self, why->message);
  return TRUE;
}

/* Finds out whether this chief was replaced, before anything is written. */
static gboolean
begin (Save *self, GError **error)
{
  const char *directory = self->made.directory;
  if (!check_lease (self, error) || !find_place (self, error) ||
      !muster_storage_make_directory (self->storage, directory, error) ||
      !muster_checkpoint_directory_claim (self->home, self->lease, directory, lock_deadline (self),
                                          self->cancellable, error))
    return FALSE;
  muster_checkpoint_directory_sweep_once (self->home, self->storage, directory);
  if (self->alive == NULL)
    self->alive = muster_alive_mark (self->storage, self->made.temporary, NULL);
  return muster_free_space_find (self->free_space, &self->space, error);
}

/* Removes a path. The parts of a sharded save are in a directory of their own,
 * TEMPORARY_temp_UNIQUE. */
static void
remove_quietly (MusterStorage *storage, const char *path, const char *rest)
{
  g_auto (GStrv) parts =
      strstr (rest, "_temp_") != NULL ? muster_storage_list (storage, path, NULL) : NULL;

  for (char **part = parts; part != NULL && *part != NULL; part++) {
    g_autofree char *inside = g_build_filename (path, *part, NULL);
    (void)muster_storage_remove (storage, inside, NULL);
  }
  (void)muster_storage_remove (storage, path, NULL);
}

static void
discard_files (MusterStorage *storage, const char *temporary)
{
  g_autofree char *directory = g_path_get_dirname (temporary);
  g_autofree char *name = g_path_get_basename (temporary);
  if (!muster_storage_can_rename (storage, directory))
    muster_bundle_discard (storage, temporary);
  g_auto (GStrv) all = muster_storage_list (storage, directory, NULL);

  for (char **file = all; file != NULL && *file != NULL; file++) {
    const char *rest = g_str_has_prefix (*file, name) ? *file + strlen (name) : "";
    g_autofree char *path = g_build_filename (directory, *file, NULL);
    if (*rest == '.' || g_str_has_prefix (rest, "_temp_"))
      remove_quietly (storage, path, rest);
  }
}

/* Removes what a failed try has left. */
static void
discard_quietly (Save *self)
{
  g_autoptr (MusterStorage) storage = muster_storage_for_cleanup (self->saver->storage);
  discard_files (storage, self->made.temporary);
  if (self->staged != NULL)
    discard_files (storage, self->staged);
  self->is_written = FALSE;
}

/* Judges the master's failure. If the master ended the step before the deadline, its store
 * didn't answer in time: its code becomes an outage, since others would mean a lost session or an
 * unusable directory. A file in place of its directory is FAILED_PRECONDITION, which here would
 * mean another chief, or a variable without a value. */
static gboolean
judge_writing (const Save *self, gboolean is_written, GError *failure, GError **error)
{
  if (is_written)
    return TRUE;
  if (muster_error_is (failure, MUSTER_ERROR_DEADLINE_EXCEEDED) &&
      muster_clock_now_us (self->saver->clock) < self->deadline_us)
    muster_storage_failure_set_outage (failure);
  if (muster_error_is (failure, MUSTER_ERROR_FAILED_PRECONDITION) &&
      !muster_step_lacks_value (failure))
    failure->code = MUSTER_ERROR_UNKNOWN;
  g_propagate_error (error, failure);
  return FALSE;
}

/* Runs the save op with the prefix fed. Its tensor is available once the files are written. */
static gboolean
run_save (const Save *self, const char *path, GError **error)
{
  const MusterSaverInfo *info = &self->saver->info;
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
  GError *failure = NULL;
  const gboolean is_written =
      muster_session_run (self->session, &step, &written, NULL, self->cancellable, &failure);
  return judge_writing (self, is_written, failure, error);
}

/* Reads the tensors of the save op through the session, and writes them under the temporary name.
 */
static gboolean
run_gather (const Save *self, const char *path, GError **error)
{
  const MusterGathering what = {.session = self->session,
                                .graph =
                                    self->how->save_tensor != NULL ? self->ticket->graph : NULL,
                                .save_tensor = self->how->save_tensor,
                                .why = self->gathers,
                                .directory = self->made.directory,
                                .deadline_us = self->deadline_us,
                                .cancellable = self->cancellable};
  GError *failure = NULL;
  const gboolean is_written =
      muster_saver_gather (self->saver, &what, self->storage, path, &failure);
  return judge_writing (self, is_written, failure, error);
}

/* Returns where the files are, by this process's path, until they are sent or published. */
static const char *
temporary_of (const Save *self)
{
  return self->staged != NULL ? self->staged : self->made.temporary;
}

/* Returns the path of a part of the checkpoint (transfer full). A store without renames copies
 * parts, whose names must differ from those of what is being placed. */
static char *
part_of (const Save *self, const char *path, const char *part)
{
  const char *between =
      muster_storage_can_rename (self->storage, temporary_of (self)) ? "." : "_temp_parts/";
  return g_strconcat (path, between, part, NULL);
}

/* Copies the state outside the graph at the same moment as the variables. */
static gboolean
copy_saveables (Save *self, GError **error)
{
  if (self->how->tensors != NULL || !self->has_parts)
    return TRUE;
  g_clear_pointer (&self->copied, g_ptr_array_unref);
  g_clear_pointer (&self->left_out, g_strfreev);
  self->copied = muster_saveables_copy (self->saver->saveables, &self->left_out, error);
  if (self->copied != NULL)
    self->space.bytes = muster_saver_estimate (self->saver, self->copied);
  return self->copied != NULL;
}

/* Writes in the cut. It replaces what an earlier try has written, if the model changed during
 * that. */
static gboolean
write_once (gpointer data, GError **error)
{
  Save *self = data;
  if (self->is_written)
    discard_quietly (self);
  self->has_parts = self->how->tensors != NULL ? self->how->tensors->len > 0
                                               : muster_saveables_has_any (self->saver->saveables);
  const char *whole = self->gathers != NULL ? self->made.temporary : self->path;
  g_autofree char *path = self->has_parts ? part_of (self, whole, "master") : g_strdup (whole);
  self->is_written =
      self->gathers != NULL ? run_gather (self, path, error) : run_save (self, path, error);
  return self->is_written && copy_saveables (self, error);
}

/* Writes what was copied in the cut, and joins it with the master's part. */
static gboolean
join_parts (const Save *self, GError **error)
{
  if (!self->has_parts)
    return TRUE;
  const char *temporary = temporary_of (self);
  g_autofree char *masters = part_of (self, temporary, "master");
  g_autofree char *chiefs = part_of (self, temporary, "chief");
  const GPtrArray *tensors = tensors_beside (self);
  const char *parts[] = {masters, tensors->len > 0 ? chiefs : NULL, NULL};
  return (tensors->len == 0 ||
          muster_named_tensors_write (tensors, self->storage, chiefs, error)) &&
         muster_bundle_merge (self->storage, parts, temporary, error);
}

/* Renames the checkpoint to the cut's step, unless the caller named it. */
static gboolean
rename_to (Save *self, gint64 step, GError **error)
{
  if (step == self->made.step)
    return TRUE;
  char *renamed = muster_saver_prefix_for (self->saver, self->made.directory, step, error);
  if (renamed == NULL)
    return FALSE;
  g_free (self->made.prefix);
  self->made.prefix = renamed;
  self->made.step = step;
  muster_save_ticket_rename (self->ticket, renamed, step);
  if (self->staged != NULL) { /* its data files are named when they are sent */
    g_free (self->made.temporary);
    self->made.temporary = temporary_for (self, muster_clock_random (self->saver->clock));
  }
  return TRUE;
}

/* Writes in a consistent cut. A snapshot is one already. */
static gboolean
write_consistent_cut (Save *self, GError **error)
{
  gint64 step = self->made.step;
  if (self->how->save_tensor != NULL)
    return write_once (self, error) && join_parts (self, error);
  return muster_saver_work_in_consistent_cut (self->saver, self->session, write_once, self,
                                              self->how->prefix != NULL ? NULL : &step,
                                              self->deadline_us, self->cancellable, error) &&
         join_parts (self, error) && rename_to (self, step, error);
}

/* Writes everything. Whether the disk was full is decided before the files are removed, because
 * that makes room. */
static gboolean
write_all (Save *self, GError **error)
{
  g_autoptr (GError) failure = NULL;
  muster_save_ticket_write (self->ticket);
  if (write_consistent_cut (self, &failure)) {
    muster_save_ticket_reach (self->ticket, MUSTER_SAVE_WRITTEN);
    if (self->how->written != NULL)
      self->how->written (self->how->written_data);
    return TRUE;
  }
  self->was_full = muster_free_space_was_full (self->free_space, &self->space, failure);
  discard_quietly (self);
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

static const char *
device_that_wrote (MusterSaver *self)
{
  g_autofree char *name = NULL;

  muster_graph_split_input (self->info.save_tensor, &name);
  const MusterNode *node =
      muster_graph_find_node (muster_meta_graph_graph (self->meta_graph), name);
  return node != NULL && *node->kind->device ? node->kind->device : "its default device";
}

static gboolean
refuse_unseen (const Save *self, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                      "the master saved on %s, but host '%s' doesn't see the files in '%s': the "
                      "directory isn't shared; use a shared directory",
                      device_that_wrote (self->saver), g_get_host_name (), self->made.directory);
}

/* Syncs the master's files, "TEMPORARY.*", without the directory's lock. A master in this
 * process has synced them itself. */
static gboolean
sync_written (const Save *self, GError **error)
{
  MusterStorage *storage = self->storage;
  g_autofree char *name = g_path_get_basename (self->made.temporary);
  g_autofree char *start = g_strconcat (name, ".", NULL);
  g_auto (GStrv) all = muster_storage_list (storage, self->made.directory, error);
  gboolean has_index = FALSE;

  if (all == NULL)
    return FALSE;
  for (char **file = all; *file != NULL; file++)
    has_index =
        has_index || (g_str_has_prefix (*file, start) && g_str_has_suffix (*file, ".index"));
  if (!has_index)
    return refuse_unseen (self, error);
  for (char **file = all; *file != NULL && !self->made.is_here; file++) {
    g_autofree char *path = g_build_filename (self->made.directory, *file, NULL);
    if (g_str_has_prefix (*file, start) && !muster_storage_sync_directory (storage, path, error))
      return FALSE;
  }
  return TRUE;
}

/* Uploads the files that the master wrote to the staging directory. */
static gboolean
send_staged (Save *self, GError **error)
{
  gboolean is_source;
  if (!muster_tier_copy_files (self->storage, self->staged, self->made.temporary, &is_source,
                               self->cancellable, error))
    return FALSE;
  discard_files (self->storage, self->staged);
  g_clear_pointer (&self->staged, g_free);
  return TRUE;
}

/* Takes the value that was set before the save, for the saver's metric. */
static void
take_metric (Save *self)
{
  const char *name = muster_saver_metric (self->saver);
  const MusterSideMetric metric = {.name = (char *)name, .value = self->ticket->metric};
  if (name == NULL || isnan (metric.value) || self->metrics != NULL)
    return;
  self->metrics = g_array_new (FALSE, FALSE, sizeof (MusterSideMetric));
  g_array_append_val (self->metrics, metric);
  self->made.metrics = self->metrics;
}

/* Publishes. Everything that takes long comes before the directory's lock. */
static gboolean
publish (Save *self, GError **error)
{
  take_metric (self);
  if ((self->staged != NULL && !send_staged (self, error)) ||
      (!self->made.is_published && !sync_written (self, error)) || !check_lease (self, error) ||
      !muster_checkpoint_directory_publish (self->home, self->lease, &self->made,
                                            lock_deadline (self), self->cancellable, error))
    return FALSE;
  muster_save_ticket_end (self->ticket, MUSTER_SAVE_DURABLE, self->made.bytes);
  if (self->tier == self->saver->tiers->n)
    muster_save_ticket_forget_metric (self->ticket);
  return TRUE;
}

/* Announces the durable checkpoint. It exists whether or not the master hears of it, so only a
 * lost lease is a failure. A checkpoint in a fast tier is announced once its copy is in the durable
 * one. */
static gboolean
announce (Save *self, GError **error)
{
  MusterAnnouncement durable = MUSTER_ANNOUNCEMENT_INIT;
  g_auto (MusterSaveStatus) status = MUSTER_SAVE_STATUS_INIT;
  g_autoptr (GError) failure = NULL;
  if (self->space.why != NULL || self->made.is_unlisted || self->lease == NULL ||
      self->made.step < 0 || self->tier < self->saver->tiers->n)
    return TRUE;
  gint64 soon_us =
      muster_deadline_after (muster_clock_now_us (self->saver->clock), WARN_FULL_AFTER_US);
  durable.durable_step = self->made.step;
  durable.durable = self->made.prefix;
  muster_saver_status (self->saver, &status);
  durable.saves = &status;
  if (muster_lease_announce (self->lease, &durable, MIN (self->deadline_us, soon_us),
                             self->cancellable, &failure) ||
      !muster_error_is (failure, MUSTER_ERROR_FAILED_PRECONDITION))
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

/* Repeats a stage until it is done, the save is skipped, or it has failed. A publishing that ran
 * out of space halfway can't always be repeated after room was made; it then counts as failed for
 * lack of space. */
static gboolean
go_through (Save *self, gboolean (*stage) (Save *self, GError **error), GError **error)
{
  const MusterFreeSpace *free_space = self->free_space;
  gboolean has_been_full = FALSE;
  for (;;) {
    GError *failure = NULL;
    self->was_full = FALSE;
    if (self->space.why != NULL || stage (self, &failure))
      return TRUE;
    if (!self->was_full && !muster_free_space_was_full (free_space, &self->space, failure)) {
      self->gave_up_full = has_been_full;
      g_propagate_error (error, failure);
      return FALSE;
    }
    has_been_full = TRUE;
    self->gave_up_full = !muster_free_space_after_full (free_space, &self->space, failure, error);
    if (self->gave_up_full)
      return FALSE;
  }
}

/* Removes what a save that was given up has left, and lets the next one begin. */
static void
end (Save *self)
{
  MusterSaver *saver = self->saver;
  if (self->is_written && !self->made.is_published && !self->made.is_unsure)
    discard_quietly (self);
  muster_alive_unmark (self->home->storage, self->made.temporary, self->alive);
  release_lock (saver);
}

/* Writes the meta graph alone (SAV.25). */
static gboolean
write_nothing (Save *self, GError **error)
{
  MusterSaver *saver = self->saver;
  self->space.why = g_strdup ("the model has no variables to save");
  return saver->directory.meta_graph == NULL ||
         (muster_storage_make_directory (self->storage, self->made.directory, error) &&
          muster_checkpoint_directory_write_meta_graph (&saver->directory, self->storage,
                                                        self->made.prefix, error));
}

static void
report (Save *self, MusterSaved *saved)
{
  gboolean skipped = self->space.why != NULL;
  *saved = (MusterSaved){
      .prefix = skipped ? NULL : g_steal_pointer (&self->made.prefix),
      .step = MAX (self->made.step, -1),
      .tier = self->tier,
      .bytes = self->made.bytes,
      .took_us = muster_clock_now_us (self->saver->clock) - self->began_us,
      .skipped = skipped,
      .why = g_strdup (skipped ? self->space.why : self->made.trouble),
      .at_us = {-1, -1, -1, -1},
  };
  if (self->ticket == NULL)
    return;
  if (skipped)
    muster_save_ticket_end (self->ticket, MUSTER_SAVE_SKIPPED, 0);
  muster_save_ticket_read (self->ticket, saved->at_us);
}

/* Each tier has its own name for the checkpoint. */
static void
follow (Save *self)
{
  if (self->ticket != NULL && self->how->due != 0)
    muster_save_ticket_rename (self->ticket, self->made.prefix, self->made.step);
  else if (self->ticket == NULL && !self->saver->is_empty)
    self->ticket = muster_save_ticket_new (self->saver->log, self->made.prefix,
                                           MAX (self->made.step, -1), self->began_us, FALSE);
}

static gboolean
save_in_tier (Save *self, const char *directory, gint64 deadline_us, GError **error)
{
  gboolean done = FALSE;
  if (!start (self, directory, deadline_us, error))
    return FALSE;
  gather (self);
  follow (self);
  g_autofree char *named = g_strdup (self->made.prefix); /* the cut may rename it */
  if (self->saver->is_empty) {
    done = write_nothing (self, error);
  } else if (take_lock (self, error)) {
    self->has_begun = TRUE;
    done = go_through (self, begin, error) && go_through (self, write_all, error) &&
           go_through (self, publish, error) && announce (self, error);
    end (self);
  }
  if (!done)
    g_prefix_error (error, "Saving '%s': ", named);
  return done;
}

/* Returns TRUE if the tier took too long and the caller still has time for another. */
static gboolean
was_slow (const Save *self, gint64 deadline_us, const GError *failure)
{
  return self->has_begun && muster_error_is (failure, MUSTER_ERROR_DEADLINE_EXCEEDED) &&
         muster_clock_now_us (self->saver->clock) < deadline_us;
}

/* Drops a fast tier that is full, fails or takes too long; another tier then takes the
 * checkpoint. */
static gboolean
drop_tier (const Save *self, const char *durable, gint64 deadline_us, const GError *failure)
{
  MusterTiers *tiers = self->saver->tiers;
  if (self->tier == tiers->n || !(self->gave_up_full || muster_tier_is_at_fault (failure) ||
                                  was_slow (self, deadline_us, failure)))
    return FALSE;
  muster_tiers_drop (tiers, self->tier, failure->message, durable);
  return TRUE;
}

gboolean
muster_saver_save_for_ticket (MusterSaver *self, MusterSession *session, const char *directory,
                              gint64 step, const MusterSaveHow *how, MusterSaveTicket *given,
                              MusterSaved *saved, gint64 deadline_us, GCancellable *cancellable,
                              GError **error)
{
  if (!muster_saver_check_session (self, session, error) ||
      !muster_saver_check_directory (self, directory, error) ||
      !muster_deadline_check (deadline_us, error))
    return FALSE;
  g_autoptr (MusterSaveTicket) ticket = given != NULL ? muster_save_ticket_ref (given) : NULL;
  for (;;) {
    const char *home = directory;
    GError *failure = NULL;
    g_auto (Save)
        save = {.saver = self,
                .session = session,
                .how = how,
                .ticket = ticket != NULL ? muster_save_ticket_ref (ticket) : NULL,
                .tier = how->due != 0 && how->prefix == NULL ? muster_tiers_fastest (self->tiers)
                                                             : self->tiers->n,
                .made.step = step,
                .cancellable = cancellable};
    save.home = muster_saver_tier (self, save.tier, &home, &save.free_space);
    if (save_in_tier (&save, home, deadline_us, &failure)) {
      if (save.made.is_published)
        muster_saver_queue_copies (self, save.storage, directory, save.made.prefix, save.made.step,
                                   how->due);
      report (&save, saved);
      if (given != NULL && save.left_out != NULL)
        muster_save_ticket_set_left_out (given, g_steal_pointer (&save.left_out));
      return TRUE;
    }
    if (!drop_tier (&save, directory, deadline_us, failure)) {
      g_propagate_error (error, failure);
      return FALSE;
    }
    g_error_free (failure);
    if (ticket == NULL)
      ticket = g_steal_pointer (&save.ticket);
  }
}

gboolean
muster_saver_save_with (MusterSaver *self, MusterSession *session, const char *directory,
                        gint64 step, MusterTierSet due, MusterSaved *saved, gint64 deadline_us,
                        GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self, session, directory, saved);
  return muster_saver_save_for_ticket (self, session, directory, step, &(MusterSaveHow){.due = due},
                                       NULL, saved, deadline_us, cancellable, error);
}

char *
muster_saver_save (MusterSaver *self, MusterSession *session, const char *directory, gint64 step,
                   gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  muster_require (error, NULL, self, session, directory);

  g_auto (MusterSaved) saved = {0};
  if (!muster_saver_save_with (self, session, directory, step, 0, &saved, deadline_us, cancellable,
                               error))
    return NULL;
  if (!saved.skipped)
    return g_steal_pointer (&saved.prefix);
  muster_fail (error,
               self->is_empty ? MUSTER_ERROR_FAILED_PRECONDITION : MUSTER_ERROR_RESOURCE_EXHAUSTED,
               "Saving in '%s': skipped: %s", directory, saved.why);
  return NULL;
}

// SPDX-License-Identifier: Apache-2.0
/* Restores a checkpoint, or the newest of a directory and its fast tiers that is whole.
 * restore_newest () lists the candidates, tries one after the other, and lists again if a saver
 * removed what was about to be read; run_held () reads and checks everything before
 * restore_assign.c changes the first variable. Only after a success are damaged ones quarantined.
 * */
#include "saver/restore.h"

#include "base/require_private.h"
#include "checkpoint/format/bundle_index_private.h"
#include "checkpoint/state/checkpoint_check.h"
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/state/quarantine_private.h"
#include "saver/crash_loop_private.h"
#include "saver/restore_private.h"
#include "saver/tiers/tier_choose_private.h"

#define MOST_NAMED 5 /* of the variables that were initialised */

/* Maximum time for listing one of several directories. */
#define MOST_LIST_US (10 * MUSTER_SECOND)

static const MusterRestoreOptions plain;

/* A restore under way. */
typedef struct {
  MusterSaver *saver;
  MusterStorage *storage; /* (owned) the saver's, bound like the restore */
  MusterSession *session;
  gboolean is_here; /* the session's master is this process */
  const MusterRestoreOptions *options;
  gint64 deadline_us;
  GCancellable *cancellable; /* (nullable) */
  /* Of a directory: */
  GPtrArray *faults; /* (owned) (element-type Fault) of the checkpoints that can't be restored */
  GString *warnings; /* (owned) lines */
  MusterTierChoice choice; /* (owned) */
  gboolean is_doubtful;    /* the directory itself couldn't be read, only its fast tiers */
  gboolean may_have_moved; /* the last fault is the checkpoint's: it may have been removed */
} Restore;

typedef struct {
  char *prefix;     /* (owned) */
  GError *error;    /* (owned) */
  gboolean is_torn; /* some variables may have values of it */
} Fault;

static void
fault_free (gpointer data)
{
  Fault *self = data;
  g_free (self->prefix);
  g_error_free (self->error);
  g_free (self);
}

static void
restore_clear (Restore *self)
{
  g_clear_object (&self->storage);
  g_clear_pointer (&self->faults, g_ptr_array_unref);
  muster_tier_choice_clear (&self->choice);
  if (self->warnings != NULL)
    g_string_free (self->warnings, TRUE);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Restore, restore_clear)

/* --- one checkpoint --- */

/* What the failure of one checkpoint means for the others. */
typedef struct {
  gboolean is_its_own; /* it isn't whole, or isn't this job's: another one may be restored */
  gboolean is_torn;    /* some variables may have values of it */
} Verdict;

/* Locks a checkpoint, so that no saver removes it while it is read. NULL without an error if
 * nothing can be locked: then reading it reports why. */
static MusterStorageLock *
hold (MusterStorage *storage, const char *prefix, GError **error)
{
  g_autofree char *path = muster_bundle_index_path (prefix);
  g_autoptr (GError) failure = NULL;
  MusterStorageLock *lock = muster_storage_lock (storage, path, MUSTER_LOCK_SHARED, &failure);

  if (lock == NULL && g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_BUSY))
    muster_fail (error, MUSTER_ERROR_NOT_FOUND, "'%s' is being removed by another process", prefix);
  return lock;
}

static void
add_torn (GError *failure)
{
  g_autofree char *message = failure->message;

  failure->message = g_strconcat (message, " (some variables have values of it already)", NULL);
}

static gboolean
is_not_whole (const GError *failure)
{
  return muster_error_is (failure, MUSTER_ERROR_NOT_FOUND) ||
         muster_error_is (failure, MUSTER_ERROR_DATA_LOSS);
}

/* Returns TRUE if the checkpoint lacks something that the caller needs, because it was saved by
 * a program that doesn't know of that. */
static gboolean
lacks_needed (const MusterRestoreRun *self)
{
  MusterBundleReader *reader = self->match.reader;
  for (const char *const *name = self->options->needs;
       reader != NULL && name != NULL && *name != NULL; name++)
    if (muster_bundle_reader_find (reader, *name) == NULL)
      return TRUE;
  return FALSE;
}

static char *
describe_unusual (const MusterRestoreRun *self)
{
  g_autoptr (GString) text = g_string_new (NULL);
  guint n = self->initialised->len;
  if (self->match.object_names != NULL)
    g_string_append_printf (
        text,
        "Restoring an object-based checkpoint using a name-based saver: '%s' is "
        "read by its variables' own names",
        self->prefix);
  if (n > 0)
    g_string_append_printf (text,
                            "%s'%s' lacks %u variable%s, initialised: ", text->len > 0 ? "\n" : "",
                            self->prefix, n, n == 1 ? "" : "s");
  for (guint i = 0; i < MIN (n, MOST_NAMED); i++)
    g_string_append_printf (text, "%s%s", i > 0 ? ", " : "",
                            (const char *)self->initialised->pdata[i]);
  if (n > MOST_NAMED)
    g_string_append (text, ", …");
  return text->len > 0 ? g_strdup (text->str) : NULL;
}

static char **
copy_names (GPtrArray *names)
{
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();
  for (guint i = 0; i < names->len; i++)
    g_strv_builder_add (builder, names->pdata[i]);
  return names->len > 0 ? g_strv_builder_end (builder) : NULL;
}

/* Reads and checks everything before the first variable changes. */
static gboolean
run_held (MusterRestoreRun *self, MusterStorage *storage, GError **error)
{
  GError *failure = NULL;
  if (!muster_match_make (&self->match, self->saver, storage, self->prefix, self->options, error) ||
      !muster_match_check (&self->match, error) || !muster_restore_run_plan (self, error))
    return FALSE;
  /* The state outside the graph. A checkpoint without it isn't damaged. */
  g_autoptr (GPtrArray) states =
      muster_saveables_read (self->saver->saveables, self->match.reader, &failure);
  if (failure != NULL) {
    self->is_masters = !muster_error_is (failure, MUSTER_ERROR_DATA_LOSS);
    g_propagate_error (error, failure);
    return FALSE;
  }
  return muster_restore_run_assign (self, error) && muster_saveables_hand_out (states, error);
}

static MusterRestored
report (const MusterRestoreRun *self)
{
  return (MusterRestored){.prefix = g_strdup (self->prefix),
                          .n_tensors = self->match.plan->wanted->len,
                          .bytes = self->match.bytes,
                          .initialised = copy_names (self->initialised),
                          .warning = describe_unusual (self)};
}

static gboolean
restore_one (const Restore *self, const char *prefix, MusterRestored *restored, Verdict *verdict,
             GError **error)
{
  g_auto (MusterRestoreRun) run = {.saver = self->saver,
                                   .session = self->session,
                                   .is_here = self->is_here,
                                   .prefix = prefix,
                                   .options = self->options,
                                   .deadline_us = self->deadline_us,
                                   .cancellable = self->cancellable};
  GError *failure = NULL;
  MusterStorageLock *lock = hold (self->storage, prefix, &failure);
  gboolean is_done = failure == NULL && run_held (&run, self->storage, &failure);
  muster_storage_unlock (self->storage, lock);
  if (is_done) {
    *restored = report (&run);
    return TRUE;
  }
  *verdict =
      (Verdict){.is_its_own = !run.is_masters && (is_not_whole (failure) || lacks_needed (&run)),
                .is_torn = run.is_torn};
  if (run.is_torn && !run.is_masters)
    add_torn (failure);
  if (run.is_masters)
    g_prefix_error (&failure, "Restoring '%s': ", prefix);
  g_propagate_error (error, failure);
  return FALSE;
}

/* --- the newest of a directory that will do --- */

static void
add_line (GString *lines, const char *line)
{
  g_string_append_printf (lines, "%s%s", lines->len > 0 ? "\n" : "", line);
}

/* Returns the time for listing one directory: an even share of what is left. */
static gint64
share_of_time (const Restore *self, guint n)
{
  const gint64 left_us =
      muster_deadline_remaining (self->deadline_us, muster_clock_now_us (self->saver->clock));
  return left_us == MUSTER_WAIT_FOREVER ? MOST_LIST_US : MIN (left_us / n, MOST_LIST_US);
}

/* Lists the directory, and the fast tiers before it. If there are no tiers, it may take as long
 * as it needs. */
static GPtrArray *
list_tiers (const Restore *self)
{
  MusterSaver *saver = self->saver;
  const MusterTiers *tiers = saver->tiers;
  const MusterTierLook look = {self->storage, saver->directory.base_name,
                               saver->directory.latest_filename, self->options->fall_back_to_files};
  const char *directories[MUSTER_MAX_FAST_TIERS + 1];
  for (guint i = 0; i < tiers->n; i++)
    directories[i] = tiers->fast[i].rule.directory;
  directories[tiers->n] = self->options->directory;
  if (tiers->n > 0)
    return muster_tier_list_all (&look, directories, tiers->n + 1,
                                 share_of_time (self, tiers->n + 1));
  GPtrArray *one = g_ptr_array_new_with_free_func ((GDestroyNotify)muster_tier_listing_free);
  g_ptr_array_add (one, muster_tier_list (&look, self->options->directory));
  return one;
}

/* A directory that can't be read is passed over if another one has a checkpoint. */
static void
note_listing (Restore *self, const MusterTierListing *listing)
{
  if (listing->warning != NULL)
    add_line (self->warnings, listing->warning);
  if (listing->error == NULL)
    return;
  g_autofree char *line =
      g_strdup_printf ("'%s' was passed over: %s", listing->directory, listing->error->message);
  add_line (self->warnings, line);
}

/* Fails for a directory that can't be read. It must not look like an empty one, or the model
 * would be initialised anew. */
static gboolean
refuse_unreadable (const GPtrArray *listings, GError **error)
{
  for (guint i = listings->len; i-- > 0;) {
    const MusterTierListing *listing = listings->pdata[i];
    if (listing->error == NULL)
      continue;
    g_propagate_error (error, g_error_copy (listing->error));
    return TRUE;
  }
  return FALSE;
}

static void
note_silent (MusterTiers *tiers, const GPtrArray *listings)
{
  for (guint i = 0; i < tiers->n; i++) {
    const MusterTierListing *listing = listings->pdata[i];
    muster_tiers_note_silent (tiers, i,
                              muster_error_is (listing->error, MUSTER_ERROR_DEADLINE_EXCEEDED));
  }
}

/* Finds the candidates of all tiers. */
static GPtrArray *
find_candidates (Restore *self, GError **error)
{
  MusterSaver *saver = self->saver;
  g_autoptr (GPtrArray) listings = list_tiers (self);
  g_autofree char *path = muster_path_for_master (saver->storage, self->options->directory);

  note_silent (saver->tiers, listings);
  self->is_doubtful =
      ((const MusterTierListing *)listings->pdata[listings->len - 1])->error != NULL;
  muster_tier_choice_clear (&self->choice);
  muster_tier_choose (listings, path, &self->choice);
  if (self->choice.prefixes->len == 0 && refuse_unreadable (listings, error))
    return NULL;
  for (guint i = 0; i < listings->len; i++)
    note_listing (self, listings->pdata[i]);
  return g_ptr_array_ref (self->choice.prefixes);
}

/* Those of the fast tiers that are newer than what was restored (step) but don't count. */
static void
note_refused (const Restore *self, gint64 step, GString *lines)
{
  for (guint i = 0; i < self->choice.refused->len; i++) {
    const MusterTierRefused *one = self->choice.refused->pdata[i];
    g_autofree char *line = g_strdup_printf ("'%s' was passed over: %s", one->prefix, one->why);
    if (one->step > step)
      add_line (lines, line);
  }
}

/* Returns the directory whose side file knows of the checkpoint. */
static char *
home_of (const Restore *self, const char *prefix)
{
  const MusterTiers *tiers = self->saver->tiers;
  const guint tier = muster_tiers_of (self->saver->tiers, prefix);
  return g_strdup (tier < tiers->n ? tiers->fast[tier].rule.directory : self->options->directory);
}

/* Returns FALSE if runs have died at this checkpoint too often. If the start can't be recorded,
 * nothing is counted. */
static gboolean
begin_crash_count (Restore *self, const char *prefix, GError **error)
{
  g_autoptr (GError) failure = NULL;
  guint deaths = 0;
  if (!self->options->count_deaths)
    return TRUE;
  g_autofree char *directory = home_of (self, prefix);
  if (!muster_crash_loop_begin (self->saver, directory, prefix, &deaths, self->deadline_us,
                                self->cancellable, &failure)) {
    g_autofree char *line =
        g_strdup_printf ("can't record the start from '%s': %s", prefix, failure->message);
    add_line (self->warnings, line);
    return TRUE;
  }
  if (deaths < MUSTER_CRASH_LOOP_LIMIT)
    return TRUE;
  return muster_fail (
      error, MUSTER_ERROR_DATA_LOSS,
      "'%s' makes the job crash: the job has died right after restoring it %u times in a row",
      prefix, deaths);
}

static gboolean
try_one (Restore *self, const char *prefix, MusterRestored *result, Verdict *verdict,
         GError **error)
{
  *verdict = (Verdict){.is_its_own = TRUE};
  if (begin_crash_count (self, prefix, error) && restore_one (self, prefix, result, verdict, error))
    return TRUE;
  (void)muster_saver_clear_crash_loop (self->saver,
                                       NULL); /* it has failed with an error, not by a crash */
  self->may_have_moved = verdict->is_its_own;
  return FALSE;
}

/* Where all that the directory names are gone, its other files may do. */
static void
add_way_out (const Restore *self, GError *failure)
{
  gboolean are_gone = !self->options->fall_back_to_files;
  for (guint i = 0; i < self->faults->len; i++)
    are_gone = are_gone && muster_error_is (((const Fault *)self->faults->pdata[i])->error,
                                            MUSTER_ERROR_NOT_FOUND);
  if (!are_gone)
    return;
  g_autofree char *message = failure->message;
  failure->message = g_strdup_printf ("%s; to restore the newest of the directory's files, use "
                                      "--from-files (fall_back_to_files)",
                                      message);
}

/* Restores the first one that is whole. If none is, the newest one's fault is the error. */
static gboolean
restore_first (Restore *self, GPtrArray *prefixes, MusterRestored *result, GError **error)
{
  for (guint i = 0; i < prefixes->len; i++) {
    GError *failure = NULL;
    Verdict verdict;
    if (try_one (self, prefixes->pdata[i], result, &verdict, &failure))
      return TRUE;
    if (!verdict.is_its_own || self->options->fall_back_off) {
      g_propagate_error (error, failure);
      return FALSE;
    }
    Fault *fault = g_new (Fault, 1);
    *fault = (Fault){g_strdup (prefixes->pdata[i]), failure, verdict.is_torn};
    g_ptr_array_add (self->faults, fault);
  }
  GError *newest = g_error_copy (((const Fault *)self->faults->pdata[0])->error);
  add_way_out (self, newest);
  g_propagate_error (error, newest);
  if (self->faults->len > 1)
    g_prefix_error (error, "none of %u checkpoints in '%s' can be restored; the newest: ",
                    self->faults->len, self->options->directory);
  return FALSE;
}

/* What became of one that was passed over, now that another has been restored: only then is one
 * known to be there. */
static void
quarantine_fault (Restore *self, const Fault *fault, GString *lines)
{
  g_autoptr (GError) failure = NULL;
  g_autofree char *quarantined = NULL;

  if (!muster_error_is (fault->error, MUSTER_ERROR_DATA_LOSS)) {
    add_line (lines, fault->error->message);
    if (!is_not_whole (fault->error))
      g_string_append (lines, "\n"
                              "  skipped: it was saved without variables that this job needs");
    return;
  }
  g_autofree char *line =
      strstr (fault->error->message, fault->prefix) == fault->error->message + 1
          ? g_strdup (fault->error->message)
          : g_strdup_printf ("%s is damaged: %s", fault->prefix, fault->error->message);
  add_line (lines, line);
  const char *use =
      fault->is_torn ? "all variables were assigned again" : "no variable was read from it";
  if (self->options->keep_damaged)
    g_string_append_printf (lines,
                            "\n"
                            "  skipped; %s",
                            use);
  else if (muster_checkpoint_quarantine_by (self->storage, fault->prefix, fault->error->message,
                                            &quarantined, self->deadline_us, self->saver->clock,
                                            self->cancellable, &failure))
    g_string_append_printf (lines, "\n  set aside as %s; %s", quarantined, use);
  else
    g_string_append_printf (lines,
                            "\n"
                            "  skipped; %s (%s)",
                            use, failure->message);
}

/* Says of what is restored in place of a damaged one that it may be another model. */
static void
note_foreign (Restore *self, const char *prefix)
{
  if (self->faults->len == 0)
    return;
  g_autofree char *directory = g_path_get_dirname (prefix);
  g_autoptr (MusterCheckpointRecord) record =
      muster_checkpoint_record_read (self->storage, directory, NULL);
  if (record == NULL ||
      !muster_side_checkpoint_is_foreign (muster_checkpoint_record_find (record, prefix), record))
    return;
  g_autofree char *line =
      g_strdup_printf ("'%s' is a copy, and not known to be of this job's runs", prefix);
  add_line (self->warnings, line);
}

static void
finish (Restore *self, MusterRestored *result)
{
  g_autoptr (GString) lines = g_string_new (NULL);
  for (guint i = 0; i < self->faults->len; i++)
    quarantine_fault (self, self->faults->pdata[i], lines);
  note_refused (self, muster_checkpoint_step (result->prefix), lines);
  if (lines->len > 0)
    result->passed_over = g_strdup (lines->str);
  if (result->warning != NULL)
    add_line (self->warnings, result->warning);
  note_foreign (self, result->prefix);
  g_free (result->warning);
  result->warning = self->warnings->len > 0 ? g_strdup (self->warnings->str) : NULL;
}

static gboolean
are_same (const GPtrArray *a, const GPtrArray *b)
{
  if (a->len != b->len)
    return FALSE;
  for (guint i = 0; i < a->len; i++)
    if (strcmp (a->pdata[i], b->pdata[i]) != 0)
      return FALSE;
  return TRUE;
}

/* Lists the candidates again if a running saver has changed them since: it removes checkpoints
 * that leave its list, unless they are locked already. NULL: nothing has changed, or time is up. */
static GPtrArray *
list_again (Restore *self, const GPtrArray *before)
{
  if (!self->may_have_moved || g_cancellable_is_cancelled (self->cancellable) ||
      muster_clock_now_us (self->saver->clock) >= self->deadline_us)
    return NULL;
  const gsize n_warned = self->warnings->len;
  g_autoptr (GPtrArray) now = find_candidates (self, NULL);
  g_string_truncate (self->warnings, n_warned);
  if (now == NULL || now->len == 0 || are_same (before, now))
    return NULL;
  g_ptr_array_set_size (self->faults, 0);
  return g_steal_pointer (&now);
}

/* There is nothing to restore, and why that of a fast tier doesn't count. */
static void
note_nothing (Restore *self, MusterRestored *result)
{
  g_autoptr (GString) lines = g_string_new (NULL);
  note_refused (self, -1, lines);
  g_auto (GStrv) nobodys =
      muster_checkpoint_directory_nobodys (self->storage, self->options->directory);
  if (*nobodys != NULL) {
    g_autofree char *which = muster_checkpoint_directory_describe_nobodys (
        self->options->directory, (const char *const *)nobodys);
    g_autofree char *line = g_strdup_printf (
        "%s; they were passed over: to restore the newest, use --from-files", which);
    add_line (lines, line);
  }
  result->passed_over = lines->len > 0 ? g_strdup (lines->str) : NULL;
}

static gboolean
restore_newest (Restore *self, MusterRestored *result, GError **error)
{
  g_autoptr (GPtrArray) prefixes = find_candidates (self, error);
  if (prefixes == NULL)
    return FALSE;
  while (prefixes->len > 0) {
    GError *failure = NULL;
    if (restore_first (self, prefixes, result, &failure)) {
      finish (self, result);
      muster_tiers_note_restored (self->saver->tiers, result->prefix, self->is_doubtful);
      /* If the state can't be read and the files stand in for it, no checkpoint counts as this
       * saver's to delete. */
      (void)muster_saver_adopt_tiers (self->saver, self->options->directory,
                                      self->options->fall_back_to_files ? MUSTER_ADOPT_FROM_FILES
                                                                        : 0,
                                      self->deadline_us, self->cancellable, NULL);
      muster_checkpoint_directory_take_in (&self->saver->directory, result->prefix);
      return TRUE;
    }
    GPtrArray *now = list_again (self, prefixes);
    if (now == NULL) {
      g_propagate_error (error, failure);
      return FALSE;
    }
    g_error_free (failure);
    g_ptr_array_unref (prefixes);
    prefixes = now;
  }
  note_nothing (self, result);
  return TRUE;
}

/* Refuses a directory with a checkpoint: it isn't this model's, and the init ops must not run in
 * its place. */
static gboolean
restore_nothing (const Restore *self, GError **error)
{
  const char *directory = self->options->directory;
  MusterSaver *saver = self->saver;
  GError *failure = NULL;
  g_autofree char *latest =
      directory != NULL ? muster_latest_checkpoint_named (
                              self->storage, directory, saver->directory.latest_filename, &failure)
                        : NULL;

  if (failure != NULL) {
    g_propagate_error (error, failure);
    return FALSE;
  }
  return latest == NULL ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "'%s' was not restored: the graph has no variables; use the graph that the "
                      "checkpoint was saved with, or another directory",
                      latest);
}

/* --- what is called --- */

static gboolean
check_place (MusterSaver *self, const MusterRestoreOptions *options, GError **error)
{
  if (options->directory != NULL && options->prefix != NULL)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "restore either a prefix or a directory, not both: '%s' and '%s'",
                        options->prefix, options->directory);
  if (options->directory != NULL)
    return muster_saver_check_directory (self, options->directory, error);
  if (self->is_empty) /* whatever the prefix: SAV.25 */
    return TRUE;
  if (options->prefix == NULL || !*options->prefix)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "Can't load save_path when it is None.");
  return muster_storage_check_path (self->storage, "checkpoint", options->prefix, error);
}

gboolean
muster_saver_restore (MusterSaver *self, MusterSession *session,
                      const MusterRestoreOptions *options, MusterRestored *restored,
                      gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self, session);

  g_auto (Restore) restore = {
      .saver = self,
      .storage = muster_storage_bound (self->storage, deadline_us, self->clock, cancellable),
      .session = session,
      .options = options != NULL ? options : &plain,
      .deadline_us = deadline_us,
      .cancellable = cancellable,
      .faults = g_ptr_array_new_with_free_func (fault_free),
      .warnings = g_string_new (NULL)};
  g_auto (MusterRestored) result = {0};
  Verdict verdict;
  gboolean done;
  if (!muster_saver_check_session (self, session, error) ||
      !check_place (self, restore.options, error) || !muster_deadline_check (deadline_us, error))
    return FALSE;
  restore.is_here = muster_session_is_here (session);
  if (self->is_empty)
    done = restore_nothing (&restore, error);
  else if (restore.options->directory != NULL)
    done = restore_newest (&restore, &result, error);
  else
    done = restore_one (&restore, restore.options->prefix, &result, &verdict, error);
  if (done && restored != NULL) {
    *restored = result;
    result = (MusterRestored){0};
  }
  return done;
}

gboolean
muster_saver_check_restored (MusterSaver *self, const char *directory, const char *prefix,
                             gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  const MusterRestoreOptions latest = {.directory = directory};
  if (!muster_tiers_is_doubtful (self->tiers, prefix))
    return TRUE;
  g_auto (Restore) restore = {
      .saver = self,
      .storage = muster_storage_bound (self->storage, deadline_us, self->clock, cancellable),
      .options = &latest,
      .deadline_us = deadline_us,
      .cancellable = cancellable,
      .warnings = g_string_new (NULL)};
  g_autoptr (GPtrArray) prefixes = find_candidates (&restore, error);
  if (prefixes == NULL)
    return FALSE;
  if (restore.is_doubtful)
    return muster_fail (error, MUSTER_ERROR_UNAVAILABLE,
                        "'%s' still can't be read, so it isn't known whether '%s' is the newest",
                        directory, prefix);
  const char *newest = prefixes->len > 0 ? prefixes->pdata[0] : NULL;
  return (newest != NULL && muster_checkpoint_step (newest) <= muster_checkpoint_step (prefix) &&
          g_ptr_array_find_with_equal_func (prefixes, prefix, g_str_equal, NULL)) ||
         muster_fail (error, MUSTER_ERROR_UNAVAILABLE,
                      "'%s' was restored while '%s' couldn't be read, which can be read again: the "
                      "newest checkpoint of the job is '%s'",
                      prefix, directory, newest != NULL ? newest : "none");
}

gboolean
muster_saver_has_whole_checkpoint (MusterSaver *self, const char *directory,
                                   const MusterRestoreOptions *options, gboolean *found,
                                   GError **error)
{
  muster_require (error, FALSE, self, directory, found);

  MusterRestoreOptions named = options != NULL ? *options : plain;
  if (!muster_saver_check_directory (self, directory, error))
    return FALSE;
  named.directory = directory;
  g_auto (Restore) restore = {.saver = self,
                              .storage = muster_saver_bound_storage (self),
                              .options = &named,
                              .deadline_us = MUSTER_WAIT_FOREVER,
                              .warnings = g_string_new (NULL)};
  g_autoptr (GPtrArray) prefixes = find_candidates (&restore, error);
  if (prefixes == NULL)
    return FALSE;
  *found = FALSE;
  for (guint i = 0; i < prefixes->len && !*found; i++) {
    MusterCheckpointOverview overview;
    if (i == 0 || !named.fall_back_off)
      *found = muster_checkpoint_inspect (restore.storage, prefixes->pdata[i], &overview, NULL);
  }
  return TRUE;
}

// SPDX-License-Identifier: Apache-2.0
/* Whether a job can save to a directory of checkpoints, and resume from it. */
#include "base/files/local_path_private.h"
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/state/quarantine.h"
#include "checkpoint/store/process_lock_private.h"
#include "checkpoint/stores/default_storage.h"
#include "cli/checkpoint/checkpoint_list.h"
#include "cli/checkpoint/checkpoint_open.h"
#include "cli/doctor/looks.h"
#include "saver/directory/checkpoint_directory_private.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OLD_US       (3600 * MUSTER_SECOND) /* the newest checkpoint of a job that runs */
#define CLOCKS_US    (60 * MUSTER_SECOND)   /* by which clocks may differ */
#define UNTOUCHED_US (60 * MUSTER_SECOND)   /* files that no process writes */

typedef struct {
  const MusterDoctor *doctor;
  const char *directory;
  char **names;                   /* (owned) of its files */
  MusterCheckpointRecord *record; /* (owned) (nullable) */
  GPtrArray *listed;              /* (owned) (element-type MusterListed) oldest first */
  MusterListed *latest;           /* (nullable) of those, the one that a job resumes from */
  guint n_processes;              /* that hold the directory, on this machine */
} Look;

static void
look_clear (Look *self)
{
  g_strfreev (self->names);
  g_clear_pointer (&self->record, muster_checkpoint_record_free);
  g_clear_pointer (&self->listed, g_ptr_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Look, look_clear)

static gint64
now_us (void)
{
  return muster_clock_now_us (muster_system_clock ());
}

static gint64
wall_us (void)
{
  return muster_clock_wall_us (muster_system_clock ());
}

static char *
path_of (const Look *self, const char *name)
{
  return g_build_filename (self->directory, name, NULL);
}

static void
add_error (const Look *self, MusterSeverity severity, MusterCheck check, const GError *error,
           const char *remedy)
{
  muster_findings_add_error (self->doctor->findings, severity, check, self->directory, error,
                             remedy);
}

/* --- the directory --- */

static gboolean
read_names (Look *self)
{
  g_autoptr (GError) error = NULL;
  self->names = muster_storage_list (muster_cli_storage (), self->directory, &error);
  if (self->names != NULL)
    return TRUE;
  if (g_error_matches (error, G_FILE_ERROR, G_FILE_ERROR_NOENT))
    muster_findings_add (self->doctor->findings, MUSTER_FINDING_ERROR, MUSTER_CHECK_DIRECTORY,
                         self->directory,
                         "check the path, and that its file system is mounted; a job's first run "
                         "makes it",
                         "the directory doesn't exist");
  else
    add_error (self, MUSTER_FINDING_ERROR, MUSTER_CHECK_DIRECTORY, error,
               "check the path, the rights, and that the store answers");
  muster_findings_add_place (self->doctor->findings, self->directory, "can't be read");
  return FALSE;
}

/* A job that saves here may be another user's than this command. */
static void
check_rights (const Look *self)
{
  const char *path = muster_local_path (self->directory);
  struct stat is;
  if (!muster_storage_is_local (NULL, self->directory) || self->n_processes > 0 ||
      g_access (path, W_OK | X_OK) == 0)
    return;
  const int code = errno;
  if (stat (path, &is) != 0)
    return;
  g_autofree char *remedy =
      g_strdup_printf ("run `muster doctor` as the job's user; its owner is user %u, its mode %04o",
                       (unsigned)is.st_uid, (unsigned)is.st_mode & 07777);
  muster_findings_add (self->doctor->findings, MUSTER_FINDING_ERROR, MUSTER_CHECK_DIRECTORY,
                       self->directory, remedy, "user %s can't save here: %s", g_get_user_name (),
                       g_strerror (code));
}

/* A chief's announcement names its directory: "CHIEF, in DIRECTORY". */
static void
check_chief (const Look *self)
{
  g_autofree char *here = muster_path_for_master (NULL, self->directory);
  g_autofree char *end = g_strconcat (", in ", here, NULL);
  for (guint i = 0; i < self->doctor->holders->len; i++) {
    const char *holder = self->doctor->holders->pdata[i];
    if (!g_str_has_suffix (holder, end) ||
        strncmp (holder, self->record->chief, strlen (holder) - strlen (end)) == 0)
      continue;
    muster_findings_add (self->doctor->findings, MUSTER_FINDING_ERROR, MUSTER_CHECK_DIRECTORY,
                         self->directory,
                         "end one of the two jobs: each needs a directory of its own",
                         "another job has taken it: %s. This one saves no more here: %.*s",
                         self->record->chief, (int)(strlen (holder) - strlen (end)), holder);
  }
}

static void
check_holders (Look *self)
{
  g_autofree char *path = path_of (self, MUSTER_HOLD_FILE);
  if (muster_storage_is_local (NULL, self->directory))
    self->n_processes = muster_process_lock_holders (muster_local_path (path));
  if (self->n_processes > 1)
    muster_findings_add (
        self->doctor->findings, MUSTER_FINDING_ERROR, MUSTER_CHECK_DIRECTORY, self->directory,
        "end all but one: each job needs a directory of its own",
        "%u processes save here at once; the last to come was %s", self->n_processes,
        self->record != NULL && self->record->chief != NULL ? self->record->chief : "unknown");
  if (self->record != NULL && self->record->chief != NULL)
    check_chief (self);
}

/* --- what is to be resumed from --- */

static void
read_record (Look *self)
{
  g_autoptr (GError) error = NULL;
  self->record = muster_checkpoint_record_read (muster_cli_storage (), self->directory, &error);
  if (self->record == NULL)
    add_error (self, MUSTER_FINDING_WARNING, MUSTER_CHECK_FILES, error,
               "nothing: the next save keeps what is whole in it, and pins all checkpoints");
}

/* Without a state file the job resumes from what its side file names, or not at all. */
static void
check_unnamed (const Look *self)
{
  g_auto (GStrv) nobodys =
      muster_checkpoint_directory_nobodys (muster_cli_storage (), self->directory);
  if (g_strv_length (nobodys) == 0)
    return;
  g_autofree char *text =
      muster_checkpoint_directory_describe_nobodys (self->directory, (const char *const *)nobodys);
  muster_findings_add (
      self->doctor->findings, MUSTER_FINDING_ERROR, MUSTER_CHECK_CHECKPOINT, self->directory,
      "resume from the newest of them with --from-files, or use another directory", "%s", text);
}

static void
read_checkpoints (Look *self)
{
  g_autoptr (GError) error = NULL, failure = NULL;
  g_autofree char *latest =
      muster_latest_checkpoint (muster_cli_storage (), self->directory, &error);
  g_auto (GStrv) prefixes =
      muster_checkpoint_list (muster_cli_storage (), self->directory, &failure);
  for (char **it = prefixes; it != NULL && *it != NULL; it++)
    g_ptr_array_add (self->listed, muster_listed_new (*it, self->record, latest));
  muster_listed_drop_removed (self->listed);
  for (guint i = 0; i < self->listed->len; i++)
    if (((MusterListed *)self->listed->pdata[i])->latest)
      self->latest = self->listed->pdata[i];
  if (error != NULL)
    add_error (self, MUSTER_FINDING_ERROR, MUSTER_CHECK_CHECKPOINT, error,
               "resume from the newest files with --from-files");
  else if (latest == NULL)
    check_unnamed (self);
  if (failure != NULL)
    add_error (self, MUSTER_FINDING_ERROR, MUSTER_CHECK_CHECKPOINT, failure, "check the rights");
  if (error == NULL && failure == NULL && self->listed->len == 0)
    muster_findings_add (self->doctor->findings, MUSTER_FINDING_WARNING, MUSTER_CHECK_CHECKPOINT,
                         self->directory, "check the path, if the job has trained before",
                         "there is no checkpoint: a job starts from scratch here");
}

/* Called while a checkpoint is read, which ends with the command's time. */
static void
stop_in_time (guint64 done G_GNUC_UNUSED, guint64 total G_GNUC_UNUSED, gpointer data)
{
  gpointer *both = data;
  const MusterDoctor *doctor = both[0];
  if (now_us () >= doctor->deadline_us)
    g_cancellable_cancel (both[1]);
}

/* Reads all of it, as far as there is time. */
static gboolean
is_whole (const Look *self, MusterListed *one)
{
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  gpointer both[] = {(gpointer)self->doctor, cancellable};
  if (one->damage == NULL && now_us () < self->doctor->deadline_us)
    muster_listed_verify (one, stop_in_time, both, cancellable);
  return one->damage == NULL;
}

/* The one that a restart falls back to. */
static MusterListed *
find_before (const Look *self, const MusterListed *damaged)
{
  MusterListed *newest = NULL;
  for (guint i = 0; i < self->listed->len; i++) {
    MusterListed *one = self->listed->pdata[i];
    if (one != damaged && (newest == NULL || one->step >= newest->step) && is_whole (self, one))
      newest = one;
  }
  return newest;
}

static void
check_latest (const Look *self)
{
  MusterListed *latest = self->latest;
  if (latest == NULL || is_whole (self, latest))
    return;
  const MusterListed *before = find_before (self, latest);
  g_autofree char *why = muster_cli_without_directory (latest->damage, self->directory);
  g_autofree char *remedy =
      before == NULL
          ? g_strdup (
                "copy one from a backup with `muster checkpoint copy BACKUP DIR`: there is no "
                "other")
          : g_strdup_printf (
                "check the disk or the store; a restart sets it aside, and resumes from '%s'",
                before->name);
  muster_findings_add (
      self->doctor->findings, before == NULL ? MUSTER_FINDING_ERROR : MUSTER_FINDING_WARNING,
      MUSTER_CHECK_CHECKPOINT, latest->prefix, remedy, "the latest checkpoint is damaged: %s", why);
}

static void
check_others (const Look *self)
{
  for (guint i = 0; i < self->listed->len; i++) {
    const MusterListed *one = self->listed->pdata[i];
    if (one == self->latest || one->damage == NULL)
      continue;
    g_autofree char *why = muster_cli_without_directory (one->damage, self->directory);
    muster_findings_add (self->doctor->findings, MUSTER_FINDING_WARNING, MUSTER_CHECK_CHECKPOINT,
                         one->prefix, "check the disk; no restart uses it", "it is damaged: %s",
                         why);
  }
}

static void
check_set_aside (const Look *self)
{
  g_auto (GStrv) aside =
      muster_checkpoint_list_quarantined (muster_cli_storage (), self->directory, NULL);
  for (char **it = aside; it != NULL && *it != NULL; it++) {
    const MusterSideCheckpoint *known =
        self->record != NULL ? muster_checkpoint_record_find (self->record, *it) : NULL;
    muster_findings_add (self->doctor->findings, MUSTER_FINDING_WARNING, MUSTER_CHECK_CHECKPOINT,
                         *it, "find out why, and then remove its files", "it was set aside: %s",
                         known != NULL && known->bad != NULL ? known->bad : "unknown why");
  }
}

/* --- space, age, clocks, what is left over --- */

static const MusterListed *
newest (const Look *self)
{
  const MusterListed *found = NULL;
  for (guint i = 0; i < self->listed->len; i++) {
    const MusterListed *one = self->listed->pdata[i];
    if (found == NULL || one->when_us > found->when_us)
      found = one;
  }
  return found;
}

static void
check_space (const Look *self)
{
  guint64 free_bytes = G_MAXUINT64;
  const MusterListed *last = newest (self);
  if (!muster_storage_free_space (muster_cli_storage (), self->directory, &free_bytes, NULL) ||
      free_bytes >= (last != NULL ? (guint64)MAX (last->bytes, 1) : 1))
    return;
  g_autofree char *left = muster_format_size (free_bytes);
  g_autofree char *needed = muster_format_size (last != NULL ? (guint64)last->bytes : 1);
  muster_findings_add (
      self->doctor->findings, MUSTER_FINDING_ERROR, MUSTER_CHECK_SPACE, self->directory,
      "free disk space, as with `muster checkpoint prune DIR --keep=N`, or save to "
      "another disk",
      "the disk is full: %s are free, a checkpoint needs %s", left, needed);
}

static void
check_age (const Look *self)
{
  const MusterListed *last = newest (self);
  if (last == NULL)
    return;
  const gint64 age_us = wall_us () - last->when_us;
  g_autofree char *age = muster_format_duration (ABS (age_us));
  if (age_us <= -CLOCKS_US)
    muster_findings_add (self->doctor->findings, MUSTER_FINDING_WARNING, MUSTER_CHECK_CLOCK,
                         last->prefix, "set both clocks, as with chrony or systemd-timesyncd",
                         "clocks differ: by its own time it is saved %s from now", age);
  if (age_us >= OLD_US && self->n_processes > 0)
    muster_findings_add (self->doctor->findings, MUSTER_FINDING_WARNING, MUSTER_CHECK_SAVE,
                         self->directory,
                         "read the log of the job that saves here; save more often with "
                         "--save-secs=TIME or --save-every=auto",
                         "its job runs, but the newest checkpoint is %s old", age);
}

/* A running save writes to its files. */
static gboolean
is_left_over (const Look *self, const char *name)
{
  g_autofree char *path = path_of (self, name);
  MusterStorageInfo info;
  return muster_checkpoint_directory_is_temporary (name) &&
         muster_storage_stat (muster_cli_storage (), path, &info, NULL) &&
         wall_us () - info.mtime_us >= UNTOUCHED_US;
}

static void
check_left_over (const Look *self)
{
  guint n = 0;
  const char *first = NULL;
  for (char **name = self->names; *name != NULL; name++)
    if (is_left_over (self, *name)) {
      first = n++ == 0 ? *name : first;
    }
  if (n == 0)
    return;
  muster_findings_add (self->doctor->findings, MUSTER_FINDING_WARNING, MUSTER_CHECK_FILES,
                       self->directory,
                       "nothing: the next job that saves here removes them, a day later at the "
                       "latest",
                       "%u half-written file%s of a save that was cut off: '%s'%s", n,
                       n == 1 ? "" : "s", first, n == 1 ? "" : ", …");
}

/* --- */

static void
add_place (const Look *self)
{
  const MusterCheckpointRecord *record = self->record;
  g_autoptr (GString) state = g_string_new (NULL);
  g_string_printf (state, "%u checkpoint%s", self->listed->len, self->listed->len == 1 ? "" : "s");
  if (self->latest != NULL) {
    g_autofree char *ago = muster_cli_ago (self->latest->when_us);
    g_string_append_printf (state, ", the latest %s (%s, %s)", self->latest->name, ago,
                            self->latest->state);
  }
  if (record != NULL && record->over)
    g_string_append_printf (state, "; its job is over, at step %" G_GINT64_FORMAT,
                            record->final_step);
  else if (self->n_processes > 0)
    g_string_append (state, "; a job saves here");
  muster_findings_add_place (self->doctor->findings, self->directory, "%s", state->str);
}

void
muster_doctor_look_at_directory (const MusterDoctor *self, const char *directory)
{
  g_auto (Look) look = {.doctor = self, .directory = directory};
  if (!read_names (&look))
    return;
  look.listed = g_ptr_array_new_with_free_func ((GDestroyNotify)muster_listed_free);
  read_record (&look);
  check_holders (&look);
  check_rights (&look);
  read_checkpoints (&look);
  check_space (&look);
  check_latest (&look);
  check_others (&look);
  check_set_aside (&look);
  check_age (&look);
  check_left_over (&look);
  add_place (&look);
}

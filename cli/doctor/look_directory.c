// SPDX-License-Identifier: Apache-2.0
/* Whether a job can save to a directory of checkpoints, and resume from it. */
#include "base/files/local_path_private.h"
#include "checkpoint/state/checkpoint_check.h"
#include "checkpoint/state/checkpoint_look_private.h"
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/state/quarantine.h"
#include "checkpoint/store/process_lock_private.h"
#include "checkpoint/store/storage_failure_private.h"
#include "checkpoint/stores/default_storage.h"
#include "cli/checkpoint/checkpoint_list.h"
#include "cli/checkpoint/checkpoint_open.h"
#include "cli/doctor/looks.h"
#include "saver/directory/checkpoint_directory_private.h"
#include "saver/directory/free_space_private.h"
#include "saver/tiers/tier_choose_private.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OLD_US       (3600 * MUSTER_SECOND) /* the newest checkpoint of a job that runs */
#define CLOCKS_US    (60 * MUSTER_SECOND)   /* by which clocks may differ */
#define UNTOUCHED_US (60 * MUSTER_SECOND)   /* files that no process writes */
#define NAMED_US     (2 * MUSTER_SECOND)    /* a checkpoint, after its files were published */
#define POLL_US      (50 * MUSTER_MILLISECOND)

#define PART_FOR_THE_STORE 8 /* of the time, in which a read fails by itself */

typedef struct {
  const MusterDoctor *doctor;
  const char *directory;
  char **names;                   /* (owned) of its files */
  MusterCheckpointRecord *record; /* (owned) (nullable) */
  GPtrArray *listed;              /* (owned) (element-type MusterListed) oldest first */
  MusterListed *latest;           /* (nullable) of those, the one that a job resumes from */
  GPtrArray *order;     /* (owned) (element-type utf8) the prefixes of those that a restart
                           tries, the latest first */
  gint64 read_until_us; /* before the store's own deadline: a slow one is no finding */
  guint n_processes;    /* that hold the directory, on this machine */
} Look;

static void
look_clear (Look *self)
{
  g_strfreev (self->names);
  g_clear_pointer (&self->record, muster_checkpoint_record_free);
  g_clear_pointer (&self->listed, g_ptr_array_unref);
  g_clear_pointer (&self->order, g_ptr_array_unref);
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

static gboolean
is_intact (const MusterListed *one)
{
  return strcmp (one->state, "intact") == 0;
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

/* The chief's name in a holder's "CHIEF, in DIRECTORY", if that is this directory: its length, or
 * 0. */
static int
length_of_chief (const Look *self, const MusterHolder *holder)
{
  g_autofree char *here = muster_path_for_master (NULL, self->directory);
  g_autofree char *end = g_strconcat (", in ", here, NULL);
  return g_str_has_suffix (holder->text, end) ? (int)(strlen (holder->text) - strlen (end)) : 0;
}

/* The nearest path at or above it that exists: where a job would create it. (transfer full) */
static char *
nearest_path (const char *directory)
{
  char *at = g_canonicalize_filename (muster_local_path (directory), NULL);
  while (!g_file_test (at, G_FILE_TEST_EXISTS)) {
    char *parent = g_path_get_dirname (at);
    g_free (at);
    at = parent;
  }
  return at;
}

/* A job that saves here may be another user's than this command. */
static void
check_rights (const Look *self)
{
  struct stat is;
  if (!muster_storage_is_local (NULL, self->directory) || self->n_processes > 0)
    return;
  g_autofree char *path = nearest_path (self->directory);
  if (g_access (path, W_OK | X_OK) == 0)
    return;
  const int code = errno;
  if (stat (path, &is) != 0)
    return;
  g_autofree char *remedy =
      g_strdup_printf ("run `muster doctor` as the job's user; the owner of "
                       "'%s' is user %u, its mode %04o",
                       path, (unsigned)is.st_uid, (unsigned)is.st_mode & 07777);
  muster_findings_add (self->doctor->findings, MUSTER_FINDING_ERROR, MUSTER_CHECK_DIRECTORY,
                       self->directory, remedy, "user %s can't save here: %s", g_get_user_name (),
                       g_strerror (code));
}

/* A job creates its directory, so that a missing one is an error only if a job has saved there. */
static void
check_missing (const Look *self)
{
  MusterFindings *findings = self->doctor->findings;
  for (guint i = 0; i < self->doctor->holders->len; i++) {
    const MusterHolder *holder = self->doctor->holders->pdata[i];
    const int length = length_of_chief (self, holder);
    if (length > 0) {
      muster_findings_add (findings, MUSTER_FINDING_ERROR, MUSTER_CHECK_DIRECTORY, self->directory,
                           "check the path, and that its file system is mounted here",
                           "the directory of %.*s doesn't exist", length, holder->text);
      return;
    }
  }
  muster_findings_add (findings, MUSTER_FINDING_WARNING, MUSTER_CHECK_CHECKPOINT, self->directory,
                       "check the path, and that its file system is mounted, if the job has "
                       "trained before",
                       "the directory doesn't exist: a job creates it, and starts from scratch");
  check_rights (self);
}

static gboolean
read_names (Look *self)
{
  g_autoptr (GError) error = NULL;
  self->names = muster_storage_list (muster_cli_storage (), self->directory, &error);
  if (self->names != NULL)
    return TRUE;
  const gboolean is_missing = g_error_matches (error, G_FILE_ERROR, G_FILE_ERROR_NOENT);
  if (is_missing)
    check_missing (self);
  else
    add_error (self, MUSTER_FINDING_ERROR, MUSTER_CHECK_DIRECTORY, error,
               "check the path, the rights, and that the store answers");
  muster_findings_add_place (self->doctor->findings, self->directory,
                             is_missing ? "doesn't exist" : "can't be read");
  return FALSE;
}

static void
check_chief (const Look *self)
{
  for (guint i = 0; i < self->doctor->holders->len; i++) {
    const MusterHolder *holder = self->doctor->holders->pdata[i];
    const int length = holder->is_alive ? length_of_chief (self, holder) : 0;
    if (length == 0 || strncmp (holder->text, self->record->chief, (gsize)length) == 0)
      continue;
    muster_findings_add (self->doctor->findings, MUSTER_FINDING_ERROR, MUSTER_CHECK_DIRECTORY,
                         self->directory,
                         "end one of the two jobs, or give it a directory of its own, before you "
                         "start a chief: that takes the directory back",
                         "another job has taken it: %s. This one can't save here any more: %.*s",
                         self->record->chief, length, holder->text);
  }
}

/* "the chief of 'digits', epoch 3, at HOST:71 (0123abcd)" */
static gboolean
is_of_record (const Look *self, int process)
{
  const char *chief = self->record != NULL ? self->record->chief : NULL;
  g_autofree char *at = g_strdup_printf (" at %s:%d (", g_get_host_name (), process);
  return chief != NULL && strstr (chief, at) != NULL;
}

/* The one that the side file names has fenced the others. */
static void
check_several (const Look *self, const GArray *processes)
{
  g_autoptr (GString) others = g_string_new (NULL);
  gboolean has_named = FALSE;
  for (guint i = 0; i < processes->len; i++) {
    const int process = g_array_index (processes, int, i);
    if (is_of_record (self, process))
      has_named = TRUE;
    else
      g_string_append_printf (others, "%s%d", others->len > 0 ? ", " : "", process);
  }
  if (has_named)
    muster_findings_add (
        self->doctor->findings, MUSTER_FINDING_WARNING, MUSTER_CHECK_DIRECTORY, self->directory,
        "if it is a chief that hangs, end it; another job needs a directory of its "
        "own",
        "PID %s is still running, but can't save here any more: it was replaced by %s", others->str,
        self->record->chief);
  else
    muster_findings_add (self->doctor->findings, MUSTER_FINDING_ERROR, MUSTER_CHECK_DIRECTORY,
                         self->directory, "end all but one: each job needs a directory of its own",
                         "%u processes save here at the same time, PID %s; the newest is %s",
                         processes->len, others->str,
                         self->record != NULL && self->record->chief != NULL ? self->record->chief
                                                                             : "unknown");
}

static void
check_holders (Look *self)
{
  g_autofree char *path = path_of (self, MUSTER_HOLD_FILE);
  if (muster_storage_is_local (NULL, self->directory)) {
    g_autoptr (GArray) processes = muster_process_lock_holders (muster_local_path (path));
    self->n_processes = processes->len;
    if (processes->len > 1)
      check_several (self, processes);
  }
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
               "nothing: the next save keeps its undamaged parts, and pins all checkpoints");
}

/* A save publishes its files before the file that names them. */
static GStrv
await_names (const Look *self)
{
  const gint64 until_us =
      MIN (muster_deadline_after (now_us (), NAMED_US), self->doctor->deadline_us);
  for (;;) {
    g_auto (GStrv) nobodys =
        muster_checkpoint_directory_nobodys (muster_cli_storage (), self->directory);
    if (g_strv_length (nobodys) == 0 || now_us () >= until_us)
      return g_steal_pointer (&nobodys);
    (void)muster_clock_wait_until (muster_system_clock (), now_us () + POLL_US, NULL, NULL);
  }
}

/* Without a state file the job resumes from what its side file names, or not at all. */
static void
check_unnamed (const Look *self)
{
  g_auto (GStrv) nobodys = await_names (self);
  if (g_strv_length (nobodys) == 0)
    return;
  g_autofree char *text =
      muster_checkpoint_directory_describe_nobodys (self->directory, (const char *const *)nobodys);
  muster_findings_add (
      self->doctor->findings, MUSTER_FINDING_ERROR, MUSTER_CHECK_CHECKPOINT, self->directory,
      "resume from the newest of them with --from-files, or use another directory", "%s", text);
}

/* The store refuses or doesn't answer, which says nothing about the file. A job that saves here may
 * be another user's. */
static void
add_unread (const Look *self, const char *where, const char *what, const GError *error)
{
  const int code = muster_error_to_wire (error);
  g_autofree char *why = muster_cli_without_directory (error->message, self->directory);
  if (code == MUSTER_ERROR_DEADLINE_EXCEEDED || now_us () >= self->doctor->deadline_us)
    muster_findings_add (self->doctor->findings, MUSTER_FINDING_WARNING, MUSTER_CHECK_DIRECTORY,
                         where, "check that the store answers, or set a longer --timeout",
                         "%s couldn't be read in time: %s", what, why);
  else
    muster_findings_add (
        self->doctor->findings,
        self->n_processes > 0 ? MUSTER_FINDING_WARNING : MUSTER_FINDING_ERROR,
        MUSTER_CHECK_DIRECTORY, where,
        code == MUSTER_ERROR_PERMISSION_DENIED
            ? "run `muster doctor` as the job's user; if this is that user, correct the rights"
            : "check that the store answers",
        "%s can't be read: %s", what, why);
}

/* One of the list, or one that is added to it: outside the directory, of the old format, or saved
 * since the directory was listed. */
static MusterListed *
find_listed (const Look *self, const char *prefix)
{
  for (guint i = 0; i < self->listed->len; i++) {
    MusterListed *one = self->listed->pdata[i];
    if (muster_cli_checkpoint_is_same (one->prefix, prefix))
      return one;
  }
  MusterListed *one = muster_listed_new (prefix, self->record, prefix);
  g_ptr_array_add (self->listed, one);
  return one;
}

/* As a restore tries them, the latest first. */
static void
read_order (Look *self, const char *latest)
{
  const MusterTierLook look = {.storage = muster_cli_storage ()};
  g_autoptr (MusterTierListing) listing = muster_tier_list (&look, self->directory);
  const GPtrArray *prefixes = listing->prefixes;
  if (latest != NULL)
    g_ptr_array_add (self->order, g_strdup (latest));
  for (guint i = 0; prefixes != NULL && i < prefixes->len; i++)
    if (g_strcmp0 (prefixes->pdata[i], latest) != 0)
      g_ptr_array_add (self->order, g_strdup (prefixes->pdata[i]));
  if (self->order->len > 0)
    self->latest = find_listed (self, self->order->pdata[0]);
}

static void
check_state_file (const Look *self, const GError *error)
{
  g_autofree char *path = path_of (self, "checkpoint");
  if (muster_storage_failure_is_damage (error))
    add_error (self, MUSTER_FINDING_ERROR, MUSTER_CHECK_CHECKPOINT, error,
               "resume from the newest files with --from-files");
  else
    add_unread (self, path, "the file that names the latest checkpoint", error);
}

static void
read_checkpoints (Look *self)
{
  g_autoptr (GError) error = NULL, failure = NULL;
  g_autofree char *latest =
      muster_latest_checkpoint (muster_cli_storage (), self->directory, &error);
  if (error == NULL && latest == NULL) {
    check_unnamed (self);
    latest = muster_latest_checkpoint (muster_cli_storage (), self->directory, &error);
  }
  g_auto (GStrv) prefixes =
      muster_checkpoint_list (muster_cli_storage (), self->directory, &failure);
  for (char **it = prefixes; it != NULL && *it != NULL; it++)
    g_ptr_array_add (self->listed, muster_listed_new (*it, self->record, latest));
  muster_listed_drop_removed (self->listed);
  if (error != NULL)
    check_state_file (self, error);
  else
    read_order (self, latest);
  if (failure != NULL)
    add_unread (self, self->directory, "the directory", failure);
  if (error == NULL && failure == NULL && self->latest == NULL && self->listed->len == 0)
    muster_findings_add (self->doctor->findings, MUSTER_FINDING_WARNING, MUSTER_CHECK_CHECKPOINT,
                         self->directory, "check the path, if the job has trained before",
                         "there is no checkpoint: a job starts from scratch here");
}

static void
stop_in_time (guint64 done G_GNUC_UNUSED, guint64 total G_GNUC_UNUSED, gpointer data)
{
  gpointer *both = data;
  const Look *self = both[0];
  if (now_us () >= self->read_until_us)
    g_cancellable_cancel (both[1]);
}

/* Reads all of it, as far as there is time. */
static void
read_one (const Look *self, MusterListed *one)
{
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  gpointer both[] = {(gpointer)self, cancellable};
  if (one->damage == NULL && now_us () < self->read_until_us)
    muster_listed_verify (one, stop_in_time, both, cancellable);
  if (one->damage == NULL && one->unread == NULL && !is_intact (one))
    one->state = "not read in time";
}

/* The one that a restart falls back to: the first that isn't known to be damaged. */
static MusterListed *
find_before (const Look *self)
{
  for (guint i = 1; i < self->order->len; i++) {
    if (muster_checkpoint_is_gone (muster_cli_storage (), self->order->pdata[i]))
      continue;
    MusterListed *one = find_listed (self, self->order->pdata[i]);
    read_one (self, one);
    if (one->damage == NULL)
      return one;
  }
  return NULL;
}

static void
add_damaged (const Look *self)
{
  const MusterListed *before = find_before (self);
  g_autofree char *why = muster_cli_without_directory (self->latest->damage, self->directory);
  g_autofree char *remedy =
      before == NULL
          ? g_strdup_printf (
                "copy one from a backup with `muster checkpoint copy BACKUP %s`: there "
                "is no other",
                self->directory)
          : g_strdup_printf ("check the disk or the store; a restart sets it aside, and resumes "
                             "from '%s'%s%s",
                             before->name, is_intact (before) ? "" : ", which is ",
                             is_intact (before) ? "" : before->state);
  muster_findings_add (self->doctor->findings,
                       before == NULL || before->unread != NULL ? MUSTER_FINDING_ERROR
                                                                : MUSTER_FINDING_WARNING,
                       MUSTER_CHECK_CHECKPOINT, self->latest->prefix, remedy,
                       "the latest checkpoint is damaged: %s", why);
}

/* A running saver may have saved another one since, and removed this one. */
static gboolean
has_moved (Look *self)
{
  g_autofree char *latest = muster_latest_checkpoint (muster_cli_storage (), self->directory, NULL);
  if (latest == NULL || strcmp (latest, self->latest->prefix) == 0)
    return FALSE;
  g_ptr_array_set_size (self->order, 0);
  muster_listed_drop_removed (self->listed);
  read_order (self, latest);
  return TRUE;
}

static void
check_latest (Look *self)
{
  g_autoptr (GError) error = NULL;
  if (self->latest == NULL)
    return;
  do
    read_one (self, self->latest);
  while (muster_listed_failure (self->latest) != NULL && has_moved (self));
  const MusterListed *latest = self->latest;
  if (latest->damage != NULL)
    add_damaged (self);
  else if (latest->unread != NULL)
    add_unread (self, latest->prefix, "the latest checkpoint", latest->unread);
  else if (!muster_checkpoint_check_meta_graph (muster_cli_storage (), latest->prefix, &error))
    muster_findings_add_error (self->doctor->findings, MUSTER_FINDING_WARNING, MUSTER_CHECK_FILES,
                               latest->prefix, error, "export the meta graph again");
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

/* As much as a saver looks for: the variables, the meta graph, and what is written beside them. */
static guint64
bytes_of_next (const MusterListed *last)
{
  MusterStorageInfo index = {0};
  if (last == NULL)
    return 1;
  g_autofree char *path = g_strconcat (last->prefix, ".index", NULL);
  (void)muster_storage_stat (muster_cli_storage (), path, &index, NULL);
  return (guint64)MAX (last->bytes, 0) + MUSTER_SAVER_BESIDE_BYTES -
         MIN (index.size, MUSTER_SAVER_BESIDE_BYTES);
}

static void
check_space (const Look *self)
{
  guint64 free_bytes = G_MAXUINT64;
  const guint64 next_bytes = bytes_of_next (newest (self));
  if (!muster_storage_free_space (muster_cli_storage (), self->directory, &free_bytes, NULL) ||
      free_bytes >= next_bytes)
    return;
  g_autofree char *left = muster_format_size (free_bytes);
  g_autofree char *remedy = g_strdup_printf (
      "look for what fills the disk with `du -x`, free space, as with `muster checkpoint prune %s "
      "--keep=N`, or save to another disk",
      self->directory);
  g_autofree char *needed = muster_format_size (next_bytes);
  muster_findings_add (self->doctor->findings, MUSTER_FINDING_ERROR, MUSTER_CHECK_SPACE,
                       self->directory, remedy,
                       "the disk is full: %s are free, a checkpoint needs about %s", left, needed);
}

/* A job notes in the side file that it has taken the directory, and each save. */
static gint64
unchanged_us (const Look *self)
{
  g_autofree char *path = path_of (self, MUSTER_RECORD_FILE);
  MusterStorageInfo info;
  return muster_storage_stat (muster_cli_storage (), path, &info, NULL) ? wall_us () - info.mtime_us
                                                                        : G_MAXINT64;
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
                         "clocks differ: its time is %s in the future", age);
  if (age_us >= OLD_US && self->n_processes > 0 && unchanged_us (self) >= OLD_US)
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
  const char *chief = record != NULL ? record->chief : NULL;
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
    g_string_append_printf (state, "; a job saves here%s%s", chief != NULL ? ": " : "",
                            chief != NULL ? chief : "");
  muster_findings_add_place (self->doctor->findings, self->directory, "%s", state->str);
}

void
muster_doctor_look_at_directory (const MusterDoctor *self, const char *directory)
{
  g_auto (Look) look = {.doctor = self, .directory = directory};
  if (!read_names (&look))
    return;
  look.read_until_us = self->deadline_us - (self->deadline_us - now_us ()) / PART_FOR_THE_STORE;
  look.order = g_ptr_array_new_with_free_func (g_free);
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

// SPDX-License-Identifier: Apache-2.0
#include "base/require.h"
#include "checkpoint/state/checkpoint_check.h"
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/state/quarantine.h"
#include "saver/crash_loop_private.h"
#include "saver/restore_private.h"
#include "saver/saver_private.h"

/* A checkpoint whose directory has been moved is looked for by its name in the directory. */
static char *
locate (MusterSaver *self, const char *directory, const char *prefix)
{
  g_autofree char *name = g_path_get_basename (prefix);
  g_autofree char *moved = g_build_filename (directory, name, NULL);

  if (!muster_checkpoint_exists (self->storage, prefix) &&
      muster_checkpoint_exists (self->storage, moved))
    return g_steal_pointer (&moved);
  return g_strdup (prefix);
}

static void
add_candidate (MusterSaver *self, const char *directory, const char *named, GPtrArray *found,
               GHashTable *seen)
{
  g_autofree char *prefix = locate (self, directory, named);

  /* Adding it again would keep this copy in the place of the first. */
  if (g_hash_table_contains (seen, prefix))
    return;
  g_hash_table_add (seen, prefix);
  g_ptr_array_add (found, g_steal_pointer (&prefix));
}

/* What the state names, newest first, each once. */
static GPtrArray *
candidates (MusterSaver *self, const char *directory, const MusterCheckpointState *state)
{
  GPtrArray *found = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);

  if (state != NULL)
    add_candidate (self, directory, state->latest, found, seen);
  for (guint i = state != NULL && state->all != NULL ? state->all->len : 0; i-- > 0;)
    add_candidate (self, directory, state->all->pdata[i], found, seen);
  return found;
}

/* Then those that merely lie there. */
static gboolean
add_files (MusterSaver *self, const char *directory, GPtrArray *found, GError **error)
{
  g_autoptr (GError) failure = NULL;
  g_auto (GStrv) prefixes = muster_checkpoint_list (self->storage, directory, &failure);
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);

  if (prefixes == NULL && muster_error_to_wire (failure) != MUSTER_ERROR_NOT_FOUND) {
    g_propagate_error (error, g_steal_pointer (&failure));
    return FALSE;
  }
  for (guint i = 0; i < found->len; i++)
    g_hash_table_add (seen, found->pdata[i]);
  for (guint i = prefixes != NULL ? g_strv_length (prefixes) : 0; i-- > 0;)
    add_candidate (self, directory, prefixes[i], found, seen);
  return TRUE;
}

static gboolean
is_not_whole (const GError *failure)
{
  return muster_error_is (failure, MUSTER_ERROR_NOT_FOUND) ||
         muster_error_is (failure, MUSTER_ERROR_DATA_LOSS);
}

/* A restore of the newest that will do. */
typedef struct {
  MusterSaver *saver;
  MusterSession *session;
  const char *directory;
  const MusterRestoreOptions *options;
  gint64 deadline_us;
  GCancellable *cancellable; /* (nullable) */
  GPtrArray *faults;         /* (owned) (element-type Fault) of those that won't do */
  GString *warnings;         /* (owned) lines */
  gboolean may_have_moved;   /* the last fault is the checkpoint's: it may have been removed */
} Choice;

typedef struct {
  char *prefix;     /* (owned) */
  GError *error;    /* (owned) */
  gboolean is_torn; /* some variables had values of it */
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
choice_clear (Choice *self)
{
  g_clear_pointer (&self->faults, g_ptr_array_unref);
  if (self->warnings != NULL)
    g_string_free (self->warnings, TRUE);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Choice, choice_clear)

static void
add_line (GString *lines, const char *line)
{
  g_string_append_printf (lines, "%s%s", lines->len > 0 ? "\n" : "", line);
}

/* FALSE where lives have ended at this checkpoint too often. Where nothing can be noted nothing is
 * counted. */
static gboolean
begin_crash_count (Choice *self, const char *prefix, GError **error)
{
  g_autoptr (GError) failure = NULL;
  guint deaths = 0;

  if (!self->options->count_deaths)
    return TRUE;
  if (!muster_crash_loop_begin (self->saver, self->directory, prefix, &deaths, &failure)) {
    g_autofree char *line =
        g_strdup_printf ("can't record the start from '%s': %s", prefix, failure->message);
    add_line (self->warnings, line);
    return TRUE;
  }
  if (deaths < MUSTER_CRASH_LOOP_LIMIT)
    return TRUE;
  return muster_fail (
      error, MUSTER_ERROR_DATA_LOSS,
      "'%s' makes the job crash: it has died right after restoring it %u times in a row", prefix,
      deaths);
}

/* Whether a checkpoint that doesn't fit lacks what the caller can't do without. */
static gboolean
lacks_needed (const Choice *self, const char *prefix)
{
  g_autoptr (MusterBundleReader) reader =
      self->options->needs != NULL ? muster_bundle_reader_open (self->saver->storage, prefix, NULL)
                                   : NULL;

  for (const char *const *name = self->options->needs; reader != NULL && *name != NULL; name++)
    if (muster_bundle_reader_find (reader, *name) == NULL)
      return TRUE;
  return FALSE;
}

/* *is_final: no other one is to be tried. */
static gboolean
try_one (Choice *self, const char *prefix, MusterRestored *result, gboolean *is_final,
         gboolean *is_torn, GError **error)
{
  g_autoptr (GError) failure = NULL;
  MusterRestoreFailure meaning = {0};

  *is_final = TRUE;
  if (begin_crash_count (self, prefix, &failure) &&
      muster_saver_restore_one (self->saver, self->session, prefix, self->options, result, &meaning,
                                self->deadline_us, self->cancellable, &failure))
    return TRUE;
  (void)muster_saver_clear_crash_loop (self->saver, NULL); /* it has failed in words */
  *is_torn = meaning.is_torn;
  self->may_have_moved =
      !meaning.is_masters && (is_not_whole (failure) || lacks_needed (self, prefix));
  *is_final = !self->may_have_moved || self->options->fall_back_off;
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

/* Restores the first that will do; where none does, the newest one's fault counts. */
static gboolean
restore_first (Choice *self, GPtrArray *prefixes, MusterRestored *result, GError **error)
{
  for (guint i = 0; i < prefixes->len; i++) {
    GError *failure = NULL;
    gboolean is_final, is_torn;
    if (try_one (self, prefixes->pdata[i], result, &is_final, &is_torn, &failure))
      return TRUE;
    if (is_final) {
      g_propagate_error (error, failure);
      return FALSE;
    }
    Fault *fault = g_new (Fault, 1);
    *fault = (Fault){g_strdup (prefixes->pdata[i]), failure, is_torn};
    g_ptr_array_add (self->faults, fault);
  }
  const Fault *newest = self->faults->pdata[0];
  g_propagate_error (error, g_error_copy (newest->error));
  if (self->faults->len > 1)
    g_prefix_error (error, "none of %u checkpoints in '%s' can be restored; the newest: ",
                    self->faults->len, self->directory);
  return FALSE;
}

/* What became of one that was passed over, now that another has been restored: only then is one
 * known to be there. */
static void
quarantine_fault (Choice *self, const Fault *fault, GString *lines)
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
  else if (muster_checkpoint_quarantine (self->saver->storage, fault->prefix, fault->error->message,
                                         &quarantined, &failure))
    g_string_append_printf (lines, "\n  set aside as %s; %s", quarantined, use);
  else
    g_string_append_printf (lines,
                            "\n"
                            "  skipped; %s (%s)",
                            use, failure->message);
}

static void
finish (Choice *self, MusterRestored *result)
{
  g_autoptr (GString) lines = g_string_new (NULL);

  for (guint i = 0; i < self->faults->len; i++)
    quarantine_fault (self, self->faults->pdata[i], lines);
  if (lines->len > 0)
    result->passed_over = g_strdup (lines->str);
  if (result->warning != NULL)
    add_line (self->warnings, result->warning);
  g_free (result->warning);
  result->warning = self->warnings->len > 0 ? g_strdup (self->warnings->str) : NULL;
}

/* What there is to choose from. A state that can't be read is an error unless the files may stand
 * in for it: it must not look like none. */
static GPtrArray *
find_candidates (Choice *self, GError **error)
{
  MusterSaver *saver = self->saver;
  g_autoptr (GError) failure = NULL;
  g_autoptr (MusterCheckpointState) state = muster_checkpoint_state_read_named (
      saver->storage, self->directory, saver->directory.latest_filename, &failure);

  if (failure != NULL &&
      !(self->options->fall_back_to_files && muster_error_is (failure, MUSTER_ERROR_DATA_LOSS))) {
    g_propagate_error (error, g_steal_pointer (&failure));
    return NULL;
  }
  if (failure != NULL)
    add_line (self->warnings, failure->message);
  g_autoptr (GPtrArray) prefixes = candidates (saver, self->directory, state);
  if (self->options->fall_back_to_files && !add_files (saver, self->directory, prefixes, error))
    return NULL;
  if (failure != NULL && prefixes->len == 0) {
    g_propagate_error (error, g_steal_pointer (&failure));
    return NULL;
  }
  return g_steal_pointer (&prefixes);
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

/* What there is to choose from now, where a saver at work has changed that since: it removes what
 * leaves its list, unless it is locked already. NULL: nothing has changed, or time is up. */
static GPtrArray *
list_again (Choice *self, const GPtrArray *before)
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

static gboolean
restore_newest (Choice *self, MusterRestored *result, GError **error)
{
  g_autoptr (GPtrArray) prefixes = find_candidates (self, error);

  if (prefixes == NULL)
    return FALSE;
  while (prefixes->len > 0) {
    GError *failure = NULL;
    if (restore_first (self, prefixes, result, &failure)) {
      finish (self, result);
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
  return TRUE;
}

/* A directory with a checkpoint isn't this model's: its init ops must not run in its place. */
static gboolean
restore_nothing (MusterSaver *self, const char *directory, GError **error)
{
  GError *failure = NULL;
  g_autofree char *latest = muster_latest_checkpoint_named (
      self->storage, directory, self->directory.latest_filename, &failure);

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

gboolean
muster_saver_has_whole_checkpoint (MusterSaver *self, const char *directory,
                                   const MusterRestoreOptions *options, gboolean *found,
                                   GError **error)
{
  muster_require (error, FALSE, self, directory, found);

  static const MusterRestoreOptions plain;

  if (!muster_saver_check_directory (self, directory, error))
    return FALSE;
  g_auto (Choice) choice = {.saver = self,
                            .directory = directory,
                            .options = options != NULL ? options : &plain,
                            .warnings = g_string_new (NULL)};
  g_autoptr (GPtrArray) prefixes = find_candidates (&choice, error);

  if (prefixes == NULL)
    return FALSE;
  *found = FALSE;
  for (guint i = 0; i < prefixes->len && !*found; i++) {
    MusterCheckpointOverview overview;
    if (i == 0 || !choice.options->fall_back_off)
      *found = muster_checkpoint_inspect (self->storage, prefixes->pdata[i], &overview, NULL);
  }
  return TRUE;
}

gboolean
muster_saver_restore_latest_with (MusterSaver *self, MusterSession *session, const char *directory,
                                  const MusterRestoreOptions *options, MusterRestored *restored,
                                  gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self, session, directory);

  static const MusterRestoreOptions plain;
  g_auto (MusterRestored) result = {0};

  if (!muster_saver_check_session (self, session, error) ||
      !muster_saver_check_directory (self, directory, error) ||
      !muster_deadline_check (deadline_us, error))
    return FALSE;
  if (self->is_empty) {
    if (!restore_nothing (self, directory, error))
      return FALSE;
    if (restored != NULL)
      *restored = (MusterRestored){0};
    return TRUE;
  }
  g_auto (Choice) choice = {.saver = self,
                            .session = session,
                            .directory = directory,
                            .options = options != NULL ? options : &plain,
                            .deadline_us = deadline_us,
                            .cancellable = cancellable,
                            .faults = g_ptr_array_new_with_free_func (fault_free),
                            .warnings = g_string_new (NULL)};
  if (!restore_newest (&choice, &result, error))
    return FALSE;
  /* Where the state can't be read, and the files stood in for it, nothing is anybody's to delete.
   */
  if (result.prefix != NULL)
    (void)muster_saver_adopt_directory (self, directory, NULL);
  if (restored != NULL) {
    *restored = result;
    result = (MusterRestored){0};
  }
  return TRUE;
}

gboolean
muster_saver_restore_latest (MusterSaver *self, MusterSession *session, const char *directory,
                             char **restored, char **passed_over, gint64 deadline_us,
                             GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self, session, directory);

  g_auto (MusterRestored) result = {0};

  if (!muster_saver_restore_latest_with (self, session, directory, NULL, &result, deadline_us,
                                         cancellable, error))
    return FALSE;
  if (restored != NULL)
    *restored = g_steal_pointer (&result.prefix);
  if (passed_over != NULL)
    *passed_over = g_steal_pointer (&result.passed_over);
  return TRUE;
}

// SPDX-License-Identifier: Apache-2.0
/* What all of `muster checkpoint` share: options, the store, finding and opening a checkpoint
 * from what a user names, progress. */
#include "cli/checkpoint/checkpoint_open.h"

#include "base/files/local_path_private.h"
#include "checkpoint/format/v1_files_private.h"
#include "checkpoint/state/checkpoint_look_private.h"
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/state/quarantine.h"
#include "checkpoint/stores/default_storage.h"
#include "cli/common/cli.h"

#include <stdlib.h>
#include <string.h>

#define LOCK_US (30 * MUSTER_SECOND)

/* The command's, once its options are read; they last as long as the process. */
static MusterStorage *bound;
static gint64 bound_until_us = MUSTER_WAIT_FOREVER;

MusterStorage *
muster_cli_storage (void)
{
  return bound != NULL ? bound : muster_default_storage ();
}

gint64
muster_cli_bind_storage (const MusterCliOptions *options, GCancellable *cancellable)
{
  bound_until_us =
      muster_deadline_after (muster_clock_now_us (muster_system_clock ()), options->timeout_us);
  g_clear_object (&bound);
  bound = muster_storage_bound (muster_default_storage (), bound_until_us, NULL, cancellable);
  return bound_until_us;
}

gboolean
muster_cli_checkpoint_check_time (GError **error)
{
  return bound_until_us == MUSTER_WAIT_FOREVER ||
         muster_clock_now_us (muster_system_clock ()) < bound_until_us ||
         muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED, "not read within --timeout");
}

gint64
muster_cli_lock_deadline (void)
{
  return MIN (bound_until_us,
              muster_deadline_after (muster_clock_now_us (muster_system_clock ()), LOCK_US));
}

gboolean
muster_cli_checkpoint_parse (int argc, char **argv, const char *usage_of_command,
                             const char *summary, const GOptionEntry *entries, guint least,
                             guint most, MusterCliOptions *options, char ***words, int *code)
{
  g_autoptr (GError) error = NULL;
  if (!muster_cli_parse (argc, argv, usage_of_command, summary, entries,
                         MUSTER_CLI_JSON | MUSTER_CLI_TIMEOUT, options, words, &error)) {
    *code = muster_cli_fail (error);
    return FALSE;
  }
  (void)muster_cli_bind_storage (options, NULL);
  const guint n = g_strv_length (*words);
  if (n >= least && n <= most && n > 0 &&
      !muster_storage_check_path (muster_default_storage (), "checkpoint", *words[0], &error)) {
    *code = muster_cli_fail (error);
    return FALSE;
  }
  if (n >= least && n <= most)
    return TRUE;
  muster_cli_say (stderr, "muster: %s needs %s; see `muster help %s`\n", argv[0], usage_of_command,
                  argv[0]);
  *code = MUSTER_EXIT_BAD_INPUT;
  return FALSE;
}

char *
muster_cli_saved_model (const char *directory)
{
  g_autofree char *prefix = g_build_filename (directory, "variables", "variables", NULL);
  return muster_checkpoint_exists (muster_cli_storage (), prefix) ? g_steal_pointer (&prefix)
                                                                  : NULL;
}

gboolean
muster_cli_checkpoint_is_same (const char *prefix, const char *other)
{
  if (strcmp (prefix, other) == 0)
    return TRUE;
  g_autofree char *name = g_path_get_basename (prefix), *other_name = g_path_get_basename (other);
  if (strcmp (name, other_name) != 0)
    return FALSE;
  g_autofree char *in = g_path_get_dirname (prefix), *other_in = g_path_get_dirname (other);
  g_autofree char *here = realpath (muster_local_path (in), NULL);
  g_autofree char *there = realpath (muster_local_path (other_in), NULL);
  return here != NULL && g_strcmp0 (here, there) == 0;
}

char *
muster_cli_checkpoint_find (const char *place, GError **error)
{
  g_autoptr (GError) failure = NULL;
  if (!muster_storage_check_path (muster_default_storage (), "checkpoint", place, error))
    return NULL;
  g_autofree char *whole = muster_v1_of_part (place);
  if (whole != NULL && muster_checkpoint_exists (muster_cli_storage (), whole))
    return g_steal_pointer (&whole);
  if (muster_checkpoint_exists (muster_cli_storage (), place))
    return g_strdup (place);
  char *prefix = muster_checkpoint_of_file (muster_cli_storage (), place);
  if (prefix == NULL)
    prefix = muster_cli_saved_model (place);
  if (prefix != NULL)
    return prefix;
  prefix = muster_latest_checkpoint (muster_cli_storage (), place, &failure);
  if (prefix == NULL && failure == NULL)
    muster_fail (error, MUSTER_ERROR_NOT_FOUND,
                 "checkpoint '%s' not found: no file '%s.index', no SavedModel, and no directory "
                 "with a checkpoint",
                 place, place);
  else if (prefix == NULL)
    g_propagate_error (error, g_steal_pointer (&failure));
  return prefix;
}

gboolean
muster_cli_checkpoint_open (MusterCliOpened *self, const char *prefix, GError **error)
{
  g_autofree char *index = g_strconcat (prefix, ".index", NULL);
  self->lease = muster_storage_lock (muster_cli_storage (), index, MUSTER_LOCK_SHARED, NULL);
  self->reader = muster_bundle_reader_open (muster_cli_storage (), prefix, error);
  return self->reader != NULL;
}

gboolean
muster_cli_checkpoint_open_at (MusterCliOpened *self, const char *place, char **prefix,
                               GError **error)
{
  g_autofree char *found = muster_cli_checkpoint_find (place, error);
  while (found != NULL) {
    g_autoptr (GError) failure = NULL;
    if (muster_cli_checkpoint_open (self, found, &failure)) {
      *prefix = g_steal_pointer (&found);
      return TRUE;
    }
    muster_cli_opened_clear (self);
    g_autofree char *now = muster_cli_checkpoint_find (place, NULL);
    if (now == NULL || strcmp (now, found) == 0) {
      g_propagate_error (error, g_steal_pointer (&failure));
      return FALSE;
    }
    g_free (found);
    found = g_steal_pointer (&now);
  }
  return FALSE;
}

void
muster_cli_opened_clear (MusterCliOpened *self)
{
  g_clear_pointer (&self->reader, muster_bundle_reader_unref);
  muster_storage_unlock (muster_default_storage (), self->lease);
  self->lease = NULL;
}

/* A name like "optimizer/_variables/2" isn't descriptive. */
static gboolean
ends_in_number (const char *path)
{
  const char *last = strrchr (path, '/');
  last = last != NULL ? last + 1 : path;
  return *last != '\0' && strspn (last, "0123456789") == strlen (last);
}

const char *
muster_cli_readable (const MusterObjectNames *names, const MusterBundleEntry *entry)
{
  const MusterObjectName *object =
      names != NULL ? muster_object_names_find (names, entry->name) : NULL;
  if (object == NULL)
    return entry->name;
  if (object->full_name == NULL || !ends_in_number (object->path))
    return object->path;
  const char *key = muster_object_names_key_of (names, object->full_name, NULL);
  return key == object->key ? object->full_name
                            : object->path; /* unless two objects have this name */
}

MusterProgress *
muster_cli_progress (gboolean json)
{
  const gboolean is_seen = !json && muster_cli_is_terminal (stderr);
  return muster_progress_new (is_seen ? stderr : NULL, g_getenv ("NO_COLOR") == NULL,
                              muster_system_clock ());
}

// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "checkpoint/edit/edit_work_private.h"
#include "checkpoint/format/bundle_place_private.h"
#include "checkpoint/format/bundle_publish_private.h"
#include "checkpoint/state/checkpoint_look_private.h"
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/store/alive_mark_private.h"
#include "checkpoint/store/directory_lock_private.h"

#include <string.h>

static void
discard (MusterEditTarget *self)
{
  MusterStorage *storage = self->work->plain;
  g_autofree char *name = g_path_get_basename (self->temporary);
  g_autofree char *start = g_strconcat (name, ".", NULL);
  g_auto (GStrv) all = muster_storage_list (storage, self->directory, NULL);
  for (char **file = all; file != NULL && *file != NULL; file++) {
    g_autofree char *path = g_build_filename (self->directory, *file, NULL);
    if (g_str_has_prefix (*file, start))
      (void)muster_storage_remove (storage, path, NULL);
  }
}

static gboolean
check_absent (const MusterEditTarget *self, gboolean replaces, GError **error)
{
  gboolean is_there = FALSE;
  if (!replaces && !muster_checkpoint_look (self->work->storage, self->prefix, &is_there, error))
    return FALSE;
  return !is_there ||
         muster_fail (error, MUSTER_ERROR_ALREADY_EXISTS,
                      "the checkpoint '%s' exists; give another name, or have it replaced",
                      self->prefix);
}

static gboolean
mark_alive (MusterEditTarget *self, GError **error)
{
  g_autoptr (GError) why = NULL;
  self->alive = muster_alive_mark (self->work->storage, self->temporary, &why);
  if (self->alive != NULL || !g_error_matches (why, G_IO_ERROR, G_IO_ERROR_BUSY))
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                      "another process is making the checkpoint '%s'; wait until it has ended",
                      self->prefix);
}

gboolean
muster_edit_target_begin (MusterEditTarget *self, MusterEditWork *work, const char *prefix,
                          guint32 id, gboolean replaces, gboolean keeps, GError **error)
{
  g_autofree char *name = g_path_get_basename (prefix);
  g_autofree char *hidden = g_strdup_printf (MUSTER_SAVING_PREFIX "%08x-%s", id, name);
  *self = (MusterEditTarget){.work = work, .prefix = prefix, .keeps = keeps};
  if (g_str_has_suffix (prefix, "/"))
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "'%s' is a directory; a checkpoint's prefix ends in a name", prefix);
  if (!check_absent (self, replaces, error))
    return FALSE;
  self->directory = g_path_get_dirname (prefix);
  self->temporary = g_build_filename (self->directory, hidden, NULL);
  if (!muster_storage_make_directory (work->storage, self->directory, error) ||
      !mark_alive (self, error))
    return FALSE;
  self->has_begun = TRUE;
  if (!keeps)
    discard (self);
  return TRUE;
}

gboolean
muster_edit_target_publish (MusterEditTarget *self, gboolean replaces, GError **error)
{
  MusterBundlePublishing what = {.from = self->temporary, .to = self->prefix, .is_own = TRUE};
  g_autofree char *version = NULL;
  g_autoptr (GError) why = NULL;
  version = muster_bundle_index_version (self->work->storage, self->prefix, &why);
  if (why != NULL) {
    g_propagate_error (error, g_steal_pointer (&why));
    return FALSE;
  }
  what.version = version;
  self->is_published = check_absent (self, replaces, error) &&
                       muster_bundle_publish_with (self->work->storage, &what, error);
  self->is_unsure = what.is_unsure;
  return self->is_published;
}

void
muster_edit_target_clear (MusterEditTarget *self)
{
  if (self->has_begun) {
    if (self->is_published || !self->keeps || g_cancellable_is_cancelled (self->work->cancellable))
      discard (self);
    muster_alive_unmark (self->work->plain, self->temporary, self->alive);
  }
  self->has_begun = FALSE;
  g_clear_pointer (&self->directory, g_free);
  g_clear_pointer (&self->temporary, g_free);
}

gboolean
muster_edit_target_finish (MusterEditTarget *self, const MusterEditOptions *options, GError **error)
{
  MusterEditWork *work = self->work;
  if (muster_edit_reads_back (work, options, self->prefix) &&
      !muster_edit_work_verify (work, self->temporary, error))
    return FALSE;
  g_autoptr (MusterDirectoryLock) lock = muster_directory_lock (
      work->storage, self->directory, work->deadline_us, work->clock, work->cancellable, error);
  return lock != NULL &&
         muster_edit_target_publish (self, options != NULL && options->replaces, error);
}

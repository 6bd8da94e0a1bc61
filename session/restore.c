// SPDX-License-Identifier: Apache-2.0
#include "bundle/checkpoint_state.h"
#include "ready/countdown.h"
#include "session/session_private.h"

#define DEFAULT_MAX_WAIT_US (7200 * MUSTER_SECOND)

/* NULL and "" are both "not given" (B002.12). */
static gboolean
is_given (const char *path)
{
  return path && *path;
}

gboolean
muster_prepare_options_check_places (const MusterPrepareOptions *options, GError **error)
{
  if (!is_given (options->checkpoint_dir) || !is_given (options->checkpoint_filename))
    return TRUE;
  g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                       "Can not provide both checkpoint_dir and checkpoint_filename_with_path.");

  return FALSE;
}

gboolean
muster_prepare_options_can_restore (const MusterPrepareOptions *options)
{
  return options->saver &&
         (is_given (options->checkpoint_dir) || is_given (options->checkpoint_filename));
}

/* Whether the directory's state names a checkpoint whose files are there. One that it names and
 * that isn't whole yet counts as not yet there; a state that can't be read is an error. */
static gboolean
look_for_checkpoint (MusterStorage *storage, const char *directory, gboolean *found, GError **error)
{
  g_autoptr (GError) failure = NULL;
  g_autofree char *latest = muster_latest_checkpoint (storage, directory, &failure);

  *found = latest != NULL;
  if (!failure || muster_error_is (failure, MUSTER_ERROR_NOT_FOUND))
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&failure));

  return FALSE;
}

static gint64
checkpoint_limit_us (const MusterVerb *self, const MusterPrepareOptions *options)
{
  gint64 max_wait_us = options->max_wait_us == 0 ? DEFAULT_MAX_WAIT_US : options->max_wait_us;
  gint64 limit_us = muster_deadline_after (muster_clock_now_us (self->clock), max_wait_us);

  return MIN (limit_us, self->deadline_us);
}

/* Waits until there is a checkpoint, or for as long as options say: that is not an error. */
static gboolean
wait_for_checkpoint (MusterVerb *self, const MusterPrepareOptions *options, GError **error)
{
  MusterStorage *storage = muster_saver_storage (options->saver);
  gint64 now_us = muster_clock_now_us (self->clock);
  MusterCountdown countdown;

  muster_countdown_start (&countdown, now_us, checkpoint_limit_us (self, options),
                          self->manager->recovery_wait_us);
  for (;;) {
    gboolean found;
    if (!muster_verb_check_lease (self, error))
      return FALSE;
    if (!look_for_checkpoint (storage, options->checkpoint_dir, &found, error))
      return FALSE;
    if (found)
      return TRUE;

    gint64 after_us = muster_clock_now_us (self->clock);
    if (countdown.looks == 0)
      muster_verb_tell (self, "Waiting for checkpoint to be available.", NULL);
    muster_countdown_looked (&countdown, after_us - now_us);
    gint64 wake_us =
        muster_countdown_next_us (&countdown, after_us, muster_clock_random (self->clock));
    if (wake_us == 0)
      return TRUE;
    if (!muster_clock_wait_until (self->clock, wake_us, self->cancellable, error))
      return FALSE;
    now_us = muster_clock_now_us (self->clock);
  }
}

static gboolean
check_time (MusterVerb *self, const char *directory, GError **error)
{
  if (!muster_verb_is_over (self))
    return TRUE;
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED, "No checkpoint came into '%s'",
               directory);

  return FALSE;
}

/* Says which checkpoint it is, for people; nothing where there is none. */
static gboolean
announce_restoring (MusterVerb *self, const MusterPrepareOptions *options, GError **error)
{
  g_autoptr (GError) failure = NULL;
  g_autofree char *latest = NULL;
  g_autofree char *name = NULL;
  const char *checkpoint = options->checkpoint_filename;

  if (!self->lease)
    return TRUE;
  if (!is_given (checkpoint)) {
    checkpoint = latest = muster_latest_checkpoint (muster_saver_storage (options->saver),
                                                    options->checkpoint_dir, &failure);
    if (!latest && !failure)
      return TRUE;
  }
  name = checkpoint ? g_path_get_basename (checkpoint) : NULL;

  return muster_verb_announce (self, MUSTER_CHIEF_RESTORING, name, error);
}

static gboolean
restore_directory (MusterVerb *self, MusterSession *session, const MusterPrepareOptions *options,
                   GError **error)
{
  if (options->wait_for_checkpoint && (!wait_for_checkpoint (self, options, error) ||
                                       !check_time (self, options->checkpoint_dir, error)))
    return FALSE;

  return announce_restoring (self, options, error) &&
         muster_saver_restore_latest (options->saver, session, options->checkpoint_dir,
                                      &self->report.restored_from, &self->report.passed_over,
                                      self->call_deadline_us, self->cancellable, error);
}

gboolean
muster_verb_restore (MusterVerb *self, MusterSession *session, const MusterPrepareOptions *options,
                     GError **error)
{
  if (!muster_prepare_options_can_restore (options))
    return TRUE;

  muster_verb_phase (self, "restore");
  if (!is_given (options->checkpoint_filename))
    return restore_directory (self, session, options, error);
  if (!announce_restoring (self, options, error))
    return FALSE;
  if (!muster_saver_restore (options->saver, session, options->checkpoint_filename,
                             self->call_deadline_us, self->cancellable, error))
    return FALSE;
  self->report.restored_from = g_strdup (options->checkpoint_filename);

  return TRUE;
}

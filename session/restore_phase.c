// SPDX-License-Identifier: Apache-2.0
/* The phase of prepare and recover that restores a checkpoint: waits for one if that is asked
 * for, announces the restore and its progress, and notes the result in the report. */
#include "ready/countdown_private.h"
#include "session/session_private.h"

/* Interval and timeout of announcements of a restore's progress. */
#define REPORT_EVERY_US   (1 * MUSTER_SECOND)
#define ANNOUNCE_LIMIT_US (250 * MUSTER_MILLISECOND)

#define DEFAULT_MAX_WAIT_US (7200 * MUSTER_SECOND)

gboolean
muster_operation_can_restore (const MusterPrepareOptions *options)
{
  return options->saver != NULL && (muster_is_given (options->checkpoint_dir) ||
                                    muster_is_given (options->checkpoint_filename));
}

/* Sets *found if the directory has a checkpoint with complete files. An incomplete one counts as
 * missing; a state that can't be read is an error. */
static gboolean
find_checkpoint (const MusterPrepareOptions *options, gboolean *found, GError **error)
{
  return muster_saver_has_whole_checkpoint (options->saver, options->checkpoint_dir,
                                            options->restore, found, error);
}

gboolean
muster_operation_may_find_checkpoint (const MusterPrepareOptions *options, gboolean *may,
                                      GError **error)
{
  *may = muster_operation_can_restore (options);
  return !*may || muster_is_given (options->checkpoint_filename) || options->wait_for_checkpoint ||
         find_checkpoint (options, may, error);
}

static gint64
checkpoint_limit_us (const MusterOperation *self, const MusterPrepareOptions *options)
{
  gint64 max_wait_us = options->max_wait_us == 0 ? DEFAULT_MAX_WAIT_US : options->max_wait_us;
  gint64 limit_us = muster_deadline_after (muster_clock_now_us (self->clock), max_wait_us);
  return MIN (limit_us, self->deadline_us);
}

/* Waits for a checkpoint, for max_wait_us at most; a timeout isn't an error. */
static gboolean
wait_for_checkpoint (MusterOperation *self, const MusterPrepareOptions *options, GError **error)
{
  gint64 now_us = muster_clock_now_us (self->clock);
  gint64 limit_us = checkpoint_limit_us (self, options);
  MusterCountdown countdown;
  muster_countdown_start (&countdown, now_us, limit_us, self->manager->recovery_wait_us);
  for (;;) {
    gboolean found;
    if (!muster_operation_check_lease (self, error))
      return FALSE;
    if (!find_checkpoint (options, &found, error))
      return FALSE;
    if (found)
      return TRUE;

    gint64 after_us = muster_clock_now_us (self->clock);
    if (countdown.polls == 0)
      muster_operation_report_step (self, "Waiting for checkpoint to be available.");
    muster_countdown_polled (&countdown, after_us - now_us);
    gint64 wake_us =
        muster_countdown_next_us (&countdown, after_us, muster_clock_random (self->clock));
    if (!muster_clock_wait_until (self->clock, wake_us == 0 ? limit_us : wake_us, self->cancellable,
                                  error))
      return FALSE;
    if (wake_us == 0)
      return TRUE;
    now_us = muster_clock_now_us (self->clock);
  }
}

static gboolean
check_time (MusterOperation *self, const char *directory, GError **error)
{
  if (muster_clock_now_us (self->clock) < self->deadline_us)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED, "no checkpoint appeared in '%s'",
                      directory);
}

/* Reports a running restore. */
typedef struct {
  MusterOperation *operation;
  const MusterRestoreOptions *options; /* the caller's */
  char *name;                          /* (owned) (nullable) the checkpoint, for messages */
  gint64 reported_us;                  /* time of the last announcement */
} RestoreReport;

static void
restore_report_clear (RestoreReport *self)
{
  g_free (self->name);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (RestoreReport, restore_report_clear)

/* Announces the checkpoint's name, if there is one. */
static gboolean
announce_restoring (RestoreReport *self, const MusterPrepareOptions *options, GError **error)
{
  g_autoptr (GError) failure = NULL;
  g_autofree char *latest = NULL;
  const char *checkpoint = options->checkpoint_filename;

  if (self->operation->lease == NULL)
    return TRUE;
  if (!muster_is_given (checkpoint)) {
    checkpoint = latest =
        muster_saver_latest_checkpoint (options->saver, options->checkpoint_dir, &failure);
    if (latest == NULL && failure == NULL)
      return TRUE;
  }
  self->name = checkpoint != NULL ? g_path_get_basename (checkpoint) : NULL;
  self->reported_us = muster_clock_now_us (self->operation->clock);
  return muster_operation_announce (self->operation, MUSTER_CHIEF_RESTORING, self->name, error);
}

/* Announces the progress. The next announcement makes up for a failed one, and also detects a
 * lost lease. */
static void
announce_progress (RestoreReport *self, guint64 done, guint64 total)
{
  g_auto (MusterAnnouncement) announcement = MUSTER_ANNOUNCEMENT_INIT;
  gint64 now_us = muster_clock_now_us (self->operation->clock);
  if (self->operation->lease == NULL || total == 0 || now_us - self->reported_us < REPORT_EVERY_US)
    return;
  self->reported_us = now_us;
  announcement.phase = MUSTER_CHIEF_RESTORING;
  announcement.detail =
      g_strdup_printf ("%s%s%d %%", self->name != NULL ? self->name : "",
                       self->name != NULL ? ", " : "", (int)(100.0 * (double)done / (double)total));
  (void)muster_lease_announce (self->operation->lease, &announcement,
                               MIN (self->operation->call_deadline_us, now_us + ANNOUNCE_LIMIT_US),
                               self->operation->cancellable, NULL);
}

static void
report_progress (guint64 done, guint64 total, gpointer user_data)
{
  RestoreReport *self = user_data;
  if (self->options != NULL && self->options->progress != NULL)
    self->options->progress (done, total, self->options->user_data);
  announce_progress (self, done, total);
}

static gboolean
restore_one (MusterOperation *self, GError **error)
{
  const MusterPrepareOptions *options = self->options;
  g_auto (RestoreReport) telling = {.operation = self, .options = options->restore};
  g_auto (MusterRestored) restored = {0};
  MusterRestoreOptions how =
      options->restore != NULL ? *options->restore : (MusterRestoreOptions){0};

  how.prefix = muster_is_given (options->checkpoint_filename) ? options->checkpoint_filename : NULL;
  how.directory = how.prefix == NULL ? options->checkpoint_dir : NULL;
  how.progress = report_progress;
  how.user_data = &telling;
  if (!announce_restoring (&telling, options, error) ||
      !muster_saver_restore (options->saver, self->session, &how, &restored, self->call_deadline_us,
                             self->cancellable, error))
    return FALSE;
  g_clear_error (&self->failure); /* the store has answered */
  self->report.restored_from = g_steal_pointer (&restored.prefix);
  self->report.passed_over = g_steal_pointer (&restored.passed_over);
  self->report.restore_warning = g_steal_pointer (&restored.warning);
  return TRUE;
}

gboolean
muster_operation_restore (MusterOperation *self, GError **error)
{
  const MusterPrepareOptions *options = self->options;
  if (!muster_operation_can_restore (options) || self->report.continued)
    return TRUE;

  muster_operation_phase (self, "restore");
  if (!muster_is_given (options->checkpoint_filename) && options->wait_for_checkpoint &&
      (!wait_for_checkpoint (self, options, error) ||
       !check_time (self, options->checkpoint_dir, error)))
    return FALSE;
  return restore_one (self, error);
}

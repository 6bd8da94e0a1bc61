// SPDX-License-Identifier: Apache-2.0
#include "saver/save_track_private.h"

#include "base/log_private.h"
#include "saver/saver_private.h"

#include <math.h>

#include <string.h>

struct _MusterSaveTrack {
  gatomicrefcount refs;
  MusterSaver *saver; /* (owned) */
  gboolean is_background;
  double metric; /* NAN: none; constant */
  /* guarded by the saver's lock */
  char *path; /* (owned) */
  gint64 step;
  MusterSaveState state;
  gint64 at_us[MUSTER_N_SAVE_STATES]; /* -1: not reached */
  gint64 write_us;                    /* when the master began to write; -1: not yet */
  gint64 unblocked_us;                /* when its caller went on; -1: not yet */
};

void
muster_save_log_init (MusterSaveLog *self)
{
  self->status = (MusterSaveStatus)MUSTER_SAVE_STATUS_INIT;
  g_queue_init (&self->tracks);
}

void
muster_save_log_clear (MusterSaveLog *self)
{
  muster_save_status_clear (&self->status);
  g_queue_clear (&self->tracks);
}

/* With the lock held. */
static void
mark (MusterSaveTrack *self, MusterSaveState state, gint64 now_us)
{
  MusterSaveStatus *status = &self->saver->log.status;
  self->state = state;
  self->at_us[state] = now_us;
  status->step[state] = self->step;
  status->age_us[state] = now_us;
}

/* --- the log: without the lock, whoever writes it --- */

/* What a message needs of a track. */
typedef struct {
  char *path; /* (owned) (nullable) NULL: nothing is logged */
  gint64 step, took_us;
  MusterSaveState from; /* the states after it were reached */
} Logged;

/* With the lock held, before the state changes. */
static Logged
begin_log (const MusterSaveTrack *self, gint64 now_us)
{
  if (!muster_log_enabled (G_LOG_LEVEL_INFO))
    return (Logged){0};
  return (Logged){g_strdup (self->path), self->step,
                  MAX (now_us - self->at_us[MUSTER_SAVE_REQUESTED], 0), self->state};
}

static void
log_state (const Logged *self, MusterSaveState state, guint64 bytes)
{
  g_autofree char *size = bytes > 0 ? g_strdup_printf ("%" G_GUINT64_FORMAT, bytes) : g_strdup ("");
  muster_log (G_LOG_LEVEL_INFO, "save", "MUSTER_STATE", muster_save_state_name (state),
              "MUSTER_STEP", MUSTER_LOG_INT (self->step), "MUSTER_CHECKPOINT", self->path,
              "MUSTER_SECONDS", MUSTER_LOG_SECONDS (self->took_us), "MUSTER_BYTES", size, "MESSAGE",
              "'%s': %s", self->path, muster_save_state_name (state));
}

/* Ends what begin_log () began. Without a snapshot, a save passes several states at once. */
static void
end_log (Logged *self, MusterSaveState to, guint64 bytes)
{
  for (guint state = self->from + 1; self->path != NULL && state < to && to <= MUSTER_SAVE_DURABLE;
       state++)
    log_state (self, state, 0);
  if (self->path != NULL)
    log_state (self, to, bytes);
  g_free (self->path);
}

MusterSaveTrack *
muster_save_track_new (MusterSaver *saver, const char *path, gint64 step, gint64 began_us,
                       gboolean is_background)
{
  MusterSaveTrack *self = g_new0 (MusterSaveTrack, 1);
  g_atomic_ref_count_init (&self->refs);
  self->saver = g_object_ref (saver);
  self->is_background = is_background;
  self->path = g_strdup (path);
  self->step = step;
  for (guint i = 0; i < MUSTER_N_SAVE_STATES; i++)
    self->at_us[i] = -1;
  self->write_us = self->unblocked_us = -1;
  g_mutex_lock (&saver->lock);
  mark (self, MUSTER_SAVE_REQUESTED, began_us);
  g_queue_push_tail (&saver->log.tracks, self);
  self->metric = saver->metric;
  saver->metric = NAN;
  Logged logged = begin_log (self, began_us);
  g_mutex_unlock (&saver->lock);
  end_log (&logged, MUSTER_SAVE_REQUESTED, 0);
  return self;
}

void
muster_save_track_return_metric (MusterSaveTrack *self)
{
  MusterSaver *saver = self->saver;
  g_mutex_lock (&saver->lock);
  if (isnan (saver->metric))
    saver->metric = self->metric;
  g_mutex_unlock (&saver->lock);
}

double
muster_save_track_metric (const MusterSaveTrack *self)
{
  return self->metric;
}

MusterSaveTrack *
muster_save_track_ref (MusterSaveTrack *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_save_track_unref (MusterSaveTrack *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->refs))
    return;
  muster_save_track_end (self, MUSTER_SAVE_FAILED, 0);
  g_free (self->path);
  g_object_unref (self->saver);
  g_free (self);
}

void
muster_save_track_rename (MusterSaveTrack *self, const char *path, gint64 step)
{
  g_mutex_lock (&self->saver->lock);
  g_free (self->path);
  self->path = g_strdup (path);
  self->step = step;
  g_mutex_unlock (&self->saver->lock);
}

/* With the lock held, after it has ended and its caller has gone on: how long that took. */
static void
count_blocked (MusterSaveTrack *self)
{
  MusterSaveStatus *status = &self->saver->log.status;
  const gint64 blocked_us = MAX (self->unblocked_us - self->at_us[MUSTER_SAVE_REQUESTED], 0);
  if (self->state != MUSTER_SAVE_DURABLE)
    return;
  status->last_us[MUSTER_SAVE_BLOCKED] = blocked_us;
  status->total_us[MUSTER_SAVE_BLOCKED] += blocked_us;
}

void
muster_save_track_unblock (MusterSaveTrack *self)
{
  const gint64 now_us = muster_clock_now_us (self->saver->clock);
  g_mutex_lock (&self->saver->lock);
  if (self->unblocked_us < 0) {
    self->unblocked_us = now_us;
    if (self->state >= MUSTER_SAVE_DURABLE)
      count_blocked (self);
  }
  g_mutex_unlock (&self->saver->lock);
}

void
muster_save_track_write (MusterSaveTrack *self)
{
  const gint64 now_us = muster_clock_now_us (self->saver->clock);
  g_mutex_lock (&self->saver->lock);
  self->write_us = now_us;
  g_mutex_unlock (&self->saver->lock);
}

/* With the lock held. */
static void
reach (MusterSaveTrack *self, MusterSaveState state, gint64 now_us)
{
  if (state > MUSTER_SAVE_STAGED && self->at_us[state - 1] < 0)
    reach (self, state - 1, now_us); /* without a snapshot, what is written is what was staged */
  mark (self, state, now_us);
}

void
muster_save_track_reach (MusterSaveTrack *self, MusterSaveState state)
{
  const gint64 now_us = muster_clock_now_us (self->saver->clock);
  Logged logged = {0};
  g_mutex_lock (&self->saver->lock);
  if (self->state < MUSTER_SAVE_DURABLE) {
    logged = begin_log (self, now_us);
    reach (self, state, now_us);
  }
  g_mutex_unlock (&self->saver->lock);
  end_log (&logged, state, 0);
}

/* With the lock held. */
static void
count_durable (MusterSaveTrack *self, guint64 bytes)
{
  MusterSaveStatus *status = &self->saver->log.status;
  const gint64 *at_us = self->at_us;
  const gint64 write_us = self->write_us >= 0 ? self->write_us : at_us[MUSTER_SAVE_STAGED];
  status->n_durable++;
  status->last_bytes = bytes;
  status->last_us[MUSTER_SAVE_STAGING] =
      self->is_background ? at_us[MUSTER_SAVE_STAGED] - at_us[MUSTER_SAVE_REQUESTED] : 0;
  status->last_us[MUSTER_SAVE_WRITING] = MAX (at_us[MUSTER_SAVE_WRITTEN] - write_us, 0);
  status->last_us[MUSTER_SAVE_PUBLISHING] = at_us[MUSTER_SAVE_DURABLE] - at_us[MUSTER_SAVE_WRITTEN];
  for (guint i = MUSTER_SAVE_STAGING; i < MUSTER_N_SAVE_PHASES; i++)
    status->total_us[i] += status->last_us[i];
}

void
muster_save_track_end (MusterSaveTrack *self, MusterSaveState state, guint64 bytes)
{
  MusterSaveStatus *status = &self->saver->log.status;
  const gint64 now_us = muster_clock_now_us (self->saver->clock);
  Logged logged = {0};
  g_mutex_lock (&self->saver->lock);
  if (self->state < MUSTER_SAVE_DURABLE) {
    logged = begin_log (self, now_us);
    if (state == MUSTER_SAVE_DURABLE) {
      reach (self, state, now_us);
      count_durable (self, bytes);
    }
    self->state = state;
    status->n_failed += state == MUSTER_SAVE_FAILED;
    status->n_skipped += state == MUSTER_SAVE_SKIPPED;
    status->n_replaced += state == MUSTER_SAVE_REPLACED;
    if (!self->is_background)
      self->unblocked_us = now_us;
    if (self->unblocked_us >= 0)
      count_blocked (self);
    g_queue_remove (&self->saver->log.tracks, self);
  }
  g_mutex_unlock (&self->saver->lock);
  end_log (&logged, state, bytes);
}

void
muster_save_track_read (MusterSaveTrack *self, gint64 at_us[MUSTER_N_SAVE_STATES])
{
  g_mutex_lock (&self->saver->lock);
  memcpy (at_us, self->at_us, sizeof self->at_us);
  g_mutex_unlock (&self->saver->lock);
}

void
muster_saver_set_interval (MusterSaver *self, gint64 interval_us)
{
  g_return_if_fail (MUSTER_IS_SAVER (self));

  g_mutex_lock (&self->lock);
  self->log.status.interval_us = MAX (interval_us, 0);
  g_mutex_unlock (&self->lock);
}

void
muster_saver_status (MusterSaver *self, MusterSaveStatus *status)
{
  g_return_if_fail (MUSTER_IS_SAVER (self) && status != NULL);

  const gint64 now_us = muster_clock_now_us (self->clock);

  g_mutex_lock (&self->lock);
  *status = self->log.status;
  const MusterSaveTrack *oldest = g_queue_peek_head (&self->log.tracks);
  if (oldest != NULL) {
    status->saving = g_strdup (oldest->path);
    status->saving_state = oldest->state;
    status->saving_step = oldest->step;
    status->saving_age_us = MAX (now_us - oldest->at_us[MUSTER_SAVE_REQUESTED], 0);
  }
  g_mutex_unlock (&self->lock);
  for (guint i = 0; i < MUSTER_N_SAVE_STATES; i++)
    status->age_us[i] = status->step[i] >= 0 ? MAX (now_us - status->age_us[i], 0) : 0;
}

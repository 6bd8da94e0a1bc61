// SPDX-License-Identifier: Apache-2.0
/* The states of a save, and what they add to its saver's status: the time of each state, counts,
 * durations, log messages, and the metric that a save takes along. */
#include "base/log_private.h"
#include "saver/save_ticket_private.h"

#include <math.h>
#include <string.h>

/* --- the log --- */

MusterSaveLog *
muster_save_log_new (MusterClock *clock)
{
  MusterSaveLog *self = g_new0 (MusterSaveLog, 1);
  g_atomic_ref_count_init (&self->refs);
  self->clock = g_object_ref (clock);
  g_mutex_init (&self->lock);
  self->status = (MusterSaveStatus)MUSTER_SAVE_STATUS_INIT;
  g_queue_init (&self->saves);
  self->metric = NAN;
  self->metric_step = -1;
  return self;
}

static MusterSaveLog *
log_ref (MusterSaveLog *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_save_log_unref (MusterSaveLog *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  muster_save_status_clear (&self->status);
  g_object_unref (self->clock);
  g_mutex_clear (&self->lock);
  g_free (self);
}

void
muster_save_log_set_metric (MusterSaveLog *self, double value)
{
  g_mutex_lock (&self->lock);
  self->metric = value;
  self->metric_step = -1;
  g_mutex_unlock (&self->lock);
}

void
muster_save_log_set_interval (MusterSaveLog *self, gint64 interval_us)
{
  g_mutex_lock (&self->lock);
  self->status.interval_us = MAX (interval_us, 0);
  g_mutex_unlock (&self->lock);
}

void
muster_save_log_read (MusterSaveLog *self, MusterSaveStatus *status)
{
  const gint64 now_us = muster_clock_now_us (self->clock);
  g_mutex_lock (&self->lock);
  *status = self->status;
  const MusterSaveTicket *oldest = g_queue_peek_head (&self->saves);
  if (oldest != NULL) {
    status->saving = g_strdup (oldest->paths->data);
    status->saving_state = oldest->state;
    status->saving_step = oldest->step;
    status->saving_age_us = MAX (now_us - oldest->at_us[MUSTER_SAVE_REQUESTED], 0);
  }
  g_mutex_unlock (&self->lock);
  for (guint i = 0; i < MUSTER_N_SAVE_STATES; i++)
    status->age_us[i] = status->step[i] >= 0 ? MAX (now_us - status->age_us[i], 0) : 0;
}

/* --- one save --- */

/* With the lock held. */
static void
mark (MusterSaveTicket *self, MusterSaveState state, gint64 now_us)
{
  MusterSaveStatus *status = &self->log->status;
  self->state = state;
  self->at_us[state] = now_us;
  status->step[state] = self->step;
  status->age_us[state] = now_us;
}

/* --- the log: without the lock, whoever writes it --- */

/* The data of a message about a save. */
typedef struct {
  char *path; /* (owned) (nullable) NULL: nothing is logged */
  gint64 step, took_us;
  MusterSaveState from; /* the message is about the states after this one */
} Logged;

/* With the lock held, before the state changes. */
static Logged
begin_log (const MusterSaveTicket *self, gint64 now_us)
{
  if (!muster_log_enabled (G_LOG_LEVEL_INFO))
    return (Logged){0};
  return (Logged){g_strdup (self->paths->data), self->step,
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

/* Ends what begin_log () began. Without a snapshot, a save reaches several states at once. */
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

/* With the lock held. The value stays for another save of the step, because this one may fail,
 * or go to a fast tier alone. */
static double
take_metric (MusterSaveLog *log, gint64 step)
{
  if (log->metric_step >= 0 && log->metric_step != step)
    log->metric = NAN;
  const double metric = log->metric;
  log->metric_step = step;
  if (step < 0)
    log->metric = NAN;
  return metric;
}

MusterSaveTicket *
muster_save_ticket_new (MusterSaveLog *log, const char *path, gint64 step, gint64 began_us,
                        gboolean is_background)
{
  MusterSaveTicket *self = g_new0 (MusterSaveTicket, 1);
  g_atomic_ref_count_init (&self->refs);
  self->log = log_ref (log);
  self->cancellable = g_cancellable_new ();
  self->is_background = is_background;
  g_cond_init (&self->changed);
  self->paths = g_slist_prepend (NULL, g_strdup (path));
  self->step = step;
  for (guint i = 0; i < MUSTER_N_SAVE_STATES; i++)
    self->at_us[i] = -1;
  self->write_us = self->unblocked_us = -1;
  g_mutex_lock (&log->lock);
  mark (self, MUSTER_SAVE_REQUESTED, began_us);
  g_queue_push_tail (&log->saves, self);
  self->metric = take_metric (log, step);
  Logged logged = begin_log (self, began_us);
  g_mutex_unlock (&log->lock);
  end_log (&logged, MUSTER_SAVE_REQUESTED, 0);
  return self;
}

/* TRUE if the log's value is that of the save's step. A save without a number has no step, and a
 * value that no save has taken none either. The lock is held. */
static gboolean
took_metric (const MusterSaveTicket *self)
{
  return self->step >= 0 && self->log->metric_step == self->step;
}

void
muster_save_ticket_rename (MusterSaveTicket *self, const char *path, gint64 step)
{
  MusterSaveLog *log = self->log;
  g_mutex_lock (&log->lock);
  if (took_metric (self))
    log->metric_step = step;
  if (!g_str_equal (self->paths->data, path))
    self->paths = g_slist_prepend (self->paths, g_strdup (path));
  self->step = step;
  g_mutex_unlock (&log->lock);
}

/* With the lock held, after the save has ended and its caller has continued: adds the time for
 * which the caller was blocked. */
static void
count_blocked (MusterSaveTicket *self)
{
  MusterSaveStatus *status = &self->log->status;
  const gint64 blocked_us = MAX (self->unblocked_us - self->at_us[MUSTER_SAVE_REQUESTED], 0);
  if (self->state != MUSTER_SAVE_DURABLE)
    return;
  status->last_us[MUSTER_SAVE_BLOCKED] = blocked_us;
  status->total_us[MUSTER_SAVE_BLOCKED] += blocked_us;
}

void
muster_save_ticket_unblock (MusterSaveTicket *self)
{
  const gint64 now_us = muster_clock_now_us (self->log->clock);
  g_mutex_lock (&self->log->lock);
  if (self->unblocked_us < 0) {
    self->unblocked_us = now_us;
    if (self->state >= MUSTER_SAVE_DURABLE)
      count_blocked (self);
  }
  g_mutex_unlock (&self->log->lock);
}

void
muster_save_ticket_write (MusterSaveTicket *self)
{
  const gint64 now_us = muster_clock_now_us (self->log->clock);
  g_mutex_lock (&self->log->lock);
  self->write_us = now_us;
  g_mutex_unlock (&self->log->lock);
}

/* With the lock held. */
static void
reach (MusterSaveTicket *self, MusterSaveState state, gint64 now_us)
{
  if (state > MUSTER_SAVE_STAGED && self->at_us[state - 1] < 0)
    reach (self, state - 1, now_us); /* without a snapshot, a save is staged when it is written */
  mark (self, state, now_us);
}

void
muster_save_ticket_reach (MusterSaveTicket *self, MusterSaveState state)
{
  const gint64 now_us = muster_clock_now_us (self->log->clock);
  Logged logged = {0};
  g_mutex_lock (&self->log->lock);
  if (self->state < MUSTER_SAVE_DURABLE) {
    logged = begin_log (self, now_us);
    reach (self, state, now_us);
  }
  g_mutex_unlock (&self->log->lock);
  end_log (&logged, state, 0);
}

/* With the lock held. */
static void
count_durable (MusterSaveTicket *self, guint64 bytes)
{
  MusterSaveStatus *status = &self->log->status;
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
muster_save_ticket_end (MusterSaveTicket *self, MusterSaveState state, guint64 bytes)
{
  MusterSaveStatus *status = &self->log->status;
  const gint64 now_us = muster_clock_now_us (self->log->clock);
  Logged logged = {0};
  g_mutex_lock (&self->log->lock);
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
    g_queue_remove (&self->log->saves, self);
  }
  g_mutex_unlock (&self->log->lock);
  end_log (&logged, state, bytes);
}

void
muster_save_ticket_forget_metric (MusterSaveTicket *self)
{
  MusterSaveLog *log = self->log;
  g_mutex_lock (&log->lock);
  if (took_metric (self))
    log->metric = NAN;
  g_mutex_unlock (&log->lock);
}

void
muster_save_ticket_read (MusterSaveTicket *self, gint64 at_us[MUSTER_N_SAVE_STATES])
{
  g_mutex_lock (&self->log->lock);
  memcpy (at_us, self->at_us, sizeof self->at_us);
  g_mutex_unlock (&self->log->lock);
}

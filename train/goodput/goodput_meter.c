// SPDX-License-Identifier: Apache-2.0
/* Measures what a job's time is spent on: one use at a time, from instant to instant, and the
 * account of the runs before. Steps up to the highest one that a run had reached count as repeated.
 * */
#include "train/goodput/goodput_meter.h"

#include <math.h>

struct _MusterGoodputMeter {
  gatomicrefcount refs;
  MusterClock *clock; /* (owned) */
  gint64 began_us;
  GMutex lock;
  /* guarded by lock */
  MusterGoodput sum; /* up to since_us */
  MusterTimeUse use;
  gint64 since_us;
  gint64 at_step; /* the global step at since_us; -1: unknown */
  gboolean is_stopped;
  MusterGoodput offered; /* began_us 0: none */
  gint64 offered_us;
  gboolean is_settled; /* resumed or forgotten */
  gboolean was_made;   /* a session */
  gboolean others_train;
};

G_DEFINE_BOXED_TYPE (MusterGoodputMeter, muster_goodput_meter, muster_goodput_meter_ref,
                     muster_goodput_meter_unref)

MusterGoodputMeter *
muster_goodput_meter_new (MusterClock *clock)
{
  MusterGoodputMeter *self = g_new0 (MusterGoodputMeter, 1);
  g_atomic_ref_count_init (&self->refs);
  self->clock = g_object_ref (clock != NULL ? clock : muster_system_clock ());
  g_mutex_init (&self->lock);
  self->began_us = self->since_us = muster_clock_now_us (self->clock);
  self->sum = (MusterGoodput){.began_us = MAX (muster_clock_wall_us (self->clock), 1), .step = -1};
  self->use = MUSTER_TIME_WAITING;
  self->at_step = -1;
  return self;
}

MusterGoodputMeter *
muster_goodput_meter_ref (MusterGoodputMeter *self)
{
  g_return_val_if_fail (self != NULL, NULL);

  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_goodput_meter_unref (MusterGoodputMeter *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->refs))
    return;
  g_object_unref (self->clock);
  g_mutex_clear (&self->lock);
  g_free (self);
}

/* --- the time; all with the lock held --- */

/* Counts the time since since_us, of which nothing is left. */
static gint64
take_time (MusterGoodputMeter *self)
{
  const gint64 now_us = muster_clock_now_us (self->clock);
  const gint64 passed_us = MAX (now_us - self->since_us, 0);
  self->since_us = now_us;
  return self->is_stopped ? 0 : passed_us;
}

/* Steps up to the highest one were trained before, in this run or in one before it. */
static MusterTimeUse
use_of_steps (const MusterGoodputMeter *self)
{
  return self->at_step >= 0 && self->at_step < self->sum.step ? MUSTER_TIME_REPEATED
                                                              : MUSTER_TIME_TRAINING;
}

static void
settle (MusterGoodputMeter *self)
{
  const MusterTimeUse use = self->use == MUSTER_TIME_TRAINING ? use_of_steps (self) : self->use;
  self->sum.spent_us[use] += take_time (self);
}

MusterTimeUse
muster_goodput_meter_enter (MusterGoodputMeter *self, MusterTimeUse use)
{
  g_return_val_if_fail (self != NULL, MUSTER_TIME_TRAINING);

  g_mutex_lock (&self->lock);
  const MusterTimeUse before = self->use;
  settle (self);
  self->use = use;
  g_mutex_unlock (&self->lock);
  return before;
}

/* --- the runs before --- */

void
muster_goodput_meter_offer (MusterGoodputMeter *self, const MusterGoodput *written)
{
  g_return_if_fail (self != NULL && written != NULL);

  g_mutex_lock (&self->lock);
  self->offered = *written;
  self->offered_us = muster_clock_now_us (self->clock) - written->age_us;
  g_mutex_unlock (&self->lock);
}

/* With the lock held: the run before went on while this one waited. That time is in its account. */
static void
leave_out_overlap (MusterGoodputMeter *self, gint64 until_us)
{
  settle (self);
  gint64 *waiting_us = &self->sum.spent_us[MUSTER_TIME_WAITING];
  *waiting_us -= CLAMP (until_us - self->began_us, 0, *waiting_us);
}

/* With the lock held. at_us is when before was measured. */
static void
add_before (MusterGoodputMeter *self, const MusterGoodput *before, gint64 at_us,
            gboolean is_announced, gboolean is_continued)
{
  const MusterTimeUse between =
      is_continued && self->others_train ? MUSTER_TIME_TRAINING : MUSTER_TIME_DOWN;

  leave_out_overlap (self, at_us);
  self->sum.began_us = before->began_us;
  for (guint i = 0; i < MUSTER_N_TIMES; i++)
    self->sum.spent_us[i] += before->spent_us[i];
  self->sum.n_restarts += before->n_restarts;
  self->sum.n_failures += before->n_failures;
  self->sum.steps_again += before->steps_again;
  self->sum.step = MAX (self->sum.step, before->step);
  self->sum.is_least |= before->is_least;
  if (before->end == MUSTER_RUN_FINISHED)
    return;
  self->sum.n_restarts++;
  self->sum.n_failures += before->end == MUSTER_RUN_UNENDED;
  self->sum.is_least |= before->end == MUSTER_RUN_UNENDED && !is_announced;
  self->sum.spent_us[between] += MAX (self->began_us - at_us, 0);
}

void
muster_goodput_meter_set_others_train (MusterGoodputMeter *self)
{
  g_return_if_fail (self != NULL);

  g_mutex_lock (&self->lock);
  self->others_train = TRUE;
  g_mutex_unlock (&self->lock);
}

void
muster_goodput_meter_resume (MusterGoodputMeter *self, const MusterGoodput *announced,
                             gint64 announced_us, gboolean is_continued)
{
  g_return_if_fail (self != NULL);

  g_mutex_lock (&self->lock);
  const gboolean is_known = self->offered.began_us != 0;
  const gboolean is_announced =
      announced != NULL && is_known && announced->began_us == self->offered.began_us;
  /* The account of a job only grows. A run that has ended wrote so after its last announcement. */
  const gboolean is_later = is_announced && muster_goodput_total_us (announced) >
                                                muster_goodput_total_us (&self->offered);
  if (is_known && !self->is_settled)
    add_before (self, is_later ? announced : &self->offered,
                is_later ? announced_us : self->offered_us, is_announced, is_continued);
  self->is_settled = TRUE;
  g_mutex_unlock (&self->lock);
}

void
muster_goodput_meter_forget (MusterGoodputMeter *self)
{
  g_return_if_fail (self != NULL);

  g_mutex_lock (&self->lock);
  self->is_settled = TRUE;
  g_mutex_unlock (&self->lock);
}

/* --- this run --- */

void
muster_goodput_meter_made (MusterGoodputMeter *self, gint64 restoring_us, gint64 initialising_us,
                           gint64 step)
{
  g_return_if_fail (self != NULL);

  g_mutex_lock (&self->lock);
  const gint64 passed_us = take_time (self);
  const gint64 restoring = CLAMP (restoring_us, 0, passed_us);
  const gint64 initialising = CLAMP (initialising_us, 0, passed_us - restoring);
  self->sum.spent_us[MUSTER_TIME_RESTORING] += restoring;
  self->sum.spent_us[MUSTER_TIME_INITIALISING] += initialising;
  self->sum.spent_us[self->use] += passed_us - restoring - initialising;
  self->use = MUSTER_TIME_INITIALISING;
  self->at_step = step;
  self->sum.n_restarts += self->was_made;
  self->sum.n_failures += self->was_made;
  self->was_made = TRUE;
  g_mutex_unlock (&self->lock);
}

void
muster_goodput_meter_lost (MusterGoodputMeter *self)
{
  g_return_if_fail (self != NULL);

  g_mutex_lock (&self->lock);
  if (self->use == MUSTER_TIME_TRAINING)
    self->use = MUSTER_TIME_WAITING;
  settle (self);
  self->use = MUSTER_TIME_WAITING;
  g_mutex_unlock (&self->lock);
}

/* With the lock held: time in which the step has gone from at_step to step. */
static void
count_steps (MusterGoodputMeter *self, gint64 step)
{
  const gint64 passed_us = take_time (self);
  const gint64 again = self->at_step >= 0 ? MIN (step, self->sum.step) - self->at_step : 0;
  if (again <= 0) {
    self->sum.spent_us[use_of_steps (self)] += passed_us;
    return;
  }
  const double share = (double)again / (double)(step - self->at_step);
  const gint64 repeated_us = (gint64)llround ((double)passed_us * share);
  self->sum.steps_again += (guint64)again;
  self->sum.spent_us[MUSTER_TIME_REPEATED] += repeated_us;
  self->sum.spent_us[MUSTER_TIME_TRAINING] += passed_us - repeated_us;
}

void
muster_goodput_meter_note_step (MusterGoodputMeter *self, gint64 step)
{
  g_return_if_fail (self != NULL);

  if (step < 0)
    return;
  g_mutex_lock (&self->lock);
  if (self->use == MUSTER_TIME_TRAINING)
    count_steps (self, step);
  self->at_step = MAX (self->at_step, step);
  self->sum.step = MAX (self->sum.step, step);
  g_mutex_unlock (&self->lock);
}

void
muster_goodput_meter_stop (MusterGoodputMeter *self)
{
  g_return_if_fail (self != NULL);

  g_mutex_lock (&self->lock);
  settle (self);
  self->is_stopped = TRUE;
  g_mutex_unlock (&self->lock);
}

void
muster_goodput_meter_read (MusterGoodputMeter *self, MusterGoodput *goodput)
{
  g_return_if_fail (self != NULL && goodput != NULL);

  g_mutex_lock (&self->lock);
  settle (self);
  *goodput = self->sum;
  g_mutex_unlock (&self->lock);
}

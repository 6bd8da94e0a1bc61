// SPDX-License-Identifier: Apache-2.0
#include "server/core/step_history.h"

#include "server/core/histogram.h"

#include <string.h>

/* One for each period with steps, and one for the hour's beginning. */
#define N_NOTES (MUSTER_STEP_PERIODS + 1)

/* All steps before the period. The counters may wrap: only differences are used. */
typedef struct {
  gint64 period;
  guint32 counts[MUSTER_N_BUCKETS];
} Note;

struct _MusterStepHistory {
  MusterHistogram steps; /* atomic */
  gint64 period;         /* atomic; the last that was noted */
  GMutex lock;
  Note notes[N_NOTES]; /* a ring; guarded by lock */
  guint64 n_notes;     /* ever made; guarded by lock */
};

MusterStepHistory *
muster_step_history_new (void)
{
  MusterStepHistory *self = g_new0 (MusterStepHistory, 1);
  g_mutex_init (&self->lock);
  self->period = -1;
  return self;
}

void
muster_step_history_free (MusterStepHistory *self)
{
  if (self == NULL)
    return;
  g_mutex_clear (&self->lock);
  g_free (self);
}

/* Notes the counts at the first step of a period. Steps that run at the same time count in
 * either period. */
static void
note (MusterStepHistory *self, gint64 period)
{
  g_mutex_lock (&self->lock);
  if (__atomic_load_n (&self->period, __ATOMIC_RELAXED) < period) {
    Note *made = &self->notes[self->n_notes++ % N_NOTES];
    MusterHistogram present;
    muster_histogram_copy (&self->steps, &present);
    made->period = period;
    for (guint i = 0; i < MUSTER_N_BUCKETS; i++)
      made->counts[i] = (guint32)present.counts[i];
    __atomic_store_n (&self->period, period, __ATOMIC_RELAXED);
  }
  g_mutex_unlock (&self->lock);
}

void
muster_step_history_add (MusterStepHistory *self, gint64 now_us, gint64 duration_us)
{
  gint64 period = now_us / MUSTER_STEP_PERIOD_US;
  if (__atomic_load_n (&self->period, __ATOMIC_RELAXED) < period)
    note (self, period);
  muster_histogram_add (&self->steps, duration_us);
}

/* The steps between two notes all ran in the first one's period. */
static void
fill (const guint32 *before, const guint32 *after, MusterStepPeriod *filled)
{
  guint64 counts[MUSTER_N_BUCKETS];
  for (guint i = 0; i < MUSTER_N_BUCKETS; i++)
    counts[i] = after[i] - before[i]; /* modulo 2^32 */
  filled->n_steps = muster_histogram_sum (counts);
  filled->median_us = muster_histogram_quantile_us (counts, 0.5);
  filled->p99_us = muster_histogram_quantile_us (counts, 0.99);
}

void
muster_step_history_read (MusterStepHistory *self, gint64 now_us, MusterStepPeriod *periods)
{
  const gint64 first = now_us / MUSTER_STEP_PERIOD_US - (MUSTER_STEP_PERIODS - 1);
  MusterHistogram present;
  guint32 after[MUSTER_N_BUCKETS];
  memset (periods, 0, sizeof *periods * MUSTER_STEP_PERIODS);
  for (guint i = 0; i < MUSTER_STEP_PERIODS - 1; i++)
    periods[i].length_us = MUSTER_STEP_PERIOD_US;
  periods[MUSTER_STEP_PERIODS - 1].length_us = MAX (now_us % MUSTER_STEP_PERIOD_US, MUSTER_SECOND);
  g_mutex_lock (&self->lock);
  muster_histogram_copy (&self->steps, &present);
  for (guint i = 0; i < MUSTER_N_BUCKETS; i++)
    after[i] = (guint32)present.counts[i];
  for (guint back = 1; back <= MIN (self->n_notes, N_NOTES); back++) {
    const Note *made = &self->notes[(self->n_notes - back) % N_NOTES];
    gint64 at = made->period - first;
    if (at < 0)
      break;
    if (at < MUSTER_STEP_PERIODS)
      fill (made->counts, after, &periods[at]);
    memcpy (after, made->counts, sizeof after);
  }
  g_mutex_unlock (&self->lock);
}

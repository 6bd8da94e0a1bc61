// SPDX-License-Identifier: Apache-2.0
#include "server/core/step_meter.h"

#include <stdlib.h>

#define N_LAST    1000
#define N_SECONDS 16 /* a power of two, more than the ten seconds that are reported */
#define WINDOW    10

/* One second's counter: the second in the upper bits, the number of steps in the lower. */
#define COUNT_BITS    32
#define COUNT_MASK    ((G_GUINT64_CONSTANT (1) << COUNT_BITS) - 1)
#define STAMP(second) ((guint64)(second) << COUNT_BITS)

struct _MusterStepMeter {
  guint64 n_steps;            /* atomic */
  gint64 total_us;            /* atomic */
  gint64 ended_us;            /* atomic: when the last step ended */
  gint64 busy_us;             /* atomic: since when steps are running */
  gint n_running;             /* atomic */
  guint64 seconds[N_SECONDS]; /* atomic */
  guint32 last_us[N_LAST];    /* atomic */
  MusterStepHistory *history; /* (owned) */
};

MusterStepMeter *
muster_step_meter_new (void)
{
  MusterStepMeter *self = g_new0 (MusterStepMeter, 1);
  self->history = muster_step_history_new ();
  return self;
}

void
muster_step_meter_free (MusterStepMeter *self)
{
  if (self == NULL)
    return;
  muster_step_history_free (self->history);
  g_free (self);
}

static void
count_second (MusterStepMeter *self, gint64 now_us)
{
  guint64 stamp = STAMP (now_us / MUSTER_SECOND);
  guint64 *slot = &self->seconds[now_us / MUSTER_SECOND % N_SECONDS];
  guint64 seen = __atomic_load_n (slot, __ATOMIC_RELAXED);
  /* The first step of a second resets the slot, unless another thread just has. */
  while ((seen & ~COUNT_MASK) < stamp)
    if (__atomic_compare_exchange_n (slot, &seen, stamp | 1, TRUE, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED))
      return;
  __atomic_fetch_add (slot, 1, __ATOMIC_RELAXED);
}

void
muster_step_meter_begin (MusterStepMeter *self, gint64 now_us)
{
  if (__atomic_fetch_add (&self->n_running, 1, __ATOMIC_RELAXED) == 0)
    __atomic_store_n (&self->busy_us, now_us, __ATOMIC_RELAXED);
}

gint64
muster_step_meter_stalled_us (MusterStepMeter *self, gint64 now_us)
{
  if (__atomic_load_n (&self->n_running, __ATOMIC_RELAXED) <= 0)
    return 0;
  const gint64 busy_us = __atomic_load_n (&self->busy_us, __ATOMIC_RELAXED);
  return MAX (now_us - MAX (busy_us, muster_step_meter_last_us (self)), 0);
}

gint64
muster_step_meter_last_us (MusterStepMeter *self)
{
  return __atomic_load_n (&self->ended_us, __ATOMIC_RELAXED);
}

void
muster_step_meter_add (MusterStepMeter *self, gint64 now_us, gint64 duration_us)
{
  guint32 reported_us = (guint32)CLAMP (duration_us, 0, G_MAXUINT32);
  guint64 n = __atomic_fetch_add (&self->n_steps, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add (&self->total_us, MAX (duration_us, 0), __ATOMIC_RELAXED);
  __atomic_store_n (&self->last_us[n % N_LAST], reported_us, __ATOMIC_RELAXED);
  __atomic_store_n (&self->ended_us, now_us, __ATOMIC_RELAXED);
  __atomic_fetch_sub (&self->n_running, 1, __ATOMIC_RELAXED);
  count_second (self, now_us);
  muster_step_history_add (self->history, now_us, duration_us);
}

guint64
muster_step_meter_n_steps (MusterStepMeter *self)
{
  return __atomic_load_n (&self->n_steps, __ATOMIC_RELAXED);
}

gint64
muster_step_meter_total_us (MusterStepMeter *self)
{
  return __atomic_load_n (&self->total_us, __ATOMIC_RELAXED);
}

/* The current second counts in proportion to its elapsed part. */
double
muster_step_meter_per_second (MusterStepMeter *self, gint64 now_us, gint64 since_us)
{
  gint64 from = now_us / MUSTER_SECOND - (WINDOW - 1);
  guint64 n = 0;
  for (guint i = 0; i < N_SECONDS; i++) {
    guint64 slot = __atomic_load_n (&self->seconds[i], __ATOMIC_RELAXED);
    if ((slot & COUNT_MASK) > 0 && (gint64)(slot >> COUNT_BITS) >= from)
      n += slot & COUNT_MASK;
  }
  gint64 begin_us = MAX (from * MUSTER_SECOND, since_us);
  return (double)n * MUSTER_SECOND / (double)MAX (now_us - begin_us, MUSTER_SECOND);
}

static int
compare (gconstpointer a, gconstpointer b)
{
  guint32 left = *(const guint32 *)a, right = *(const guint32 *)b;
  return left < right ? -1 : left > right;
}

void
muster_step_meter_quantiles (MusterStepMeter *self, const double *quantiles, guint n,
                             gint64 *durations_us)
{
  guint32 sorted[N_LAST];
  gsize n_sorted = (gsize)MIN (muster_step_meter_n_steps (self), N_LAST);
  for (gsize i = 0; i < n_sorted; i++)
    sorted[i] = __atomic_load_n (&self->last_us[i], __ATOMIC_RELAXED);
  qsort (sorted, n_sorted, sizeof *sorted, compare);
  for (guint i = 0; i < n; i++)
    durations_us[i] =
        n_sorted > 0 ? sorted[MIN ((gsize)(quantiles[i] * (double)n_sorted), n_sorted - 1)] : 0;
}

MusterStepHistory *
muster_step_meter_history (MusterStepMeter *self)
{
  return self->history;
}

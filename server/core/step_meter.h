// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

G_BEGIN_DECLS

/* MusterStepMeter counts a server's steps and how long they took, at the price of a few relaxed
 * atomic operations for each: what it tells is exact for the total, and close for the rest while
 * steps run. Any thread. */

typedef struct _MusterStepMeter MusterStepMeter;

MusterStepMeter *muster_step_meter_new (void);
void muster_step_meter_free (MusterStepMeter *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterStepMeter, muster_step_meter_free)

/* A step ended at now_us that took so long. */
void muster_step_meter_add (MusterStepMeter *self, gint64 now_us, gint64 duration_us);

/* How many there were, and what they took together. */
guint64 muster_step_meter_n_steps (MusterStepMeter *self);
gint64 muster_step_meter_total_us (MusterStepMeter *self);

/* Over the last ten seconds, or since since_us where that is later (but at least a second). */
double muster_step_meter_per_second (MusterStepMeter *self, gint64 now_us, gint64 since_us);

/* Of the last thousand steps' durations: quantiles are 0 to 1; all 0 where there was none. */
void muster_step_meter_quantiles (MusterStepMeter *self, const double *quantiles, guint n,
                                  gint64 *durations_us);

G_END_DECLS

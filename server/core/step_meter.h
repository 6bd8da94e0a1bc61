// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/core/step_history.h"

G_BEGIN_DECLS

/* MusterStepMeter counts a server's steps and their durations, with a few relaxed atomic operations
 * for each. While steps run, the total is exact and the rest approximate. Any thread. */

typedef struct _MusterStepMeter MusterStepMeter;

MusterStepMeter *muster_step_meter_new (void);
void muster_step_meter_free (MusterStepMeter *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterStepMeter, muster_step_meter_free)

/* A step begins. */
void muster_step_meter_begin (MusterStepMeter *self, gint64 now_us);
/* Records a step that has begun, and ended at now_us. */
void muster_step_meter_add (MusterStepMeter *self, gint64 now_us, gint64 duration_us);

/* For how long no step has ended while at least one was running; 0 if none runs. */
gint64 muster_step_meter_stalled_us (MusterStepMeter *self, gint64 now_us);
/* When the last step ended; 0: none has. */
gint64 muster_step_meter_last_us (MusterStepMeter *self);

/* The number of steps, and their total duration. */
guint64 muster_step_meter_n_steps (MusterStepMeter *self);
gint64 muster_step_meter_total_us (MusterStepMeter *self);

/* Steps per second over the last ten seconds, or since since_us if that is later (but at least a
 * second). */
double muster_step_meter_per_second (MusterStepMeter *self, gint64 now_us, gint64 since_us);

/* Quantiles (0 to 1) of the last thousand steps' durations; all 0 without steps. */
void muster_step_meter_quantiles (MusterStepMeter *self, const double *quantiles, guint n,
                                  gint64 *durations_us);

/* Of the same steps. (transfer none) */
MusterStepHistory *muster_step_meter_history (MusterStepMeter *self);

G_END_DECLS

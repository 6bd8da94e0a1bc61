// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/goodput.h"

G_BEGIN_DECLS

/* MusterGoodputMeter measures what a job's time is spent on (base/goodput.h), from its creation on.
 * A monitored session has one and tells it of its sessions and steps; hooks that hold a step tell
 * it by entering another use. Any thread. */

typedef struct _MusterGoodputMeter MusterGoodputMeter;

/* The time until a session is made is MUSTER_TIME_WAITING. clock NULL: the machine's. */
MusterGoodputMeter *muster_goodput_meter_new (MusterClock *clock);
MusterGoodputMeter *muster_goodput_meter_ref (MusterGoodputMeter *self);
void muster_goodput_meter_unref (MusterGoodputMeter *self); /* accepts NULL */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterGoodputMeter, muster_goodput_meter_unref)

/* --- the runs before --- */

/* What a run before has written with its checkpoints (its age is since then): it counts once
 * muster_goodput_meter_resume () is called. */
void muster_goodput_meter_offer (MusterGoodputMeter *self, const MusterGoodput *written);

/* The job goes on from a run before: adds what that run has written or, if it is of the same job
 * and later, announced (nullable), which was measured at announced_us. Only the first call counts,
 * and none after forget. */
void muster_goodput_meter_resume (MusterGoodputMeter *self, const MusterGoodput *announced,
                                  gint64 announced_us);
/* The model was initialised: the job is a new one. */
void muster_goodput_meter_forget (MusterGoodputMeter *self);

/* --- this run --- */

/* Ends the current use and begins another. Returns the one before, to go back to. */
MusterTimeUse muster_goodput_meter_enter (MusterGoodputMeter *self, MusterTimeUse use);

/* A session was made: of the time since the last call, restoring_us and initialising_us were that
 * instead. The steps that follow come after step (-1: unknown). */
void muster_goodput_meter_made (MusterGoodputMeter *self, gint64 restoring_us,
                                gint64 initialising_us, gint64 step);
/* The session is lost, and with it the step that has begun. */
void muster_goodput_meter_lost (MusterGoodputMeter *self);
/* A run has ended with this global step (-1: unknown). */
void muster_goodput_meter_note_step (MusterGoodputMeter *self, gint64 step);
/* Time no longer counts. */
void muster_goodput_meter_stop (MusterGoodputMeter *self);

/* All until now; age_us is 0. */
void muster_goodput_meter_read (MusterGoodputMeter *self, MusterGoodput *goodput);

G_END_DECLS

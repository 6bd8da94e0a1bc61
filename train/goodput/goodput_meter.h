// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/goodput.h"

G_BEGIN_DECLS

/**
 * MusterGoodputMeter:
 *
 * Measures what a job's time is spent on ([struct@Goodput]), from its creation on. A
 * [class@MonitoredSession] has one and tells it of its sessions and steps; hooks that hold a step
 * tell it by entering another use. Reference-counted. Any thread.
 */
typedef struct _MusterGoodputMeter MusterGoodputMeter;

#define MUSTER_TYPE_GOODPUT_METER (muster_goodput_meter_get_type ())
GType muster_goodput_meter_get_type (void);

/**
 * muster_goodput_meter_new:
 * @clock: (nullable): NULL: the machine's
 *
 * A meter that starts now. The time until a session is made is %MUSTER_TIME_WAITING.
 *
 * Returns: (transfer full): the meter
 */
MusterGoodputMeter *muster_goodput_meter_new (MusterClock *clock);

/**
 * muster_goodput_meter_ref:
 * @self: the meter
 *
 * Adds a reference.
 *
 * Returns: (transfer full): @self
 */
MusterGoodputMeter *muster_goodput_meter_ref (MusterGoodputMeter *self);

/**
 * muster_goodput_meter_unref:
 * @self: (transfer full) (nullable): the meter
 *
 * Drops a reference.
 */
void muster_goodput_meter_unref (MusterGoodputMeter *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterGoodputMeter, muster_goodput_meter_unref)

/* --- the runs before --- */

/**
 * muster_goodput_meter_offer:
 * @self: the meter
 * @written: its age is the time since it was written
 *
 * What a run before has written with its checkpoints. It counts once
 * [method@GoodputMeter.resume] is called.
 */
void muster_goodput_meter_offer (MusterGoodputMeter *self, const MusterGoodput *written);

/**
 * muster_goodput_meter_set_others_train:
 * @self: the meter
 *
 * The job's other tasks train while it has no chief. If this run continues with their model, the
 * time between the run before and this one counts as training, not as down.
 */
void muster_goodput_meter_set_others_train (MusterGoodputMeter *self);

/**
 * muster_goodput_meter_resume:
 * @self: the meter
 * @announced: (nullable): what the run before has announced
 * @announced_us: when that was measured
 * @is_continued: this run continues with the model on the master, rather than a checkpoint
 *
 * The job goes on from a run before: adds what that run has written or, if it is of the same job
 * and later, announced. Only the first call counts, and none after forget.
 */
void muster_goodput_meter_resume (MusterGoodputMeter *self, const MusterGoodput *announced,
                                  gint64 announced_us, gboolean is_continued);

/**
 * muster_goodput_meter_forget:
 * @self: the meter
 *
 * The model was initialised: the job is a new one.
 */
void muster_goodput_meter_forget (MusterGoodputMeter *self);

/* --- this run --- */

/**
 * muster_goodput_meter_enter:
 * @self: the meter
 * @use: what the time is spent on from now on
 *
 * Ends the current use and begins another.
 *
 * Returns: the use before, to go back to
 */
MusterTimeUse muster_goodput_meter_enter (MusterGoodputMeter *self, MusterTimeUse use);

/**
 * muster_goodput_meter_made:
 * @self: the meter
 * @restoring_us: of the time since the last call, this was spent on restoring, in microseconds
 * @initialising_us: and this on initialising
 * @step: the steps that follow come after this one; -1: unknown
 *
 * A session was made.
 */
void muster_goodput_meter_made (MusterGoodputMeter *self, gint64 restoring_us,
                                gint64 initialising_us, gint64 step);

/**
 * muster_goodput_meter_lost:
 * @self: the meter
 *
 * The session is lost, and with it the step that has begun.
 */
void muster_goodput_meter_lost (MusterGoodputMeter *self);

/**
 * muster_goodput_meter_note_step:
 * @self: the meter
 * @step: the global step; -1: unknown
 *
 * A run has ended with this global step.
 */
void muster_goodput_meter_note_step (MusterGoodputMeter *self, gint64 step);

/**
 * muster_goodput_meter_stop:
 * @self: the meter
 *
 * Time no longer counts.
 */
void muster_goodput_meter_stop (MusterGoodputMeter *self);

/**
 * muster_goodput_meter_read:
 * @self: the meter
 * @goodput: (out caller-allocates): where to return it; its age is 0
 *
 * All until now.
 */
void muster_goodput_meter_read (MusterGoodputMeter *self, MusterGoodput *goodput);

G_END_DECLS

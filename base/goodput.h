// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

#include <glib-object.h>

G_BEGIN_DECLS

/**
 * MusterTimeUse:
 * @MUSTER_TIME_TRAINING: steps, trained for the first time
 * @MUSTER_TIME_REPEATED: steps trained again, after a failure
 * @MUSTER_TIME_SAVING: no step, because of a save
 * @MUSTER_TIME_WAITING: waiting for a master, or to become its chief; and for the model on a worker
 * @MUSTER_TIME_INITIALISING: the init ops, and preparations of the training
 * @MUSTER_TIME_RESTORING: restoring a checkpoint
 * @MUSTER_TIME_DOWN: from the last sign of a run to the start of the next
 * @MUSTER_TIME_PAUSED: no step, because the job waits for tasks, or holds for a drain
 * @MUSTER_N_TIMES: the number of uses
 *
 * What a job's time is spent on.
 */
typedef enum {
  MUSTER_TIME_TRAINING,
  MUSTER_TIME_REPEATED,
  MUSTER_TIME_SAVING,
  MUSTER_TIME_WAITING,
  MUSTER_TIME_INITIALISING,
  MUSTER_TIME_RESTORING,
  MUSTER_TIME_DOWN,
  MUSTER_TIME_PAUSED,
  MUSTER_N_TIMES,
} MusterTimeUse;

/**
 * MusterRunEnd:
 * @MUSTER_RUN_UNENDED: it goes on, or has died
 * @MUSTER_RUN_STOPPED: it was stopped on request, and has saved all that it had trained
 * @MUSTER_RUN_FINISHED: the same, since it was done: what comes later isn't lost time
 *
 * How the run that measured a goodput has ended.
 */
typedef enum {
  MUSTER_RUN_UNENDED,
  MUSTER_RUN_STOPPED,
  MUSTER_RUN_FINISHED,
} MusterRunEnd;

/**
 * MusterGoodput:
 * @began_us: when the job was first started, in microseconds since 1970; identifies the job. 0:
 *   none
 * @age_us: the microseconds since this was measured
 * @spent_us: (array fixed-size=8): the time by use, in microseconds, indexed by #MusterTimeUse
 * @n_restarts: the restarts of the chief's process, and of its session
 * @n_failures: those of the restarts that didn't follow a run that was stopped on request
 * @steps_again: steps trained again
 * @step: the highest global step; -1: none
 * @is_least: A run ended without a sign: what it trained after its last save is unknown, and counts
 *   as down.
 * @end: how the run that measured it has ended
 *
 * What a job has spent its time on, since its first start and over restarts: the share of steps
 * that are trained for the first time, and what the rest was lost to. [struct@GoodputMeter]
 * measures it.
 */
typedef struct {
  gint64 began_us;
  gint64 age_us;
  gint64 spent_us[MUSTER_N_TIMES];
  guint64 n_restarts;
  guint64 n_failures;
  guint64 steps_again;
  gint64 step;
  gboolean is_least;
  MusterRunEnd end;
} MusterGoodput;

/**
 * MUSTER_GOODPUT_INIT: (skip)
 *
 * A goodput of which nothing is known.
 */
#define MUSTER_GOODPUT_INIT                                                                        \
  {                                                                                                \
    .step = -1                                                                                     \
  }

#define MUSTER_TYPE_GOODPUT (muster_goodput_get_type ())
GType muster_goodput_get_type (void);

/**
 * muster_goodput_new:
 *
 * Creates an account without a job: all times are 0, and no step is known.
 *
 * Returns: (transfer full): the account
 */
MusterGoodput *muster_goodput_new (void);

/**
 * muster_goodput_total_us:
 * @self: the account of a job's time
 *
 * The time since the job's first start.
 *
 * Returns: microseconds
 */
gint64 muster_goodput_total_us (const MusterGoodput *self);

/**
 * muster_goodput_lost_us:
 * @self: the account of a job's time
 *
 * All of the job's time but %MUSTER_TIME_TRAINING.
 *
 * Returns: microseconds
 */
gint64 muster_goodput_lost_us (const MusterGoodput *self);

/**
 * muster_goodput_share:
 * @self: the account of a job's time
 *
 * The share of the job's time that wasn't lost.
 *
 * Returns: a number from 0 to 1; 1 if no time has passed
 */
double muster_goodput_share (const MusterGoodput *self);

/**
 * muster_time_use_name:
 * @use: a use
 *
 * The use's name: "training", "repeated", "saving", "waiting", "initialising", "restoring", "down",
 * "paused".
 *
 * Returns: the name
 */
const char *muster_time_use_name (MusterTimeUse use);

/**
 * muster_goodput_text:
 * @self: the account of a job's time
 *
 * Describes it in one line: "goodput 98.7 %: 41 s of 52m00s lost (3 restarts: 2.1 s down, 38 s for
 * 61,000 steps trained again; saves 900 ms)"; before the first step "goodput: no step trained yet,
 * in 82 ms (start 82 ms; saves 0 µs)", and below 0.1 % "goodput: 20 µs of training in 82 ms (…)".
 *
 * Returns: (transfer full): the text
 */
char *muster_goodput_text (const MusterGoodput *self);

/**
 * muster_goodput_copy:
 * @self: (nullable): the account of a job's time
 *
 * Copies it.
 *
 * Returns: (transfer full) (nullable): a copy, for [method@Goodput.free]; %NULL for %NULL
 */
MusterGoodput *muster_goodput_copy (const MusterGoodput *self);

/**
 * muster_goodput_free:
 * @self: the account of a job's time
 *
 * Frees a copy.
 */
void muster_goodput_free (MusterGoodput *self);

G_END_DECLS

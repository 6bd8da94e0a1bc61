// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

G_BEGIN_DECLS

/* MusterGoodput is what a job has spent its time on, since its first start and over restarts: the
 * share of steps that are trained for the first time, and what the rest was lost to. A plain
 * struct. train/goodput/goodput_meter.h measures it. */

typedef enum {
  MUSTER_TIME_TRAINING, /* steps, trained for the first time */
  MUSTER_TIME_REPEATED, /* steps trained again, after a failure */
  MUSTER_TIME_SAVING,   /* no step, because of a save */
  MUSTER_TIME_WAITING,  /* for a master, or to become its chief; and for the model on a worker */
  MUSTER_TIME_INITIALISING, /* the init ops, and preparations of the training */
  MUSTER_TIME_RESTORING,
  MUSTER_TIME_DOWN, /* from the last sign of a run to the start of the next */
  MUSTER_N_TIMES,
} MusterTimeUse;

/* How the run that measured it has ended. */
typedef enum {
  MUSTER_RUN_UNENDED,  /* it goes on, or has died */
  MUSTER_RUN_STOPPED,  /* it was stopped on request, and has saved all that it had trained */
  MUSTER_RUN_FINISHED, /* the same, since it was done: what comes later isn't lost time */
} MusterRunEnd;

typedef struct {
  gint64 began_us; /* when the job was first started, since 1970; identifies the job. 0: none */
  gint64 age_us;   /* since this was measured */
  gint64 spent_us[MUSTER_N_TIMES];
  guint64 n_restarts;  /* of the chief's process, and of its session … */
  guint64 n_failures;  /* … without those after a run that was stopped on request */
  guint64 steps_again; /* steps trained again */
  gint64 step;         /* the highest global step; -1: none */
  /* A run ended without a sign: what it trained after its last save is unknown, and counts as down.
   */
  gboolean is_least;
  MusterRunEnd end;
} MusterGoodput;

#define MUSTER_GOODPUT_INIT                                                                        \
  {                                                                                                \
    .step = -1                                                                                     \
  }

/* The time since the job's first start. */
gint64 muster_goodput_total_us (const MusterGoodput *self);
/* All of it but MUSTER_TIME_TRAINING. */
gint64 muster_goodput_lost_us (const MusterGoodput *self);
/* The share that wasn't lost, from 0 to 1; 1 if no time has passed. */
double muster_goodput_share (const MusterGoodput *self);

/* "training", "repeated", "saving", "waiting", "initialising", "restoring", "down" */
const char *muster_time_use_name (MusterTimeUse use);

/**
 * muster_goodput_text: (skip)
 *
 * "goodput 98.7 %: 41 s of 52m00s lost (3 restarts: 2.1 s down, 38 s for 61,000 steps trained
 * again; saves 900 ms)" (transfer full)
 */
char *muster_goodput_text (const MusterGoodput *self);

/**
 * muster_goodput_copy: (skip)
 * @self: (nullable)
 *
 * (transfer full) (nullable) Free it with g_free ().
 */
MusterGoodput *muster_goodput_copy (const MusterGoodput *self);

G_END_DECLS

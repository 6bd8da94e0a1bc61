// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

G_BEGIN_DECLS

/* MusterStepHistory knows how many steps a server ran in each half minute of the last hour, and how
 * long they took. A step costs a few relaxed atomic operations; the first of a period also a copy
 * of 50 counters. Nothing runs while there are no steps. Any thread. */

typedef struct _MusterStepHistory MusterStepHistory;

#define MUSTER_STEP_PERIOD_US (30 * MUSTER_SECOND)
#define MUSTER_STEP_PERIODS   120

typedef struct {
  gint64 length_us; /* of the last, which hasn't ended: until now, but at least a second */
  guint64 n_steps;
  gint64 median_us; /* 0 without steps, as is … */
  gint64 p99_us;
} MusterStepPeriod;

MusterStepHistory *muster_step_history_new (void);
void muster_step_history_free (MusterStepHistory *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterStepHistory, muster_step_history_free)

/* Records a step that ended at now_us. */
void muster_step_history_add (MusterStepHistory *self, gint64 now_us, gint64 duration_us);

/* The last MUSTER_STEP_PERIODS periods, oldest first; the last is the one of now_us, which hasn't
 * ended. */
void muster_step_history_read (MusterStepHistory *self, gint64 now_us, MusterStepPeriod *periods);

G_END_DECLS

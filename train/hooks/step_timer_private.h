// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/error.h"

G_BEGIN_DECLS

/* MusterStepTimer decides when something that happens every n seconds or steps is due (behaviours
 * MON.62 to MON.64). A plain struct; one thread. */

typedef struct {
  gint64 every_us;    /* 0: by steps */
  gint64 every_steps; /* 0: by time */
  MusterClock *clock; /* (not owned) NULL: the machine's */
  /* the last trigger */
  gboolean was_triggered;
  gint64 last_us;
  gint64 last_step;
} MusterStepTimer;

/* INVALID_ARGUMENT unless exactly one of the two is given and above 0. */
gboolean muster_step_timer_init (MusterStepTimer *self, gint64 every_us, gint64 every_steps,
                                 MusterClock *clock, GError **error);

/* TRUE if it was never triggered, or long enough ago; FALSE for the step of the last trigger. */
gboolean muster_step_timer_is_due (const MusterStepTimer *self, gint64 step);

/* Triggers it. FALSE the first time; else the time and the steps since the last trigger: elapsed_us
 * (nullable out), elapsed_steps (nullable out). */
gboolean muster_step_timer_trigger (MusterStepTimer *self, gint64 step, gint64 *elapsed_us,
                                    gint64 *elapsed_steps);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/terminal/live.h"
#include "cli/terminal/report.h"
#include "train/train.h"

G_BEGIN_DECLS

/* What `muster train` shows: a bar on a terminal, lines elsewhere, or lines of JSON, all from what
 * the training tells. JSON lines have "event" (ready, step, saved, skipped, lost, and at the end
 * trained, preempted, over or failed) and "time" in seconds since 1970. A plain struct. */

typedef struct {
  const MusterCliOptions *options; /* (not owned) */
  MusterLive *live;                /* (not owned) */
  gsize n_variables;
  MusterPreemption *preemption; /* (not owned) */
  gboolean is_drill;
  /* its own: */
  MusterTrainingState state; /* the last that was told */
  gint64 ready_us;           /* when it first was; 0: not yet */
  gint64 ready_step;
  gint64 made_us;     /* when the session was begun that is being made */
  gint64 reported_us; /* the last step's line */
  gint64 said_us;     /* the last checkpoint's line */
  char *durable;      /* (owned) (nullable) the last checkpoint's prefix */
} MusterTrainShow;

void muster_train_show_init (MusterTrainShow *self, const MusterCliOptions *options,
                             MusterLive *live);
void muster_train_show_clear (MusterTrainShow *self);

/* For the training. */
MusterTrainingListener muster_train_show_listener (MusterTrainShow *self);

/* The last words, after the live display has ended; returns the exit code. error is (nullable). */
MusterExit muster_train_show_end (MusterTrainShow *self, const MusterTrained *trained,
                                  const GError *error);

G_END_DECLS

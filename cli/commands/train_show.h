// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/terminal/live.h"
#include "cli/terminal/report.h"
#include "cli/terminal/trace.h"
#include "train/train.h"

G_BEGIN_DECLS

/* The output of `muster train`: a bar on a terminal, lines elsewhere, or JSON lines, all from the
 * training's reports. JSON lines have "event" (role, ready, step, waiting, saved, skipped, lost,
 * and at the end trained, preempted, over or failed) and "time" in seconds since 1970. A plain
 * struct. */

/* When the drill of --drill begins, after the model is ready. */
#define MUSTER_TRAIN_DRILL_AFTER_US MUSTER_SECOND

typedef struct {
  const MusterCliOptions *options; /* (not owned) */
  MusterLive *live;                /* (not owned) */
  gsize n_variables;
  MusterPreemption *preemption; /* (not owned) */
  gboolean is_drill;
  gsize n_fast;              /* the number of fast tiers */
  gboolean has_step_timeout; /* a step that doesn't end is ended */
  gboolean is_worker;
  char *waits_for; /* (owned) (nullable) what a step that doesn't end may wait for */
  /* internal: */
  MusterTrainingState state; /* the last one reported */
  gint64 ready_us;           /* when the model was first ready; 0: not yet */
  gint64 ready_step;
  gint64 made_us;     /* when creating the current session began */
  gint64 reported_us; /* when the last step was printed */
  gint64 said_us;     /* when the last checkpoint was printed */
  gint64 copied_us;   /* the last copy shown */
  gint64 step_us;     /* atomic: when a step last ended, or the model was ready; 0: none runs */
  gint64 stall_us;    /* used by the drawing thread: when it was last said that none ends */
  char *durable;      /* (owned) (nullable) the last checkpoint's prefix */
  gint64 saved_step;  /* its step */
  char *paused;       /* (owned) (nullable) why steps waited, as last reported */
  MusterSaveStatus *saves; /* (owned) (nullable) the last one reported; that of state */
  MusterCliTrace *trace;   /* (owned) */
} MusterTrainShow;

void muster_train_show_init (MusterTrainShow *self, const MusterCliOptions *options,
                             MusterLive *live);
void muster_train_show_clear (MusterTrainShow *self);

/* A MusterLiveTick: says that no step ends; user_data is the MusterTrainShow. */
void muster_train_show_tick (gpointer user_data);

/* For MusterTraining.observer (transfer full); it mustn't outlive the output. */
MusterTrainingObserver *muster_train_show_observer (MusterTrainShow *self);

/* Prints the result after the display has ended; returns the exit code. error is (nullable). */
MusterExit muster_train_show_end (MusterTrainShow *self, const MusterTrained *trained,
                                  const GError *error);

G_END_DECLS

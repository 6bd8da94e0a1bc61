// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/hooks/auto_cadence_private.h"
#include "train/hooks/background_save_private.h"
#include "train/hooks/drain_watch_private.h"
#include "train/hooks/hook_metric_private.h"
#include "train/hooks/hooks_private.h"
#include "train/hooks/saver_observer_private.h"
#include "train/hooks/tier_cadence_private.h"

G_BEGIN_DECLS

/* The hook that saves checkpoints, for its two files. */

struct _MusterCheckpointSaverHook {
  MusterHook parent;
  char *directory;      /* (owned) */
  MusterSaver *saver;   /* (owned) from begin on */
  gboolean is_blocking; /* a save is made in the step's time */
  gboolean from_files;  /* the directory's files stand in for its state file */
  MusterBackgroundSave background;
  MusterGoodputMeter *meter;     /* (owned) from before begin on */
  MusterScaffold *scaffold;      /* (owned) from begin on */
  MusterEventWriter *writer;     /* (owned) (nullable) */
  MusterSaverObserver *observer; /* (owned) (nullable) */
  MusterClock *clock;            /* (owned) the timer's */
  MusterPreemption *preemption;  /* (owned) (nullable) */
  GCancellable *preempted;       /* (nullable) the preemption's */
  MusterStepTimer timer;         /* the durable tier's */
  MusterAutoCadence chosen;      /* that timer's interval, unless it is fixed */
  MusterTierCadence cadence;
  MusterHookMetric metric;
  gint64 steps_per_run;
  guint most_failures;
  guint n_failures;
  guint n_failures_in_a_row;
  GError *last_failure;  /* (owned) (nullable) */
  gint64 failure_due_us; /* until then, failures aren't reported … */
  guint n_unreported;    /* … but counted */
  gboolean has_printed;  /* the graph */
  gint64 durable_step;   /* -1: none */
  char *durable;         /* (owned) (nullable) */
  gint64 bottom_step;    /* the last one in the directory itself; -1: none */
  guint n_failed_copies_in_a_row;
  MusterDrainWatch drain;
};

static inline gboolean
is_preempted (const MusterCheckpointSaverHook *self)
{
  return self->preemption != NULL && muster_preemption_is_requested (self->preemption);
}

/* Saves to the tiers that are due, in the background if the hook does. A save that fails is an
 * error only if the run is to end, as in the others. *wants_stop (nullable) is set if the observer
 * requests a stop. */
gboolean muster_checkpoint_hook_save (MusterCheckpointSaverHook *self, const MusterSaveCall *call,
                                      gint64 step, MusterTierSet due, gboolean *wants_stop,
                                      GError **error);
/* Handles a background save that has ended. */
gboolean muster_checkpoint_hook_collect (MusterCheckpointSaverHook *self,
                                         const MusterSaveCall *call, gboolean *wants_stop,
                                         GError **error);
/* Handles a save of step that has failed. Takes failure. */
gboolean muster_checkpoint_hook_note_failure (MusterCheckpointSaverHook *self,
                                              const MusterSaveCall *call, GError *failure,
                                              gint64 step, GError **error);
/* A save to the directory itself follows, so no copy is needed any more, and none may take its
 * time. */
gboolean muster_checkpoint_hook_end_copies (MusterCheckpointSaverHook *self,
                                            const MusterSaveCall *call, GError **error);

/* hook_checkpoint_drain.c */

/* Saves before the master stops, at until_us. The tasks hold from then on. */
gboolean muster_checkpoint_hook_save_for_drain (MusterCheckpointSaverHook *self,
                                                const MusterSaveCall *call, gint64 until_us,
                                                gboolean *wants_stop, GError **error);
/* Of the hook's before_run: once the model is saved, the master is told, and no other step begins
 * before it has stopped. */
gboolean muster_checkpoint_hook_await_end (MusterHook *hook, MusterRunContext *context,
                                           GError **error);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "callbacks/bounds_private.h"
#include "callbacks/progress_saveable_private.h"
#include "callbacks/worker_training_state.h"

G_BEGIN_DECLS

struct _MusterWorkerTrainingState {
  gatomicrefcount refs;
  MusterSession *session;           /* (owned) */
  MusterSaver *saver;               /* (owned) of either directory */
  MusterStorage *storage;           /* (owned) */
  MusterClock *clock;               /* (owned) */
  MusterProgressSaveable *progress; /* (owned) */
  MusterSaveFreq save_freq;
  gboolean is_worker;
  char *read_dir;    /* (owned) */
  char *write_dir;   /* (owned) (nullable) */
  gint64 n_batches;  /* in an epoch; 0: not known */
  gint64 seen;       /* batches of this epoch */
  gint64 since_save; /* batches */
};

gboolean muster_training_state_check_time (const char *operation, const char *directory,
                                           const MusterBounds *bounds, GError **error);

/* The checkpoints of a directory, oldest first; none without one. */
char **muster_training_state_list (MusterStorage *storage, const char *directory, GError **error);

G_END_DECLS

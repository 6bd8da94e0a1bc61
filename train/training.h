// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/saver.h"
#include "train/batches.h"
#include "train/scaffold.h"

G_BEGIN_DECLS

/* One task's training loop: batches go in, the train op runs, and the loop ends when the global
 * step, which all tasks share, has reached its target. The chief's also saves, every so many steps
 * and at the end, and announces how far it is, once a second at most. A life that its restore began
 * (count_deaths in saver/restore.h) is outlived after the first save, after ten seconds of steps or
 * at the end; a step that fails by itself before that leaves it a death. */

/* After each step; step is the global step. FALSE ends the loop early, without an error. */
typedef gboolean (*MusterTrainingProgress) (gint64 step, float loss, gpointer user_data);

/* After each save, which is durable. */
typedef void (*MusterTrainingSaved) (const char *prefix, gint64 step, gpointer user_data);

/* After a save that was skipped for want of room (MUSTER_WHEN_FULL_SKIP): why says what it needs
 * and what there is. The training goes on; the next save is due as if this one had been made. */
typedef void (*MusterTrainingSkipped) (const char *why, gint64 step, gpointer user_data);

typedef struct {
  MusterBatches *batches;   /* one array for each feed */
  const char *const *feeds; /* the tensors they are fed to: "x:0" */
  gsize n_feeds;
  const char *loss;                /* (nullable) a float scalar to fetch */
  gint64 until_step;               /* the global step to reach */
  MusterSaver *saver;              /* (nullable) the chief's */
  const char *checkpoint_dir;      /* with saver */
  gint64 save_every_steps;         /* 0: only at the end */
  MusterLease *lease;              /* (nullable) the chief's; the saver saves under it, and the
                                      directory is claimed for it before the first step */
  gboolean ends_job;               /* with lease: until_step is the job's end, which is announced */
  MusterTrainingProgress progress; /* (nullable) */
  MusterTrainingSaved saved;       /* (nullable) */
  MusterTrainingSkipped skipped;   /* NULL: a warning in the log */
  gpointer user_data;
} MusterTraining;

/* Trains in session. *step (nullable) gets the last global step seen. INVALID_ARGUMENT where the
 * scaffold has no train op or no global step; FAILED_PRECONDITION where the lease or the directory
 * is another chief's by now; else whatever a step, a save or the announcement of the job's end
 * failed with. */
gboolean muster_train (MusterSession *session, MusterScaffold *scaffold,
                       const MusterTraining *training, gint64 *step, GCancellable *cancellable,
                       GError **error);

/* Reads the model's global step; -1 with an error. */
gint64 muster_read_global_step (MusterSession *session, MusterScaffold *scaffold,
                                gint64 deadline_us, GCancellable *cancellable, GError **error);

G_END_DECLS

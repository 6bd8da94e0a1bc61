// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "callbacks/fit.h"
#include "master/session.h"
#include "saver/saver.h"

G_BEGIN_DECLS

/* MusterWorkerTrainingState saves the last completed epoch of a job of several tasks together with
 * its variables in one checkpoint, so that an interrupted job continues with the next epoch: Keras'
 * worker training state (behaviours B000). The chief writes DIRECTORY/chief/ckpt-N and keeps the
 * newest; every task restores from there. The epoch and batch are the tensors
 * training_state/ckpt_saved_epoch and training_state/ckpt_saved_batch, -1 if unset. Blocking
 * functions take a deadline on muster_system_clock () and a nullable GCancellable. One thread. */

typedef enum { MUSTER_MODE_TRAIN, MUSTER_MODE_EVALUATE, MUSTER_MODE_PREDICT } MusterTrainingMode;

typedef struct {
  const char *directory;
  gboolean is_worker; /* not the chief and not alone: restores, deletes nothing */
  guint task_id;      /* of a worker */
  /* A worker saves too, if a save needs every task: to DIRECTORY/workertemp_ID, which is removed
   * after each save and with this object. */
  gboolean workers_write;
  MusterSaveFreq save_freq; /* zeros: at the end of each epoch */
  MusterLease *lease;       /* (nullable) the chief's lease, for its saves */
  MusterStorage *storage;   /* NULL: local files */
  MusterClock *clock;       /* NULL: the machine's */
} MusterWorkerTrainingStateOptions;

typedef struct _MusterWorkerTrainingState MusterWorkerTrainingState;

MusterWorkerTrainingState *
muster_worker_training_state_new (MusterMetaGraph *meta_graph, MusterSession *session,
                                  const MusterWorkerTrainingStateOptions *options, GError **error);
void muster_worker_training_state_free (MusterWorkerTrainingState *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterWorkerTrainingState, muster_worker_training_state_free)

/* The directories that it reads and writes; borrowed. NULL for a worker that doesn't write. */
const char *muster_worker_training_state_read_dir (MusterWorkerTrainingState *self);
const char *muster_worker_training_state_write_dir (MusterWorkerTrainingState *self);

/* The last epoch (batch) saved or restored; -1: none. The batch is -1 after a complete epoch. */
gint64 muster_worker_training_state_saved_epoch (MusterWorkerTrainingState *self);
gint64 muster_worker_training_state_saved_batch (MusterWorkerTrainingState *self);

/* Saves after epoch, or with a batch of 0 or more after that batch. The chief's previous checkpoint
 * is deleted only when the new one is durable and its index can be read. */
gboolean muster_worker_training_state_back_up (MusterWorkerTrainingState *self, gint64 epoch,
                                               gint64 batch, gint64 deadline_us,
                                               GCancellable *cancellable, GError **error);

/* Restores the chief's checkpoint. If it is damaged, or the directory's state file doesn't name it,
 * the newest whole one is restored, with a message. If there is none, nothing changes and *restored
 * (nullable) is FALSE. The error names each checkpoint that the state file lists or that is in the
 * directory. */
gboolean muster_worker_training_state_restore (MusterWorkerTrainingState *self, gboolean *restored,
                                               gint64 deadline_us, GCancellable *cancellable,
                                               GError **error);

/* Where to start: after what was saved, or at `wanted` if nothing was saved or mode isn't training.
 * n_batches as in callbacks/fit.h. */
MusterFitPosition muster_worker_training_state_initial (MusterWorkerTrainingState *self,
                                                        MusterTrainingMode mode,
                                                        MusterFitPosition wanted, gint64 n_batches);

/* Removes DIRECTORY/chief without waiting. Missing files are no error. Does nothing on a worker. */
gboolean muster_worker_training_state_delete_backup (MusterWorkerTrainingState *self,
                                                     GError **error);

/* For muster_fit (): restores at the start, saves after epochs (or every n batches), and deletes
 * the backup when training succeeds. Valid as long as self. */
MusterFitCallback muster_worker_training_state_callback (MusterWorkerTrainingState *self);

G_END_DECLS

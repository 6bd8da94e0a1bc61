// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "callbacks/fit.h"
#include "master/session.h"
#include "saver/saver.h"

G_BEGIN_DECLS

/* MusterWorkerTrainingState keeps the last finished epoch of a job of several tasks beside its
 * variables, in one checkpoint, so that a job that was interrupted goes on with the next one:
 * Keras' worker training state (behaviours B000). The chief writes DIRECTORY/chief/ckpt-N and keeps
 * the newest; every task restores from there. The saved epoch and batch go into the checkpoint as
 * the tensors training_state/ckpt_saved_epoch and training_state/ckpt_saved_batch, -1 while unused.
 * What waits takes a deadline on muster_system_clock () and a nullable GCancellable. One thread. */

typedef enum { MUSTER_MODE_TRAIN, MUSTER_MODE_EVALUATE, MUSTER_MODE_PREDICT } MusterTrainingMode;

typedef struct {
  const char *directory;
  gboolean is_worker; /* not the chief, and not alone: restores, and deletes nothing */
  guint task_id;      /* a worker's */
  /* A worker saves too, where a save needs every task: to DIRECTORY/workertemp_ID, which is gone
   * after each save, and with this. */
  gboolean workers_write;
  MusterSaveFreq save_freq; /* zeros: at the end of each epoch */
  MusterLease *lease;       /* (nullable) the chief's; it saves under it */
  MusterStorage *storage;   /* NULL: local files */
  MusterClock *clock;       /* NULL: the machine's */
} MusterWorkerTrainingStateOptions;

typedef struct _MusterWorkerTrainingState MusterWorkerTrainingState;

MusterWorkerTrainingState *
muster_worker_training_state_new (MusterMetaGraph *meta_graph, MusterSession *session,
                                  const MusterWorkerTrainingStateOptions *options, GError **error);
void muster_worker_training_state_free (MusterWorkerTrainingState *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterWorkerTrainingState, muster_worker_training_state_free)

/* Where it reads and writes; borrowed. The latter is NULL for a worker that doesn't write. */
const char *muster_worker_training_state_read_dir (MusterWorkerTrainingState *self);
const char *muster_worker_training_state_write_dir (MusterWorkerTrainingState *self);

/* The last epoch (batch) saved or restored; -1: none. The batch is -1 after a whole epoch. */
gint64 muster_worker_training_state_saved_epoch (MusterWorkerTrainingState *self);
gint64 muster_worker_training_state_saved_batch (MusterWorkerTrainingState *self);

/* Saves: epoch has just been finished, or with a batch of 0 or more that batch of it. The chief's
 * last checkpoint is deleted only once the new one is durable and its index can be read. */
gboolean muster_worker_training_state_back_up (MusterWorkerTrainingState *self, gint64 epoch,
                                               gint64 batch, gint64 deadline_us,
                                               GCancellable *cancellable, GError **error);

/* Restores the chief's checkpoint; where that is damaged, or the directory's state file doesn't
 * name it, the newest that is whole, and a message says why. Without one nothing changes, and
 * *restored (nullable) is FALSE; an error names each that the state file promises or that lies
 * beside it. */
gboolean muster_worker_training_state_restore (MusterWorkerTrainingState *self, gboolean *restored,
                                               gint64 deadline_us, GCancellable *cancellable,
                                               GError **error);

/* Where to begin: behind what was saved, whatever is wanted; and what is wanted where nothing was
 * saved, or nothing is trained. n_batches as in callbacks/fit.h. */
MusterFitPosition muster_worker_training_state_initial (MusterWorkerTrainingState *self,
                                                        MusterTrainingMode mode,
                                                        MusterFitPosition wanted, gint64 n_batches);

/* Removes DIRECTORY/chief, waiting for nobody; what is gone already is fine. A worker does nothing.
 */
gboolean muster_worker_training_state_delete_backup (MusterWorkerTrainingState *self,
                                                     GError **error);

/* For muster_fit (): restores at the beginning, saves at the end of epochs (or every so many
 * batches), and deletes the backup at a good end. Lives as long as self. */
MusterFitCallback muster_worker_training_state_callback (MusterWorkerTrainingState *self);

G_END_DECLS

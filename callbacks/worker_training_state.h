// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "callbacks/fit.h"
#include "master/session.h"
#include "saver/saver.h"

G_BEGIN_DECLS

/**
 * MusterTrainingMode:
 * @MUSTER_MODE_TRAIN: it trains
 * @MUSTER_MODE_EVALUATE: it evaluates a model
 * @MUSTER_MODE_PREDICT: it uses a model
 *
 * What a program does, for muster_worker_training_state_initial ().
 */
typedef enum { MUSTER_MODE_TRAIN, MUSTER_MODE_EVALUATE, MUSTER_MODE_PREDICT } MusterTrainingMode;

/**
 * MusterWorkerTrainingStateOptions:
 * @directory: where the state is
 * @is_worker: not the chief and not alone: restores, deletes nothing
 * @task_id: of a worker
 * @workers_write: a worker saves too, if a save needs every task: to DIRECTORY/workertemp_ID, which
 *   is removed after each save and with this object
 * @save_freq: zeros: at the end of each epoch
 * @lease: (nullable): the chief's lease, for its saves
 * @storage: (nullable): NULL: local files
 * @clock: (nullable): NULL: the machine's
 *
 * Options of a [struct@WorkerTrainingState].
 */
typedef struct {
  const char *directory;
  gboolean is_worker;
  guint task_id;
  gboolean workers_write;
  MusterSaveFreq save_freq;
  MusterLease *lease;
  MusterStorage *storage;
  MusterClock *clock;
} MusterWorkerTrainingStateOptions;

#define MUSTER_TYPE_WORKER_TRAINING_STATE_OPTIONS (muster_worker_training_state_options_get_type ())
GType muster_worker_training_state_options_get_type (void);

/**
 * muster_worker_training_state_options_new:
 * @directory: where the state is
 *
 * Options on the heap, for other languages: numbers and booleans are fields, the rest is set by
 * methods.
 *
 * Returns: (transfer full): options of a chief
 */
MusterWorkerTrainingStateOptions *muster_worker_training_state_options_new (const char *directory);

/**
 * muster_worker_training_state_options_set_save_freq:
 * @self: options from new or copy
 * @save_freq: how often to save, copied
 *
 * Sets how often to save.
 */
void muster_worker_training_state_options_set_save_freq (MusterWorkerTrainingStateOptions *self,
                                                         const MusterSaveFreq *save_freq);

/**
 * MusterWorkerTrainingState:
 *
 * Saves the last completed epoch of a job of several tasks together with its variables in one
 * checkpoint, so that an interrupted job continues with the next epoch: Keras' worker training
 * state (behaviours B000). The chief writes DIRECTORY/chief/ckpt-N and keeps the newest; every task
 * restores from there. The epoch and batch are the tensors training_state/ckpt_saved_epoch and
 * training_state/ckpt_saved_batch, -1 if unset. Blocking functions take a deadline on the system's
 * clock and a nullable GCancellable. Reference-counted. One thread.
 */
typedef struct _MusterWorkerTrainingState MusterWorkerTrainingState;

#define MUSTER_TYPE_WORKER_TRAINING_STATE (muster_worker_training_state_get_type ())
GType muster_worker_training_state_get_type (void);

/**
 * muster_worker_training_state_new:
 * @meta_graph: the model, with a saver
 * @session: its session
 * @options: (nullable): where and how often to save
 *
 * The state of a task. INVALID_ARGUMENT without a directory.
 *
 * Returns: (transfer full): the state
 */
MusterWorkerTrainingState *
muster_worker_training_state_new (MusterMetaGraph *meta_graph, MusterSession *session,
                                  const MusterWorkerTrainingStateOptions *options, GError **error);

/**
 * muster_worker_training_state_ref:
 * @self: the state
 *
 * Adds a reference.
 *
 * Returns: (transfer full): @self
 */
MusterWorkerTrainingState *muster_worker_training_state_ref (MusterWorkerTrainingState *self);

/**
 * muster_worker_training_state_free:
 * @self: (transfer full) (nullable): the state
 *
 * Drops a reference.
 */
void muster_worker_training_state_free (MusterWorkerTrainingState *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterWorkerTrainingState, muster_worker_training_state_free)

/**
 * muster_worker_training_state_read_dir:
 * @self: the state
 *
 * The directory that it restores from.
 *
 * Returns: the path, borrowed
 */
const char *muster_worker_training_state_read_dir (MusterWorkerTrainingState *self);

/**
 * muster_worker_training_state_write_dir:
 * @self: the state
 *
 * The directory that it saves to.
 *
 * Returns: (nullable): the path, borrowed; NULL for a worker that doesn't write
 */
const char *muster_worker_training_state_write_dir (MusterWorkerTrainingState *self);

/**
 * muster_worker_training_state_saved_epoch:
 * @self: the state
 *
 * The last epoch saved or restored.
 *
 * Returns: the epoch; -1: none
 */
gint64 muster_worker_training_state_saved_epoch (MusterWorkerTrainingState *self);

/**
 * muster_worker_training_state_saved_batch:
 * @self: the state
 *
 * The last batch saved or restored.
 *
 * Returns: the batch; -1: none, and after a complete epoch
 */
gint64 muster_worker_training_state_saved_batch (MusterWorkerTrainingState *self);

/**
 * muster_worker_training_state_back_up:
 * @self: the state
 * @epoch: the last epoch
 * @batch: below 0: it is complete; else the last batch
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the save
 *
 * Saves after an epoch, or after a batch. The chief's previous checkpoint is deleted only when the
 * new one is durable and its index can be read.
 *
 * Returns: FALSE with an error if nothing was saved
 */
gboolean muster_worker_training_state_back_up (MusterWorkerTrainingState *self, gint64 epoch,
                                               gint64 batch, gint64 deadline_us,
                                               GCancellable *cancellable, GError **error);

/**
 * muster_worker_training_state_restore:
 * @self: the state
 * @restored: (out) (optional): FALSE if there is nothing to restore; nothing changes then
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the restore
 *
 * Restores the chief's checkpoint. If it is damaged, or the directory's state file doesn't name it,
 * the newest intact one is restored, with a message. The error names each checkpoint that the state
 * file lists or that is in the directory.
 *
 * Returns: FALSE with an error
 */
gboolean muster_worker_training_state_restore (MusterWorkerTrainingState *self, gboolean *restored,
                                               gint64 deadline_us, GCancellable *cancellable,
                                               GError **error);

/**
 * muster_worker_training_state_initial: (skip)
 * @self: the state
 * @mode: what the program does
 * @wanted: where to start if nothing was saved or @mode isn't training
 * @n_batches: in an epoch; 0: unknown
 *
 * Where to start.
 *
 * Returns: after what was saved, or @wanted
 */
MusterFitPosition muster_worker_training_state_initial (MusterWorkerTrainingState *self,
                                                        MusterTrainingMode mode,
                                                        MusterFitPosition wanted, gint64 n_batches);

/**
 * muster_worker_training_state_start:
 * @self: the state
 * @mode: what the program does
 * @n_batches: in an epoch; 0: unknown
 * @position: where to start if nothing was saved or @mode isn't training; set to where to
 *   start
 *
 * muster_worker_training_state_initial () for other languages.
 */
void muster_worker_training_state_start (MusterWorkerTrainingState *self, MusterTrainingMode mode,
                                         gint64 n_batches, MusterFitPosition *position);

/**
 * muster_worker_training_state_delete_backup:
 * @self: the state
 *
 * Removes DIRECTORY/chief, which may take a minute in an object store. Missing files are no error.
 * Does nothing on a worker.
 *
 * Returns: FALSE with an error if a file can't be removed
 */
gboolean muster_worker_training_state_delete_backup (MusterWorkerTrainingState *self,
                                                     GError **error);

/**
 * muster_worker_training_state_callback: (skip)
 * @self: the state
 *
 * For muster_fit (): restores at the start, saves after epochs (or every n batches), and deletes
 * the backup when training succeeds.
 *
 * Returns: functions that are valid as long as @self
 */
MusterFitCallback muster_worker_training_state_callback (MusterWorkerTrainingState *self);

/**
 * muster_worker_training_state_add_to:
 * @self: the state, which the loop references
 * @fit: a loop from new or copy
 *
 * Adds muster_worker_training_state_callback () to a loop's callbacks.
 */
void muster_worker_training_state_add_to (MusterWorkerTrainingState *self, MusterFit *fit);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/monitored_training.h"
#include "train/position/batches.h"
#include "train/training_observer.h"

G_BEGIN_DECLS

/**
 * MusterTraining:
 * @scaffold: the model
 * @master: where to train it
 * @is_worker: TRUE: a worker; FALSE: a chief
 * @is_elastic: all tasks of the job are equal, and may start and stop at any time: one of them
 * becomes the chief (@is_worker, @task_number and @n_tasks are ignored), and batches are dealt to
 * the tasks that are present. It needs @model, @batches, and a master that keeps members (`muster
 * serve`)
 * @min_tasks: of an elastic job: no task starts before there are this many, and all pause between
 *   two steps while there are fewer; the task that asks for the most counts; 0: 1
 * @max_tasks: of an elastic job: maximum number of tasks; further ones wait for a place; 0: 64. If
 * it is above 64, the same in all tasks
 * @model: (nullable): the model's name in announcements
 * @task: (nullable): "worker:0", for messages
 * @task_number: below @n_tasks: 0 for the chief, another for each worker
 * @n_tasks: chief and workers; the same in all of them; 0: 1
 * @batches: (nullable): one array for each feed; NULL: the graph's own input
 * @feeds: (nullable) (array length=n_feeds): the tensors to feed: "x:0"
 * @n_feeds: the number of @feeds
 * @loss: (nullable): a float scalar to watch; NaN fails the run
 * @until_step: the global step to reach, or, as a graph whose own input ends may have neither,
 * @epochs: the number of passes over the rows of @batches, by all tasks together
 * @without_positions: don't add positions to the model; a resumed job's batches start from the
 *   beginning, and each task uses its own batches
 * @checkpoint_dir: (nullable): of a chief; NULL: nothing is restored or saved
 * @saver: (nullable): options of its saver; a metric `loss` that isn't in the graph is @loss
 * @save_us: like save_checkpoint_us of [struct@MonitoredTrainingOptions]
 * @save_steps: like save_checkpoint_steps there
 * @save_auto: the same as there
 * @save_share: (attributes min=0 max=1): the same as there
 * @save_blocking: the same as there
 * @restore: (nullable): what is restored
 * @overwrite: of a chief: start a job that is over or was prepared by another chief
 * @always_restore: of a chief: as in [struct@MonitoredTrainingOptions]
 * @continue_without_positions: of a chief: as there
 * @ends_job: of a chief: reaching @until_step ends the job, which is announced
 * @log_dir: (nullable): for event files; NULL: with the checkpoints
 * @preemption: (nullable): its cancellable is used for the training if that has none
 * @timeout_us: for preparing the model or waiting for it, each time, in microseconds; 0: no limit
 *   for a chief, two hours for a worker
 * @step_timeout_us: a step that takes longer counts as a lost session; set it above the longest
 *   step. 0: none
 * @cluster: (nullable) (array zero-terminated=1): "ps:0=HOST:PORT"
 * @chief: (nullable): "chief:0=HOST:PORT", as the manager's
 * @config: (nullable): a serialised `ConfigProto`
 * @observer: (nullable): is told of events
 * @clock: (nullable): NULL: the machine's
 *
 * What muster_train () trains. Zeros are the defaults; @scaffold and @master are needed.
 */
typedef struct {
  MusterScaffold *scaffold;
  MusterMaster *master;
  gboolean is_worker;
  gboolean is_elastic;
  guint min_tasks;
  guint max_tasks;
  const char *model;
  const char *task;
  guint task_number;
  guint n_tasks;

  MusterBatches *batches;
  const char *const *feeds;
  gsize n_feeds;
  const char *loss;
  gint64 until_step;
  gint64 epochs;
  gboolean without_positions;

  const char *checkpoint_dir;
  const MusterSaverOptions *saver;
  gint64 save_us;
  gint64 save_steps;
  gboolean save_auto;
  double save_share;
  gboolean save_blocking;
  const MusterRestoreOptions *restore;
  gboolean overwrite;
  gboolean always_restore;
  gboolean continue_without_positions;
  gboolean ends_job;
  const char *log_dir;

  MusterPreemption *preemption;
  gint64 timeout_us;
  gint64 step_timeout_us;
  const char *const *cluster;
  const char *chief;
  GBytes *config;
  MusterTrainingObserver *observer;
  MusterClock *clock;
} MusterTraining;

#define MUSTER_TYPE_TRAINING (muster_training_get_type ())
GType muster_training_get_type (void);

/**
 * muster_training_new:
 * @scaffold: the model
 * @master: where to train it
 *
 * A training on the heap, for other languages: numbers, booleans and strings are fields, the rest
 * is set by methods.
 *
 * Returns: (transfer full): the training of a chief
 */
MusterTraining *muster_training_new (MusterScaffold *scaffold, MusterMaster *master);

/**
 * muster_training_copy:
 * @self: a training, also on the stack
 *
 * Copies a training. The copy owns what it points to.
 *
 * Returns: (transfer full): the copy
 */
MusterTraining *muster_training_copy (const MusterTraining *self);

/**
 * muster_training_free:
 * @self: (transfer full) (nullable): a training from new or copy
 *
 * Frees a training.
 */
void muster_training_free (MusterTraining *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterTraining, muster_training_free)

/**
 * MusterTrained:
 * @step: the last global step seen; -1: none
 * @is_reached: the target was reached, with epochs by all tasks, and its last save has succeeded:
 *   there is nothing to resume, also after a preemption request
 * @n_recoveries: how often it has recovered
 * @goodput: what the job's time was spent on: a chief's, with a checkpoint_dir, since the job's
 *   first start; else this process's. Of an elastic job: since the task's last change of roles
 * @report: of the last session that was created, or couldn't be
 *
 * The result of a training. Clear it.
 */
typedef struct {
  gint64 step;
  gboolean is_reached;
  guint n_recoveries;
  MusterGoodput goodput;
  MusterSessionReport report;
} MusterTrained;

#define MUSTER_TYPE_TRAINED (muster_trained_get_type ())
GType muster_trained_get_type (void);

/**
 * muster_trained_new:
 *
 * A result on the heap, for other languages, to be set by muster_train ().
 *
 * Returns: (transfer full): a result
 */
MusterTrained *muster_trained_new (void);

/**
 * muster_trained_copy:
 * @self: a result
 *
 * Copies a result.
 *
 * Returns: (transfer full): the copy
 */
MusterTrained *muster_trained_copy (const MusterTrained *self);

/**
 * muster_trained_free:
 * @self: (transfer full) (nullable): a result from new or copy
 *
 * Frees a result.
 */
void muster_trained_free (MusterTrained *self);

/**
 * muster_trained_clear:
 * @self: a result on the stack
 *
 * Frees what a result points to.
 */
void muster_trained_clear (MusterTrained *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterTrained, muster_trained_clear)

G_END_DECLS

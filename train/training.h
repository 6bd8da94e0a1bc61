// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/monitored_training.h"
#include "train/position/batches.h"
#include "train/training_observer.h"

G_BEGIN_DECLS

/**
 * MusterTraining:
 * @session: the model, the master, checkpoints and announcements. Its hooks, observers, `will_run`,
 *   `will_feed` and `waiting` are the training's own and must be unset, as its `saver`. An elastic
 * job needs a model's name; its `is_worker`, `n_tasks` and @task_number are ignored unless it has
 *   `own_masters`. `overwrite` starts a job that is over, too
 * @saver: options of the chief's saver; a metric `loss` that isn't in the graph is @loss
 * @is_elastic: (attributes option=task=auto): all tasks of the job are equal, and may start and
 * stop at any time: one of them becomes the chief, and batches are dealt to the tasks that are
 * present. It needs @batches, and a master that keeps members (`muster serve`). With `own_masters`,
 * whose masters have a coordinator that does, each task keeps @task_number and its part of the
 * rows; a worker with a `checkpoint_dir` becomes the chief when there is none. There it needs no
 * @batches, but without positions @min_tasks is 0, and half a step of a chief that is gone may stay
 * @min_tasks: (attributes flag=min-tasks max=65536 of=train): minimum number of tasks of an elastic
 *   job (@is_elastic), or of one with a coordinator and positions: with fewer, training waits;
 * 0: 1. Of different values, the largest counts
 * @max_tasks: (attributes flag=max-tasks max=65536 of=train): maximum number of tasks of an elastic
 * job
 *   (@is_elastic); further ones wait for a place; 0: 64. If it is above 64, the same in all tasks
 * @task_number: below `n_tasks`: 0 for the chief, another for each worker
 * @batches: (nullable): one array for each feed; NULL: the graph's own input
 * @feeds: (nullable) (array length=n_feeds): the tensors to feed: "x:0"
 * @n_feeds: the number of @feeds
 * @loss: (nullable): a float scalar to watch; NaN fails the run. Event files get it with the
 *   summaries, under the name of its op
 * @until_step: (attributes flag=steps of=train): global step, shared by all tasks, at which
 * training ends (required, or @epochs, unless the graph's own input ends)
 * @epochs: (attributes flag=epochs of=train): number of passes over the rows after which training
 * ends; 0:
 *   @until_step. The rows of @batches, by all tasks together
 * @without_positions: (attributes flag=no-positions of=train): don't store each task's position in
 * the data in the model. A resumed job's batches start from the beginning, and each task uses its
 * own batches
 * @ends_job: of a chief: reaching @until_step ends the job, which is announced
 * @observer: (nullable): is told of events
 *
 * What muster_train () trains. Zeros are the defaults; the session's `scaffold` and `master` are
 * needed.
 */
typedef struct {
  MusterMonitoredTrainingOptions session;
  MusterSaverOptions saver;
  gboolean is_elastic;
  guint min_tasks;
  guint max_tasks;
  guint task_number;
  MusterBatches *batches;
  const char *const *feeds;
  gsize n_feeds;
  const char *loss;
  gint64 until_step;
  gint64 epochs;
  gboolean without_positions;
  gboolean ends_job;
  MusterTrainingObserver *observer;
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
 * muster_trained_clear:
 * @self: a result on the stack
 *
 * Frees what a result points to.
 */
void muster_trained_clear (MusterTrained *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterTrained, muster_trained_clear)

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/hooks/saver_observer.h"
#include "train/monitored/session_observer.h"

G_BEGIN_DECLS

/**
 * MusterTrainingState:
 * @step: the global step; during training possibly the one before the last run's update
 * @until_step: the target; with epochs: the step at which a new model has done all batches
 * @steps_per_second: of all tasks, over the last second or two; 0: unknown
 * @loss: NaN: none configured
 * @left_us: remaining time in microseconds; -1: unknown
 * @durable_step: the last saved or restored, not in a fast tier; -1: none or unknown
 * @saves: (nullable): how far the saves have come, NULL on a worker and without a
 *   checkpoint_dir
 * @goodput: until now
 * @awaits: (nullable): with epochs: this task's share is done, and it waits for this task,
 *   "worker:1"; valid during the call
 * @awaits_us: which has done no batch for this long
 * @paused: (nullable): of an elastic job: why no step is made now, "waiting for tasks: 1 of at
 * least 3"; valid during the call
 *
 * The progress of a training.
 */
typedef struct {
  gint64 step;
  gint64 until_step;
  double steps_per_second;
  double loss;
  gint64 left_us;
  gint64 durable_step;
  const MusterSaveStatus *saves;
  MusterGoodput goodput;
  const char *awaits;
  gint64 awaits_us;
  const char *paused;
} MusterTrainingState;

#define MUSTER_TYPE_TRAINING_STATE (muster_training_state_get_type ())
GType muster_training_state_get_type (void);

/**
 * MusterEvaluated:
 * @prefix: (nullable): the checkpoint; NULL: none was evaluated
 * @step: its global step; -1: unknown
 * @metrics: (nullable) (array zero-terminated=1): the names that it is marked with: "eval/accuracy"
 * @values: (nullable) (element-type gdouble): the value of each; [method@Evaluated.value]
 * @n_rows: the number of rows that were fed; of the graph's own input: of batches
 * @took_us: the time for restoring and evaluating it, in microseconds
 * @n_evaluated: the number of checkpoints evaluated so far
 * @why: (nullable): why it has no values, or isn't marked with them: it is damaged, or was removed
 *
 * An evaluation of a checkpoint. Clear it.
 */
typedef struct {
  char *prefix;
  gint64 step;
  char **metrics;
  GArray *values;
  gint64 n_rows;
  gint64 took_us;
  guint n_evaluated;
  char *why;
} MusterEvaluated;

#define MUSTER_TYPE_EVALUATED (muster_evaluated_get_type ())
GType muster_evaluated_get_type (void);

/**
 * muster_evaluated_value:
 * @self: an evaluation
 * @metric: a name, as the checkpoint is marked with it or without its first part: "accuracy"
 *
 * The value of a metric.
 *
 * Returns: the value; NaN if there is none
 */
double muster_evaluated_value (const MusterEvaluated *self, const char *metric);

/**
 * muster_evaluated_clear:
 * @self: an evaluation
 *
 * Frees what it contains, and empties it.
 */
void muster_evaluated_clear (MusterEvaluated *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterEvaluated, muster_evaluated_clear)

/**
 * MusterTrainingObserver:
 *
 * Emits signals for the events of muster_train () and muster_evaluate (), on the thread of the
 * call. Set it in [struct@Training] or [struct@EvaluateOptions].
 */
#define MUSTER_TYPE_TRAINING_OBSERVER (muster_training_observer_get_type ())
G_DECLARE_FINAL_TYPE (MusterTrainingObserver, muster_training_observer, MUSTER, TRAINING_OBSERVER,
                      GObject)

/**
 * MusterTrainingObserver::waiting:
 * @self: the observer
 * @message: one line
 * @readiness: (nullable): the model's
 * @reasons: (nullable) (element-type MusterReason): in detail
 *
 * What the task waits for, while a session is created: see [method@SessionManager.set_progress].
 */

/**
 * MusterTrainingObserver::ready:
 * @self: the observer
 * @report: of the session's creation
 * @step: the model's step
 *
 * A session was created, the first or another: the model is ready.
 */

/**
 * MusterTrainingObserver::lost:
 * @self: the observer
 * @why: the failure
 * @n: the number of recoveries so far, including this one
 * @pause_us: microseconds until the next attempt
 *
 * The session is lost; another is created after a pause.
 */

/**
 * MusterTrainingObserver::role:
 * @self: the observer
 * @is_chief: this task prepares the model and saves
 * @slot: the task's slot
 *
 * Of an elastic job: a round begins, with a role. A claim that is refused makes a worker of the
 * task.
 */

/**
 * MusterTrainingObserver::progress:
 * @self: the observer
 * @state: the progress
 *
 * Emitted at most twenty times a second, and once at the end.
 *
 * Returns: TRUE ends the training early, like reaching its target, without ending the job
 */

/**
 * MusterTrainingObserver::saved:
 * @self: the observer
 * @saved: its result
 *
 * A save has ended: it is durable, or was skipped for lack of space (its `why`). The next one is
 * due at the usual interval.
 */

/**
 * MusterTrainingObserver::copied:
 * @self: the observer
 * @copied: where it is now
 *
 * A checkpoint of a fast tier has been copied to a lower one.
 */

/**
 * MusterTrainingObserver::save-failed:
 * @self: the observer
 * @step: the step that was to be saved
 * @why: the failure
 * @n_in_a_row: consecutive failures, including this one
 * @n_left_out: failures since the last one that was reported, but for this one
 *
 * A save or a copy has failed, and training continues. Emitted at most every ten seconds.
 */

/**
 * MusterTrainingObserver::evaluated:
 * @self: the observer
 * @evaluated: its values; or why it was passed over
 *
 * A checkpoint was evaluated, or can't be.
 */

/**
 * muster_training_observer_new:
 *
 * An observer without handlers.
 *
 * Returns: (transfer full): the observer
 */
MusterTrainingObserver *muster_training_observer_new (void);

G_END_DECLS

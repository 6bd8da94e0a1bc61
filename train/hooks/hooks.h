// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/step_builder.h"
#include "saver/saver.h"
#include "train/hooks/event_writer.h"
#include "train/hooks/saver_observer.h"
#include "train/monitored/hook.h"
#include "train/preemption/preemption.h"

G_BEGIN_DECLS

/* The standard hooks, with TensorFlow's names and semantics (behaviours MON.62 to MON.87). Strings
 * and arrays are copied. Contradictory options are INVALID_ARGUMENT at once; a tensor, op or global
 * step that the graph lacks is INVALID_ARGUMENT at begin, before there is a session. Times are
 * microseconds. */

/**
 * muster_stop_at_step_hook_new:
 * @num_steps: how many steps after the first session's; 0: @last_step is given
 * @last_step: the global step at which to stop; 0: @num_steps is given
 *
 * Stops at a global step, like TensorFlow's `StopAtStepHook`. Exactly one is given, above 0;
 * otherwise INVALID_ARGUMENT.
 *
 * Returns: (transfer full): the hook
 */
MusterHook *muster_stop_at_step_hook_new (gint64 num_steps, gint64 last_step, GError **error);

/* --- checkpoints --- */

/**
 * MusterCheckpointSaverHook:
 *
 * Saves at the first session's step (unless it was just restored from there), then at the interval,
 * and at the end, like TensorFlow's `CheckpointSaverHook`. If the lease is lost, a save fails the
 * run (FAILED_PRECONDITION).
 *
 * Checkpoints are written in the background unless save_blocking is set: a save delays the step
 * only by its snapshot ([class@AsyncSaver]). The observer and the run receive its result at the end
 * of the first step after it is durable or has failed. One checkpoint is written at a time; a save
 * that falls due meanwhile starts when it is done. The save at the end waits for the one in flight,
 * then blocks. A model without a SaveV2 op, and a master that accepts no further nodes, are saved
 * as with save_blocking.
 *
 * If the saver has fast tiers, each has an interval of its own, besides that of checkpoint_dir. A
 * save goes to the fastest tier in use; the others that are due then get a copy in the background.
 * The last save of a run goes to checkpoint_dir itself. A failed copy to checkpoint_dir counts as a
 * failed save.
 *
 * If the saver has a metric ([method@Saver.metric]) and the graph a tensor or op of that name, the
 * tensor is fetched with each step, and a save records the value of the step before it. Otherwise
 * values come from the program ([method@Saver.set_metric], as before a save:
 * [signal@SaverObserver::before-save]) or from an evaluator ([func@checkpoint_set_metric]).
 */
#define MUSTER_TYPE_CHECKPOINT_SAVER_HOOK (muster_checkpoint_saver_hook_get_type ())
G_DECLARE_FINAL_TYPE (MusterCheckpointSaverHook, muster_checkpoint_saver_hook, MUSTER,
                      CHECKPOINT_SAVER_HOOK, MusterHook)

/**
 * MUSTER_NEVER:
 *
 * Disables an interval of [struct@MonitoredTrainingOptions].
 */
#define MUSTER_NEVER (-1)

/**
 * MusterCheckpointSaverOptions:
 * @checkpoint_dir: (nullable) (attributes flag=checkpoint-dir arg=DIR of=train): checkpoint
 *   directory: the latest checkpoint is restored, new ones are saved; `NULL`: none. A hook by
 * itself restores nothing, and needs it
 * @save_us: (attributes flag=save-secs of=train): time between checkpoints; 0: 10m. Not by default
 *   if @save_steps are set, and the reverse; setting both is INVALID_ARGUMENT (DMON.3).
 *   %MUSTER_NEVER: none. A hook by itself has no default, and needs one of the two or @save_auto
 * @save_steps: the interval of checkpoints in steps; 0: none
 * @save_auto: (attributes option=save-every=auto): instead of an interval: the hook chooses it from
 *   what saves cost and how often the job fails (Young's and Daly's), and logs its choice
 * @save_share: (attributes flag=save-share arg=PERCENT min=0 max=1 of=train): maximum share of the
 *   time for which saves may hold training, with @save_auto; 0: 1%. In C a number such as 0.01
 * @saver: (nullable): NULL: one for the scaffold's SaverDef, which a training builds if there is
 *   none. Its clock is the hook's; in a training that is the manager's
 * @save_blocking: (attributes flag=save-blocking of=train): stop training while a checkpoint is
 *   written, instead of writing it in the background
 * @from_files: of a job that restores with fall_back_to_files of [struct@RestoreOptions], as a
 *   training sets it itself: adopts the directory in the same way ([method@Saver.adopt_for_job])
 * @steps_per_run: steps by which a run advances the global step; 0: 1
 * @saver_observer: (nullable): is told of each save
 * @writer: (nullable): records the graph and each save; NULL: in a training, that of the summaries
 * @most_failures_in_a_row: a failed save is counted, with a warning, and training continues; this
 *   many in a row fail the run. 0: no limit
 * @preemption: (nullable): limits its saves. A training adds its hook; in [struct@Training] its
 *   cancellable is used if there is no other
 *
 * Options of a [class@CheckpointSaverHook].
 */
typedef struct {
  const char *checkpoint_dir;
  gint64 save_us;
  gint64 save_steps;
  gboolean save_auto;
  double save_share;
  MusterSaver *saver;
  gboolean save_blocking;
  gboolean from_files;
  gint64 steps_per_run;
  MusterSaverObserver *saver_observer;
  MusterEventWriter *writer;
  guint most_failures_in_a_row;
  MusterPreemption *preemption;
} MusterCheckpointSaverOptions;

#define MUSTER_TYPE_CHECKPOINT_SAVER_OPTIONS (muster_checkpoint_saver_options_get_type ())
GType muster_checkpoint_saver_options_get_type (void);

/**
 * muster_checkpoint_saver_options_new:
 * @checkpoint_dir: where to save
 *
 * Options on the heap, for other languages: numbers and strings are fields, the rest is set by
 * methods.
 *
 * Returns: (transfer full): options without an interval
 */
MusterCheckpointSaverOptions *muster_checkpoint_saver_options_new (const char *checkpoint_dir);

/**
 * muster_checkpoint_saver_hook_new:
 * @options: where and how often to save
 *
 * A hook that saves checkpoints.
 *
 * Returns: (transfer full): the hook
 */
MusterHook *muster_checkpoint_saver_hook_new (const MusterCheckpointSaverOptions *options,
                                              GError **error);

/**
 * muster_checkpoint_saver_hook_n_failures:
 * @self: a checkpoint hook
 *
 * How many saves have failed.
 *
 * Returns: their number
 */
guint muster_checkpoint_saver_hook_n_failures (MusterHook *self);

/**
 * muster_checkpoint_saver_hook_last_failure:
 * @self: a checkpoint hook
 *
 * Why the last save that failed has failed.
 *
 * Returns: (transfer full) (nullable): the failure; NULL: none
 */
GError *muster_checkpoint_saver_hook_last_failure (MusterHook *self);

/**
 * muster_checkpoint_saver_hook_durable:
 * @self: a checkpoint hook
 * @prefix: (out) (optional) (nullable) (transfer none): the checkpoint, borrowed; NULL: none
 *
 * The last step saved, in any tier.
 *
 * Returns: the step; -1: none
 */
gint64 muster_checkpoint_saver_hook_durable (MusterHook *self, const char **prefix);

/* --- observing --- */

/**
 * muster_step_counter_hook_new:
 * @every_steps: the interval in steps; exactly one of the two is above 0
 * @every_us: the interval in microseconds
 * @writer: (nullable): gets "global_step/sec"
 * @clock: (nullable): NULL: the machine's
 *
 * Writes the steps per second at an interval, to @writer and to the log, like TensorFlow's
 * `StepCounterHook`.
 *
 * Returns: (transfer full): the hook
 */
MusterHook *muster_step_counter_hook_new (gint64 every_steps, gint64 every_us,
                                          MusterEventWriter *writer, MusterClock *clock,
                                          GError **error);

/**
 * MusterLoggingHook:
 *
 * Logs tensors at an interval, like TensorFlow's `LoggingTensorHook`.
 */
#define MUSTER_TYPE_LOGGING_HOOK (muster_logging_hook_get_type ())
G_DECLARE_FINAL_TYPE (MusterLoggingHook, muster_logging_hook, MUSTER, LOGGING_HOOK, MusterHook)

/**
 * MusterLoggingHook::line:
 * @self: the hook
 * @text: a line
 *
 * Emitted with each line. If no handler is connected, the line goes to the log, at MESSAGE.
 */

/**
 * muster_logging_hook_new:
 * @tensors: (array zero-terminated=1): the tensors to fetch
 * @every_n_iter: the interval in runs of this session, not global steps; 0: none
 * @every_us: the interval in microseconds; 0: none. At most one of the two
 * @at_end: also at the end; an interval is then optional
 * @clock: (nullable): NULL: the machine's
 *
 * A hook that logs tensors.
 *
 * Returns: (transfer full): the hook
 */
MusterHook *muster_logging_hook_new (const char *const *tensors, gint64 every_n_iter,
                                     gint64 every_us, gboolean at_end, MusterClock *clock,
                                     GError **error);

/**
 * muster_nan_hook_new:
 * @loss: a float tensor
 * @fails: TRUE: a NaN fails the run; FALSE: it warns and requests a stop
 *
 * If the loss is NaN, fails the run ("NaN loss during training.", INVALID_ARGUMENT, like
 * TensorFlow's `CheckNumerics`), or stops it, like TensorFlow's `NanTensorHook`.
 *
 * Returns: (transfer full): the hook
 */
MusterHook *muster_nan_hook_new (const char *loss, gboolean fails);

/**
 * muster_summary_saver_hook_new:
 * @summary_op: (nullable): the tensor with the summaries; NULL: the scaffold's; if it has none,
 *   nothing is written
 * @save_steps: the interval in steps; exactly one of the two is above 0
 * @save_us: the interval in microseconds
 * @writer: (nullable): the event file
 * @clock: (nullable): NULL: the machine's
 *
 * Writes summaries for TensorBoard, at the first run and then at an interval, like TensorFlow's
 * `SummarySaverHook`.
 *
 * Returns: (transfer full): the hook
 */
MusterHook *muster_summary_saver_hook_new (const char *summary_op, gint64 save_steps,
                                           gint64 save_us, MusterEventWriter *writer,
                                           MusterClock *clock, GError **error);

/**
 * muster_profiler_hook_new:
 * @save_steps: the interval in steps; exactly one of the two is above 0
 * @save_us: the interval in microseconds
 * @output_dir: where to write timeline-STEP.json, for chrome://tracing and Perfetto
 * @writer: (nullable): gets the run's metadata as "step_STEP"
 * @clock: (nullable): NULL: the machine's
 *
 * Profiles a run at an interval, never the first, like TensorFlow's `ProfilerHook`: requests a full
 * trace from the master. If the master doesn't trace, this is logged once.
 *
 * Returns: (transfer full): the hook
 */
MusterHook *muster_profiler_hook_new (gint64 save_steps, gint64 save_us, const char *output_dir,
                                      MusterEventWriter *writer, MusterClock *clock,
                                      GError **error);

/* --- input and output --- */

/**
 * muster_global_step_waiter_hook_new:
 * @wait_until_step: the global step to wait for
 * @clock: (nullable): NULL: the machine's
 *
 * Waits before its first run until the global step has reached a step, to delay a worker's start,
 * like TensorFlow's `GlobalStepWaiterHook`. DEADLINE_EXCEEDED at the run's deadline.
 *
 * Returns: (transfer full): the hook
 */
MusterHook *muster_global_step_waiter_hook_new (gint64 wait_until_step, MusterClock *clock);

/**
 * muster_final_ops_hook_new: (skip)
 * @step: what to run; copied
 *
 * Runs ops and fetches tensors once, at the end, like TensorFlow's `FinalOpsHook`.
 *
 * Returns: (transfer full): the hook
 */
MusterHook *muster_final_ops_hook_new (const MusterStep *step);

/**
 * muster_final_ops_hook_new_for_builder:
 * @step: what to run; copied
 *
 * muster_final_ops_hook_new () for other languages.
 *
 * Returns: (transfer full): the hook
 */
MusterHook *muster_final_ops_hook_new_for_builder (MusterStepBuilder *step);

/**
 * muster_final_ops_hook_value:
 * @self: the hook
 * @fetched: the index of a fetch
 *
 * What the hook has fetched at the end.
 *
 * Returns: (transfer none) (nullable): the value, borrowed; NULL before the end
 */
MusterTensor *muster_final_ops_hook_value (MusterHook *self, gsize fetched);

/**
 * muster_finish_barrier_hook_new:
 * @quiet_us: how long the global step must not have changed, in microseconds
 * @timeout_us: at most this long, in microseconds
 * @clock: (nullable): NULL: the machine's
 *
 * At a clean end waits until the other tasks have stopped. For a chief, before the hook that saves,
 * so that the workers' last steps aren't lost (DMON.14).
 *
 * Returns: (transfer full): the hook
 */
MusterHook *muster_finish_barrier_hook_new (gint64 quiet_us, gint64 timeout_us, MusterClock *clock);

/**
 * MusterFeedFunc: (skip)
 * @feeds: where to return a tensor for each of the hook's, owned by the hook even on failure
 * @deadline_us: the run's, on the monitored session's clock
 * @cancellable: (nullable): ends waits
 * @user_data: the caller's
 * @error: OUT_OF_RANGE is the end of the input
 *
 * Makes the tensors to feed. It must return by the deadline, or when cancelled.
 *
 * Returns: FALSE with an error ends the run
 */
typedef gboolean (*MusterFeedFunc) (MusterTensor **feeds, gint64 deadline_us,
                                    GCancellable *cancellable, gpointer user_data, GError **error);

/**
 * muster_feed_func_hook_new: (skip)
 * @tensors: (array zero-terminated=1): the tensors to feed
 * @func: makes them before each run
 * @user_data: passed to @func
 * @destroy: frees @user_data with the hook
 *
 * Feeds a function's tensors before each run, like TensorFlow's `FeedFnHook`.
 *
 * Returns: (transfer full): the hook
 */
MusterHook *muster_feed_func_hook_new (const char *const *tensors, MusterFeedFunc func,
                                       gpointer user_data, GDestroyNotify destroy);

/**
 * MusterFeedListFunc:
 * @deadline_us: the run's, on the monitored session's clock
 * @cancellable: (nullable): ends waits
 * @user_data: the caller's
 * @error: OUT_OF_RANGE is the end of the input
 *
 * Makes the tensors to feed. It must return by the deadline, or when cancelled.
 *
 * Returns: (transfer full) (nullable) (element-type MusterTensor): one tensor for each of the
 *   hook's; NULL with an error ends the run
 */
typedef GPtrArray *(*MusterFeedListFunc) (gint64 deadline_us, GCancellable *cancellable,
                                          gpointer user_data, GError **error);

/**
 * muster_feed_list_hook_new:
 * @tensors: (array zero-terminated=1): the tensors to feed
 * @func: (scope notified) (closure user_data) (destroy destroy): makes them before each run
 * @user_data: passed to @func
 * @destroy: frees @user_data with the hook
 *
 * muster_feed_func_hook_new () with a function that returns a list, as in other languages. Another
 * number of tensors than of @tensors is INVALID_ARGUMENT.
 *
 * Returns: (transfer full): the hook
 */
MusterHook *muster_feed_list_hook_new (const char *const *tensors, MusterFeedListFunc func,
                                       gpointer user_data, GDestroyNotify destroy);

G_END_DECLS

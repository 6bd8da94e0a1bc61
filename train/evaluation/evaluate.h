// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/training.h"

G_BEGIN_DECLS

/**
 * MusterEvaluateOptions:
 * @training: the job, described as for muster_train (). Only what is named below is used
 * @checkpoint: (attributes flag=checkpoint arg=PREFIX): checkpoint to evaluate, even if it was
 *   evaluated before; `NULL`: those of @checkpoint_dir of [struct@CheckpointSaverOptions]
 * @once: (attributes flag=once): evaluate the newest checkpoint, unless it was evaluated before,
 *   and end. Waits for one if there is none
 * @metrics: (nullable) (array zero-terminated=1): what to evaluate, named like `accuracy` or
 *   `loss:0`; NULL: the first of the collection `losses`. One of `tf.metrics` is its name: its
 *   update op runs with each batch, and its value is read at the end. Any other is a tensor of a
 *   single number, of which the mean over all rows is taken; over all batches where the graph has
 *   its own input
 * @name: (attributes flag=name): name of the evaluation, in front of its metrics in the
 *   checkpoint's marks; `NULL`: eval. Evaluations of other data need another one
 * @max_batches: (attributes flag=max-batches min=0): maximum number of batches of an evaluation; 0:
 *   all
 * @poll_us: (attributes flag=poll): interval at which the directory is checked; 0: 1s
 *
 * What muster_evaluate () evaluates. Zeros are the defaults; a scaffold and a master are needed,
 * and a `checkpoint_dir`, whose checkpoints are evaluated as they are saved, or @checkpoint.
 *
 * Of the training's `session`, the `scaffold` may be another graph than the one that is trained,
 * with variables of the same names. The `master` is one of its own, which is reset before each
 * checkpoint; `overwrite` allows that if it has values of the model, which are lost. Of the
 * `manager`, the model's name, the task's, the cluster, `config` and `clock` are used; the ops and
 * the meta graph are the scaffold's, and must be unset. `summary_dir` is by default the
 * evaluation's name in `checkpoint_dir`, if that is local. `timeout_us` is the time to wait for the
 * next checkpoint; 0: forever.
 *
 * Of the training itself, `batches` and `feeds` are used: the rows are taken in their order, all of
 * them once, in batches of the same size, and the position stays. Without them the graph's own
 * input is used, to its end. `observer` is told of events, and `storage` of `saver` has the
 * checkpoints.
 */
typedef struct {
  MusterTraining training;
  const char *checkpoint;
  gboolean once;
  const char *const *metrics;
  const char *name;
  gint64 max_batches;
  gint64 poll_us;
} MusterEvaluateOptions;

#define MUSTER_TYPE_EVALUATE_OPTIONS (muster_evaluate_options_get_type ())
GType muster_evaluate_options_get_type (void);

/**
 * muster_evaluate:
 * @options: what to evaluate
 * @evaluated: (nullable): set to the last evaluation, even on failure; not cleared before
 * @cancellable: (nullable): ends the evaluation
 *
 * Evaluates the checkpoints that a job saves in a directory, beside the job, until it is over: each
 * is restored into a master of its own, all data is run through it once, and the values go to
 * TensorBoard's event file and to the checkpoint, which is marked with them: a saver that keeps the
 * best by such a metric ([struct@SaverOptions]) counts them. Nothing else in the directory is
 * changed. While a checkpoint is evaluated, for an hour at most, no saver removes it, in any store.
 *
 * The newest that isn't marked is next: an evaluation that is slower than the job leaves out
 * checkpoints, and comes back to those that still exist when it has time. One that is marked isn't
 * evaluated again, even by another process. One that is damaged, or removed meanwhile, is reported
 * (`evaluated`, with the reason) and passed over.
 *
 * It ends when `muster train` or muster_train () (with `ends_job`) has noted in the directory that
 * the job is over, and all of its checkpoints are marked. If that is noted already at the start, it
 * ends after a minute, or after `timeout_us` if that is shorter: a job that resumes clears the note
 * when its model is ready. Other programs' jobs don't note their end: set `timeout_us`.
 *
 * INVALID_ARGUMENT if the graph lacks a metric, a feed or a variable; FAILED_PRECONDITION if the
 * master has values of the model already, or another chief holds it; DEADLINE_EXCEEDED if no
 * checkpoint came in time; NOT_FOUND or DATA_LOSS for a single @checkpoint; otherwise the error of
 * creating the session, of a step or of the store.
 *
 * Returns: FALSE with an error
 */
gboolean muster_evaluate (const MusterEvaluateOptions *options, MusterEvaluated *evaluated,
                          GCancellable *cancellable, GError **error);

G_END_DECLS

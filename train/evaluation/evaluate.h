// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "session/manager.h"
#include "train/monitored/scaffold.h"
#include "train/position/batches.h"
#include "train/training_observer.h"

G_BEGIN_DECLS

/**
 * MusterEvaluateOptions:
 * @scaffold: the model, which may be another graph than the one that is trained, with variables of
 *   the same names
 * @master: where to evaluate it: a master of its own, which is reset before each checkpoint
 * @manager: of the session manager: the model's name, the task's, the cluster, `config` and
 *   `clock`. The ops and the meta graph are the scaffold's, and must be unset
 * @checkpoint_dir: (attributes flag=checkpoint-dir arg=DIR): directory whose checkpoints are
 *   evaluated as they are saved (required, or @checkpoint)
 * @checkpoint: (attributes flag=checkpoint arg=PREFIX): checkpoint to evaluate, even if it was
 *   evaluated before; `NULL`: those of @checkpoint_dir
 * @storage: where the checkpoints are (nullable)
 * @once: (attributes flag=once): evaluate the newest checkpoint, unless it was evaluated before,
 *   and end. Waits for one if there is none
 * @metrics: (nullable) (array zero-terminated=1): what to evaluate, named like `accuracy` or
 *   `loss:0`; NULL: the first of the collection `losses`. One of `tf.metrics` is its name: its
 *   update op runs with each batch, and its value is read at the end. Any other is a tensor of a
 *   single number, of which the mean over all rows is taken; over all batches where the graph has
 *   its own input
 * @name: (attributes flag=name): name of the evaluation, in front of its metrics in the
 *   checkpoint's marks; `NULL`: eval. Evaluations of other data need another one
 * @batches: (nullable): one array for each feed; NULL: the graph's own input, to its end. The rows
 *   are taken in their order, all of them once, in batches of the same size; the position stays
 * @feeds: (nullable) (array length=n_feeds): the tensors to feed: "x:0"
 * @n_feeds: the number of @feeds
 * @max_batches: (attributes flag=max-batches min=0): maximum number of batches of an evaluation; 0:
 *   all
 * @summary_dir: (attributes flag=log-dir arg=DIR): local directory for TensorBoard event files;
 *   `NULL`: the evaluation's name in @checkpoint_dir, if that is local
 * @overwrite: (attributes flag=overwrite): use a master that has values of the model, which are
 *   then lost
 * @poll_us: (attributes flag=poll): interval at which the directory is checked; 0: 1s
 * @timeout_us: time to wait for the next checkpoint, in microseconds; 0: forever
 * @observer: (nullable): is told of events
 *
 * What muster_evaluate () evaluates. Zeros are the defaults; @scaffold and @master are needed, and
 * @checkpoint_dir or @checkpoint.
 */
typedef struct {
  MusterScaffold *scaffold;
  MusterMaster *master;
  MusterSessionManagerOptions manager;
  const char *checkpoint_dir;
  const char *checkpoint;
  MusterStorage *storage;
  gboolean once;
  const char *const *metrics;
  const char *name;
  MusterBatches *batches;
  const char *const *feeds;
  gsize n_feeds;
  gint64 max_batches;
  const char *summary_dir;
  gboolean overwrite;
  gint64 poll_us;
  gint64 timeout_us;
  MusterTrainingObserver *observer;
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
 * the job is over, and all of its checkpoints are marked. Other programs' jobs don't note their
 * end: set @timeout_us.
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

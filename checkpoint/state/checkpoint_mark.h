// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/* What people and evaluators note of a checkpoint that is saved: that it must stay, and how good it
 * is. It is written to the directory's side file, under the directory's lock, and counts from the
 * next save or prune on. A job that trains may be running. Any thread. */

/**
 * muster_checkpoint_pin:
 * @storage: (nullable): where; `NULL`: local files
 * @prefix: a checkpoint
 * @why: (nullable): a reason, for messages
 * @deadline_us: when to give up
 * @cancellable: (nullable): stops it
 * @error: return location for an error
 *
 * Pins a checkpoint: savers and `muster checkpoint prune` never remove it, and it doesn't count
 * towards the number of those to keep. It leaves the list of the state file, from which other
 * savers remove the oldest, unless it is the latest: then the next save does that. One that was
 * pinned before gets the new reason. `NOT_FOUND` if it doesn't exist; `FAILED_PRECONDITION` if it
 * is being removed.
 *
 * Returns: `TRUE` if it is pinned
 */
gboolean muster_checkpoint_pin (MusterStorage *storage, const char *prefix, const char *why,
                                gint64 deadline_us, GCancellable *cancellable, GError **error);

/**
 * muster_checkpoint_unpin:
 * @storage: (nullable): where; `NULL`: local files
 * @prefix: a checkpoint
 * @deadline_us: when to give up
 * @cancellable: (nullable): stops it
 * @error: return location for an error
 *
 * Returns a checkpoint to retention: a saver that manages it removes it with a later save, unless
 * another rule keeps it. `FAILED_PRECONDITION` if it isn't pinned.
 *
 * Returns: `TRUE` if it is pinned no more
 */
gboolean muster_checkpoint_unpin (MusterStorage *storage, const char *prefix, gint64 deadline_us,
                                  GCancellable *cancellable, GError **error);

/**
 * muster_checkpoint_set_metric:
 * @storage: (nullable): where; `NULL`: local files
 * @prefix: a checkpoint
 * @name: the metric; a tensor `x:0` is called `x`
 * @value: its value; one that isn't finite is never the best
 * @deadline_us: when to give up
 * @cancellable: (nullable): stops it
 * @error: return location for an error
 *
 * Gives a saved checkpoint a metric's value, as an evaluator beside the training does, or replaces
 * that of its training. A saver that keeps the best by this metric (`metric` in
 * [struct@SaverOptions]) counts it with its next save. A checkpoint without a value isn't among the
 * best: keep enough of the newest for the evaluator to come to them. At most 64 metrics for a
 * checkpoint. `NOT_FOUND` if it doesn't exist; `FAILED_PRECONDITION` if it is being removed.
 *
 * Returns: `TRUE` if the value is recorded
 */
gboolean muster_checkpoint_set_metric (MusterStorage *storage, const char *prefix, const char *name,
                                       double value, gint64 deadline_us, GCancellable *cancellable,
                                       GError **error);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

G_BEGIN_DECLS

/**
 * MusterFeed:
 * @name: the tensor to feed: "x:0" or "x"
 * @tensor: its value
 *
 * A fed tensor.
 */
typedef struct {
  const char *name;
  MusterTensor *tensor;
} MusterFeed;

/**
 * MusterStep:
 * @feeds: (array length=n_feeds): the fed tensors
 * @n_feeds: the number of feeds
 * @fetches: (array length=n_fetches): tensors such as "y:0"; each gives one result
 * @n_fetches: the number of fetches
 * @targets: (array length=n_targets): ops to run without fetching
 * @n_targets: the number of targets
 * @options: a serialised RunOptions, passed on unchanged (nullable)
 * @deadline_us: an instant in microseconds; 0 is %MUSTER_WAIT_FOREVER; a timeout in @options may be
 *   earlier
 *
 * A step's feeds, fetches and targets. Everything is borrowed for the length of the call. Other
 * languages compose one by [struct@StepBuilder].
 */
typedef struct {
  const MusterFeed *feeds;
  gsize n_feeds;
  const char *const *fetches;
  gsize n_fetches;
  const char *const *targets;
  gsize n_targets;
  GBytes *options;
  gint64 deadline_us;
} MusterStep;

G_END_DECLS

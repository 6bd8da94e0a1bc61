// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

G_BEGIN_DECLS

/* A fed tensor: "x:0" or "x". */
typedef struct {
  const char *name;
  MusterTensor *tensor;
} MusterFeed;

/* A step's feeds, fetches and targets. Everything is borrowed for the length of the call. */
typedef struct {
  const MusterFeed *feeds;
  gsize n_feeds;
  const char *const *fetches; /* tensors such as "y:0"; each gives one result */
  gsize n_fetches;
  const char *const *targets; /* ops to run without fetching */
  gsize n_targets;
  GBytes *options;    /* (nullable) a serialised RunOptions, passed on unchanged */
  gint64 deadline_us; /* 0 is MUSTER_WAIT_FOREVER; a timeout in options may be earlier */
} MusterStep;

G_END_DECLS

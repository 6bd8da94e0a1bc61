// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/kernels/random/random.h"

G_BEGIN_DECLS

/* What candidate samplers share: they draw classes in [0, range), and compute the expected count of
 * each drawn and each true class. */

typedef struct {
  gint64 range;
  gint64 n_reachable; /* the number of classes that can be drawn */
  gint64 (*sample) (gconstpointer data, MusterWords *words);
  float (*probability) (gconstpointer data, gint64 value);
  gconstpointer data; /* (not owned) argument of the functions */
} MusterSampler;

/* The kernel of every sampler: attributes num_true, num_sampled and unique, input 0 the true
 * classes, three outputs. Checks the step's cancellation. */
gboolean muster_draw_candidates (MusterKernel *k, const MusterSampler *sampler, GError **error);

/* The signature of a sampler, and its attributes. */
#define MUSTER_SAMPLER                                                                             \
  "true_classes:int64 -> sampled_candidates:int64, true_expected_count:float, "                    \
  "sampled_expected_count:float"
#define MUSTER_SAMPLED "num_true num_sampled unique seed seed2"

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/saver.h"
#include "train/monitored/run_context.h"

G_BEGIN_DECLS

/* The value of a saver's metric, for its saves: that of the step before the save, since a tensor of
 * the training needs the step's feeds. */
typedef struct {
  char *tensor; /* (owned) (nullable) NULL: the graph has none of that name */
  guint at;     /* where it is fetched */
} MusterHookMetric;

/* Finds the saver's metric in the graph. */
void muster_hook_metric_find (MusterHookMetric *self, MusterSaver *saver, MusterScaffold *scaffold);
void muster_hook_metric_clear (MusterHookMetric *self);
void muster_hook_metric_fetch (MusterHookMetric *self, MusterRunContext *context);
/* Sets the saver's. INVALID_ARGUMENT if the tensor isn't a number. */
gboolean muster_hook_metric_take (const MusterHookMetric *self, MusterSaver *saver,
                                  MusterRunContext *context, GError **error);

G_END_DECLS

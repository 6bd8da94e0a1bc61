// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/run/types.h"
#include "graph/step.h"

G_BEGIN_DECLS

/* MusterRun executes one step: it processes a plan's nodes on its caller's thread
 * (docs/decisions/0013). When a kernel is suspended, nodes that don't depend on it still run; then
 * the thread waits until a kernel is resumed. The memory of a run (slots, kernel) is kept by the
 * plan for the next.
 *
 * Call new, execute and free on one thread; stop on any other in between. */

/* A run's feeds, in the plan's order: a step's feeds or, for a callable, tensors without names. */
typedef struct {
  const MusterFeed *named;   /* (nullable) */
  MusterTensor *const *bare; /* if named is NULL */
} MusterRunFeeds;

/* A run of plan, with memory from the plan's spares if available, else RESOURCE_EXHAUSTED over the
 * limit of memory. INVALID_ARGUMENT for a feed with
 * a wrong dtype, or a shape that doesn't fit its placeholder. feeds is NULL for a run in parts. */
MusterRun *muster_run_new (MusterPlan *plan, const MusterRunFeeds *feeds,
                           const MusterRunContext *context, GError **error);

/* Runs to the end, waiting while kernels are suspended. fetched is set to the plan's fetches
 * (transfer full), untouched on failure. *values_changed is TRUE if a variable has gained or lost
 * its value. */
gboolean muster_run_execute (MusterRun *self, MusterTensor **fetched, gboolean *values_changed,
                             GError **error);

/* A run that is fed and executed in parts (engine/run/partial.h): nodes wait for the feeds that
 * they need. feed sets feed i, with the errors of muster_run_new (). go_on runs as far as possible
 * and sets *values_changed like execute; after a failure, or muster_run_fail (), the run has ended.
 * fetch returns plan->fetches[i] (transfer full). */
MusterRun *muster_run_new_in_parts (MusterPlan *plan, const MusterRunContext *context,
                                    GError **error);
gboolean muster_run_feed (MusterRun *self, guint32 i, MusterTensor *tensor, GError **error);
gboolean muster_run_continue (MusterRun *self, gint64 deadline_us, GCancellable *cancellable,
                              MusterTrace *trace, gboolean *values_changed, GError **error);
gboolean muster_run_fetch (MusterRun *self, guint32 i, MusterTensor **fetched, GError **error);
void muster_run_fail (MusterRun *self, const GError *error);
gboolean muster_run_has_failed (MusterRun *self);

/* Stops a run: any thread, any time before it is freed. */
void muster_run_stop (MusterRun *self, MusterStop why);

/* Returns the memory to the plan. */
void muster_run_free (MusterRun *self);

G_END_DECLS

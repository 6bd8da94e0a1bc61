// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/run/types.h"
#include "graph/step.h"

G_BEGIN_DECLS

/* MusterRun is one step on its way: a plan being walked on its caller's thread
 * (docs/decisions/0013). When a kernel is suspended, nodes that don't depend on it still run; then
 * the thread waits until somebody resumes the kernel. The scratch of a run (slots, kernel) is kept
 * by the plan for the next.
 *
 * Life: new, execute, free, on one thread; stop from any other in between. */

/* What a run is fed, in the plan's order: a step's feeds or, for a callable, bare tensors. */
typedef struct {
  const MusterFeed *named;   /* (nullable) */
  MusterTensor *const *bare; /* where named is NULL */
} MusterRunFeeds;

/* A run of plan, its scratch taken from the plan's spares where there is one. INVALID_ARGUMENT for
 * a feed of a wrong dtype, or of a shape that its placeholder forbids. feeds is NULL for a run in
 * parts. */
MusterRun *muster_run_new (MusterPlan *plan, const MusterRunFeeds *feeds,
                           const MusterRunContext *context, GError **error);

/* Walks to the end, waiting on this thread while kernels are suspended; fetched gets the plan's
 * fetches (transfer full), untouched on failure. *values_changed says whether a variable went from
 * no value to a value or back. */
gboolean muster_run_execute (MusterRun *self, MusterTensor **fetched, gboolean *values_changed,
                             GError **error);

/* A run that is fed and walked in parts (engine/run/partial.h): until a feed has come, the nodes
 * that need it wait. feed puts feed i in place, with the errors of muster_run_new (). go_on walks
 * as far as it can and sees *values_changed as execute does; once it has failed, or fail has said
 * so, it is at its end. fetch gives what plan->fetches[i] names (transfer full).
 */
MusterRun *muster_run_new_in_parts (MusterPlan *plan, const MusterRunContext *context);
gboolean muster_run_feed (MusterRun *self, guint32 i, MusterTensor *tensor, GError **error);
gboolean muster_run_go_on (MusterRun *self, gint64 deadline_us, GCancellable *cancellable,
                           MusterTrace *trace, gboolean *values_changed, GError **error);
gboolean muster_run_fetch (MusterRun *self, guint32 i, MusterTensor **fetched, GError **error);
void muster_run_fail (MusterRun *self, const GError *error);
gboolean muster_run_has_failed (MusterRun *self);

/* Stops a run: any thread, at any time before it is freed. */
void muster_run_stop (MusterRun *self, MusterStop why);

/* Gives the scratch back to the plan. */
void muster_run_free (MusterRun *self);

G_END_DECLS

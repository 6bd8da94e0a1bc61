// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/run/types.h"
#include "master/session.h"

G_BEGIN_DECLS

/* MusterPartial is a step that runs in parts: each part feeds some of the plan's feeds, and fetches
 * what can be computed from those so far. A node runs once, in the part that completes its inputs.
 * Reference-counted; any thread, one part at a time: others wait. */

typedef struct _MusterPartial MusterPartial;

/* step is the one that plan was made for; its names are copied. context is borrowed until the
 * partial run is freed, except for what each part provides. RESOURCE_EXHAUSTED over the limit of
 * memory. */
MusterPartial *muster_partial_new (MusterPlan *plan, const MusterStep *step,
                                   const MusterRunContext *context, GError **error);
MusterPartial *muster_partial_ref (MusterPartial *self);
void muster_partial_unref (MusterPartial *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterPartial, muster_partial_unref)

/* Waits until no other part runs. Returns the run (borrowed), which other threads may stop, until
 * muster_partial_end (). NULL with an error at the deadline, or if the partial run has ended. */
MusterRun *muster_partial_begin (MusterPartial *self, gint64 deadline_us, GError **error);
/* TRUE if the partial run has ended and accepts no more parts: everything was fed and fetched, or a
 * node has failed. */
gboolean muster_partial_end (MusterPartial *self);

/* Runs a part, between begin and end. *values_changed as in muster_run_execute (). INVALID_ARGUMENT
 * for feeds and fetches that weren't set up, are repeated, or need other feeds first: nothing has
 * happened then. */
gboolean muster_partial_run (MusterPartial *self, const MusterStep *part, gint64 deadline_us,
                             GCancellable *cancellable, MusterTensor **fetched,
                             gboolean *values_changed, GError **error);

/* The nodes' durations, if the options of its first part requested them: the serialised RunMetadata
 * (transfer full), or NULL. For the last part. */
GBytes *muster_partial_metadata (MusterPartial *self, const char *device);

G_END_DECLS

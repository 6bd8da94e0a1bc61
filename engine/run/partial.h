// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/run/types.h"
#include "master/session.h"

G_BEGIN_DECLS

/* MusterPartial is a step that is run in parts: each part feeds some of what its plan is fed, and
 * fetches what can be computed from that. A node runs once, in the part that gives it the last of
 * what it needs. Counted; any thread, one part at a time: others wait for their turn. */

typedef struct _MusterPartial MusterPartial;

/* step: what plan was made for; its names are copied. context is borrowed but for what each part
 * brings itself: until the partial run is dropped. */
MusterPartial *muster_partial_new (MusterPlan *plan, const MusterStep *step,
                                   const MusterRunContext *context);
MusterPartial *muster_partial_ref (MusterPartial *self);
void muster_partial_unref (MusterPartial *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterPartial, muster_partial_unref)

/* Waits for the turn of a part: then the run (borrowed), to be stopped by others, until end is
 * called. NULL with an error at the deadline, or once the partial run is over. */
MusterRun *muster_partial_begin (MusterPartial *self, gint64 deadline_us, GError **error);
/* TRUE once the partial run is over: everything was fed and fetched, or a node has failed. Then it
 * takes no more parts. */
gboolean muster_partial_end (MusterPartial *self);

/* A part, between begin and end. *values_changed as in muster_run_execute (). INVALID_ARGUMENT for
 * feeds and fetches that weren't set up, come twice, or whose feeds are missing: nothing has
 * happened then. */
gboolean muster_partial_run (MusterPartial *self, const MusterStep *part, gint64 deadline_us,
                             GCancellable *cancellable, MusterTensor **fetched,
                             gboolean *values_changed, GError **error);

/* What its nodes took, if the options of its first part asked for that: the serialised RunMetadata
 * (transfer full), or NULL. For its last part. */
GBytes *muster_partial_metadata (MusterPartial *self, const char *device);

G_END_DECLS

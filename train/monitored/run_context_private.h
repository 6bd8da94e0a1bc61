// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/monitored/run_context.h"

G_BEGIN_DECLS

/* One run's merged fetches and feeds. Made once for a monitored session and used again for every
 * run, so that a run allocates nothing of its own. */

/* clock is borrowed. */
MusterRunContext *muster_run_context_new (const char *global_step, MusterClock *clock);
void muster_run_context_free (MusterRunContext *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterRunContext, muster_run_context_free)

/* The caller's step, to be run in session; cancellable is (nullable). */
void muster_run_context_begin (MusterRunContext *self, MusterSession *session,
                               const MusterStep *step, GCancellable *cancellable);
/* Whose before_run is next: what is fed from now on is that hook's. */
void muster_run_context_set_hook (MusterRunContext *self, GObject *hook);
/* Runs everything in one step, by deadline_us. INVALID_ARGUMENT where two feed the same tensor. */
gboolean muster_run_context_run (MusterRunContext *self, gint64 deadline_us, GError **error);
/* References to what the caller fetched (transfer full), for its array. */
void muster_run_context_hand_out (MusterRunContext *self, MusterTensor **fetched,
                                  GBytes **metadata);
gboolean muster_run_context_wants_stop (const MusterRunContext *self);
/* Drops what the run held. */
void muster_run_context_end (MusterRunContext *self);

/* A global step's value as a number; -1 where it is no integer scalar. */
gint64 muster_step_of (const MusterTensor *value);

G_END_DECLS

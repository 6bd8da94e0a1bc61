// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/monitored/run_context.h"

G_BEGIN_DECLS

/* The merged fetches and feeds of a run. Created once for a monitored session and reused, so that a
 * run allocates nothing. */

MusterRunContext *muster_run_context_new (const char *global_step, MusterClock *clock);

/* Starts with the caller's step, to be run in session; cancellable is (nullable). */
void muster_run_context_begin (MusterRunContext *self, MusterSession *session,
                               const MusterStep *step, GCancellable *cancellable);
/* Sets the hook whose before_run is next: it owns the following feeds. */
void muster_run_context_set_hook (MusterRunContext *self, GObject *hook);
/* Runs everything in one step, by deadline_us. INVALID_ARGUMENT if two hooks feed the same tensor.
 */
gboolean muster_run_context_run (MusterRunContext *self, gint64 deadline_us, GError **error);
/* Sets the caller's array to what the caller fetched (transfer full). */
void muster_run_context_hand_out (MusterRunContext *self, MusterTensor **fetched,
                                  GBytes **metadata);
gboolean muster_run_context_wants_stop (const MusterRunContext *self);
/* Called by muster_run_context_hold (), in every run from now on. */
typedef void (*MusterRunHoldFunc) (const char *why, gpointer user_data);
void muster_run_context_set_hold_func (MusterRunContext *self, MusterRunHoldFunc func,
                                       gpointer user_data);
/* For people: what a hook waits for before it lets the run begin. */
void muster_run_context_hold (MusterRunContext *self, const char *why);
/* Drops the run's references. */
void muster_run_context_end (MusterRunContext *self);

/* A global step's value; -1 if it isn't an integer scalar. */
gint64 muster_step_of (const MusterTensor *value);

G_END_DECLS

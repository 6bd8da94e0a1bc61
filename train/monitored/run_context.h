// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/session.h"
#include "train/monitored/scaffold.h"

G_BEGIN_DECLS

/* MusterRunContext is one run as hooks (train/monitored/hook.h) see it; theirs for the length of a
 * verb. */
typedef struct _MusterRunContext MusterRunContext;

/* What the caller asked for; borrowed. */
const MusterStep *muster_run_context_step (MusterRunContext *self);
/* The session below, which runs without hooks. */
MusterSession *muster_run_context_session (MusterRunContext *self);
/* When the run is to have ended, on the monitored session's clock, and what cancels it; borrowed
 * (nullable). What a hook waits for ends by them. */
gint64 muster_run_context_deadline_us (MusterRunContext *self);
GCancellable *muster_run_context_cancellable (MusterRunContext *self);
/* The run completes; then should_stop is TRUE. */
void muster_run_context_request_stop (MusterRunContext *self);

/* In before_run. fetch gives a number to ask for the value by, in after_run. A tensor that is asked
 * for several times is fetched once. Names are borrowed until after_run; feed references the
 * tensor. options (a serialised RunOptions) are joined with the caller's: the higher trace level,
 * the longer timeout and the larger thread pool count. */
guint muster_run_context_fetch (MusterRunContext *self, const char *tensor);
void muster_run_context_feed (MusterRunContext *self, const char *name, MusterTensor *value);
void muster_run_context_add_options (MusterRunContext *self, GBytes *options);

/* In after_run; borrowed. */
MusterTensor *muster_run_context_value (MusterRunContext *self, guint fetched);
/* A serialised RunMetadata, or NULL where none was asked for. */
GBytes *muster_run_context_metadata (MusterRunContext *self);
/* The global step beside the run: it may be the one before the run's own update. -1: the model has
 * none. */
gint64 muster_run_context_global_step (MusterRunContext *self);
/* The global step now, after the run's own update: the master is asked once a run, whoever wants to
 * know. -1 with an error. */
gint64 muster_run_context_step_now (MusterRunContext *self, GError **error);

/* Reads the model's global step, beside any run; -1 with an error. */
gint64 muster_read_global_step (MusterSession *session, MusterScaffold *scaffold,
                                gint64 deadline_us, GCancellable *cancellable, GError **error);

G_END_DECLS

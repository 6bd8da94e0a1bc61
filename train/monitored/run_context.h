// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/session.h"
#include "train/monitored/scaffold.h"

G_BEGIN_DECLS

/* MusterRunContext is one run, for hooks (train/monitored/hook.h). Valid during the call of a hook.
 */
typedef struct _MusterRunContext MusterRunContext;

/* The caller's step; borrowed. */
const MusterStep *muster_run_context_step (MusterRunContext *self);
/* The session, which runs without hooks. */
MusterSession *muster_run_context_session (MusterRunContext *self);
/* The run's deadline, on the monitored session's clock, and its cancellable; borrowed (nullable). A
 * hook's blocking calls must use both. */
gint64 muster_run_context_deadline_us (MusterRunContext *self);
GCancellable *muster_run_context_cancellable (MusterRunContext *self);
/* Requests a stop: the run completes, then should_stop is TRUE. */
void muster_run_context_request_stop (MusterRunContext *self);

/* In before_run. fetch returns an index for muster_run_context_value (); a tensor is fetched once,
 * however many hooks request it. Names are borrowed until after_run; feed references the tensor.
 * options (a serialised RunOptions) are merged with the caller's: the higher trace level, the
 * longer timeout and the larger thread pool count. */
guint muster_run_context_fetch (MusterRunContext *self, const char *tensor);
void muster_run_context_feed (MusterRunContext *self, const char *name, MusterTensor *value);
void muster_run_context_add_options (MusterRunContext *self, GBytes *options);

/* In after_run; borrowed. */
MusterTensor *muster_run_context_value (MusterRunContext *self, guint fetched);
/* A serialised RunMetadata, or NULL if none was requested. */
GBytes *muster_run_context_metadata (MusterRunContext *self);
/* The global step fetched in the run: it may be the value before the run's own update. -1: the
 * model has none. */
gint64 muster_run_context_global_step (MusterRunContext *self);
/* The global step after the run's own update. It is read from the master once in a run, however
 * often this is called. -1 with an error. */
gint64 muster_run_context_step_now (MusterRunContext *self, GError **error);

/* Reads the model's global step in a separate step; -1 with an error. */
gint64 muster_read_global_step (MusterSession *session, MusterScaffold *scaffold,
                                gint64 deadline_us, GCancellable *cancellable, GError **error);

G_END_DECLS

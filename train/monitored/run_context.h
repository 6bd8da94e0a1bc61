// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/session.h"
#include "train/monitored/scaffold.h"

G_BEGIN_DECLS

/**
 * MusterRunContext:
 *
 * One run, as its hooks see it ([class@Hook]): they add feeds and fetches before it and read the
 * values after it. Valid during the call of a hook: a monitored session uses the same object for
 * each run. Reference-counted, so that one that was kept is safe to use, but not meaningful.
 */
typedef struct _MusterRunContext MusterRunContext;

#define MUSTER_TYPE_RUN_CONTEXT (muster_run_context_get_type ())
GType muster_run_context_get_type (void);

/**
 * muster_run_context_ref:
 * @self: a run
 *
 * Adds a reference.
 *
 * Returns: (transfer full): @self
 */
MusterRunContext *muster_run_context_ref (MusterRunContext *self);

/**
 * muster_run_context_unref:
 * @self: (transfer full) (nullable): a run
 *
 * Drops a reference.
 */
void muster_run_context_unref (MusterRunContext *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterRunContext, muster_run_context_unref)

/**
 * muster_run_context_step: (skip)
 * @self: a run
 *
 * The caller's step.
 *
 * Returns: (transfer none) (nullable): the step; NULL outside a run
 */
const MusterStep *muster_run_context_step (MusterRunContext *self);

/**
 * muster_run_context_session:
 * @self: a run
 *
 * The session, which runs without hooks.
 *
 * Returns: (transfer none) (nullable): the session; NULL outside a run
 */
MusterSession *muster_run_context_session (MusterRunContext *self);

/**
 * muster_run_context_deadline_us:
 * @self: a run
 *
 * The run's deadline. A hook's blocking calls must use it and the cancellable.
 *
 * Returns: an instant in microseconds on the monitored session's clock, or %MUSTER_WAIT_FOREVER
 */
gint64 muster_run_context_deadline_us (MusterRunContext *self);

/**
 * muster_run_context_cancellable:
 * @self: a run
 *
 * The run's cancellable.
 *
 * Returns: (transfer none) (nullable): a cancellable
 */
GCancellable *muster_run_context_cancellable (MusterRunContext *self);

/**
 * muster_run_context_request_stop:
 * @self: a run
 *
 * Requests a stop: the run completes, then [method@MonitoredSession.should_stop] is TRUE.
 */
void muster_run_context_request_stop (MusterRunContext *self);

/**
 * muster_run_context_fetch:
 * @self: a run, in [vfunc@Hook.before_run]
 * @tensor: a tensor such as "loss:0"
 *
 * Fetches a tensor in this run. A tensor is fetched once, however many hooks request it.
 *
 * Returns: an index for [method@RunContext.value]
 */
guint muster_run_context_fetch (MusterRunContext *self, const char *tensor);

/**
 * muster_run_context_feed:
 * @self: a run, in [vfunc@Hook.before_run]
 * @name: a tensor such as "x:0"
 * @value: its value, which is referenced
 *
 * Feeds a tensor in this run. A run whose caller or another hook feeds the same one is
 * INVALID_ARGUMENT.
 */
void muster_run_context_feed (MusterRunContext *self, const char *name, MusterTensor *value);

/**
 * muster_run_context_add_options:
 * @self: a run, in [vfunc@Hook.before_run]
 * @options: a serialised `RunOptions`
 *
 * Adds options to this run. They are merged with the caller's: the higher trace level, the longer
 * timeout and the larger thread pool count.
 */
void muster_run_context_add_options (MusterRunContext *self, GBytes *options);

/**
 * muster_run_context_value:
 * @self: a run, in [vfunc@Hook.after_run]
 * @fetched: an index from [method@RunContext.fetch]
 *
 * A fetched value.
 *
 * Returns: (transfer none): the value, borrowed from the run
 */
MusterTensor *muster_run_context_value (MusterRunContext *self, guint fetched);

/**
 * muster_run_context_metadata:
 * @self: a run, in [vfunc@Hook.after_run]
 *
 * What the master says of the run, if options requested it.
 *
 * Returns: (transfer none) (nullable): a serialised `RunMetadata`
 */
GBytes *muster_run_context_metadata (MusterRunContext *self);

/**
 * muster_run_context_global_step:
 * @self: a run, in [vfunc@Hook.after_run]
 *
 * The global step fetched in the run: it may be the value before the run's own update.
 *
 * Returns: the step; -1: the model has none
 */
gint64 muster_run_context_global_step (MusterRunContext *self);

/**
 * muster_run_context_step_now:
 * @self: a run, in [vfunc@Hook.after_run]
 *
 * The global step after the run's own update. It is read from the master once in a run, however
 * often this is called.
 *
 * Returns: the step; -1 with an error
 */
gint64 muster_run_context_step_now (MusterRunContext *self, GError **error);

/**
 * muster_read_global_step:
 * @session: a session of the model
 * @scaffold: the model
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call
 *
 * Reads the model's global step in a step of its own. INVALID_ARGUMENT if the model has none.
 *
 * Returns: the step; -1 with an error
 */
gint64 muster_read_global_step (MusterSession *session, MusterScaffold *scaffold,
                                gint64 deadline_us, GCancellable *cancellable, GError **error);

G_END_DECLS

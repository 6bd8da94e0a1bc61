// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/session.h"

G_BEGIN_DECLS

/**
 * MusterStepBuilder:
 *
 * A step composed by name, one feed, fetch and target at a time: [struct@Step] for other languages,
 * which can't create its arrays. It can be run repeatedly; a new feed replaces the one with the
 * same name. Reference-counted; one thread at a time.
 */
typedef struct _MusterStepBuilder MusterStepBuilder;

#define MUSTER_TYPE_STEP_BUILDER (muster_step_builder_get_type ())
GType muster_step_builder_get_type (void);

/**
 * muster_step_builder_new:
 *
 * Creates a step that does nothing.
 *
 * Returns: (transfer full): a step
 */
MusterStepBuilder *muster_step_builder_new (void);

/**
 * muster_step_builder_ref: (skip)
 * @self: a step
 *
 * Adds a reference.
 *
 * Returns: @self
 */
MusterStepBuilder *muster_step_builder_ref (MusterStepBuilder *self);

/**
 * muster_step_builder_unref: (skip)
 * @self: (nullable): a step
 *
 * Drops a reference; the last one frees the step.
 */
void muster_step_builder_unref (MusterStepBuilder *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterStepBuilder, muster_step_builder_unref)

/**
 * muster_step_builder_feed:
 * @self: a step
 * @name: the tensor to feed: "x:0" or "x"
 * @value: its value, which is referenced
 *
 * Feeds a tensor. Replaces an earlier value.
 */
void muster_step_builder_feed (MusterStepBuilder *self, const char *name, MusterTensor *value);

/**
 * muster_step_builder_fetch:
 * @self: a step
 * @tensor: a tensor such as "loss:0"
 *
 * Fetches a tensor.
 *
 * Returns: its index in the result of [method@StepBuilder.run]
 */
guint muster_step_builder_fetch (MusterStepBuilder *self, const char *tensor);

/**
 * muster_step_builder_target:
 * @self: a step
 * @op: an op
 *
 * Runs an op without fetching it.
 */
void muster_step_builder_target (MusterStepBuilder *self, const char *op);

/**
 * muster_step_builder_set_options:
 * @self: a step
 * @options: (nullable): a serialised RunOptions, passed on unchanged
 *
 * Sets the options of the step's runs: a timeout, whether they are traced.
 */
void muster_step_builder_set_options (MusterStepBuilder *self, GBytes *options);

/**
 * muster_step_builder_step: (skip)
 * @self: a step
 *
 * The step, without a deadline. Borrowed until the builder changes.
 *
 * Returns: the step
 */
MusterStep muster_step_builder_step (MusterStepBuilder *self);

/**
 * muster_step_builder_run:
 * @self: a step
 * @session: the session that runs it
 * @timeout_us: microseconds, or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): cancels the call
 *
 * Runs the step, with a timeout instead of a deadline.
 *
 * Returns: (transfer container) (element-type MusterTensor): the fetched tensors, in the order of
 *   the calls of [method@StepBuilder.fetch]
 */
GPtrArray *muster_step_builder_run (MusterStepBuilder *self, MusterSession *session,
                                    gint64 timeout_us, GCancellable *cancellable, GError **error);

/**
 * muster_step_builder_run_with_metadata:
 * @self: a step
 * @session: the session that runs it
 * @timeout_us: microseconds, or %MUSTER_WAIT_FOREVER
 * @metadata: (out) (optional) (nullable) (transfer full): a serialised RunMetadata, if the options
 *   ask for one
 * @cancellable: (nullable): cancels the call
 *
 * Runs the step and returns how it went.
 *
 * Returns: (transfer container) (element-type MusterTensor): the fetched tensors, in the order of
 *   the calls of [method@StepBuilder.fetch]
 */
GPtrArray *muster_step_builder_run_with_metadata (MusterStepBuilder *self, MusterSession *session,
                                                  gint64 timeout_us, GBytes **metadata,
                                                  GCancellable *cancellable, GError **error);

/**
 * muster_step_builder_set_up_partial_run:
 * @self: a step
 * @session: the session that runs it
 * @deadline_us: the instant of g_get_monotonic_time () by which it returns; 0: now;
 *   %MUSTER_WAIT_FOREVER: no limit
 * @cancellable: (nullable): cancels the call
 *
 * Sets up a run in parts: a part feeds some of the step's feeds and fetches what can be computed
 * from the feeds so far. Every node runs once, the targets as soon as possible. The partial run
 * ends when everything was fed and fetched, or when a node fails. Of the feeds only the names
 * count. UNIMPLEMENTED if this kind of session doesn't support it.
 *
 * Returns: (transfer full): the handle of the partial run
 */
char *muster_step_builder_set_up_partial_run (MusterStepBuilder *self, MusterSession *session,
                                              gint64 deadline_us, GCancellable *cancellable,
                                              GError **error);

/**
 * muster_step_builder_run_part:
 * @self: a part of the step: some of its feeds and fetches
 * @session: the session that runs it
 * @partial_run: what [method@StepBuilder.set_up_partial_run] returned
 * @timeout_us: microseconds, or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): cancels the call
 *
 * Runs a part of a partial run.
 *
 * Returns: (transfer container) (element-type MusterTensor): the fetched tensors, in the order of
 *   the calls of [method@StepBuilder.fetch]
 */
GPtrArray *muster_step_builder_run_part (MusterStepBuilder *self, MusterSession *session,
                                         const char *partial_run, gint64 timeout_us,
                                         GCancellable *cancellable, GError **error);

/**
 * muster_step_builder_make_callable:
 * @self: a step
 * @session: the session that will run it
 * @deadline_us: the instant of g_get_monotonic_time () by which it returns; 0: now;
 *   %MUSTER_WAIT_FOREVER: no limit
 * @cancellable: (nullable): cancels the call
 *
 * Registers the step at the master: its feeds' names, fetches, targets and options.
 * [method@Session.release_callable] forgets it.
 *
 * Returns: its number, or 0 with an error
 */
gint64 muster_step_builder_make_callable (MusterStepBuilder *self, MusterSession *session,
                                          gint64 deadline_us, GCancellable *cancellable,
                                          GError **error);

/**
 * muster_step_builder_run_callable:
 * @self: a step
 * @session: the session that runs it
 * @callable: what [method@StepBuilder.make_callable] of this step returned
 * @timeout_us: microseconds, or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): cancels the call
 *
 * Runs the registered step with the values that are fed now.
 *
 * Returns: (transfer container) (element-type MusterTensor): the fetched tensors, in the order of
 *   the calls of [method@StepBuilder.fetch]
 */
GPtrArray *muster_step_builder_run_callable (MusterStepBuilder *self, MusterSession *session,
                                             gint64 callable, gint64 timeout_us,
                                             GCancellable *cancellable, GError **error);

G_END_DECLS

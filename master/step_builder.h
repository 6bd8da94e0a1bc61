// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/session.h"

G_BEGIN_DECLS

/**
 * MusterStepBuilder:
 *
 * A step composed by name, one feed, fetch and target at a time: #MusterStep for bindings, which
 * can't create its arrays. It can be run repeatedly; a new feed replaces the one with the same
 * name. Reference-counted; one thread at a time.
 */
typedef struct _MusterStepBuilder MusterStepBuilder;

#define MUSTER_TYPE_STEP_BUILDER (muster_step_builder_get_type ())
GType muster_step_builder_get_type (void);

MusterStepBuilder *muster_step_builder_new (void);
MusterStepBuilder *muster_step_builder_ref (MusterStepBuilder *self);
void muster_step_builder_unref (MusterStepBuilder *self); /* accepts NULL */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterStepBuilder, muster_step_builder_unref)

/* Feeds the tensor "x:0" or "x" with value (referenced). Replaces an earlier value. */
void muster_step_builder_feed (MusterStepBuilder *self, const char *name, MusterTensor *value);

/* Fetches a tensor such as "loss:0". Returns its index in the result of muster_step_builder_run ().
 */
guint muster_step_builder_fetch (MusterStepBuilder *self, const char *tensor);

/* Runs an op without fetching it. */
void muster_step_builder_target (MusterStepBuilder *self, const char *op);

/**
 * muster_step_builder_step: (skip)
 *
 * The step, without a deadline. Borrowed until the builder changes.
 */
MusterStep muster_step_builder_step (MusterStepBuilder *self);

/**
 * muster_step_builder_run:
 * @session: the session that runs it
 * @timeout_us: microseconds, or %MUSTER_WAIT_FOREVER
 *
 * muster_session_run () with a timeout instead of a deadline.
 *
 * Returns: (transfer container) (element-type MusterTensor): the fetched tensors, in the order of
 * the calls of muster_step_builder_fetch ()
 */
GPtrArray *muster_step_builder_run (MusterStepBuilder *self, MusterSession *session,
                                    gint64 timeout_us, GCancellable *cancellable, GError **error);

G_END_DECLS

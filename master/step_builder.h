// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/session.h"

G_BEGIN_DECLS

/**
 * MusterStepBuilder:
 *
 * A step put together by name, one feed, fetch and target at a time: the form of #MusterStep for
 * languages that can't make its arrays; C has no need of it. It is kept for step after step, whose
 * feeds replace those before. Counted; one thread at a time.
 */
typedef struct _MusterStepBuilder MusterStepBuilder;

#define MUSTER_TYPE_STEP_BUILDER (muster_step_builder_get_type ())
GType muster_step_builder_get_type (void);

MusterStepBuilder *muster_step_builder_new (void);
MusterStepBuilder *muster_step_builder_ref (MusterStepBuilder *self);
void muster_step_builder_unref (MusterStepBuilder *self); /* accepts NULL */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterStepBuilder, muster_step_builder_unref)

/* Feeds a tensor, "x:0" or "x", with value (referenced), in the place of what it was fed before. */
void muster_step_builder_feed (MusterStepBuilder *self, const char *name, MusterTensor *value);

/* Fetches a tensor, "loss:0". Returns where its value will stand among what run () gives. */
guint muster_step_builder_fetch (MusterStepBuilder *self, const char *tensor);

/* Runs an op for its effect. */
void muster_step_builder_target (MusterStepBuilder *self, const char *op);

/**
 * muster_step_builder_step: (skip)
 *
 * The step as it stands, without a deadline: borrowed, until the builder is changed.
 */
MusterStep muster_step_builder_step (MusterStepBuilder *self);

/**
 * muster_step_builder_run:
 * @session: where it runs
 * @timeout_us: microseconds, or %MUSTER_WAIT_FOREVER
 *
 * muster_session_run (), with a timeout in the place of a deadline.
 *
 * Returns: (transfer container) (element-type MusterTensor): what was fetched, in the order of the
 * calls of muster_step_builder_fetch ()
 */
GPtrArray *muster_step_builder_run (MusterStepBuilder *self, MusterSession *session,
                                    gint64 timeout_us, GCancellable *cancellable, GError **error);

G_END_DECLS

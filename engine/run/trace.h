// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/run/types.h"

G_BEGIN_DECLS

/* MusterTrace records the durations and outputs of a step's nodes, if its RunOptions request a
 * trace or the executed graph, as TensorFlow's RunMetadata. One thread at a time. */

/* NULL unless options (nullable), a serialised RunOptions, request one. */
MusterTrace *muster_trace_new (GBytes *options);
void muster_trace_free (MusterTrace *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterTrace, muster_trace_free)

/* Records the node at that position of a run's plan, which ran from started_us, on the machine's
 * monotonic clock, until now. */
void muster_trace_add (MusterTrace *self, const MusterRun *run, guint32 position,
                       gint64 started_us);

/* The serialised RunMetadata of a step with that plan, (transfer full). */
GBytes *muster_trace_end (MusterTrace *self, const MusterPlan *plan, const char *device);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/step.h"

G_BEGIN_DECLS

/* A copy that owns its names and references its tensors and options, for a step that is kept beyond
 * a call. Pointers that are NULL stay so, whatever their number: who runs it checks that. */
const MusterStep *muster_step_copy (const MusterStep *self);
void muster_step_free (const MusterStep *self);

/* The same for n feeds (nullable), and one more of them: returns the array, which has moved. */
const MusterFeed *muster_feeds_copy (const MusterFeed *feeds, gsize n);
void muster_feeds_free (const MusterFeed *feeds, gsize n);
const MusterFeed *muster_feeds_append (const MusterFeed *feeds, gsize *n, const char *name,
                                       MusterTensor *tensor);

/* The same for n tensors. */
MusterTensor **muster_tensors_copy (MusterTensor *const *tensors, gsize n);

/* n tensors that were fetched (transfer full), as other languages get them (transfer full)
 * (element-type MusterTensor). */
GPtrArray *muster_tensors_take (MusterTensor **tensors, gsize n);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/kernels/data_flow/queue_spec.h"
#include "engine/run/kernel.h"

G_BEGIN_DECLS

/* What a batch is cut into and made of. */

/* Takes from k's budget what all elements of a tuple of batches will have, before the first is cut:
 * all of them fit, or none. */
gboolean muster_queue_take_slices (MusterTensor *const *tuple, guint n_components, MusterKernel *k,
                                   GError **error);

/* Element index of a batch, copied: what is left of the batch needn't stay for it. */
MusterTensor *muster_queue_slice (const MusterTensor *batch, gint64 index, GError **error);

/* The outputs of k from n elements, one after the other with all their components; where the spec
 * leaves a size open, each is padded with zeros (or empty strings) to the largest. */
gboolean muster_queue_batch (const MusterQueueSpec *spec, MusterTensor *const *elements, gint64 n,
                             MusterKernel *k, GError **error);

G_END_DECLS

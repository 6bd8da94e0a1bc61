// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/kernels/data_flow/queue_spec.h"
#include "engine/run/kernel.h"

G_BEGIN_DECLS

/* Splits batches into elements and joins elements into batches. */

/* Charges k's budget for all elements of a tuple of batches. Call it before splitting the first, so
 * that a batch fails before it changes anything. */
gboolean muster_queue_take_slices (MusterTensor *const *tuple, guint n_components, MusterKernel *k,
                                   GError **error);

/* Copies element index of a batch, so that the batch can be freed. */
MusterTensor *muster_queue_slice (const MusterTensor *batch, gint64 index, GError **error);

/* Sets the outputs of k from n elements, stored one after the other with all of their components.
 * In dimensions without a size in the spec, elements are padded with zeros (or empty strings) to
 * the largest. */
gboolean muster_queue_batch (const MusterQueueSpec *spec, MusterTensor *const *elements, gint64 n,
                             MusterKernel *k, GError **error);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/kernels/data_flow/queue_spec.h"
#include "engine/run/kernel.h"

G_BEGIN_DECLS

/* Splits batches into elements and joins elements into batches. */

/* Takes the memory of all elements of a tuple of batches from k's budget, before the first is
 * split: all fit, or none. */
gboolean muster_queue_take_slices (MusterTensor *const *tuple, guint n_components, MusterKernel *k,
                                   GError **error);

/* Copies element index of a batch, so that the batch needn't be kept. */
MusterTensor *muster_queue_slice (const MusterTensor *batch, gint64 index, GError **error);

/* Sets the outputs of k from n elements, each with all of its components in turn. Where the spec
 * leaves a size open, elements are padded with zeros (or empty strings) to the largest. */
gboolean muster_queue_batch (const MusterQueueSpec *spec, MusterTensor *const *elements, gint64 n,
                             MusterKernel *k, GError **error);

G_END_DECLS

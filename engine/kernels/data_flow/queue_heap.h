// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

G_BEGIN_DECLS

/* A heap of elements, each of n_components tensors. The first is the priority, an int64 scalar; the
 * lowest is at the front. Elements with the same priority are in TensorFlow's order, that of the
 * C++ library's heaps. */

/* Moves the last of n elements, which was just added, into its place. */
void muster_queue_heap_push (MusterTensor **elements, gsize n, guint n_components);

/* Swaps the first and the last of n elements and restores the heap of the n - 1 first. */
void muster_queue_heap_pop (MusterTensor **elements, gsize n, guint n_components);

G_END_DECLS

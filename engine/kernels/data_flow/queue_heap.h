// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

G_BEGIN_DECLS

/* A heap of elements, each of n_components tensors, the first of which is its priority, an int64
 * scalar: the least is at the front. Elements of one priority come out in TensorFlow's order, which
 * is that of the C++ library's heaps. */

/* The last of n elements has been added: puts it in its place. */
void muster_queue_heap_push (MusterTensor **elements, gsize n, guint n_components);

/* Exchanges the first of n elements for the last and puts the n - 1 before that in order. */
void muster_queue_heap_pop (MusterTensor **elements, gsize n, guint n_components);

G_END_DECLS

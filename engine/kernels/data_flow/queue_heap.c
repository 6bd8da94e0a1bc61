// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/data_flow/queue_heap.h"

static gint64
priority (MusterTensor *const *elements, gsize i, guint n_components)
{
  return *(const gint64 *)muster_tensor_data (elements[i * n_components]);
}

static void
swap (MusterTensor **elements, gsize a, gsize b, guint n_components)
{
  for (guint c = 0; c < n_components; c++) {
    MusterTensor *tensor = elements[a * n_components + c];
    elements[a * n_components + c] = elements[b * n_components + c];
    elements[b * n_components + c] = tensor;
  }
}

static void
rise (MusterTensor **elements, gsize i, guint n_components)
{
  for (gsize parent; i > 0; i = parent) {
    parent = (i - 1) / 2;
    if (priority (elements, parent, n_components) <= priority (elements, i, n_components))
      return;
    swap (elements, parent, i, n_components);
  }
}

void
muster_queue_heap_push (MusterTensor **elements, gsize n, guint n_components)
{
  rise (elements, n - 1, n_components);
}

/* Like the C++ library, moves the new first element down to a leaf whatever its priority, then up.
 * This determines the order of elements with the same priority. */
void
muster_queue_heap_pop (MusterTensor **elements, gsize n, guint n_components)
{
  const gsize last = n - 1;
  gsize i = 0;
  swap (elements, 0, last, n_components);
  for (gsize child = 1; child < last; child = 2 * i + 1) {
    if (child + 1 < last &&
        priority (elements, child + 1, n_components) <= priority (elements, child, n_components))
      child++;
    swap (elements, i, child, n_components);
    i = child;
  }
  rise (elements, i, n_components);
}

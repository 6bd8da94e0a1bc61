// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/kernels/common/dispatch.h"

G_BEGIN_DECLS

/* Output 0: the slices of params along axis at indices, with the first `batch` dimensions of both
 * in common. */
gboolean muster_gather (MusterKernel *k, MusterTensor *params, MusterTensor *indices, int axis,
                        int batch, GError **error);

/* The same after checking batch, which may be negative and counts the dimensions of indices. */
gboolean muster_gather_batched (MusterKernel *k, MusterTensor *params, MusterTensor *indices,
                                int axis, gint64 batch, GError **error);

/* "indices[3] = 7 is not in [0, 5)". */
gboolean muster_check_index (gint64 index, gint64 limit, gint64 position, GError **error);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/budget_private.h"
#include "graph/tensor.h"

G_BEGIN_DECLS

/* Tensors (transfer full) whose elements' bytes are taken from a budget (nullable). NULL with
 * RESOURCE_EXHAUSTED if it or the memory doesn't suffice, with INVALID_ARGUMENT for a bad shape. */

MusterTensor *muster_tensor_try_new_within (MusterBudget *budget, MusterDType dtype, int n_dims,
                                            const gint64 *dims, GError **error);

/* The elements, one for each, are copied. */
MusterTensor *muster_tensor_try_new_strings (MusterBudget *budget, int n_dims, const gint64 *dims,
                                             const MusterString *strings, GError **error);

G_END_DECLS

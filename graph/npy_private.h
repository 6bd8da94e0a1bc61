// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

G_BEGIN_DECLS

/* NumPy's strings, whose elements have one width and are filled up with zeros: "|S5" has bytes,
 * "<U5" text of 5 characters. */
typedef struct {
  gsize width; /* in bytes; at least 1 */
  gboolean is_text;
} MusterNpyStrings;

/* The tensor of such elements, without the zeros; text becomes UTF-8, as in TensorFlow.
 * INVALID_ARGUMENT if the shape doesn't fit their bytes, or for what isn't Unicode. */
MusterTensor *muster_npy_read_strings (const MusterNpyStrings *type, int n_dims, const gint64 *dims,
                                       GBytes *elements, GError **error);

G_END_DECLS

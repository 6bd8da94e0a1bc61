// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

G_BEGIN_DECLS

/**
 * muster_npy_load:
 * @path: a file
 *
 * Reads a NumPy array file (.npy, format versions 1 to 3): bool, integers, half, float, double,
 * complex and strings ('S', and 'U', which becomes UTF-8), in C order and little-endian. Other
 * files are INVALID_ARGUMENT, which names what was found; a file that can't be read is
 * `G_FILE_ERROR`. A file above 256 MiB is mapped; nobody may shorten that one while the array
 * lives.
 *
 * Returns: (transfer full): the array
 */
MusterTensor *muster_npy_load (const char *path, GError **error);

/**
 * muster_npy_read:
 * @bytes: a file's contents
 *
 * muster_npy_load () from bytes.
 *
 * Returns: (transfer full): the array
 */
MusterTensor *muster_npy_read (GBytes *bytes, GError **error);

/**
 * muster_npy_header:
 * @dtype: a type of [func@npy_load]
 * @n_dims: the number of dimensions
 * @dims: (array length=n_dims): their sizes
 * @error: return location for an error
 *
 * What a NumPy array file has before the elements, which follow in C order, little-endian.
 * `UNIMPLEMENTED` for a type that NumPy doesn't have: strings and bfloat16.
 *
 * Returns: (transfer full): the file's beginning
 */
GBytes *muster_npy_header (MusterDType dtype, int n_dims, const gint64 *dims, GError **error);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

G_BEGIN_DECLS

/**
 * muster_npy_load:
 * @path: a file
 *
 * Reads a NumPy array file (.npy, format versions 1 to 3): bool, integers, half, float, double and
 * complex, in C order and little-endian. Other files are INVALID_ARGUMENT, which names what was
 * found; a file that can't be read is `G_FILE_ERROR`. The elements are a view of the mapped file if
 * they are aligned.
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

G_END_DECLS

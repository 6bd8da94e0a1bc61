// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

/* Finds TensorFlow's library and muster's helper on this machine. */

/* TensorFlow's library with the C API, from the Python package or TensorFlow's tarball. path
 * (nullable) is the file, or a directory: a virtual environment, the package, or the library's;
 * "~/" at the start is the home directory. NULL: searches $VIRTUAL_ENV, $CONDA_PREFIX, the packages
 * of the python3 on the PATH, /usr/local/lib and /usr/lib. (transfer full); NOT_FOUND lists the
 * searched places and how to install it. Takes a few milliseconds; runs python3 for at most five
 * seconds. */
char *muster_runtime_find_library (const char *path, GError **error);

/* The program that loads the library, as built or installed with this code;
 * $MUSTER_TENSORFLOW_HELPER overrides it. (transfer full); NOT_FOUND lists the searched places. */
char *muster_runtime_find_helper (GError **error);

G_END_DECLS

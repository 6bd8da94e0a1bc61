// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

/* Where what it takes to run TensorFlow lies on this machine. */

/* TensorFlow's library with the C API, as it is inside the Python package or in TensorFlow's own
 * tarball. path (nullable) is the file, or a folder: a virtual environment, the package, or the
 * library's own; "~/" at its start is the home folder. NULL: looks for it by itself, in
 * $VIRTUAL_ENV, $CONDA_PREFIX, among the packages of the python3 on the PATH, and in /usr/local/lib
 * and /usr/lib. (transfer full); NOT_FOUND says where was looked and how to get it. Takes some
 * milliseconds; python3 is run for it, at most five seconds. */
char *muster_runtime_find_library (const char *path, GError **error);

/* The program that loads it, as it was installed or built with this code; $MUSTER_TENSORFLOW_HELPER
 * names another. (transfer full); NOT_FOUND says where was looked. */
char *muster_runtime_find_helper (GError **error);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* TensorFlow opens files itself. With data directories, the kernel confines this process to them
 * (Landlock): elsewhere it may only read programs, libraries and what they need of the system. */

/* For this thread, and all that it starts: call it before any other thread exists. library is
 * TensorFlow's. False with the cause in text. */
bool muster_confine (char *const *directories, const char *library, char *text, size_t n_text);

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* TensorFlow's in-process server, through the C API of a library loaded at run time. */

/* Loads the library, calls loaded, and starts a server of one task, "/job:localhost/task:0", on
 * port. True: it serves as long as this process exists, and version (n_text bytes) is TensorFlow's.
 * False: version is the cause, and *code the status code. */
bool muster_server_in_process (const char *library, uint16_t port, void (*loaded) (void),
                               char *version, size_t n_text, int *code);

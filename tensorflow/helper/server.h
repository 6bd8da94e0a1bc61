// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* TensorFlow's in-process server, through the C API of a library loaded at run time. */

/* Loads the library, calls loaded, and starts the server that a ServerDef of n bytes defines. True:
 * it serves as long as this process exists, and version (n_text bytes) is TensorFlow's. False:
 * version is the cause, and *code the status code. */
bool muster_server_in_process (const char *library, const void *definition, size_t n,
                               void (*loaded) (void), char *version, size_t n_text, int *code);

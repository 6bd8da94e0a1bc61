// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

/* Parses an amount of memory: "8GiB" and "8G" (powers of 1024), "8GB" (of 1000), "8000000" bytes,
 * or "80%" of total. INVALID_ARGUMENT for anything else, and for less than a byte. */
gboolean muster_cli_memory_size (const char *text, guint64 total, guint64 *n_bytes, GError **error);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

/* Longer lines are truncated. */
#define MUSTER_RUNTIME_MAX_LINE 8192

/* Reads one line from a pipe or socket, as valid UTF-8 without the line end; (transfer full).
 * UNAVAILABLE if the other end closes first, DEADLINE_EXCEEDED, or G_IO_ERROR_CANCELLED. */
char *muster_runtime_read_line (int fd, gint64 deadline_us, GCancellable *cancellable,
                                GError **error);

G_END_DECLS

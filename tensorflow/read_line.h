// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

/* A longer line is cut there. */
#define MUSTER_RUNTIME_MAX_LINE 8192

/* What another process says in one line on a pipe or socket, as valid UTF-8 and without its end;
 * (transfer full). UNAVAILABLE when it ends before, DEADLINE_EXCEEDED, or G_IO_ERROR_CANCELLED. */
char *muster_runtime_read_line (int fd, gint64 deadline_us, GCancellable *cancellable,
                                GError **error);

/* Waits until the other end is closed, whatever it may say; FALSE: cancelled before. */
gboolean muster_runtime_wait_closed (int fd, GCancellable *cancellable);

G_END_DECLS

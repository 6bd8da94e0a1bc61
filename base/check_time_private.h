// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/error.h"

G_BEGIN_DECLS

/* Checks whether a call may begin or continue. FALSE with G_IO_ERROR_CANCELLED, with
 * DEADLINE_EXCEEDED from deadline_us on (0 has always passed), or with INVALID_ARGUMENT for a
 * duration in its place (muster_deadline_check ()). The error's text begins with what: "Saving the
 * backup in 'DIR'". */
gboolean muster_check_time (const char *what, gint64 deadline_us, GCancellable *cancellable,
                            GError **error);

G_END_DECLS

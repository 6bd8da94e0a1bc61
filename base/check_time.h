// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/error.h"

G_BEGIN_DECLS

/* Whether a call has time to begin, or to go on: FALSE with G_IO_ERROR_CANCELLED, or
 * DEADLINE_EXCEEDED from deadline_us on (0 has always passed); INVALID_ARGUMENT for a duration in
 * its place (muster_deadline_check ()). what begins its text: "Saving the backup in 'DIR'". */
gboolean muster_check_time (const char *what, gint64 deadline_us, GCancellable *cancellable,
                            GError **error);

G_END_DECLS

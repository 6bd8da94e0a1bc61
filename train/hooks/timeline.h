// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

/* What a traced run took, as Chrome's trace events: one process for each device, one row for each
 * thread, one box for each node. */

/* metadata is a serialised RunMetadata; JSON, (transfer full). NULL without an error: it holds no
 * step statistics. INVALID_ARGUMENT: it is malformed. */
char *muster_timeline_of (GBytes *metadata, GError **error);

G_END_DECLS

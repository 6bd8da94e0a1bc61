// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

/* Converts a traced run to Chrome's trace events: a process for each device, a row for each thread,
 * a box for each node. */

/* metadata is a serialised RunMetadata. Returns JSON (transfer full). NULL without an error if it
 * has no step statistics; INVALID_ARGUMENT if it is malformed. */
char *muster_timeline_of (GBytes *metadata, GError **error);

G_END_DECLS

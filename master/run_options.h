// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

G_BEGIN_DECLS

/* What a master looks at in a step's RunOptions, serialised and (nullable): its timeout. Any
 * thread. */

enum { MUSTER_RUN_OPTIONS_TIMEOUT_IN_MS = 2 };

/* As a duration; 0: none. */
gint64 muster_run_options_timeout_us (GBytes *options);

/* The earlier of deadline_us (0 counts as MUSTER_WAIT_FOREVER) and the timeout in options, which
 * begins now. On muster_system_clock (). */
gint64 muster_run_options_deadline_us (GBytes *options, gint64 deadline_us);

G_END_DECLS

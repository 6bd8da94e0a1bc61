// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

G_BEGIN_DECLS

/* Reads the timeout in a step's RunOptions (serialised, nullable), the only field that masters use.
 * Any thread. */

enum { MUSTER_RUN_OPTIONS_TIMEOUT_IN_MS = 2 };

/* As a duration; 0: none. */
gint64 muster_run_options_timeout_us (GBytes *options);

/* The earlier of deadline_us (0 is MUSTER_WAIT_FOREVER) and the options' timeout, counted from now,
 * on muster_system_clock (). */
gint64 muster_run_options_deadline_us (GBytes *options, gint64 deadline_us);

G_END_DECLS

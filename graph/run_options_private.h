// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

G_BEGIN_DECLS

/* A step's RunOptions, serialised and (nullable): the fields that muster reads, and its timeout.
 * Any thread. */

enum {
  MUSTER_RUN_OPTIONS_TRACE_LEVEL = 1,
  MUSTER_RUN_OPTIONS_TIMEOUT_IN_MS = 2,
  MUSTER_RUN_OPTIONS_INTER_OP_THREAD_POOL = 3,
  MUSTER_RUN_OPTIONS_OUTPUT_PARTITION_GRAPHS = 5,
};

/* The timeout as a duration; 0: none. FALSE for options that are malformed. */
gboolean muster_run_options_read (GBytes *options, gint64 *timeout_us);

/* Makes *deadline_us the earlier of itself and the timeout in options, which begins now, on
 * muster_system_clock (). INVALID_ARGUMENT for options that are malformed. */
gboolean muster_run_options_bound (GBytes *options, gint64 *deadline_us, GError **error);

G_END_DECLS

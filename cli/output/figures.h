// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Formats amounts and rates for messages. All return (transfer full). */

/* "5,210 steps/s", "0.25 steps/s" */
char *muster_figure_steps_rate (double per_second);
/* "4.2 GB in 1.4 s (3.0 GB/s)", the size of what there is now and the rate of what was read or
 * written for it; below 10 ms without the rate. */
char *muster_figure_transfer (guint64 bytes, guint64 moved, gint64 took_us);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Amounts and rates, in the same words wherever a person reads them. All are (transfer full). */

/* "5,210 steps/s", "0.25 steps/s" */
char *muster_figure_steps_rate (double per_second);
/* "4.2 GB in 1.4 s (3.0 GB/s)"; what took less than 10 ms has no rate. */
char *muster_figure_transfer (guint64 bytes, gint64 took_us);

G_END_DECLS

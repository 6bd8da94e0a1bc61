// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/goodput.h"

G_BEGIN_DECLS

/* How often to save, so that the time lost to saves and to steps trained again is least. A save
 * that holds training for C, and a mean time between failures of M, give Young's (1974) interval,
 * sqrt (2 C M), with Daly's (2006) terms for a C that isn't small against M:
 *
 *   sqrt (2 C M) (1 + sqrt (C / 2M) / 3 + C / 18M) - C    if C < 2M, else M
 *
 * The interval is longer if saves would take more than their share of the time, if they would be
 * written for more than half of it, and at least a second. */

typedef struct {
  gint64 blocked_us; /* C: how long a save holds training */
  gint64 took_us;    /* until it is durable */
  gint64 mtbf_us;    /* M */
  double share;      /* of the time that saves may hold training: above 0, below 1 */
} MusterSaveCost;

gint64 muster_save_interval_us (const MusterSaveCost *cost);

/* The mean time between failures of a job: its time so far without what it was down, divided by its
 * failures. Before the first: that time, but at least an hour. */
gint64 muster_goodput_mtbf_us (const MusterGoodput *goodput);

G_END_DECLS

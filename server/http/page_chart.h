// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/goodput.h"
#include "server/core/step_history.h"

G_BEGIN_DECLS

/* Drawings of the page, as SVG. Each has a label for those who can't see it. */

/* Steps per second over the last hour; now: those of the last seconds, which the page shows. */
void muster_chart_rate (GString *out, const MusterStepPeriod *periods, double now);
/* The duration of steps: median and 99th percentile, over the last hour. */
void muster_chart_latency (GString *out, const MusterStepPeriod *periods);
/* A bar of what a job's time was spent on. */
void muster_chart_goodput (GString *out, const MusterGoodput *goodput);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "server/core/histogram.h"

G_BEGIN_DECLS

/* Writing metrics as text for Prometheus. */

#define MUSTER_METRICS_SECONDS(us) ((double)(us) / (double)MUSTER_SECOND)

typedef struct {
  GString *text;
  gboolean open;    /* OpenMetrics, rather than the older format */
  const char *name; /* of the current family */
} MusterMetrics;

typedef enum {
  MUSTER_METRIC_GAUGE,
  MUSTER_METRIC_COUNTER,
  MUSTER_METRIC_SUMMARY,
  MUSTER_METRIC_HISTOGRAM
} MusterMetricKind;

/* Begins a metric family; unit is "" or the suffix of its name. */
void muster_metrics_family (MusterMetrics *self, MusterMetricKind kind, const char *name,
                            const char *unit, const char *help);

/* Writes a sample of the current family; label (nullable) and its value. */
void muster_metrics_sample (MusterMetrics *self, const char *suffix, const char *label,
                            const char *label_value, double value);
/* The same of a model, with another label. */
void muster_metrics_sample_of (MusterMetrics *self, const char *suffix, const char *model,
                               const char *label, const char *label_value, double value);

/* A family and its only sample. */
void muster_metrics_gauge (MusterMetrics *self, const char *name, const char *unit,
                           const char *help, double value);
void muster_metrics_counter (MusterMetrics *self, const char *name, const char *help, double value);

/* A histogram of durations. */
void muster_metrics_histogram (MusterMetrics *self, const char *name, const char *help,
                               MusterHistogram *histogram);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#include "server/http/metrics_text.h"

void
muster_metrics_family (MusterMetrics *self, MusterMetricKind kind, const char *name,
                       const char *unit, const char *help)
{
  static const char *const kinds[] = {"gauge", "counter", "summary", "histogram"};
  const char *suffix = kind == MUSTER_METRIC_COUNTER && !self->open ? "_total" : "";
  self->name = name;
  g_string_append_printf (self->text, "# TYPE %s%s %s\n", name, suffix, kinds[kind]);
  if (*unit != '\0')
    g_string_append_printf (self->text, "# UNIT %s%s %s\n", name, suffix, unit);
  g_string_append_printf (self->text, "# HELP %s%s %s\n", name, suffix, help);
}

/* Names have only printable characters (ready/chief_registry_private.h), so there is no line break
 * to escape. */
static void
append_escaped (GString *text, const char *value)
{
  for (; *value != '\0'; value++) {
    if (*value == '\\' || *value == '"')
      g_string_append_c (text, '\\');
    g_string_append_c (text, *value);
  }
}

static void
append_label (GString *text, const char *before, const char *label, const char *value)
{
  g_string_append_printf (text, "%s%s=\"", before, label);
  append_escaped (text, value);
  g_string_append_c (text, '"');
}

static void
append_number (GString *text, double value)
{
  char number[G_ASCII_DTOSTR_BUF_SIZE];
  g_string_append_printf (text, " %s\n", g_ascii_formatd (number, sizeof number, "%.16g", value));
}

void
muster_metrics_sample (MusterMetrics *self, const char *suffix, const char *label,
                       const char *label_value, double value)
{
  g_string_append_printf (self->text, "%s%s", self->name, suffix);
  if (label != NULL) {
    append_label (self->text, "{", label, label_value);
    g_string_append_c (self->text, '}');
  }
  append_number (self->text, value);
}

void
muster_metrics_sample_of (MusterMetrics *self, const char *suffix, const char *model,
                          const char *label, const char *label_value, double value)
{
  g_string_append_printf (self->text, "%s%s", self->name, suffix);
  append_label (self->text, "{", "model", model);
  append_label (self->text, ",", label, label_value);
  g_string_append_c (self->text, '}');
  append_number (self->text, value);
}

void
muster_metrics_gauge (MusterMetrics *self, const char *name, const char *unit, const char *help,
                      double value)
{
  muster_metrics_family (self, MUSTER_METRIC_GAUGE, name, unit, help);
  muster_metrics_sample (self, "", NULL, NULL, value);
}

void
muster_metrics_counter (MusterMetrics *self, const char *name, const char *help, double value)
{
  muster_metrics_family (self, MUSTER_METRIC_COUNTER, name, "", help);
  muster_metrics_sample (self, "_total", NULL, NULL, value);
}

void
muster_metrics_histogram (MusterMetrics *self, const char *name, const char *help,
                          MusterHistogram *histogram)
{
  MusterHistogram now;
  guint64 n = 0;
  muster_histogram_copy (histogram, &now);
  muster_metrics_family (self, MUSTER_METRIC_HISTOGRAM, name, "seconds", help);
  for (guint i = 0; i < MUSTER_N_BUCKETS - 1; i++) {
    char bound[G_ASCII_DTOSTR_BUF_SIZE];
    n += now.counts[i];
    if (muster_histogram_is_shown (i))
      muster_metrics_sample (
          self, "_bucket", "le",
          g_ascii_formatd (bound, sizeof bound, "%.10g",
                           MUSTER_METRICS_SECONDS (muster_histogram_bound_us (i))),
          (double)n);
  }
  n += now.counts[MUSTER_N_BUCKETS - 1];
  muster_metrics_sample (self, "_bucket", "le", "+Inf", (double)n);
  muster_metrics_sample (self, "_sum", NULL, NULL, MUSTER_METRICS_SECONDS (now.total_us));
  muster_metrics_sample (self, "_count", NULL, NULL, (double)n);
}

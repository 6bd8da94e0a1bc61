// SPDX-License-Identifier: Apache-2.0
#include "server/http/page_chart.h"

#include "server/http/html.h"

#define WIDTH  600.0
#define HEIGHT 100.0
#define DASH   4.0
#define X(i)   ((double)(i)*WIDTH / (MUSTER_STEP_PERIODS - 1))
#define BEGIN_CHART                                                                                \
  "<svg viewBox=\"0 -2 600 104\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"%s\">"
#define BASE_LINE "<path class=\"base\" d=\"M0 100H600\"/>"

/* Prints numbers with a point in every locale. */
static void
append_point (GString *out, const char *command, double x, double y)
{
  char xs[G_ASCII_DTOSTR_BUF_SIZE], ys[G_ASCII_DTOSTR_BUF_SIZE];
  g_string_append_printf (out, "%s%s %s", command, g_ascii_formatd (xs, sizeof xs, "%.1f", x),
                          g_ascii_formatd (ys, sizeof ys, "%.1f", y));
}

static double
rate_of (const MusterStepPeriod *period)
{
  return (double)period->n_steps * MUSTER_SECOND / (double)period->length_us;
}

static double
median_of (const MusterStepPeriod *period)
{
  return (double)period->median_us;
}

static double
p99_of (const MusterStepPeriod *period)
{
  return (double)period->p99_us;
}

typedef double (*ValueOf) (const MusterStepPeriod *period);

static double
highest (const MusterStepPeriod *periods, ValueOf value)
{
  double most = 0;
  for (guint i = 0; i < MUSTER_STEP_PERIODS; i++)
    most = MAX (most, value (&periods[i]));
  return most;
}

/* Draws a line through all values, with gaps where there were no steps. */
static void
append_line (GString *out, const char *class_name, const MusterStepPeriod *periods, ValueOf value,
             double most, gboolean has_gaps)
{
  gboolean is_down = FALSE;
  g_string_append_printf (out, "<path class=\"%s\" vector-effect=\"non-scaling-stroke\" d=\"",
                          class_name);
  for (guint i = 0; i < MUSTER_STEP_PERIODS; i++) {
    if (has_gaps && periods[i].n_steps == 0) {
      is_down = FALSE;
      continue;
    }
    double y = HEIGHT - value (&periods[i]) * HEIGHT / most;
    if (!is_down && has_gaps) /* a single period is a dash; the last one ends at the chart's end */
      append_point (out, "M", X (i) - DASH, y);
    append_point (out, is_down || has_gaps ? "L" : "M", X (i), y);
    is_down = TRUE;
  }
  g_string_append (out, "\"/>");
}

static void
append_area (GString *out, const MusterStepPeriod *periods, ValueOf value, double most)
{
  g_string_append (out, "<path class=\"area\" d=\"M0 100");
  for (guint i = 0; i < MUSTER_STEP_PERIODS; i++)
    append_point (out, "L", X (i), HEIGHT - value (&periods[i]) * HEIGHT / most);
  g_string_append (out, "L600 100Z\"/>");
}

static void
end_chart (GString *out)
{
  g_string_append (out, "</svg><div class=\"scale\"><span>60 min ago</span><span>now</span></div>");
}

static void
put_empty_chart (GString *out)
{
  muster_html_put (out, BEGIN_CHART, "no steps in the last hour");
  g_string_append (out, BASE_LINE);
  end_chart (out);
}

void
muster_chart_rate (GString *out, const MusterStepPeriod *periods, double now)
{
  double most = MAX (highest (periods, rate_of), now);
  g_autofree char *text = muster_html_number (most);
  g_autofree char *label =
      g_strdup_printf ("steps per second over the last hour, at most %s", text);
  if (most <= 0) {
    put_empty_chart (out);
    return;
  }
  muster_html_put (out, "<div class=\"scale\"><span>max %s steps/s</span></div>", text);
  muster_html_put (out, BEGIN_CHART, label);
  g_string_append (out, BASE_LINE);
  append_area (out, periods, rate_of, most);
  append_line (out, "first", periods, rate_of, most, FALSE);
  end_chart (out);
}

void
muster_chart_latency (GString *out, const MusterStepPeriod *periods)
{
  double most = highest (periods, p99_of);
  g_autofree char *text = muster_format_duration ((gint64)most);
  g_autofree char *label =
      g_strdup_printf ("duration of steps over the last hour; 99th percentile at most %s", text);
  if (most <= 0) {
    put_empty_chart (out);
    return;
  }
  muster_html_put (out,
                   "<div class=\"scale\"><span>max %s</span><span><span class=\"key1\">p50</span> "
                   "<span class=\"key2\">p99</span></span></div>",
                   text);
  muster_html_put (out, BEGIN_CHART, label);
  g_string_append (out, BASE_LINE);
  append_line (out, "second", periods, p99_of, most, TRUE);
  append_line (out, "first", periods, median_of, most, TRUE);
  end_chart (out);
}

void
muster_chart_goodput (GString *out, const MusterGoodput *goodput)
{
  double total_us = (double)muster_goodput_total_us (goodput), at = 0;
  g_autofree char *label = muster_goodput_text (goodput);
  if (total_us <= 0)
    return;
  muster_html_put (out,
                   "<svg class=\"bar\" viewBox=\"0 0 600 10\" preserveAspectRatio=\"none\" "
                   "role=\"img\" aria-label=\"%s\">",
                   label);
  for (guint use = 0; use < MUSTER_N_TIMES; use++) {
    char x[G_ASCII_DTOSTR_BUF_SIZE], width[G_ASCII_DTOSTR_BUF_SIZE];
    double wide = WIDTH * (double)MAX (goodput->spent_us[use], 0) / total_us;
    g_string_append_printf (
        out, "<rect class=\"%s\" x=\"%s\" width=\"%s\" height=\"10\"><title>%s</title></rect>",
        muster_time_use_name ((MusterTimeUse)use), g_ascii_formatd (x, sizeof x, "%.1f", at),
        g_ascii_formatd (width, sizeof width, "%.1f", wide),
        muster_time_use_name ((MusterTimeUse)use));
    at += wide;
  }
  g_string_append (out, "</svg>");
}

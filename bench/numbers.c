// SPDX-License-Identifier: Apache-2.0
#include "bench/bench.h"

#include <stdio.h>
#include <stdlib.h>

double
bench_now_s (void)
{
  return (double)muster_clock_now_us (muster_system_clock ()) / (double)MUSTER_SECOND;
}

double
bench_wall_s (void)
{
  return (double)g_get_real_time () / 1e6;
}

void
bench_sleep_s (double seconds)
{
  MusterClock *clock = muster_system_clock ();
  muster_clock_wait_until (
      clock, muster_clock_now_us (clock) + (gint64)(seconds * (double)MUSTER_SECOND), NULL, NULL);
}

guint
bench_number_of (const char *variable, guint otherwise)
{
  const char *value = g_getenv (variable);
  return value != NULL && *value != '\0' ? (guint)strtoul (value, NULL, 10) : otherwise;
}

static int
compare (gconstpointer a, gconstpointer b)
{
  double difference = *(const double *)a - *(const double *)b;
  return (difference > 0) - (difference < 0);
}

double
bench_median (GArray *values)
{
  g_array_sort (values, compare);
  return values->len > 0 ? g_array_index (values, double, values->len / 2) : 0;
}

static char *
in_other_units (double value, BenchUnit unit)
{
  switch (unit) {
  case BENCH_COUNT:
    return g_strdup_printf ("%.0f", value);
  case BENCH_SHARE:
    return g_strdup_printf ("%.1f %%", value * 100);
  default:
    return value < 1e6 ? g_strdup_printf ("%.1f KB", value / 1e3)
                       : g_strdup_printf ("%.1f MB", value / 1e6);
  }
}

/* Three digits are what a benchmark knows. */
static char *
in_units (double value, BenchUnit unit)
{
  if (unit == BENCH_SHARE)
    return in_other_units (value, unit); /* none of it is an answer */
  if (value == 0)
    return g_strdup ("-");
  if (unit != BENCH_SECONDS)
    return in_other_units (value, unit);
  if (value < 1e-3)
    return g_strdup_printf ("%.3g µs", value * 1e6);
  if (value < 1)
    return g_strdup_printf ("%.3g ms", value * 1e3);
  return g_strdup_printf ("%.3g s", value);
}

/* Pads by what is seen: "µ" is two bytes. */
static void
print_cell (const char *text, int width)
{
  int seen = (int)g_utf8_strlen (text, -1);
  printf ("%*s%s", MAX (width - seen, 0), "", text);
}

void
bench_head (void)
{
  printf ("%-58s", "");
  print_cell ("muster", 11);
  print_cell ("other", 11);
  print_cell ("ratio", 8);
  printf ("  bound\n");
}

static void
print_verdict (const BenchRow *row, double ratio)
{
  g_autofree char *bound = in_units (row->bound, row->unit);
  if (row->bound > 0)
    printf ("  %s (at most %s)", row->muster <= row->bound ? "within" : "over", bound);
  if (row->bound_ratio > 0 && ratio > 0)
    printf ("  %s (at most %.3g of it)", ratio <= row->bound_ratio ? "within" : "over",
            row->bound_ratio);
}

void
bench_print (const BenchRow *row)
{
  g_autofree char *muster = in_units (row->muster, row->unit);
  g_autofree char *other = row->other > 0 ? in_units (row->other, row->unit) : g_strdup ("-");
  double ratio = row->other > 0 ? row->muster / row->other : 0;
  g_autofree char *ratio_text = ratio > 0 ? g_strdup_printf ("%.3g", ratio) : g_strdup ("");
  g_autofree char *what = row->name != NULL
                              ? g_strdup_printf ("%s, against %s", row->what, row->name)
                              : g_strdup (row->what);
  printf ("%-58s", what);
  print_cell (muster, 11);
  print_cell (other, 11);
  print_cell (ratio_text, 8);
  print_verdict (row, ratio);
  printf ("\n");
  fflush (stdout);
}

void
bench_fail (const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  fflush (stdout);
  fprintf (stderr, "bench: %s\n", text);
  exit (EXIT_FAILURE);
}

void
bench_check (const GError *error, const char *what)
{
  if (error != NULL)
    bench_fail ("%s: %s", what, error->message);
}

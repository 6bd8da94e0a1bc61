// SPDX-License-Identifier: Apache-2.0
#include "cli/output/figures.h"

#include "base/clock.h"

#include <string.h>

#define WORTH_A_RATE_US (MUSTER_SECOND / 100)

/* "5,210" */
static char *
grouped (gint64 number)
{
  g_autofree char *digits = g_strdup_printf ("%" G_GINT64_FORMAT, number);
  const gsize n = strlen (digits);
  GString *text = g_string_new (NULL);
  for (gsize i = 0; i < n; i++) {
    if (i > 0 && (n - i) % 3 == 0 && digits[i - 1] != '-')
      g_string_append_c (text, ',');
    g_string_append_c (text, digits[i]);
  }
  return g_string_free (text, FALSE);
}

char *
muster_figure_steps_rate (double per_second)
{
  g_autofree char *whole = grouped ((gint64)CLAMP (per_second, 0, 9e18));
  if (per_second >= 10)
    return g_strdup_printf ("%s steps/s", whole);
  return g_strdup_printf ("%.2g steps/s", MAX (per_second, 0));
}

char *
muster_figure_transfer (guint64 bytes, guint64 moved, gint64 took_us)
{
  g_autofree char *size = muster_format_size (bytes);
  g_autofree char *took = muster_format_duration (took_us);
  if (took_us < WORTH_A_RATE_US)
    return g_strdup_printf ("%s in %s", size, took);
  g_autofree char *rate =
      muster_format_size ((guint64)((double)moved * MUSTER_SECOND / (double)took_us));
  return g_strdup_printf ("%s in %s (%s/s)", size, took, rate);
}

// SPDX-License-Identifier: Apache-2.0
#include "cli/common/memory_size.h"

#include <math.h>
#include <string.h>

/* The bytes of a unit, or of a percentage; 0 if there is no such unit. */
static double
scale_of (const char *unit, guint64 total)
{
  static const char letters[] = "KMGTP";
  if (*unit == '\0' || g_str_equal (unit, "B"))
    return 1;
  if (g_str_equal (unit, "%"))
    return (double)total / 100;
  const char *letter = strchr (letters, *unit);
  if (letter == NULL)
    return 0;
  const double power = (double)(letter - letters + 1);
  if (g_str_equal (unit + 1, "B"))
    return pow (1000, power);
  return unit[1] == '\0' || g_str_equal (unit + 1, "iB") ? pow (1024, power) : 0;
}

gboolean
muster_cli_memory_size (const char *text, guint64 total, guint64 *n_bytes, GError **error)
{
  char *unit = NULL;
  const double number = g_ascii_strtod (text, &unit);
  while (unit != text && *unit == ' ')
    unit++;
  const double bytes = unit != text ? number * scale_of (unit, total) : 0;
  if (isfinite (bytes) && bytes >= 1 && bytes < (double)G_MAXINT64) {
    *n_bytes = (guint64)bytes;
    return TRUE;
  }
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "invalid size '%s' (use 8GiB, 500MB, 1000000 or 80%%)", text);
}

// SPDX-License-Identifier: Apache-2.0
#include "train/goodput/save_interval_private.h"

#include <math.h>

/* Before a failure was seen. */
#define ASSUMED_MTBF_US (3600 * MUSTER_SECOND)
#define LEAST_US        MUSTER_SECOND
#define MOST_US         (G_GINT64_CONSTANT (365) * 24 * 3600 * MUSTER_SECOND)

static double
optimum (double cost, double mtbf)
{
  if (cost >= 2 * mtbf)
    return mtbf;
  const double ratio = cost / (2 * mtbf);
  return sqrt (2 * cost * mtbf) * (1 + sqrt (ratio) / 3 + ratio / 9) - cost;
}

gint64
muster_save_interval_us (const MusterSaveCost *cost)
{
  g_return_val_if_fail (cost != NULL, 0);

  const double blocked = (double)MAX (cost->blocked_us, 0);
  const double share = CLAMP (cost->share, 1e-6, 0.999);
  double interval = optimum (blocked, (double)MAX (cost->mtbf_us, 1));
  interval = MAX (interval, blocked / share - blocked);
  interval = MAX (interval, 2 * (double)cost->took_us);
  return (gint64)CLAMP (interval, (double)LEAST_US, (double)MOST_US);
}

gint64
muster_goodput_mtbf_us (const MusterGoodput *goodput)
{
  g_return_val_if_fail (goodput != NULL, 0);

  const gint64 up_us = muster_goodput_total_us (goodput) - goodput->spent_us[MUSTER_TIME_DOWN];
  if (goodput->n_failures == 0)
    return MAX (up_us, ASSUMED_MTBF_US);
  return MAX (up_us / (gint64)MIN (goodput->n_failures, (guint64)G_MAXINT64), 1);
}

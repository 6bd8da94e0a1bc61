// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/s3/s3_metrics_private.h"

MusterS3Metrics muster_s3_counted;

void
muster_s3_metrics (MusterS3Metrics *metrics)
{
  g_return_if_fail (metrics != NULL);
  const guint64 *from = (const guint64 *)&muster_s3_counted;
  guint64 *to = (guint64 *)metrics;
  for (gsize i = 0; i < sizeof *metrics / sizeof *to; i++)
    to[i] = __atomic_load_n (&from[i], __ATOMIC_RELAXED);
}

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/s3/s3_metrics.h"

G_BEGIN_DECLS

/* Counts in this process's metrics. Any thread. */
#define MUSTER_S3_COUNT(field, n)                                                                  \
  __atomic_add_fetch (&muster_s3_counted.field, (guint64)(n), __ATOMIC_RELAXED)

extern MusterS3Metrics muster_s3_counted;

G_END_DECLS

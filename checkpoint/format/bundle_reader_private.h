// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_data.h"

G_BEGIN_DECLS

struct _MusterBundleReader {
  gint ref_count;           /* atomic */
  char *prefix;             /* (owned) */
  MusterBundleIndex *index; /* (owned) */
  MusterBundleData *data;   /* (owned) */
};

G_END_DECLS

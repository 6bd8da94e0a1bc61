// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/s3/s3_options.h"

#include "base/fields_private.h"

static const MusterField option_fields[] = {
    MUSTER_STRING_FIELD (MusterS3Options, endpoint_url),
    MUSTER_STRING_FIELD (MusterS3Options, region),
    MUSTER_STRING_FIELD (MusterS3Options, profile),
    MUSTER_TYPED_FIELD (MusterS3Options, clock, muster_clock_get_type),
};

MUSTER_DEFINE_OPTIONS (MusterS3Options, muster_s3_options, option_fields)

MusterS3Options *
muster_s3_options_new (void)
{
  return g_new0 (MusterS3Options, 1);
}

void
muster_s3_options_set_clock (MusterS3Options *self, MusterClock *clock)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &option_fields[3], clock);
}

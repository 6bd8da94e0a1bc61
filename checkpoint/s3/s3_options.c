// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/s3/s3_options.h"

#include "base/fields_private.h"

MUSTER_DEFINE_OPTIONS (MusterS3Options, muster_s3_options)

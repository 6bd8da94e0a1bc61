// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "saver/builder/keep_private.h"

gboolean
muster_check_max_to_keep (int max_to_keep, GError **error)
{
  return max_to_keep >= MUSTER_KEEP_ALL ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "invalid max_to_keep %d: use a number of checkpoints, -1 to keep all, or 0 "
                      "for the default",
                      max_to_keep);
}

int
muster_max_to_keep_or (int max_to_keep, int otherwise)
{
  return MAX (max_to_keep != 0 ? max_to_keep : otherwise, 0);
}

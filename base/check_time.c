// SPDX-License-Identifier: Apache-2.0
#include "base/check_time_private.h"

gboolean
muster_check_time (const char *what, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  if (g_cancellable_set_error_if_cancelled (cancellable, error) ||
      !muster_deadline_check (deadline_us, error)) {
    g_prefix_error (error, "%s: ", what);
    return FALSE;
  }
  if (muster_deadline_remaining (deadline_us, muster_clock_now_us (muster_system_clock ())) > 0)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED, "%s: deadline exceeded", what);
}

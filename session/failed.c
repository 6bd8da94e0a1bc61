// SPDX-License-Identifier: Apache-2.0
#include "session/failed_private.h"

#include "base/error.h"
#include "base/safe_text_private.h"
#include "ready/backoff.h"

#define ANNOUNCE_US (5 * MUSTER_SECOND)
#define LONGEST_WHY 512 /* maximum length of an announced error in bytes */

void
muster_announce_failure (MusterLease *lease, const GError *failure, MusterClock *clock)
{
  MusterAnnouncement announcement = MUSTER_ANNOUNCEMENT_INIT;
  const gint64 deadline_us = muster_deadline_after (muster_clock_now_us (clock), ANNOUNCE_US);
  if (muster_error_is (failure, MUSTER_ERROR_ABORTED) ||
      muster_failure_of (failure) == MUSTER_FAILURE_UNREACHABLE ||
      muster_error_is (failure, MUSTER_ERROR_CANCELLED) ||
      g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    return;
  g_autofree char *ended = muster_safe_text (failure->message, -1, LONGEST_WHY);
  announcement.failed = TRUE;
  announcement.ended = ended;
  (void)muster_lease_announce (lease, &announcement, deadline_us, NULL, NULL);
}

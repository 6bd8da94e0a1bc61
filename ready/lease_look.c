// SPDX-License-Identifier: Apache-2.0
#include "ready/lease_look_private.h"

gint64
muster_lease_look (gint64 lease_us, gint64 heard_us, gint64 now_us, gint64 *doubted_us)
{
  const gint64 between_us = lease_us / 10;
  const gint64 first_us = muster_deadline_after (heard_us, lease_us - between_us);
  if (now_us < first_us)
    return first_us;
  if (*doubted_us < first_us)
    *doubted_us = now_us;
  return muster_deadline_after (*doubted_us, between_us);
}

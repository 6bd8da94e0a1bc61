// SPDX-License-Identifier: Apache-2.0
#include "server/core/drain.h"

#include "server/core/server_private.h"

gboolean
muster_server_begin_drain (MusterServer *self, gint64 until_us)
{
  gint64 serving = 0;
  return __atomic_compare_exchange_n (&self->drain_until_us, &serving, MAX (until_us, 1), FALSE,
                                      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

gint64
muster_server_drain_left_us (MusterServer *self)
{
  gint64 until_us = __atomic_load_n (&self->drain_until_us, __ATOMIC_SEQ_CST);
  if (until_us == 0)
    return 0;
  gint64 now_us = muster_clock_now_us (muster_system_clock ());
  return MAX (muster_deadline_remaining (until_us, now_us), 1);
}

gboolean
muster_server_admits (MusterServer *self, GError **error)
{
  if (muster_server_drain_left_us (self) == 0)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_UNAVAILABLE,
                      "the server is stopping; it takes no new sessions");
}

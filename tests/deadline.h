// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

/* Deadlines on the system's clock. */

static inline gint64
test_deadline_in (gint64 duration_us)
{
  return muster_deadline_after (muster_clock_now_us (muster_system_clock ()), duration_us);
}

/* The deadline of a call that succeeds unless something is broken. */
static inline gint64
test_deadline (void)
{
  return test_deadline_in (30 * MUSTER_SECOND);
}

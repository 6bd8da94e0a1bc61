// SPDX-License-Identifier: Apache-2.0
#include "ready/lease_look_private.h"
#include "tests/gtest_shim.h"

#define LEASE (10 * MUSTER_SECOND)
#define TENTH (1 * MUSTER_SECOND)

/* Of a lease that was renewed at `heard` seconds, looked at `now` seconds: when to look again, in
 * seconds; 0: it has ended. */
static double
look (double heard, double now, gint64 *doubted_us)
{
  const gint64 now_us = (gint64)(now * MUSTER_SECOND);
  const gint64 next_us =
      muster_lease_look (LEASE, (gint64)(heard * MUSTER_SECOND), now_us, doubted_us);
  return next_us > now_us ? (double)next_us / MUSTER_SECOND : 0;
}

MUSTER_TEST (LeaseLook, ends_a_silent_lease_when_it_is_over)
{
  gint64 doubted_us = 0;
  MUSTER_EXPECT_EQ (look (100, 100, &doubted_us), 109.0);
  MUSTER_EXPECT_EQ (look (100, 108.9, &doubted_us), 109.0);
  MUSTER_EXPECT_EQ (look (100, 109, &doubted_us), 110.0);
  MUSTER_EXPECT_EQ (look (100, 109.9, &doubted_us), 110.0);
  MUSTER_EXPECT_EQ (look (100, 110, &doubted_us), 0.0);
}

MUSTER_TEST (LeaseLook, does_not_end_a_lease_at_the_first_look_however_late)
{
  gint64 doubted_us = 0;
  MUSTER_EXPECT_EQ (look (100, 500, &doubted_us), 501.0);
  MUSTER_EXPECT_EQ (look (100, 500.9, &doubted_us), 501.0);
  MUSTER_EXPECT_EQ (look (100, 501, &doubted_us), 0.0);
}

MUSTER_TEST (LeaseLook, forgets_its_doubt_at_a_renewal)
{
  gint64 doubted_us = 0;
  (void)look (100, 500, &doubted_us);
  MUSTER_EXPECT_EQ (look (500.5, 501, &doubted_us), 509.5);
  MUSTER_EXPECT_EQ (look (500.5, 511, &doubted_us), 512.0);
  MUSTER_EXPECT_EQ (look (500.5, 512, &doubted_us), 0.0);
}

MUSTER_TEST (LeaseLook, takes_any_length)
{
  gint64 doubted_us = 0;
  MUSTER_EXPECT_EQ (muster_lease_look (3, 7, 9, &doubted_us), 10);
  MUSTER_EXPECT_EQ (muster_lease_look (3, 7, 10, &doubted_us), 10);
  MUSTER_EXPECT_EQ (muster_lease_look (MUSTER_WAIT_FOREVER, 7, 10, &doubted_us),
                    MUSTER_WAIT_FOREVER);
}

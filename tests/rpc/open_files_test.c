// SPDX-License-Identifier: Apache-2.0
#include "rpc/server/open_files_private.h"
#include "tests/gtest_shim.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

MUSTER_TEST (OpenFiles, are_raised_to_the_hard_limit)
{
  struct rlimit before;
  getrlimit (RLIMIT_NOFILE, &before);
  struct rlimit lowered = {MIN (before.rlim_max, 64), before.rlim_max};
  setrlimit (RLIMIT_NOFILE, &lowered);

  int limit = muster_open_files_raise ();

  struct rlimit after;
  getrlimit (RLIMIT_NOFILE, &after);
  MUSTER_EXPECT_EQ (after.rlim_cur, before.rlim_max);
  MUSTER_EXPECT_EQ (limit, (int)MIN (before.rlim_max, (rlim_t)G_MAXINT));
  setrlimit (RLIMIT_NOFILE, &before);
}

MUSTER_TEST (OpenFiles, are_left_until_the_reserve_is_reached)
{
  struct rlimit before;
  getrlimit (RLIMIT_NOFILE, &before);
  int lowest = open ("/dev/null", O_RDONLY | O_CLOEXEC);
  MUSTER_ASSERT_TRUE (lowest >= 0);
  close (lowest);
  /* Of `lowest` to lowest + 9 ten are free. */
  struct rlimit tight = {(rlim_t)lowest + 10, before.rlim_max};
  setrlimit (RLIMIT_NOFILE, &tight);

  gboolean for_nine = muster_open_files_left (9);
  gboolean for_ten = muster_open_files_left (10);
  int taken = open ("/dev/null", O_RDONLY | O_CLOEXEC);
  gboolean with_one_taken = muster_open_files_left (9);
  struct rlimit none = {(rlim_t)lowest + 1, before.rlim_max};
  setrlimit (RLIMIT_NOFILE, &none);
  gboolean with_all_taken = muster_open_files_left (0);
  setrlimit (RLIMIT_NOFILE, &before);
  close (taken);

  MUSTER_EXPECT_TRUE (for_nine);
  MUSTER_EXPECT_FALSE (for_ten);
  MUSTER_EXPECT_FALSE (with_one_taken);
  MUSTER_EXPECT_FALSE (with_all_taken);
  MUSTER_EXPECT_TRUE (muster_open_files_left (0));
}

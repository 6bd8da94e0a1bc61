// SPDX-License-Identifier: Apache-2.0
#include "base/version.h"
#include "tests/gtest_shim.h"

#if !MUSTER_CHECK_VERSION(0, 0, 9)
#error "an earlier minor version, with a higher micro version"
#endif

MUSTER_TEST (Version, is_the_same_as_text_and_as_numbers)
{
  g_autofree char *text = g_strdup_printf ("%d.%d.%d", MUSTER_MAJOR_VERSION, MUSTER_MINOR_VERSION,
                                           MUSTER_MICRO_VERSION);
  MUSTER_EXPECT_STREQ (MUSTER_VERSION, text);
  MUSTER_EXPECT_STREQ (muster_version (), text);
}

MUSTER_TEST (Version, is_compared_number_by_number)
{
  const int major = MUSTER_MAJOR_VERSION, minor = MUSTER_MINOR_VERSION,
            micro = MUSTER_MICRO_VERSION;
  MUSTER_EXPECT_TRUE (MUSTER_CHECK_VERSION (major, minor, micro));
  MUSTER_EXPECT_TRUE (!MUSTER_CHECK_VERSION (major, minor, micro + 1));
  MUSTER_EXPECT_TRUE (!MUSTER_CHECK_VERSION (major, minor + 1, 0));
  MUSTER_EXPECT_TRUE (!MUSTER_CHECK_VERSION (major + 1, 0, 0));
  MUSTER_EXPECT_TRUE (MUSTER_CHECK_VERSION (major, minor - 1, micro + 1));
  MUSTER_EXPECT_TRUE (muster_check_version (major, minor, micro));
  MUSTER_EXPECT_TRUE (!muster_check_version (major, minor, micro + 1));
  MUSTER_EXPECT_TRUE (!muster_check_version (major, minor + 1, 0));
  MUSTER_EXPECT_TRUE (!muster_check_version (major + 1, 0, 0));
}

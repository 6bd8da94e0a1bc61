// SPDX-License-Identifier: Apache-2.0
#include "base/memory_private.h"

#include <stdlib.h>

#include "tests/gtest_shim.h"

#include <glib/gstdio.h>

static void
put_limit_of (const char *folder, const char *file, const char *limit)
{
  g_autofree char *whole = g_build_filename (muster_test_tmpdir (), folder, NULL);
  g_autofree char *path = g_build_filename (whole, file, NULL);
  MUSTER_ASSERT_EQ (g_mkdir_with_parents (whole, 0700), 0);
  MUSTER_ASSERT_TRUE (g_file_set_contents (path, limit, -1, NULL));
}

static void
put_limit (const char *folder, const char *limit)
{
  put_limit_of (folder, "memory.max", limit);
}

MUSTER_TEST (Memory, is_what_the_narrowest_group_around_a_process_allows)
{
  const char *root = muster_test_tmpdir ();
  put_limit ("a/b/c", "3000\n");
  put_limit ("a/b", "1000\n");
  put_limit ("a", "max\n");
  put_limit ("other", "7\n");
  MUSTER_EXPECT_EQ (muster_memory_group_limit ("0::/a/b/c\n", root), 1000u);
  MUSTER_EXPECT_EQ (muster_memory_group_limit ("1:cpu:/other\n0::/a/b\n", root), 1000u);
  MUSTER_EXPECT_EQ (muster_memory_group_limit ("0::/a\n", root), G_MAXUINT64);
  MUSTER_EXPECT_EQ (muster_memory_group_limit ("0::/gone\n", root), G_MAXUINT64);
  MUSTER_EXPECT_EQ (muster_memory_group_limit ("", root), G_MAXUINT64);
}

MUSTER_TEST (Memory, of_a_container_is_that_of_its_root)
{
  const char *root = muster_test_tmpdir ();
  g_autofree char *path = g_build_filename (root, "memory.max", NULL);
  MUSTER_ASSERT_TRUE (g_file_set_contents (path, "4096\n", -1, NULL));
  MUSTER_EXPECT_EQ (muster_memory_group_limit ("0::/\n", root), 4096u);
  MUSTER_EXPECT_EQ (muster_memory_group_limit ("0::/a/b\n", root), 4096u);
}

MUSTER_TEST (Memory, is_what_a_group_may_use_before_it_is_slowed_down)
{
  const char *root = muster_test_tmpdir ();
  put_limit ("slow/a", "3000\n");
  put_limit_of ("slow/a", "memory.high", "2000\n");
  put_limit ("fast/a", "3000\n");
  put_limit_of ("fast/a", "memory.high", "max\n");
  MUSTER_EXPECT_EQ (muster_memory_group_limit ("0::/slow/a\n", root), 2000u);
  MUSTER_EXPECT_EQ (muster_memory_group_limit ("0::/fast/a\n", root), 3000u);
}

#define V1 "memory.limit_in_bytes"

MUSTER_TEST (Memory, is_what_a_group_of_version_1_allows)
{
  const char *root = muster_test_tmpdir ();
  put_limit_of ("memory", V1, "9223372036854771712\n"); /* none */
  put_limit_of ("memory/job", V1, "5000\n");
  put_limit_of ("memory/job/task", V1, "9223372036854771712\n");
  put_limit_of ("cpu/job", V1, "7\n");
  MUSTER_EXPECT_EQ (muster_memory_group_limit ("5:cpu:/job\n4:memory:/job/task\n", root), 5000u);
  MUSTER_EXPECT_EQ (muster_memory_group_limit ("4:hugetlb,memory:/job\n", root), 5000u);
  MUSTER_EXPECT_EQ (muster_memory_group_limit ("5:cpu:/job\n", root), G_MAXUINT64);
  MUSTER_EXPECT_GT (muster_memory_group_limit ("4:memory:/\n", root), (guint64)1 << 62);
}

/* Docker mounts the container's group as the root, whose path on the host /proc/self/cgroup has. */
MUSTER_TEST (Memory, of_a_container_of_version_1_is_that_of_its_root)
{
  const char *root = muster_test_tmpdir ();
  put_limit_of ("memory", V1, "6000\n");
  MUSTER_EXPECT_EQ (muster_memory_group_limit ("4:memory:/docker/0123\n", root), 6000u);
}

MUSTER_TEST (Memory, of_this_process_is_some)
{
  MUSTER_EXPECT_GT (muster_memory_total (), (guint64)1 << 20);
}

MUSTER_TEST (Memory, is_given_small_and_large_and_refused_where_there_is_none)
{
  for (gsize size = 0; size < (gsize)64 << 20; size = size * 5 + 1) {
    guint8 *memory = muster_memory_alloc (size);
    MUSTER_ASSERT_TRUE (memory != NULL);
    if (size > 0)
      memory[0] = memory[size - 1] = 1;
    free (memory);
  }
/* A sanitizer's malloc () ends the process instead. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  MUSTER_EXPECT_NULL (muster_memory_alloc (G_MAXSIZE));
  MUSTER_EXPECT_NULL (muster_memory_alloc (G_MAXSSIZE));
#endif
}

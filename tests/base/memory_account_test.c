// SPDX-License-Identifier: Apache-2.0
#include "base/memory_account_private.h"

#include "base/arena_private.h"
#include "base/error.h"
#include "tests/gtest_shim.h"

#define MIB ((gsize)1 << 20)

/* What tests before have left counts too. */
static guint64
limit_to (gsize more)
{
  const guint64 before = muster_memory_used_in_all ();
  muster_memory_set_limit (before + more);
  return before;
}

MUSTER_TEST (MemoryAccount, refuses_what_is_over_the_limit_of_all_uses_together)
{
  g_autoptr (GError) error = NULL;
  const guint64 refused = muster_memory_n_refused (), before = limit_to (10 * MIB);
  MUSTER_EXPECT_TRUE (muster_memory_take (MUSTER_MEMORY_TENSORS, 4 * MIB, &error));
  MUSTER_EXPECT_TRUE (muster_memory_take (MUSTER_MEMORY_GRAPHS, 6 * MIB, &error));
  MUSTER_EXPECT_NO_ERROR (error);

  MUSTER_EXPECT_FALSE (muster_memory_take (MUSTER_MEMORY_MESSAGES, MIB, &error));

  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED, "--max-memory");
  MUSTER_EXPECT_EQ (muster_memory_n_refused (), refused + 1);
  MUSTER_EXPECT_EQ (muster_memory_used_in_all (), before + 10 * MIB);
  muster_memory_release (MUSTER_MEMORY_TENSORS, 4 * MIB);
  MUSTER_EXPECT_TRUE (muster_memory_take (MUSTER_MEMORY_MESSAGES, MIB, NULL));
  muster_memory_release (MUSTER_MEMORY_MESSAGES, MIB);
  muster_memory_release (MUSTER_MEMORY_GRAPHS, 6 * MIB);
  muster_memory_set_limit (0);
}

MUSTER_TEST (MemoryAccount, refuses_small_amounts_over_the_limit)
{
  (void)limit_to (MIB);
  guint n = 0;
  while (n < 100000 && muster_memory_take (MUSTER_MEMORY_RESOURCES, 100, NULL))
    n++;
  /* What this thread hasn't told yet may be beyond it. */
  MUSTER_EXPECT_GE (n, MIB / 100 - 1);
  MUSTER_EXPECT_LE (n, (MIB + (16 << 10)) / 100 + 1);
  muster_memory_release (MUSTER_MEMORY_RESOURCES, n * 100);
  muster_memory_set_limit (0);
}

MUSTER_TEST (MemoryAccount, refuses_more_than_can_be_counted)
{
  (void)limit_to (MIB);
  MUSTER_EXPECT_FALSE (muster_memory_take (MUSTER_MEMORY_TENSORS, G_MAXSIZE, NULL));
  MUSTER_EXPECT_FALSE (muster_memory_take (MUSTER_MEMORY_TENSORS, G_MAXSSIZE, NULL));
  MUSTER_EXPECT_TRUE (muster_memory_take (MUSTER_MEMORY_TENSORS, MIB, NULL));
  muster_memory_release (MUSTER_MEMORY_TENSORS, MIB);
  muster_memory_set_limit (0);
}

static gpointer
count_a_little (gpointer data G_GNUC_UNUSED)
{
  for (int i = 0; i < 10; i++)
    muster_memory_add (MUSTER_MEMORY_RESOURCES, 1000);
  return NULL;
}

MUSTER_TEST (MemoryAccount, counts_what_threads_leave_behind)
{
  const guint64 before = muster_memory_used (MUSTER_MEMORY_RESOURCES);
  for (int i = 0; i < 20; i++)
    g_thread_join (g_thread_new ("counting", count_a_little, NULL));
  MUSTER_EXPECT_EQ (muster_memory_used (MUSTER_MEMORY_RESOURCES), before + 20 * 10000);
  muster_memory_release (MUSTER_MEMORY_RESOURCES, 20 * 10000);
}

MUSTER_TEST (MemoryAccount, refuses_an_arena_that_grows_beyond_it_and_counts_all_of_it)
{
  g_autoptr (GError) error = NULL;
  const guint64 before = limit_to (MIB);
  MusterArena *arena = muster_arena_new_for (MUSTER_MEMORY_GRAPHS);
  guint n = 0;
  while (n < 1000 && muster_arena_fits (arena, &error)) {
    (void)muster_arena_alloc (arena, 10000);
    n++;
  }
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED);
  MUSTER_EXPECT_LT (n, 400); /* a chunk of the arena beyond it */
  MUSTER_EXPECT_GE (muster_memory_used_in_all () - before, muster_arena_size (arena) - (16 << 10));
  muster_arena_free (arena);
  MUSTER_EXPECT_LE (muster_memory_used_in_all (), before + (16 << 10));

  /* Room for small requests is always there. */
  muster_memory_set_limit (1);
  MusterArena *small = muster_arena_new ();
  (void)muster_arena_alloc (small, 1000);
  MUSTER_EXPECT_TRUE (muster_arena_fits (small, NULL));
  MUSTER_EXPECT_FALSE (muster_arena_has_room (small, 100 * MIB));
  muster_arena_free (small);
  muster_memory_set_limit (0);
}

// SPDX-License-Identifier: Apache-2.0
#include "base/budget_private.h"

#include "base/memory_account_private.h"

#include "base/error.h"
#include "tests/gtest_shim.h"

#include <string.h>

MUSTER_TEST (Budget, gives_as_much_as_it_has)
{
  g_autoptr (GError) error = NULL;
  g_auto (MusterBudget) budget = {.limit = 10};
  MUSTER_EXPECT_TRUE (muster_budget_take (&budget, 4, &error));
  MUSTER_EXPECT_TRUE (muster_budget_take_items (&budget, 3, 2, &error));
  MUSTER_EXPECT_TRUE (muster_budget_take (&budget, 0, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (muster_budget_take (&budget, 1, &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED, "--max-op-bytes");
}

MUSTER_TEST (Budget, takes_nothing_where_it_refuses)
{
  g_auto (MusterBudget) budget = {.limit = 10};
  MUSTER_EXPECT_FALSE (muster_budget_take (&budget, 11, NULL));
  MUSTER_EXPECT_FALSE (muster_budget_take (&budget, G_MAXSIZE, NULL));
  MUSTER_EXPECT_TRUE (muster_budget_take (&budget, 10, NULL));
}

MUSTER_TEST (Budget, refuses_more_items_than_can_be_counted)
{
  g_auto (MusterBudget) budget = {.limit = G_MAXSIZE / 2};
  MUSTER_EXPECT_FALSE (muster_budget_take_items (&budget, G_MAXSIZE / 4, 8, NULL));
  MUSTER_EXPECT_NULL (muster_budget_alloc (&budget, G_MAXSIZE / 4, 8, NULL));
  MUSTER_EXPECT_NULL (muster_budget_alloc0 (&budget, G_MAXSIZE, G_MAXSIZE, NULL));
}

MUSTER_TEST (Budget, has_again_what_was_given_back)
{
  g_auto (MusterBudget) budget = {.limit = 10};
  MUSTER_EXPECT_TRUE (muster_budget_take (&budget, 10, NULL));
  muster_budget_release (&budget, 6);
  MUSTER_EXPECT_TRUE (muster_budget_take (&budget, 6, NULL));
  MUSTER_EXPECT_FALSE (muster_budget_take (&budget, 1, NULL));
}

MUSTER_TEST (Budget, allocates_what_it_takes)
{
  g_auto (MusterBudget) budget = {.limit = 100};
  g_autofree char *zeros = muster_budget_alloc0 (&budget, 10, 4, NULL);
  g_autofree char *nothing = muster_budget_alloc (&budget, 0, 4, NULL);
  MUSTER_ASSERT_TRUE (zeros != NULL && nothing != NULL);
  for (int i = 0; i < 40; i++)
    MUSTER_EXPECT_EQ (zeros[i], 0);
  MUSTER_EXPECT_NULL (muster_budget_alloc (&budget, 1, 60, NULL));
}

MUSTER_TEST (Budget, that_isnt_there_has_no_limit)
{
  MUSTER_EXPECT_TRUE (muster_budget_take (NULL, G_MAXSIZE, NULL));
  muster_budget_release (NULL, 1);
  g_autofree char *some = muster_budget_alloc (NULL, 3, 4, NULL);
  MUSTER_EXPECT_TRUE (some != NULL);
}

#define MIB ((gsize)1 << 20)

/* The process's limit, from here on. */
static void
limit_to (gsize more)
{
  muster_memory_set_limit (muster_memory_used_in_all () + more);
}

MUSTER_TEST (Budget, draws_on_the_process_until_it_is_cleared)
{
  const guint64 before = muster_memory_used (MUSTER_MEMORY_OPERATIONS);
  g_autoptr (GError) error = NULL;
  MusterBudget one = {.limit = 100 * MIB}, other = {.limit = 100 * MIB};
  limit_to (10 * MIB);

  MUSTER_EXPECT_TRUE (muster_budget_take (&one, 6 * MIB, NULL));
  MUSTER_EXPECT_FALSE (muster_budget_take (&other, 6 * MIB, &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED, "--max-memory");
  MUSTER_EXPECT_EQ (other.taken, 0);
  MUSTER_EXPECT_EQ (muster_memory_used (MUSTER_MEMORY_OPERATIONS), before + 6 * MIB);
  MUSTER_EXPECT_EQ (muster_budget_left (&other), 4 * MIB);
  muster_budget_clear (&one);
  MUSTER_EXPECT_TRUE (muster_budget_take (&other, 6 * MIB, NULL));
  muster_budget_release (&other, 6 * MIB);
  MUSTER_EXPECT_EQ (muster_memory_used (MUSTER_MEMORY_OPERATIONS), before);
  muster_memory_set_limit (0);
}

/* Those of a tensor or a table, which count for as long as they live. */
MUSTER_TEST (Budget, counts_no_bytes_that_another_owns)
{
  const guint64 before = muster_memory_used_in_all ();
  g_auto (MusterBudget) budget = {.limit = 2 * MIB};
  MUSTER_EXPECT_TRUE (muster_budget_take_owned (&budget, MIB, NULL));
  g_autofree char *owned = muster_budget_alloc_owned (&budget, 1, MIB / 2, NULL);
  MUSTER_EXPECT_EQ (budget.taken, MIB + MIB / 2);
  MUSTER_EXPECT_FALSE (muster_budget_take_owned_items (&budget, 2, MIB / 2, NULL));
  MUSTER_EXPECT_EQ (muster_memory_used_in_all (), before);
}

MUSTER_TEST (Budget, grows_a_block_for_which_there_is_room_twice)
{
  const guint64 before = muster_memory_used_in_all ();
  g_auto (MusterBudget) budget = {.limit = 100 * MIB};
  gpointer block = NULL;
  limit_to (10 * MIB);

  MUSTER_EXPECT_TRUE (muster_budget_grow (&budget, &block, 0, 4 * MIB, NULL));
  MUSTER_EXPECT_TRUE (muster_budget_grow (&budget, &block, 4 * MIB, 6 * MIB, NULL));
  MUSTER_EXPECT_FALSE (muster_budget_grow (&budget, &block, 6 * MIB, 8 * MIB, NULL));
  MUSTER_EXPECT_EQ (budget.taken, 6 * MIB);
  MUSTER_EXPECT_EQ (muster_memory_used_in_all (), before + 6 * MIB);
  g_free (block);
  muster_budget_clear (&budget);
  MUSTER_EXPECT_EQ (muster_memory_used_in_all (), before);
  muster_memory_set_limit (0);
}

// SPDX-License-Identifier: Apache-2.0
#include "base/budget.h"

#include "base/error.h"
#include "tests/gtest_shim.h"

#include <string.h>

MUSTER_TEST (Budget, gives_as_much_as_it_has)
{
  g_autoptr (GError) error = NULL;
  MusterBudget budget = {.limit = 10};
  MUSTER_EXPECT_TRUE (muster_budget_take (&budget, 4, &error));
  MUSTER_EXPECT_TRUE (muster_budget_take_items (&budget, 3, 2, &error));
  MUSTER_EXPECT_TRUE (muster_budget_take (&budget, 0, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (muster_budget_take (&budget, 1, &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED, "--max-op-bytes");
}

MUSTER_TEST (Budget, takes_nothing_where_it_refuses)
{
  MusterBudget budget = {.limit = 10};
  MUSTER_EXPECT_FALSE (muster_budget_take (&budget, 11, NULL));
  MUSTER_EXPECT_FALSE (muster_budget_take (&budget, G_MAXSIZE, NULL));
  MUSTER_EXPECT_TRUE (muster_budget_take (&budget, 10, NULL));
}

MUSTER_TEST (Budget, refuses_more_items_than_can_be_counted)
{
  MusterBudget budget = {.limit = G_MAXSIZE / 2};
  MUSTER_EXPECT_FALSE (muster_budget_take_items (&budget, G_MAXSIZE / 4, 8, NULL));
  MUSTER_EXPECT_NULL (muster_budget_alloc (&budget, G_MAXSIZE / 4, 8, NULL));
  MUSTER_EXPECT_NULL (muster_budget_alloc0 (&budget, G_MAXSIZE, G_MAXSIZE, NULL));
}

MUSTER_TEST (Budget, has_again_what_was_given_back)
{
  MusterBudget budget = {.limit = 10};
  MUSTER_EXPECT_TRUE (muster_budget_take (&budget, 10, NULL));
  muster_budget_release (&budget, 6);
  MUSTER_EXPECT_TRUE (muster_budget_take (&budget, 6, NULL));
  MUSTER_EXPECT_FALSE (muster_budget_take (&budget, 1, NULL));
}

MUSTER_TEST (Budget, allocates_what_it_takes)
{
  MusterBudget budget = {.limit = 100};
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

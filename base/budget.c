// SPDX-License-Identifier: Apache-2.0
#include "base/budget.h"

#include "base/error.h"

gboolean
muster_budget_refuse (const MusterBudget *self, gsize n_bytes, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                      "the operation exceeds its memory limit of %" G_GSIZE_FORMAT
                      " bytes: it uses %" G_GSIZE_FORMAT " and needs %" G_GSIZE_FORMAT
                      " more; raise --max-op-bytes",
                      self->limit, self->taken, n_bytes);
}

static gsize
size_of_items (gsize n, gsize size)
{
  gsize n_bytes;
  return g_size_checked_mul (&n_bytes, n, size) ? n_bytes : G_MAXSIZE;
}

gboolean
muster_budget_take_items (MusterBudget *self, gsize n, gsize size, GError **error)
{
  return muster_budget_take (self, size_of_items (n, size), error);
}

static gpointer
alloc (MusterBudget *self, gsize n, gsize size, gpointer (*try) (gsize), GError **error)
{
  const gsize n_bytes = size_of_items (MAX (n, 1), MAX (size, 1));
  if (!muster_budget_take (self, n_bytes, error))
    return NULL;
  gpointer memory = try (n_bytes);
  if (G_UNLIKELY (memory == NULL)) {
    muster_budget_release (self, n_bytes);
    muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                 "not enough memory for %" G_GSIZE_FORMAT " bytes", n_bytes);
  }
  return memory;
}

gpointer
muster_budget_alloc (MusterBudget *self, gsize n, gsize size, GError **error)
{
  return alloc (self, n, size, g_try_malloc, error);
}

gpointer
muster_budget_alloc0 (MusterBudget *self, gsize n, gsize size, GError **error)
{
  return alloc (self, n, size, g_try_malloc0, error);
}

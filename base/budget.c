// SPDX-License-Identifier: Apache-2.0
#include "base/budget_private.h"

#include "base/error.h"
#include "base/memory_account_private.h"

gboolean
muster_budget_refuse (const MusterBudget *self, gsize n_bytes, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                      "the operation exceeds its memory limit of %" G_GSIZE_FORMAT
                      " bytes: it uses %" G_GSIZE_FORMAT " and needs %" G_GSIZE_FORMAT
                      " more; raise --max-op-bytes",
                      self->limit, self->taken, n_bytes);
}

void
muster_budget_clear (MusterBudget *self)
{
  muster_memory_release (MUSTER_MEMORY_OPERATIONS, self->counted);
  self->counted = 0;
}

gboolean
muster_budget_take (MusterBudget *self, gsize n_bytes, GError **error)
{
  if (self == NULL)
    return TRUE;
  if (n_bytes > self->limit - self->taken)
    return muster_budget_refuse (self, n_bytes, error);
  if (!muster_memory_take (MUSTER_MEMORY_OPERATIONS, n_bytes, error))
    return FALSE;
  self->taken += n_bytes;
  self->counted += n_bytes;
  return TRUE;
}

void
muster_budget_release (MusterBudget *self, gsize n_bytes)
{
  if (self == NULL)
    return;
  muster_memory_release (MUSTER_MEMORY_OPERATIONS, n_bytes);
  self->taken -= n_bytes;
  self->counted -= n_bytes;
}

gsize
muster_budget_left (const MusterBudget *self)
{
  return MIN (self->limit - self->taken, muster_memory_left ());
}

static gpointer
alloc (gsize n_bytes, gpointer (*try) (gsize), GError **error)
{
  gpointer memory = try (n_bytes);
  if (G_UNLIKELY (memory == NULL))
    muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                 "not enough memory for %" G_GSIZE_FORMAT " bytes", n_bytes);
  return memory;
}

static gpointer
alloc_counted (MusterBudget *self, gsize n, gsize size, gpointer (*try) (gsize), GError **error)
{
  const gsize n_bytes = muster_budget_size (MAX (n, 1), MAX (size, 1));
  if (!muster_budget_take (self, n_bytes, error))
    return NULL;
  gpointer memory = alloc (n_bytes, try, error);
  if (G_UNLIKELY (memory == NULL))
    muster_budget_release (self, n_bytes);
  return memory;
}

gpointer
muster_budget_alloc (MusterBudget *self, gsize n, gsize size, GError **error)
{
  return alloc_counted (self, n, size, g_try_malloc, error);
}

gpointer
muster_budget_alloc0 (MusterBudget *self, gsize n, gsize size, GError **error)
{
  return alloc_counted (self, n, size, g_try_malloc0, error);
}

static gpointer
alloc_owned (MusterBudget *self, gsize n, gsize size, gpointer (*try) (gsize), GError **error)
{
  const gsize n_bytes = muster_budget_size (MAX (n, 1), MAX (size, 1));
  return muster_budget_take_owned (self, n_bytes, error) ? alloc (n_bytes, try, error) : NULL;
}

gpointer
muster_budget_alloc_owned (MusterBudget *self, gsize n, gsize size, GError **error)
{
  return alloc_owned (self, n, size, g_try_malloc, error);
}

gpointer
muster_budget_alloc0_owned (MusterBudget *self, gsize n, gsize size, GError **error)
{
  return alloc_owned (self, n, size, g_try_malloc0, error);
}

/* The account has both blocks until the old one's bytes have moved; the limit is for what is held
 * then. */
gboolean
muster_budget_grow (MusterBudget *self, gpointer *memory, gsize from, gsize to, GError **error)
{
  if (!muster_budget_take_owned (self, to - from, error))
    return FALSE;
  gpointer moved = NULL;
  if (muster_memory_take (MUSTER_MEMORY_OPERATIONS, to, error)) {
    moved = g_try_realloc (*memory, to);
    muster_memory_release (MUSTER_MEMORY_OPERATIONS, moved != NULL ? from : to);
    if (moved == NULL)
      muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                   "not enough memory for %" G_GSIZE_FORMAT " bytes", to);
  }
  if (moved == NULL) {
    self->taken -= to - from;
    return FALSE;
  }
  self->counted += to - from;
  *memory = moved;
  return TRUE;
}

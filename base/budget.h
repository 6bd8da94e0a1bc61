// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* MusterBudget limits memory. Code whose allocation depends on a request's values takes the bytes
 * from the budget first, and fails with RESOURCE_EXHAUSTED if they would exceed the limit. There is
 * no lock: one thread at a time. A NULL budget has no limit. Each run of an operation has its own
 * budget (engine/run/kernel.h). */

typedef struct _MusterBudget MusterBudget;
struct _MusterBudget {
  gsize limit; /* bytes */
  gsize taken; /* bytes; at most limit */
};

/* Sets RESOURCE_EXHAUSTED. Always returns FALSE. */
gboolean muster_budget_refuse (const MusterBudget *self, gsize n_bytes, GError **error);

static inline gboolean
muster_budget_take (MusterBudget *self, gsize n_bytes, GError **error)
{
  if (self == NULL)
    return TRUE;
  if (G_UNLIKELY (n_bytes > self->limit - self->taken))
    return muster_budget_refuse (self, n_bytes, error);
  self->taken += n_bytes;
  return TRUE;
}

/* The same for n items of size bytes. The product may overflow. */
gboolean muster_budget_take_items (MusterBudget *self, gsize n, gsize size, GError **error);

/* Returns bytes to the budget when their memory is freed. */
static inline void
muster_budget_release (MusterBudget *self, gsize n_bytes)
{
  if (self != NULL)
    self->taken -= n_bytes;
}

/* Takes n items of size bytes and allocates them (free with g_free ()). NULL only with an error. */
gpointer muster_budget_alloc (MusterBudget *self, gsize n, gsize size, GError **error);
gpointer muster_budget_alloc0 (MusterBudget *self, gsize n, gsize size, GError **error);

G_END_DECLS

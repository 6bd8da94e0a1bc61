// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* MusterBudget is an account of memory. Code that allocates what a request decides the size of
 * takes the bytes from it first, and is refused with RESOURCE_EXHAUSTED once they would exceed the
 * limit. Taking is an addition and a comparison, without a lock: a budget belongs to one thread at
 * a time. NULL is a budget without a limit. Each run of an operation has a budget of its own, which
 * ends with it (engine/run/kernel.h). */

typedef struct _MusterBudget MusterBudget;
struct _MusterBudget {
  gsize limit; /* bytes */
  gsize taken; /* never more */
};

/* Sets RESOURCE_EXHAUSTED; always FALSE. */
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

/* The same for n items of size bytes, however many that is. */
gboolean muster_budget_take_items (MusterBudget *self, gsize n, gsize size, GError **error);

/* Gives back what was taken, as its memory is freed. */
static inline void
muster_budget_give (MusterBudget *self, gsize n_bytes)
{
  if (self != NULL)
    self->taken -= n_bytes;
}

/* Takes room for n items of size bytes, and allocates it (free with g_free); never NULL but with an
 * error. */
gpointer muster_budget_alloc (MusterBudget *self, gsize n, gsize size, GError **error);
gpointer muster_budget_alloc0 (MusterBudget *self, gsize n, gsize size, GError **error);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* MusterBudget limits memory. Code whose allocation depends on a request's values takes the bytes
 * from the budget first, and fails with RESOURCE_EXHAUSTED if they would exceed its limit or that
 * of the process (base/memory_account_private.h), from which the budget draws them. It gives them
 * back when it is cleared. There is no lock: one thread at a time. A NULL budget has no limit and
 * counts nothing. Each run of an operation has its own budget (engine/run/kernel.h). */

typedef struct _MusterBudget MusterBudget;
struct _MusterBudget {
  gsize limit;   /* bytes */
  gsize taken;   /* bytes; at most limit */
  gsize counted; /* those of them that the process's account has for this budget */
};

/* The bytes of n items, which may be too many to count: then more than any budget has. */
static inline gsize
muster_budget_size (gsize n, gsize size)
{
  gsize n_bytes;
  return g_size_checked_mul (&n_bytes, n, size) ? n_bytes : G_MAXSIZE;
}

/* Gives back what it has drawn from the account; its user has freed it. */
void muster_budget_clear (MusterBudget *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterBudget, muster_budget_clear)

/* Sets RESOURCE_EXHAUSTED. Always returns FALSE. */
gboolean muster_budget_refuse (const MusterBudget *self, gsize n_bytes, GError **error);

gboolean muster_budget_take (MusterBudget *self, gsize n_bytes, GError **error);
static inline gboolean
muster_budget_take_items (MusterBudget *self, gsize n, gsize size, GError **error)
{
  return muster_budget_take (self, muster_budget_size (n, size), error);
}
/* Returns bytes when their memory is freed. */
void muster_budget_release (MusterBudget *self, gsize n_bytes);

/* The same for bytes that outlive the budget, and that their owner takes from the account: a
 * tensor's, a table's. */
static inline gboolean
muster_budget_take_owned (MusterBudget *self, gsize n_bytes, GError **error)
{
  if (self == NULL)
    return TRUE;
  if (G_UNLIKELY (n_bytes > self->limit - self->taken))
    return muster_budget_refuse (self, n_bytes, error);
  self->taken += n_bytes;
  return TRUE;
}
static inline gboolean
muster_budget_take_owned_items (MusterBudget *self, gsize n, gsize size, GError **error)
{
  return muster_budget_take_owned (self, muster_budget_size (n, size), error);
}

/* Takes n items of size bytes and allocates them (free with g_free ()). NULL only with an error. */
gpointer muster_budget_alloc (MusterBudget *self, gsize n, gsize size, GError **error);
gpointer muster_budget_alloc0 (MusterBudget *self, gsize n, gsize size, GError **error);
/* The same for bytes that outlive the budget, as above. */
gpointer muster_budget_alloc_owned (MusterBudget *self, gsize n, gsize size, GError **error);
gpointer muster_budget_alloc0_owned (MusterBudget *self, gsize n, gsize size, GError **error);
/* Makes *memory, of from bytes, at least as large as to bytes. On failure, nothing changes. */
gboolean muster_budget_grow (MusterBudget *self, gpointer *memory, gsize from, gsize to,
                             GError **error);
/* The bytes that may still be taken, at most. */
gsize muster_budget_left (const MusterBudget *self);

G_END_DECLS

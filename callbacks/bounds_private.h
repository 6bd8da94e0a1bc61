// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/* The limits of a call, and a store that has them. */
typedef struct {
  gint64 deadline_us;
  GCancellable *cancellable; /* (not owned) (nullable) */
  MusterStorage *storage;    /* (owned) */
} MusterBounds;

/* clock (nullable): the deadline's, as muster_storage_bound (). */
MusterBounds muster_bounds (MusterStorage *storage, gint64 deadline_us, MusterClock *clock,
                            GCancellable *cancellable);
void muster_bounds_clear (MusterBounds *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterBounds, muster_bounds_clear)

/* Checks whether the call may begin or continue; the error begins with "OPERATION WHAT in 'DIR'",
 * such as "Saving the backup in 'DIR'". */
gboolean muster_bounds_check (const MusterBounds *self, const char *operation, const char *what,
                              const char *directory, GError **error);

G_END_DECLS

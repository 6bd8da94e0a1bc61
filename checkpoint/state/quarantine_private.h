// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "checkpoint/state/quarantine.h"

G_BEGIN_DECLS

/* muster_checkpoint_quarantine () by a deadline of clock (nullable: the machine's), or after half a
 * minute if that is sooner. */
gboolean muster_checkpoint_quarantine_by (MusterStorage *storage, const char *prefix,
                                          const char *reason, char **quarantined,
                                          gint64 deadline_us, MusterClock *clock,
                                          GCancellable *cancellable, GError **error);

/* The same under the directory's lock, which the caller holds; storage is the lock's. */
gboolean muster_checkpoint_quarantine_locked (MusterStorage *storage, const char *prefix,
                                              const char *reason, char **quarantined,
                                              GError **error);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

G_BEGIN_DECLS

/* MusterUpkeep is the one thread of a remote master on which things are kept up behind the scenes:
 * leases and sessions are renewed, what broke is taken up again. It starts with the first task and
 * ends with the last reference. Tasks run one after another. Any thread. */

typedef struct _MusterUpkeep MusterUpkeep;
typedef struct _MusterUpkeepTask MusterUpkeepTask;

/* Does what is due and returns when it is due again: an instant of muster_system_clock (), or
 * MUSTER_WAIT_FOREVER. It may block, for as long as cancellable isn't cancelled. */
typedef gint64 (*MusterUpkeepWork) (gpointer owner, GCancellable *cancellable);

MusterUpkeep *muster_upkeep_new (void);
MusterUpkeep *muster_upkeep_ref (MusterUpkeep *self);
/* Never from within a task. */
void muster_upkeep_unref (MusterUpkeep *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterUpkeep, muster_upkeep_unref)

/* (transfer full) to be freed before its owner goes, and before the last reference does. */
MusterUpkeepTask *muster_upkeep_add (MusterUpkeep *self, MusterUpkeepWork work, gpointer owner,
                                     gint64 due_us);

/* It is due now, or once more where it runs; nothing happens once it is stopped. Takes no lock but
 * the upkeep's own, which is never held around anything else. */
void muster_upkeep_poke (MusterUpkeepTask *task);

/* Cancels a run that is under way and waits for its end; it isn't run again. Never from within a
 * task. */
void muster_upkeep_stop (MusterUpkeepTask *task);
/* Stops it if it isn't, and frees it. */
void muster_upkeep_task_free (MusterUpkeepTask *task);

G_END_DECLS

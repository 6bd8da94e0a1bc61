// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/* MusterDirectoryLock holds a directory of checkpoints against other writers, for the short time in
 * which something is published, recorded, set aside or removed there: never while a master writes
 * tensors. Readers need none. The lock ends with its process, and one process can't take it
 * twice. */

typedef struct _MusterDirectoryLock MusterDirectoryLock;

/* The file that is locked; its text says by whom it was last. */
#define MUSTER_LOCK_FILE ".muster.lock"

/* Waits until deadline_us of clock (NULL: the machine's) for whoever holds it: DEADLINE_EXCEEDED
 * says who. Any thread. */
MusterDirectoryLock *muster_directory_lock (MusterStorage *storage, const char *directory,
                                            gint64 deadline_us, MusterClock *clock,
                                            GCancellable *cancellable, GError **error);
/* self may be NULL. */
void muster_directory_unlock (MusterDirectoryLock *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterDirectoryLock, muster_directory_unlock)

G_END_DECLS

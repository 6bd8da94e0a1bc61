// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/* MusterDirectoryLock locks a directory of checkpoints against other writers, for the short time in
 * which something is published, recorded, quarantined or removed, never while a master writes
 * tensors. Readers need no lock. The lock ends with its process. A process can't hold it twice. */

typedef struct _MusterDirectoryLock MusterDirectoryLock;

/* The locked file. Its text names the last holder. */
#define MUSTER_LOCK_FILE ".muster.lock"

/* Waits for the lock until deadline_us of clock (NULL: the machine's). DEADLINE_EXCEEDED names the
 * holder. Any thread. */
MusterDirectoryLock *muster_directory_lock (MusterStorage *storage, const char *directory,
                                            gint64 deadline_us, MusterClock *clock,
                                            GCancellable *cancellable, GError **error);
/* self may be NULL. */
void muster_directory_unlock (MusterDirectoryLock *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterDirectoryLock, muster_directory_unlock)

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/* MusterDirectoryLock locks a directory of checkpoints against other writers, for the short time in
 * which something is published, recorded, quarantined or removed, never while a master writes
 * tensors. Readers need no lock. The lock ends with its process. A process can't hold it twice.
 *
 * A store that can't rename has no such lock: there files are replaced if they haven't changed
 * since they were read (muster_storage_replace ()), and what loses is tried again. */

typedef struct _MusterDirectoryLock MusterDirectoryLock;

/* The locked file. Its text names the last holder. */
#define MUSTER_LOCK_FILE ".muster.lock"

/* Waits for the lock until deadline_us of clock (NULL: the machine's). DEADLINE_EXCEEDED names the
 * holder. Any thread. */
MusterDirectoryLock *muster_directory_lock (MusterStorage *storage, const char *directory,
                                            gint64 deadline_us, MusterClock *clock,
                                            GCancellable *cancellable, GError **error);
/* After a failure with why, which it takes: TRUE if another writer changed a file of a store
 * without locks (ABORTED), so that all is to be read and tried again; that waits for a moment.
 * Otherwise the error is why, or DEADLINE_EXCEEDED. *n_tries is 0 at first. */
gboolean muster_directory_try_again (guint *n_tries, gint64 deadline_us, MusterClock *clock,
                                     GCancellable *cancellable, GError *why, GError **error);

/* The store with the lock's deadline and cancellable: what is done while it is held ends by then,
 * too. It lives as long as the lock. */
MusterStorage *muster_directory_lock_storage (const MusterDirectoryLock *self);

/* self may be NULL. */
void muster_directory_unlock (MusterDirectoryLock *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterDirectoryLock, muster_directory_unlock)

G_END_DECLS

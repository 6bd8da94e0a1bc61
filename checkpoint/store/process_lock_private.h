// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* A lock of a local file that belongs to the process, by fcntl's record locks: unlike flock's, a
 * child that the process forks has no part in it, so that one which outlives its parent doesn't
 * hold it. The system drops it with the process, also for another host of a network file system.
 *
 * The system drops such a lock, too, when the process closes any descriptor of the file. What is
 * locked is therefore kept once for the process, and locking it again makes sure of it. */

typedef struct _MusterProcessLock MusterProcessLock;

/* fd is the file, open for reading and writing, which it takes. NULL with errno: EAGAIN if another
 * process holds it; ENOLCK if the file system has no such locks. */
MusterProcessLock *muster_process_lock_new (int fd, gboolean is_shared);
/* The same for a file that the process has locked already, by a descriptor that is opened with
 * O_PATH and stays the caller's: *known FALSE without a lock if it hasn't. */
MusterProcessLock *muster_process_lock_again (int path_fd, gboolean is_shared, gboolean *known);
void muster_process_lock_free (MusterProcessLock *self);

/* The other processes that hold a lock of the file (transfer full) (element-type int); those of
 * other machines, which can't be told apart, are one, 0. It takes no lock, and must not be called
 * by a process that holds one. */
GArray *muster_process_lock_holders (const char *path);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/* A file beside the temporary files of one checkpoint, ".saving-0123abcd-NAME-alive", locked while
 * they are in use. Its text names the host. A lock that can be taken there belongs to a dead
 * process, and whoever sweeps the directory removes the files. */

#define MUSTER_ALIVE_SUFFIX "-alive"

/* temporary: their prefix. (transfer full). G_IO_ERROR_BUSY if another process uses them; another
 * error if the store can't lock: then the files are kept for a day. */
MusterStorageLock *muster_alive_mark (MusterStorage *storage, const char *temporary,
                                      GError **error);
/* lock is (nullable). */
void muster_alive_unmark (MusterStorage *storage, const char *temporary, MusterStorageLock *lock);

G_END_DECLS

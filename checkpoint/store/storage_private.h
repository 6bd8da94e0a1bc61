// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/* What the writers in checkpoint/ share, built on the interface's operations. */

/* Writes and syncs a file. Removes it on failure. */
gboolean muster_storage_write_synced (MusterStorage *self, const char *path, const void *data,
                                      gsize size, GError **error);

/* The store for an operation that takes no deadline: bound to a minute, and to the thread's
 * g_cancellable_get_current () (transfer full). clock (nullable): as muster_storage_bound (). */
MusterStorage *muster_storage_bound_to_default (MusterStorage *self, MusterClock *clock);

/* The store for what is tidied up after a failure (transfer full): what is cancelled or late has a
 * moment of its own, for all of it. */
MusterStorage *muster_storage_for_cleanup (MusterStorage *self);

/* Removes a temporary file after a failure, in such a moment; errors are ignored. */
void muster_storage_remove_quietly (MusterStorage *self, const char *path);

/* Renames a file, or copies and removes it in a store that can't; there `to` is removed first. */
gboolean muster_storage_move (MusterStorage *self, const char *from, const char *to,
                              GError **error);

/* A unique name next to path. */
char *muster_storage_temporary_name (const char *path);

/* TRUE if it has no scheme, or that of files. */
gboolean muster_storage_is_file_path (const char *path);

G_END_DECLS

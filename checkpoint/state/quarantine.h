// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/* Lists the checkpoints in a directory by their files, and quarantines those that must not be
 * restored. */

/**
 * muster_checkpoint_list:
 * @storage: (nullable): where; `NULL`: local files
 * @directory: a directory of checkpoints
 * @error: return location for an error
 *
 * The checkpoints that have an index in a directory, oldest first; those with the same base name by
 * step. Temporary and quarantined ones are left out. A missing directory is `G_FILE_ERROR_NOENT`.
 *
 * Returns: (array zero-terminated=1) (transfer full): their prefixes
 */
char **muster_checkpoint_list (MusterStorage *storage, const char *directory, GError **error);

/**
 * muster_checkpoint_list_quarantined:
 * @storage: (nullable): where; `NULL`: local files
 * @directory: a directory of checkpoints
 * @error: return location for an error
 *
 * The quarantined checkpoints of a directory, in the order of [func@checkpoint_list].
 *
 * Returns: (array zero-terminated=1) (transfer full): their prefixes
 */
char **muster_checkpoint_list_quarantined (MusterStorage *storage, const char *directory,
                                           GError **error);

/**
 * muster_checkpoint_step:
 * @prefix: a checkpoint
 *
 * The step in a prefix: 1200 for `model.ckpt-1200` and `model.ckpt-1200.bad`.
 *
 * Returns: the step; -1 if it has none
 */
gint64 muster_checkpoint_step (const char *prefix);

/**
 * muster_checkpoint_is_quarantined:
 * @prefix: a checkpoint
 *
 * Whether a name is that of a quarantined checkpoint: `….bad`, `….bad-2`.
 *
 * Returns: `TRUE` if it is
 */
gboolean muster_checkpoint_is_quarantined (const char *prefix);

/**
 * muster_checkpoint_quarantine:
 * @storage: (nullable): where; `NULL`: local files
 * @prefix: a checkpoint
 * @reason: why it must not be restored
 * @quarantined: (out) (optional) (transfer full): its new prefix
 * @error: return location for an error
 *
 * Quarantines a checkpoint: no restore uses it again. Its files are renamed to `PREFIX.bad.index`
 * and so on (`PREFIX.bad-2` if that exists), which is a valid prefix; nothing is deleted. The
 * reason is written to the side file, and the state files remove the name. A state file that would
 * become empty keeps it, so that no job starts anew because its only checkpoint was bad. Takes the
 * directory's lock. `NOT_FOUND` if there is no index.
 *
 * Returns: `TRUE` if it is quarantined
 */
gboolean muster_checkpoint_quarantine (MusterStorage *storage, const char *prefix,
                                       const char *reason, char **quarantined, GError **error);

G_END_DECLS

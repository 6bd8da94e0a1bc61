// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/* Lists the checkpoints in a directory by their files, and quarantines those that must not be
 * restored. */

/* The prefixes that have an index in a directory, oldest first; those with the same base name by
 * step. Temporary and quarantined ones are left out. NULL-terminated (transfer full). A missing
 * directory is G_FILE_ERROR_NOENT. */
char **muster_checkpoint_list (MusterStorage *storage, const char *directory, GError **error);
/* The quarantined ones. */
char **muster_checkpoint_list_quarantined (MusterStorage *storage, const char *directory,
                                           GError **error);

/* The step in a prefix: 1200 for "model.ckpt-1200" and "model.ckpt-1200.bad"; -1 if it has none. */
gint64 muster_checkpoint_step (const char *prefix);

/* TRUE for a quarantined name: "….bad", "….bad-2". */
gboolean muster_checkpoint_is_quarantined (const char *prefix);

/* Quarantines a checkpoint. Its files are renamed to PREFIX.bad.index and so on (PREFIX.bad-2 if
 * that exists), which is a valid prefix; nothing is deleted. The reason is written to the side
 * file, and the state files remove the name. A state file that would become empty keeps it, so that
 * no job starts anew because its only checkpoint was bad. *quarantined (nullable) (transfer full)
 * is the new prefix. Takes the directory's lock, which the caller mustn't hold. NOT_FOUND if there
 * is no index. */
gboolean muster_checkpoint_quarantine (MusterStorage *storage, const char *prefix,
                                       const char *reason, char **quarantined, GError **error);

G_END_DECLS

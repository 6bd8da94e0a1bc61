// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/* The checkpoints that lie in a directory, by their files; and those among them that are not to be
 * restored. */

/* The prefixes whose index lies in a directory, oldest first: those of one base name by their
 * steps. Without temporary ones and without those set aside. NULL-terminated (transfer full); an
 * absent directory is G_FILE_ERROR_NOENT. */
char **muster_checkpoint_list (MusterStorage *storage, const char *directory, GError **error);
/* Those set aside. */
char **muster_checkpoint_list_quarantined (MusterStorage *storage, const char *directory,
                                           GError **error);

/* The step in a prefix's name, "model.ckpt-1200" -> 1200, "model.ckpt-1200.bad" too; -1 if it has
 * none. */
gint64 muster_checkpoint_step (const char *prefix);

/* TRUE for the name of one that was set aside: "….bad", "….bad-2". */
gboolean muster_checkpoint_is_quarantined (const char *prefix);

/* Takes a checkpoint out of use and deletes nothing: its files become PREFIX.bad.index and so on
 * (PREFIX.bad-2 where that is taken), which is itself a prefix; the reason goes to the side file,
 * and the state files forget it. A state file that would have nothing left still names it: no job
 * may begin anew because its only checkpoint was bad. *quarantined (nullable) (transfer full) is
 * the new prefix. Takes the directory's lock: whoever holds it would wait for itself. NOT_FOUND
 * where there is no index. */
gboolean muster_checkpoint_quarantine (MusterStorage *storage, const char *prefix,
                                       const char *reason, char **quarantined, GError **error);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/* MusterCheckpointState is DIRECTORY/checkpoint, the text file that names the latest checkpoint and
 * the kept ones (SAV.1 to SAV.10). A plain struct. Paths are written relative to the directory, so
 * that it can be moved (unless absolute_paths), and resolved when read. Unknown fields are
 * accepted. */

typedef struct {
  char *latest;       /* (owned) (nullable) a prefix */
  GPtrArray *all;     /* (owned) (element-type utf8) prefixes, oldest first */
  GArray *timestamps; /* (owned) (element-type double) seconds since 1970: empty, or one for each of
                         all */
  double last_preserved;
  gboolean absolute_paths; /* write absolute paths as given */
} MusterCheckpointState;

MusterCheckpointState *muster_checkpoint_state_new (void);
void muster_checkpoint_state_free (MusterCheckpointState *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterCheckpointState, muster_checkpoint_state_free)

/* Reads DIRECTORY/checkpoint. NULL without an error if it doesn't exist. DATA_LOSS if it can't be
 * read or parsed or has no path: an unreadable state must not look like a missing one. */
MusterCheckpointState *muster_checkpoint_state_read (MusterStorage *storage, const char *directory,
                                                     GError **error);

/* Writes it atomically (muster_storage_publish). Prefixes in directory become relative. latest is
 * added to all if it is missing there. */
gboolean muster_checkpoint_state_write (MusterStorage *storage, const char *directory,
                                        const MusterCheckpointState *self, GError **error);

/* The same for a state file with another name (nullable: "checkpoint"), so that two savers can
 * share a directory. */
MusterCheckpointState *muster_checkpoint_state_read_named (MusterStorage *storage,
                                                           const char *directory, const char *name,
                                                           GError **error);
gboolean muster_checkpoint_state_write_named (MusterStorage *storage, const char *directory,
                                              const char *name, const MusterCheckpointState *self,
                                              GError **error);

/* TRUE if PREFIX.index exists. */
gboolean muster_checkpoint_exists (MusterStorage *storage, const char *prefix);

/* TRUE if a file PATTERN.index or PATTERN exists. Like tf.train.checkpoint_exists, this includes
 * checkpoints of the old format ("x-?????-of-00002"). '?' and '*' are wildcards after the last '/'.
 */
gboolean muster_checkpoint_matches (MusterStorage *storage, const char *pattern);

/* The latest checkpoint of a directory (transfer full). NULL without an error if there is no state;
 * NOT_FOUND if the state names a checkpoint without files. If an absolute path doesn't exist, the
 * directory is searched for its base name. */
char *muster_latest_checkpoint (MusterStorage *storage, const char *directory, GError **error);
/* The same with a state file of another name (nullable: "checkpoint"). */
char *muster_latest_checkpoint_named (MusterStorage *storage, const char *directory,
                                      const char *name, GError **error);

/* When the indexes of prefixes (NULL-terminated) were written, in seconds since 1970: (transfer
 * full) (element-type double). Missing ones are left out. */
GArray *muster_checkpoint_mtimes (MusterStorage *storage, const char *const *prefixes);

/* "PREFIX.meta"; "m-3.meta" for "m-3-00001-of-00002", a shard of the old format. */
char *muster_checkpoint_meta_path (const char *prefix);

/* The path of a prefix that a directory's state names. If it is absolute and doesn't exist, but its
 * base name exists in the directory, that one is returned, since the directory may have been moved.
 * (transfer full) */
char *muster_checkpoint_locate (MusterStorage *storage, const char *directory, const char *prefix);

/* Removes PREFIX.index, then PREFIX.meta and PREFIX.data-*, so that no reader finds half a
 * checkpoint. G_IO_ERROR_BUSY, and nothing is removed, while a reader holds MUSTER_LOCK_SHARED on
 * the index. Missing files are no error. */
gboolean muster_remove_checkpoint (MusterStorage *storage, const char *prefix, GError **error);

G_END_DECLS

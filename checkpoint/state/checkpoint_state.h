// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/* MusterCheckpointState is DIRECTORY/checkpoint, the text file that names the latest checkpoint and
 * those kept (SAV.1 to SAV.10). A plain struct. Written with relative paths, so that a directory
 * can be moved (unless absolute_paths); read with relative paths put behind the directory. Unknown
 * fields are accepted. */

typedef struct {
  char *latest;       /* (owned) (nullable) a prefix */
  GPtrArray *all;     /* (owned) (element-type utf8) prefixes, oldest first */
  GArray *timestamps; /* (owned) (element-type double) seconds since 1970: none, or one for each of
                         all */
  double last_preserved;
  gboolean absolute_paths; /* TRUE: an absolute path is written as it stands */
} MusterCheckpointState;

MusterCheckpointState *muster_checkpoint_state_new (void);
void muster_checkpoint_state_free (MusterCheckpointState *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterCheckpointState, muster_checkpoint_state_free)

/* Reads DIRECTORY/checkpoint. Absent: NULL without an error. Unreadable, unparsable or without a
 * path: DATA_LOSS, since an unreadable state must not look like none. */
MusterCheckpointState *muster_checkpoint_state_read (MusterStorage *storage, const char *directory,
                                                     GError **error);

/* Writes it whole (muster_storage_publish). Prefixes inside directory become relative. latest is
 * added to all where it is missing there. */
gboolean muster_checkpoint_state_write (MusterStorage *storage, const char *directory,
                                        const MusterCheckpointState *self, GError **error);

/* The same for a state file of another name (nullable): two savers may share a directory so. NULL
 * is "checkpoint". */
MusterCheckpointState *muster_checkpoint_state_read_named (MusterStorage *storage,
                                                           const char *directory, const char *name,
                                                           GError **error);
gboolean muster_checkpoint_state_write_named (MusterStorage *storage, const char *directory,
                                              const char *name, const MusterCheckpointState *self,
                                              GError **error);

/* TRUE if PREFIX.index is there. */
gboolean muster_checkpoint_exists (MusterStorage *storage, const char *prefix);

/* TRUE if something is called PATTERN.index, or PATTERN: as tf.train.checkpoint_exists, which
 * counts a checkpoint of the old format too ("x-?????-of-00002"). '?' and '*' are honoured behind
 * the last
 * '/'. */
gboolean muster_checkpoint_matches (MusterStorage *storage, const char *pattern);

/* The latest checkpoint of a directory (transfer full): NULL without an error where there is no
 * state; NOT_FOUND where the state names one whose files are gone. An absolute path that is gone is
 * looked for by its base name in the directory. */
char *muster_latest_checkpoint (MusterStorage *storage, const char *directory, GError **error);
/* The same by a state file of another name (nullable): "checkpoint". */
char *muster_latest_checkpoint_named (MusterStorage *storage, const char *directory,
                                      const char *name, GError **error);

/* When the indexes of prefixes (NULL-terminated) were last written, in seconds since 1970:
 * (transfer full) (element-type double). One that isn't there is left out. */
GArray *muster_checkpoint_mtimes (MusterStorage *storage, const char *const *prefixes);

/* "PREFIX.meta"; for "m-3-00001-of-00002", one shard of an old format, "m-3.meta". */
char *muster_checkpoint_meta_path (const char *prefix);

/* Where a prefix that a directory's state names lies: an absolute one that is gone is looked for by
 * its base name in the directory, which may have been moved. (transfer full) */
char *muster_checkpoint_locate (MusterStorage *storage, const char *directory, const char *prefix);

/* Removes PREFIX.index, PREFIX.meta and PREFIX.data-*; index first, so that no reader finds half of
 * it. G_IO_ERROR_BUSY, with nothing removed, while somebody who holds MUSTER_LOCK_SHARED on the
 * index reads it. What is gone already is no error. */
gboolean muster_remove_checkpoint (MusterStorage *storage, const char *prefix, GError **error);

G_END_DECLS

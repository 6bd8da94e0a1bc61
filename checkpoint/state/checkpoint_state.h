// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/**
 * MusterCheckpointState:
 * @latest: (nullable): the prefix of the latest checkpoint
 * @all: (element-type utf8): the prefixes of all listed checkpoints, oldest first
 * @timestamps: (element-type gdouble): when each was saved, in seconds since 1970: empty, or one
 * for each of @all
 * @last_preserved: the time of the last checkpoint that was preserved, in seconds since 1970
 * @absolute_paths: whether absolute paths are written as given
 * @version: (nullable): of the file that was read, which alone is replaced where the store has
 * versions ([method@Storage.replace]); `NULL`: whatever is there
 *
 * The content of `DIRECTORY/checkpoint`, the text file that names the latest checkpoint and the
 * kept ones (SAV.1 to SAV.10), TensorFlow's `CheckpointState`.
 *
 * Paths are written relative to the directory, so that it can be moved (unless @absolute_paths),
 * and resolved when read. Unknown fields are accepted. The struct owns what its fields point to.
 */
typedef struct {
  char *latest;
  GPtrArray *all;
  GArray *timestamps;
  double last_preserved;
  gboolean absolute_paths;
  char *version;
} MusterCheckpointState;

#define MUSTER_TYPE_CHECKPOINT_STATE (muster_checkpoint_state_get_type ())
GType muster_checkpoint_state_get_type (void);

/**
 * muster_checkpoint_state_new:
 *
 * An empty state.
 *
 * Returns: (transfer full): the state
 */
MusterCheckpointState *muster_checkpoint_state_new (void);

/**
 * muster_checkpoint_state_copy:
 * @self: a state
 *
 * Copies a state with its lists.
 *
 * Returns: (transfer full): the copy
 */
MusterCheckpointState *muster_checkpoint_state_copy (const MusterCheckpointState *self);

/**
 * muster_checkpoint_state_free:
 * @self: (transfer full) (nullable): a state
 *
 * Frees a state.
 */
void muster_checkpoint_state_free (MusterCheckpointState *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterCheckpointState, muster_checkpoint_state_free)

/**
 * muster_checkpoint_state_add:
 * @self: a state
 * @prefix: a checkpoint, which becomes the latest
 * @time: when it was saved, in seconds since 1970; dropped if the ones before have no times
 *
 * Adds a checkpoint to the end of the list.
 */
void muster_checkpoint_state_add (MusterCheckpointState *self, const char *prefix, double time);

/**
 * muster_checkpoint_state_prefixes:
 * @self: a state
 *
 * The listed checkpoints as strings, for languages that can't read @all.
 *
 * Returns: (array zero-terminated=1) (transfer full): the prefixes, oldest first
 */
char **muster_checkpoint_state_prefixes (const MusterCheckpointState *self);

/**
 * muster_checkpoint_state_times:
 * @self: a state
 * @n_times: (out): their number
 *
 * The times of the listed checkpoints, for languages that can't read @timestamps.
 *
 * Returns: (array length=n_times) (transfer full): seconds since 1970: none, or one for each prefix
 */
double *muster_checkpoint_state_times (const MusterCheckpointState *self, gsize *n_times);

/**
 * muster_checkpoint_state_read:
 * @storage: (nullable): where; `NULL`: local files
 * @directory: a directory of checkpoints
 * @error: return location for an error
 *
 * Reads `DIRECTORY/checkpoint`, like `tf.train.get_checkpoint_state`. `DATA_LOSS` if it can't be
 * read or parsed or has no path: an unreadable state must not look like a missing one.
 *
 * Returns: (transfer full) (nullable): the state; `NULL` without an error if it doesn't exist
 */
MusterCheckpointState *muster_checkpoint_state_read (MusterStorage *storage, const char *directory,
                                                     GError **error);

/**
 * muster_checkpoint_state_write:
 * @storage: (nullable): where; `NULL`: local files
 * @directory: a directory of checkpoints
 * @self: the state
 * @error: return location for an error
 *
 * Writes the state file atomically ([method@Storage.publish]). Prefixes in @directory become
 * relative. The latest checkpoint is added to the list if it is missing there.
 *
 * Returns: `TRUE` if it is durable
 */
gboolean muster_checkpoint_state_write (MusterStorage *storage, const char *directory,
                                        const MusterCheckpointState *self, GError **error);

/**
 * muster_checkpoint_state_read_named:
 * @storage: (nullable): where; `NULL`: local files
 * @directory: a directory of checkpoints
 * @name: (nullable): the state file's name; `NULL`: `checkpoint`
 * @error: return location for an error
 *
 * [func@CheckpointState.read] for a state file with another name, so that two savers can share a
 * directory.
 *
 * Returns: (transfer full) (nullable): the state; `NULL` without an error if it doesn't exist
 */
MusterCheckpointState *muster_checkpoint_state_read_named (MusterStorage *storage,
                                                           const char *directory, const char *name,
                                                           GError **error);

/**
 * muster_checkpoint_state_write_named:
 * @storage: (nullable): where; `NULL`: local files
 * @directory: a directory of checkpoints
 * @name: (nullable): the state file's name; `NULL`: `checkpoint`
 * @self: the state
 * @error: return location for an error
 *
 * [func@CheckpointState.write] for a state file with another name.
 *
 * Returns: `TRUE` if it is durable
 */
gboolean muster_checkpoint_state_write_named (MusterStorage *storage, const char *directory,
                                              const char *name, const MusterCheckpointState *self,
                                              GError **error);

/**
 * muster_checkpoint_exists:
 * @storage: (nullable): where; `NULL`: local files
 * @prefix: a checkpoint
 *
 * Whether `PREFIX.index` exists.
 *
 * Returns: `TRUE` if it does
 */
gboolean muster_checkpoint_exists (MusterStorage *storage, const char *prefix);

/**
 * muster_checkpoint_matches:
 * @storage: (nullable): where; `NULL`: local files
 * @pattern: a checkpoint; `?` and `*` are wildcards after the last `/`
 *
 * Whether a file `PATTERN.index` or `PATTERN` exists. Like `tf.train.checkpoint_exists`, this
 * includes checkpoints of the old format (`x-?????-of-00002`).
 *
 * Returns: `TRUE` if one does
 */
gboolean muster_checkpoint_matches (MusterStorage *storage, const char *pattern);

/**
 * muster_latest_checkpoint:
 * @storage: (nullable): where; `NULL`: local files
 * @directory: a directory of checkpoints
 * @error: return location for an error
 *
 * The latest checkpoint of a directory, as its state file names it, like
 * `tf.train.latest_checkpoint`. `NOT_FOUND` if the state names a checkpoint without files. A path
 * that doesn't exist is looked for in the directory by its base name
 * ([func@checkpoint_locate]).
 *
 * Returns: (transfer full) (nullable): its prefix; `NULL` without an error if there is no state
 */
char *muster_latest_checkpoint (MusterStorage *storage, const char *directory, GError **error);

/**
 * muster_latest_checkpoint_named:
 * @storage: (nullable): where; `NULL`: local files
 * @directory: a directory of checkpoints
 * @name: (nullable): the state file's name; `NULL`: `checkpoint`
 * @error: return location for an error
 *
 * [func@latest_checkpoint] with a state file of another name.
 *
 * Returns: (transfer full) (nullable): its prefix; `NULL` without an error if there is no state
 */
char *muster_latest_checkpoint_named (MusterStorage *storage, const char *directory,
                                      const char *name, GError **error);

/**
 * muster_checkpoint_mtimes:
 * @storage: (nullable): where; `NULL`: local files
 * @prefixes: (array zero-terminated=1): checkpoints
 *
 * When the indexes of checkpoints were written, like `tf.train.get_checkpoint_mtimes`. Missing ones
 * are left out.
 *
 * Returns: (transfer full) (element-type gdouble): seconds since 1970
 */
GArray *muster_checkpoint_mtimes (MusterStorage *storage, const char *const *prefixes);

/**
 * muster_checkpoint_meta_path:
 * @prefix: a checkpoint
 *
 * The path of a checkpoint's meta graph: `PREFIX.meta`; `m-3.meta` for `m-3-00001-of-00002`, a
 * shard of the old format.
 *
 * Returns: (transfer full): the path
 */
char *muster_checkpoint_meta_path (const char *prefix);

/**
 * muster_checkpoint_locate:
 * @storage: (nullable): where; `NULL`: local files
 * @directory: a directory of checkpoints
 * @prefix: a prefix that the directory's state names
 *
 * The path of a checkpoint that a directory's state names. If it doesn't exist, but its base name
 * exists in the directory, that one is returned, since the directory may have been moved. A path of
 * another store (`gs://…`) or of Windows (`C:\…`) is always looked for in the directory.
 *
 * Returns: (transfer full): the path
 */
char *muster_checkpoint_locate (MusterStorage *storage, const char *directory, const char *prefix);

/**
 * muster_remove_checkpoint:
 * @storage: (nullable): where; `NULL`: local files
 * @prefix: a checkpoint
 * @error: return location for an error
 *
 * Removes `PREFIX.index`, then `PREFIX.meta` and `PREFIX.data-*`, so that no reader finds half a
 * checkpoint, like `tf.train.remove_checkpoint`. `G_IO_ERROR_BUSY`, and nothing is removed, while a
 * reader holds %MUSTER_LOCK_SHARED on the index. Missing files are no error.
 *
 * Returns: `TRUE` if the files are gone
 */
gboolean muster_remove_checkpoint (MusterStorage *storage, const char *prefix, GError **error);

G_END_DECLS

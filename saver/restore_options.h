// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_entry.h"

G_BEGIN_DECLS

/**
 * MusterRestoreOptions:
 * @prefix: (nullable): restores exactly this checkpoint. Set either this or @directory
 * @directory: (nullable): restores the newest complete checkpoint of this directory
 * @allow_missing: (attributes flag=allow-missing of=prepare,train): initialise variables that are
 * missing in the checkpoint, such as positions, even if they have a value on the master
 * @may_lack: (nullable) (array zero-terminated=1): names of global variables. A checkpoint that has
 *   none of them is compatible: they run their initializers
 * @refuse_unexpected: (attributes flag=refuse-unexpected of=prepare): refuse a checkpoint with
 *   tensors that the graph doesn't restore
 * @reshape: (attributes flag=reshape of=prepare): accept a different shape with the same number of
 *   elements
 * @names: (nullable) (element-type utf8 utf8): the name of a variable in the graph to its name in
 *   the checkpoint; "a*" to "b*": of all variables that begin with "a"
 * @fall_back_off: (attributes flag=no-fall-back of=prepare): fail if the latest checkpoint of the
 *   directory is damaged. No other one of the directory is used
 * @fall_back_to_files: (attributes flag=from-files of=prepare,train): use the newest of the
 * directory's files if its state file is missing or unreadable, or names only missing checkpoints
 * @keep_damaged: (attributes flag=keep-damaged of=prepare): skip a damaged checkpoint without
 *   quarantining it
 * @needs: (nullable) (array zero-terminated=1): names in the checkpoint. A checkpoint that is
 *   incompatible with the graph and lacks one of these was saved without them: it is skipped, not
 *   quarantined
 * @count_deaths: quarantine the checkpoint if three consecutive runs restored it and died
 *   ([method@Saver.mark_good])
 * @progress: (nullable) (skip): called during the restore
 * @user_data: (skip): for @progress
 *
 * Options of a restore: the checkpoint, what is compatible, and what is used of a directory.
 *
 * If they allow more than the graph's own restore op does, the chief reads the tensors and feeds
 * them instead. C code fills a zeroed struct; a copy owns everything that it points to.
 */
typedef struct {
  const char *prefix;
  const char *directory;

  gboolean allow_missing;
  const char *const *may_lack;
  gboolean refuse_unexpected;
  gboolean reshape;
  GHashTable *names;

  gboolean fall_back_off;
  gboolean fall_back_to_files;
  gboolean keep_damaged;
  const char *const *needs;
  gboolean count_deaths;

  MusterBundleProgress progress;
  gpointer user_data;
  /*< private >*/
  GBytes *progress_owner;
} MusterRestoreOptions;

#define MUSTER_TYPE_RESTORE_OPTIONS (muster_restore_options_get_type ())
GType muster_restore_options_get_type (void);

/**
 * muster_restore_options_new:
 * @prefix: (nullable): the checkpoint to restore
 * @directory: (nullable): or the directory whose newest complete checkpoint is restored
 *
 * Options that own what they point to.
 *
 * Returns: (transfer full): options
 */
MusterRestoreOptions *muster_restore_options_new (const char *prefix, const char *directory);

/**
 * muster_restore_options_set_names:
 * @self: options of [ctor@RestoreOptions.new] or a copy
 * @names: (nullable) (element-type utf8 utf8): the name of a variable in the graph to its name in
 *   the checkpoint
 *
 * Sets the variables that the checkpoint calls otherwise.
 */
void muster_restore_options_set_names (MusterRestoreOptions *self, GHashTable *names);

/**
 * muster_restore_options_set_progress:
 * @self: options of [ctor@RestoreOptions.new] or a copy
 * @progress: (nullable) (scope notified) (closure user_data) (destroy destroy): called during the
 *   restore
 * @user_data: for @progress
 * @destroy: called with @user_data when it isn't needed any more
 *
 * Sets what reports the progress.
 */
void muster_restore_options_set_progress (MusterRestoreOptions *self, MusterBundleProgress progress,
                                          gpointer user_data, GDestroyNotify destroy);

/**
 * MusterRestored:
 * @prefix: (nullable): the checkpoint; `NULL`: there was none to restore
 * @n_tensors: the number of tensors that were restored
 * @bytes: of these tensors
 * @initialised: (nullable) (array zero-terminated=1): variables that were initialised because the
 *   checkpoint lacks them
 * @warning: (nullable): warnings about the checkpoint, one per line
 * @passed_over: (nullable): newer checkpoints that were skipped and why, one per line
 *
 * What was restored. The struct owns what its fields point to.
 */
typedef struct {
  char *prefix;
  guint n_tensors;
  guint64 bytes;
  char **initialised;
  char *warning;
  char *passed_over;
} MusterRestored;

#define MUSTER_TYPE_RESTORED (muster_restored_get_type ())
GType muster_restored_get_type (void);

/**
 * muster_restored_clear:
 * @self: a result
 *
 * Frees what the fields point to.
 */
void muster_restored_clear (MusterRestored *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterRestored, muster_restored_clear)

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/async/async_saver.h"

G_BEGIN_DECLS

/**
 * MusterCheckpointManager:
 *
 * Numbers one model's checkpoints in a directory, `DIRECTORY/ckpt-1` and so on, like
 * `tf.train.CheckpointManager`: a saver with its retention rules, a save counter and an interval in
 * steps.
 *
 * Checkpoints are written in the background ([class@AsyncSaver]). Any thread; saves run one at a
 * time, so a save waits for the one before.
 */
#define MUSTER_TYPE_CHECKPOINT_MANAGER (muster_checkpoint_manager_get_type ())
G_DECLARE_FINAL_TYPE (MusterCheckpointManager, muster_checkpoint_manager, MUSTER,
                      CHECKPOINT_MANAGER, GObject)

/**
 * MusterReadStep:
 * @session: the session of the save
 * @step: (out): the training's step
 * @deadline_us: when to give up
 * @cancellable: (nullable): stops it
 * @user_data: the caller's
 * @error: return location for an error
 *
 * Reads the training's step, in which the interval counts.
 *
 * Returns: `TRUE` if @step was set
 */
typedef gboolean (*MusterReadStep) (MusterSession *session, gint64 *step, gint64 deadline_us,
                                    GCancellable *cancellable, gpointer user_data, GError **error);

/**
 * MusterWaitForSaves:
 * @deadline_us: when to give up
 * @cancellable: (nullable): stops it
 * @user_data: the caller's
 * @error: return location for an error
 *
 * Waits until no other background save is running, for example by [method@AsyncSaver.sync].
 *
 * Returns: `TRUE` if none is
 */
typedef gboolean (*MusterWaitForSaves) (gint64 deadline_us, GCancellable *cancellable,
                                        gpointer user_data, GError **error);

/**
 * MusterCheckpointManagerOptions:
 * @saver: of its saver. The defaults of base_name and keep_every_n_hours are here `ckpt` and none;
 *   keep_rule is %MUSTER_KEEP_MANAGER, whatever is set
 * @policy: of saves in the background, as [ctor@AsyncSaver.new] has it
 * @budget_bytes: likewise
 * @finished: (nullable) (skip): called after each save in the background, as
 *   [method@AsyncSaver.set_finished] says
 * @finished_data: (skip): for @finished
 * @checkpoint_interval: in steps; 0: none, and read_step isn't called
 * @read_step: (nullable) (skip): required with checkpoint_interval
 * @step_data: (skip): for @read_step
 * @initialize: (nullable) (skip): initialises a model without a checkpoint
 * @initialize_data: (skip): for @initialize
 * @wait_for_saves: (nullable) (skip): before a restore, besides its own saves
 * @wait_data: (skip): for @wait_for_saves
 * @is_blocking: each save returns once its checkpoint is durable
 *
 * Options of a checkpoint manager. A zeroed struct is the default.
 */
typedef struct {
  MusterSaverOptions saver;
  MusterSavePolicy policy;
  guint64 budget_bytes;
  MusterSaveFinished finished;
  gpointer finished_data;
  gint64 checkpoint_interval;
  MusterReadStep read_step;
  gpointer step_data;
  MusterSessionFunc initialize;
  gpointer initialize_data;
  MusterWaitForSaves wait_for_saves;
  gpointer wait_data;
  gboolean is_blocking;
  /*< private >*/
  GBytes *owner;
} MusterCheckpointManagerOptions;

#define MUSTER_TYPE_CHECKPOINT_MANAGER_OPTIONS (muster_checkpoint_manager_options_get_type ())
GType muster_checkpoint_manager_options_get_type (void);

/**
 * muster_checkpoint_manager_options_set_finished:
 * @self: options, zeroed by g_new0 () or a copy
 * @finished: (nullable) (scope notified) (closure user_data) (destroy destroy): called after each
 *   save in the background
 * @user_data: for @finished
 * @destroy: called with @user_data when no manager needs it any more
 *
 * Sets what is called after each save in the background.
 */
void muster_checkpoint_manager_options_set_finished (MusterCheckpointManagerOptions *self,
                                                     MusterSaveFinished finished,
                                                     gpointer user_data, GDestroyNotify destroy);

/**
 * muster_checkpoint_manager_options_set_read_step:
 * @self: options, zeroed by g_new0 () or a copy
 * @read_step: (nullable) (scope notified) (closure user_data) (destroy destroy): required with
 *   checkpoint_interval
 * @user_data: for @read_step
 * @destroy: called with @user_data when no manager needs it any more
 *
 * Sets what reads the training's step.
 */
void muster_checkpoint_manager_options_set_read_step (MusterCheckpointManagerOptions *self,
                                                      MusterReadStep read_step, gpointer user_data,
                                                      GDestroyNotify destroy);

/**
 * muster_checkpoint_manager_options_set_initialize:
 * @self: options, zeroed by g_new0 () or a copy
 * @initialize: (nullable) (scope notified) (closure user_data) (destroy destroy): initialises a
 * model without a checkpoint
 * @user_data: for @initialize
 * @destroy: called with @user_data when no manager needs it any more
 *
 * Sets what initialises a model that has no checkpoint.
 */
void muster_checkpoint_manager_options_set_initialize (MusterCheckpointManagerOptions *self,
                                                       MusterSessionFunc initialize,
                                                       gpointer user_data, GDestroyNotify destroy);

/**
 * muster_checkpoint_manager_options_set_wait_for_saves:
 * @self: options, zeroed by g_new0 () or a copy
 * @wait_for_saves: (nullable) (scope notified) (closure user_data) (destroy destroy): called before
 * a restore, besides the wait for its own saves
 * @user_data: for @wait_for_saves
 * @destroy: called with @user_data when no manager needs it any more
 *
 * Sets what waits for other background saves.
 */
void muster_checkpoint_manager_options_set_wait_for_saves (MusterCheckpointManagerOptions *self,
                                                           MusterWaitForSaves wait_for_saves,
                                                           gpointer user_data,
                                                           GDestroyNotify destroy);

/**
 * muster_checkpoint_manager_new:
 * @meta_graph: the model
 * @directory: the directory of its checkpoints
 * @options: (nullable): `NULL`: the defaults
 * @error: return location for an error
 *
 * Continues from the directory's state: its list, the time of the last preserved checkpoint, and
 * the counter from the latest. Checkpoints that may be as old as the last preserved one are left
 * alone.
 *
 * Returns: (transfer full): the manager
 */
MusterCheckpointManager *
muster_checkpoint_manager_new (MusterMetaGraph *meta_graph, const char *directory,
                               const MusterCheckpointManagerOptions *options, GError **error);

/**
 * muster_checkpoint_manager_saver:
 * @self: a manager
 *
 * Its saver, to set a lease, saveables or background saves.
 *
 * Returns: (transfer none): the saver
 */
MusterSaver *muster_checkpoint_manager_saver (MusterCheckpointManager *self);

/**
 * muster_checkpoint_manager_directory:
 * @self: a manager
 *
 * The directory of its checkpoints.
 *
 * Returns: (transfer none): the directory
 */
const char *muster_checkpoint_manager_directory (MusterCheckpointManager *self);

/**
 * muster_checkpoint_manager_save:
 * @self: a manager
 * @session: a session of the model
 * @number: for the checkpoint's name; below 0: the save counter, which increases in both cases
 * @check_interval: skip the save if fewer than checkpoint_interval steps have passed since the last
 *   one; a save that failed doesn't count there
 * @saved: set to the result; clear it
 * @deadline_us: when to give up
 * @cancellable: (nullable): stops it
 * @error: return location for an error
 *
 * Saves as `DIRECTORY/ckpt-NUMBER`. Returns when the snapshot is staged, with the prefix to be;
 * with is_blocking, and for a model that has no snapshots, when the checkpoint is durable. An
 * unreported error of an earlier save is returned instead of saving. Skipped at the step of the
 * last save (SAV.84).
 *
 * Returns: `TRUE` if it was saved or skipped
 */
gboolean muster_checkpoint_manager_save (MusterCheckpointManager *self, MusterSession *session,
                                         gint64 number, gboolean check_interval, MusterSaved *saved,
                                         gint64 deadline_us, GCancellable *cancellable,
                                         GError **error);

/**
 * muster_checkpoint_manager_sync:
 * @self: a manager
 * @deadline_us: when to give up
 * @cancellable: (nullable): stops it
 * @error: return location for an error
 *
 * Waits until no save is running. Returns the error of a background save that wasn't reported yet.
 * Call it before the end of the program: the last unref waits 5 s at most.
 *
 * Returns: `TRUE` if nothing has failed
 */
gboolean muster_checkpoint_manager_sync (MusterCheckpointManager *self, gint64 deadline_us,
                                         GCancellable *cancellable, GError **error);

/**
 * muster_checkpoint_manager_restore_or_initialize:
 * @self: a manager
 * @session: a session of the model
 * @restored: (out) (optional) (nullable) (transfer full): the checkpoint; `NULL` if there was none
 * @deadline_us: when to give up
 * @cancellable: (nullable): stops it
 * @error: return location for an error
 *
 * Waits for background saves, then restores the newest intact checkpoint. If there is none:
 * calls initialize, if set.
 *
 * Returns: `TRUE` if the model was restored, or there was nothing to restore
 */
gboolean muster_checkpoint_manager_restore_or_initialize (MusterCheckpointManager *self,
                                                          MusterSession *session, char **restored,
                                                          gint64 deadline_us,
                                                          GCancellable *cancellable,
                                                          GError **error);

/**
 * muster_checkpoint_manager_checkpoints:
 * @self: a manager
 *
 * The list of durable checkpoints.
 *
 * Returns: (array zero-terminated=1) (transfer full): their prefixes, oldest first
 */
char **muster_checkpoint_manager_checkpoints (MusterCheckpointManager *self);

/**
 * muster_checkpoint_manager_latest_checkpoint:
 * @self: a manager
 *
 * The newest durable checkpoint.
 *
 * Returns: (transfer full) (nullable): its prefix; `NULL` if there is none
 */
char *muster_checkpoint_manager_latest_checkpoint (MusterCheckpointManager *self);

G_END_DECLS

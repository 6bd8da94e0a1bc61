// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/master.h"
#include "saver/restore.h"

G_BEGIN_DECLS

/**
 * MusterDeviceFunc:
 * @master: the master
 * @deadline_us: the operation's deadline
 * @cancellable: (nullable): the operation's
 * @user_data: the data of the function
 * @error: where to return an error
 *
 * Initialises the master's devices, which may clear their memory. Therefore it runs before the
 * session is created and anything restored (B002.10).
 *
 * Returns: %FALSE fails the operation
 */
typedef gboolean (*MusterDeviceFunc) (MusterMaster *master, gint64 deadline_us,
                                      GCancellable *cancellable, gpointer user_data,
                                      GError **error);

/**
 * MusterContinueFunc:
 * @session: the chief's session
 * @step: (out): the model's step
 * @deadline_us: the operation's deadline
 * @cancellable: (nullable): the operation's
 * @user_data: the data of the function
 * @error: where to return the reason
 *
 * Decides whether a chief may continue with the model that an earlier chief, of the same graph, has
 * prepared and trained on the master: no step that was cut off has changed only a part of it.
 *
 * Returns: %FALSE: the chief prepares the model as if this function weren't set
 */
typedef gboolean (*MusterContinueFunc) (MusterSession *session, gint64 *step, gint64 deadline_us,
                                        GCancellable *cancellable, gpointer user_data,
                                        GError **error);

/**
 * MusterPrepareOptions:
 * @init_op: initialises the model if there is nothing to restore (nullable)
 * @init_ops: (array zero-terminated=1): a list instead, run in one step (nullable)
 * @init_feeds: (array length=n_init_feeds): fed to the init ops
 * @n_init_feeds: the number of feeds
 * @init_func: runs after the init ops, in the chief. An operation that starts again in another
 *   session calls it again (nullable)
 * @init_func_data: its data
 * @saver: NULL: nothing is restored
 * @checkpoint_dir: (attributes flag=checkpoint-dir of=prepare arg=DIR): directory whose latest
 *   checkpoint is restored, if any; `NULL`: none. "" is unset, too
 * @checkpoint_filename: (attributes flag=checkpoint of=prepare arg=PREFIX): checkpoint to restore;
 *   `NULL`: none. It is restored instead of the latest one of @checkpoint_dir
 * @restore: %NULL: defaults; copied, names referenced
 * @wait_for_checkpoint: wait for a checkpoint if there is none
 * @max_wait_us: microseconds to wait for a checkpoint; 0: 7200 s, not "don't wait"; below 0: check
 *   once; %MUSTER_WAIT_FOREVER. If none appears in time, that isn't an error
 * @timeout_us: of the whole operation, in microseconds; 0: %MUSTER_WAIT_FOREVER
 * @epoch: (attributes flag=epoch of=prepare): the chief's epoch; the higher epoch wins; 0: the next
 *   one. The master assigns it, if the model has a name
 * @overwrite: (attributes flag=overwrite of=prepare): discard a model that another chief has
 *   prepared, or whose job is over, and prepare it again. A living chief isn't replaced: end it
 *   first. Only a higher @epoch takes the model from it
 * @reset_master: after the chief has claimed the model, it resets the master and continues in a new
 *   session, unless the ready op says that none of the model's variables has a value. No step of an
 *   earlier session runs on during the restore or init, and all other sessions are lost (ABORTED),
 *   so that their tasks wait for the model again
 * @reset_unclaimed: the same, only if nothing was claimed. If the model was claimed, the claim has
 *   ended the earlier chief's session, and other models on the master are kept
 * @in_place: instead of a reset: @quiesce_func sees to it that no step of another session runs
 *   during the restore or init, which write over the model, if it has values. For tasks with a
 *   master each
 * @quiesce_func: runs before such a reset: it lets the steps of other sessions finish, until the
 *   deadline; steps that remain are aborted. %FALSE fails the operation before anything is reset,
 *   restored or initialised (nullable)
 * @quiesce_func_data: its data
 * @continue_func: if the model was claimed and an earlier chief has left it intact, with the same
 *   graph and checkpoint directory, the chief continues with it: nothing is reset, restored or
 *   initialised. Not with @overwrite, @checkpoint_filename or @device_func, and not in recover.
 *   %NULL: it is always restored or initialised
 * @continue_func_data: its data
 * @device_func: runs before each session that prepare and recover create (nullable)
 * @device_func_data: its data
 * @taken_by: (nullable): the saver with which the chief will save in @checkpoint_dir: it takes the
 *   directory ([method@Saver.take_directory]) before anything on the master is changed
 *
 * How a chief makes a model ready. Copies of the boxed type own everything but functions' data that
 * weren't set by a function of this type.
 */
typedef struct {
  const char *init_op;
  const char *const *init_ops;
  const MusterFeed *init_feeds;
  gsize n_init_feeds;
  MusterSessionFunc init_func;
  gpointer init_func_data;
  MusterSaver *saver;
  const char *checkpoint_dir;
  const char *checkpoint_filename;
  const MusterRestoreOptions *restore;
  gboolean wait_for_checkpoint;
  gint64 max_wait_us;
  gint64 timeout_us;
  gint64 epoch;
  gboolean overwrite;
  gboolean reset_master;
  gboolean reset_unclaimed;
  gboolean in_place;
  MusterSessionFunc quiesce_func;
  gpointer quiesce_func_data;
  MusterContinueFunc continue_func;
  gpointer continue_func_data;
  MusterDeviceFunc device_func;
  gpointer device_func_data;
  MusterSaver *taken_by;
  /*< private >*/
  GBytes *owner;
} MusterPrepareOptions;

#define MUSTER_TYPE_PREPARE_OPTIONS (muster_prepare_options_get_type ())
GType muster_prepare_options_get_type (void);

/**
 * muster_prepare_options_new:
 * @init_op: (nullable): the op that initialises the model if there is nothing to restore
 * @saver: (nullable): the saver that restores it
 * @checkpoint_dir: (nullable): the checkpoint directory
 *
 * Creates options; further fields are set afterwards.
 *
 * Returns: (transfer full): options
 */
MusterPrepareOptions *muster_prepare_options_new (const char *init_op, MusterSaver *saver,
                                                  const char *checkpoint_dir);

/**
 * muster_prepare_options_feed:
 * @self: a copy
 * @name: the tensor to feed: "x:0" or "x"
 * @value: its value, which is referenced
 *
 * Adds a feed for the init ops.
 */
void muster_prepare_options_feed (MusterPrepareOptions *self, const char *name,
                                  MusterTensor *value);

/**
 * muster_prepare_options_set_init_func:
 * @self: a copy
 * @func: (nullable) (scope notified) (closure user_data) (destroy destroy): runs after the init ops
 * @user_data: its data
 * @destroy: (nullable): frees @user_data with the last copy
 *
 * Sets the field of that name in a copy.
 */
void muster_prepare_options_set_init_func (MusterPrepareOptions *self, MusterSessionFunc func,
                                           gpointer user_data, GDestroyNotify destroy);

/**
 * muster_prepare_options_set_quiesce_func:
 * @self: a copy
 * @func: (nullable) (scope notified) (closure user_data) (destroy destroy): runs before a reset
 * @user_data: its data
 * @destroy: (nullable): frees @user_data with the last copy
 *
 * Sets the field of that name in a copy.
 */
void muster_prepare_options_set_quiesce_func (MusterPrepareOptions *self, MusterSessionFunc func,
                                              gpointer user_data, GDestroyNotify destroy);

/**
 * muster_prepare_options_set_continue_func:
 * @self: a copy
 * @func: (nullable) (scope notified) (closure user_data) (destroy destroy): decides whether to
 *   continue
 * @user_data: its data
 * @destroy: (nullable): frees @user_data with the last copy
 *
 * Sets the field of that name in a copy.
 */
void muster_prepare_options_set_continue_func (MusterPrepareOptions *self, MusterContinueFunc func,
                                               gpointer user_data, GDestroyNotify destroy);

/**
 * muster_prepare_options_set_device_func:
 * @self: a copy
 * @func: (nullable) (scope notified) (closure user_data) (destroy destroy): runs before a session
 *   is created
 * @user_data: its data
 * @destroy: (nullable): frees @user_data with the last copy
 *
 * Sets the field of that name in a copy.
 */
void muster_prepare_options_set_device_func (MusterPrepareOptions *self, MusterDeviceFunc func,
                                             gpointer user_data, GDestroyNotify destroy);

G_END_DECLS

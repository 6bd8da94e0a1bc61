// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"
#include "master/save_status.h"
#include "master/session.h"
#include "saver/builder/keep.h"
#include "saver/builder/saveable.h"
#include "saver/directory/free_space.h"
#include "saver/tiers/tier.h"

G_BEGIN_DECLS

/**
 * MusterSaverOptions:
 * @max_to_keep: (attributes flag=keep min=-1 of=train,save): the number of checkpoints to keep; 0:
 * the meta graph's max_to_keep; -1: all (%MUSTER_KEEP_ALL)
 * @base_name: (nullable): the checkpoints' name; `NULL`: `model.ckpt`
 * @no_meta_graph: write no `PREFIX.meta`
 * @no_probe: the first save doesn't check with a small file which devices see the directory
 * @gathered: (attributes flag=save-gathered of=train,save): read the variables through the chief's
 *   session and have the chief write them, even if the master could. The chief does so in any case
 *   if the master doesn't see the directory
 * @storage: (nullable): where checkpoints are; `NULL`: local files
 * @clock: (nullable): `NULL`: the machine's
 * @keep_every_n_hours: preserve a checkpoint every so many hours; 0: the SaverDef's; below 0: none
 *   is preserved
 * @keep_rule: which ones are preserved
 * @keep_every_steps: (attributes flag=keep-every-steps of=train): keep for good the first
 * checkpoint at or after each multiple of N steps; 0: what the last job in this directory used;
 * below 0: none
 * @keep_best: (attributes flag=keep-best of=train): the number of checkpoints with the best @metric
 *   to keep beside the newest; 0: what the last job in this directory used; below 0: none
 * @metric: (nullable) (attributes flag=metric of=train arg=NAME[:OUTPUT]:max|min): the metric that
 *   @keep_best uses: a tensor or op of the graph, `loss` (@loss of [struct@Training]), or a
 *   name that `muster checkpoint mark` gives values to; and whether its max or min is best; `NULL`:
 *   what the last job in this directory used. Values are set before a save
 * ([method@Saver.set_metric]) or afterwards ([func@checkpoint_set_metric]); in training, a tensor
 * or op is fetched with each step
 * @absolute_paths: absolute paths in the state file; otherwise the directory can be moved
 * @latest_filename: (nullable): the state file's name; `NULL`: `checkpoint`
 * @pad_step_number: `model.ckpt-00001200`
 * @unlisted: no state file, no list, no deletion
 * @allow_empty: allows a meta graph without a SaverDef, for lack of variables: a save writes only
 *   the meta graph and is skipped, a restore does nothing; a directory with a checkpoint is refused
 * @adopt_unknown: the saver lists and deletes all checkpoints with this base name in a directory,
 *   even if no state file or record names them
 * @when_full: (attributes flag=when-full of=save arg=fail|skip|pause): action if there isn't enough
 *   free space; 0: fail
 * @save_timeout_us: (attributes flag=save-timeout of=train): the time after which a save fails; 0:
 *   forever. It holds whatever the save's deadline, so that a master that hangs doesn't block it.
 *   Should exceed the longest save and the longest wait for space
 * @paused: (nullable) (skip): called on the saving thread at each check that finds no space
 * @paused_data: (skip): for @paused
 * @fast: (nullable) (array length=n_fast): fast tiers in front of the directory of a save, fastest
 * first. A restore of the directory also looks there; saves go there by the tiers that are due
 * ([method@Saver.save_with])
 * @n_fast: their number, %MUSTER_MAX_FAST_TIERS at most
 *
 * Options of a saver. A zeroed struct is the default, a plain `tf.train.Saver`.
 */
typedef struct {
  int max_to_keep;
  const char *base_name;
  gboolean no_meta_graph;
  gboolean no_probe;
  gboolean gathered;
  MusterStorage *storage;
  MusterClock *clock;
  double keep_every_n_hours;
  MusterKeepRule keep_rule;
  gint64 keep_every_steps;
  int keep_best;
  const char *metric;
  gboolean absolute_paths;
  const char *latest_filename;
  gboolean pad_step_number;
  gboolean unlisted;
  gboolean allow_empty;
  gboolean adopt_unknown;
  MusterWhenFull when_full;
  gint64 save_timeout_us;
  MusterSaverPaused paused;
  gpointer paused_data;
  const MusterTier *fast;
  gsize n_fast;
  /*< private >*/
  GBytes *paused_owner;
} MusterSaverOptions;

#define MUSTER_TYPE_SAVER_OPTIONS (muster_saver_options_get_type ())
GType muster_saver_options_get_type (void);

/**
 * muster_saver_options_set_paused:
 * @self: options, zeroed by g_new0 () or a copy
 * @paused: (nullable) (scope notified) (closure user_data) (destroy destroy): called on the saving
 *   thread at each check that finds no space
 * @user_data: for @paused
 * @destroy: called with @user_data when no saver needs it any more
 *
 * Sets what is called while a save waits for space.
 */
void muster_saver_options_set_paused (MusterSaverOptions *self, MusterSaverPaused paused,
                                      gpointer user_data, GDestroyNotify destroy);

/**
 * MusterSaved:
 * @prefix: (nullable): the checkpoint; `NULL` if skipped
 * @step: its step; -1: none
 * @tier: the fast tier it is in; the number of them: the directory of the save
 * @bytes: of its files; 0 if unlisted
 * @took_us: how long it took in microseconds, with waiting for the previous save and for space
 * @at_us: (array fixed-size=4): when it was requested (in the background: by the caller), staged,
 *   written and durable, by [enum@SaveState], on the saver's clock; -1: never
 * @skipped: whether it was skipped
 * @why: (nullable): why it was skipped; otherwise what failed after the checkpoint was saved
 *
 * The result of a save. The struct owns its texts.
 */
typedef struct {
  char *prefix;
  gint64 step;
  guint tier;
  guint64 bytes;
  gint64 took_us;
  gint64 at_us[MUSTER_N_SAVE_STATES];
  gboolean skipped;
  char *why;
} MusterSaved;

#define MUSTER_TYPE_SAVED (muster_saved_get_type ())
GType muster_saved_get_type (void);

/**
 * muster_saved_clear:
 * @self: a result
 *
 * Frees what the fields point to.
 */
void muster_saved_clear (MusterSaved *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterSaved, muster_saved_clear)

/**
 * MusterSaverConsistentCut:
 * @quiesce: stops changes of the model, before each attempt to write it
 * @check: called after the master has written and the saveables were copied. @is_consistent `FALSE`
 *   discards both, which are never published, and another attempt is made, at most five
 * @number: (nullable): the step for the checkpoint's name, instead of the save's step. Called
 * before
 *   @check, so that it matches what was written
 * @release: allows changes again: once after the attempts, even on failure, before the files are
 *   synced and published; unless the cut is kept ([method@Saver.keep_cut])
 *
 * Makes a consistent save of a model that several tasks train. All functions are called on the
 * saving thread, while no other save runs.
 */
typedef struct {
  gboolean (*quiesce) (MusterSession *session, gint64 deadline_us, GCancellable *cancellable,
                       gpointer user_data, GError **error);
  gboolean (*check) (MusterSession *session, gboolean *is_consistent, gint64 deadline_us,
                     GCancellable *cancellable, gpointer user_data, GError **error);
  gboolean (*number) (MusterSession *session, gint64 *step, gint64 deadline_us,
                      GCancellable *cancellable, gpointer user_data, GError **error);
  void (*release) (MusterSession *session, gpointer user_data);
} MusterSaverConsistentCut;

G_END_DECLS

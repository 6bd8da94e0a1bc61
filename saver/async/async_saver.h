// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/async/save_metrics.h"
#include "saver/save_ticket.h"
#include "saver/saver.h"

G_BEGIN_DECLS

/**
 * MusterAsyncSaver:
 *
 * Saves while training continues, like TensorFlow's async checkpoint helper.
 *
 * A save blocks its caller for one step, which takes a snapshot: on muster's engine it shares the
 * variables' memory until they are updated; on TensorFlow it is a copy on the variable's task. A
 * thread of the saver then writes it through the [class@Saver], with lease, publishing, state file
 * and retention. "latest" changes only when a checkpoint is durable.
 *
 * The snapshot has the values at the time of the call as long as the caller is the only one that
 * trains. Steps of other threads, tasks or sessions that run during the call, not after it, can
 * leave variables of different steps in it, as in TensorFlow's. If there are any, set a
 * [iface@Cut] on the saver ([method@Saver.set_cut]), which stops them for that moment.
 *
 * Any thread. In its own saveable, or a callback for a save's end, a call that prepares, saves,
 * restores or waits fails with `FAILED_PRECONDITION`, since it would wait for itself. The other
 * functions are allowed there and, in the callback, all of the ticket.
 */
#define MUSTER_TYPE_ASYNC_SAVER (muster_async_saver_get_type ())
G_DECLARE_FINAL_TYPE (MusterAsyncSaver, muster_async_saver, MUSTER, ASYNC_SAVER, GObject)

/**
 * MusterSavePolicy:
 * @MUSTER_SAVES_BLOCK: the caller waits for it
 * @MUSTER_SAVES_SKIP: the new one is skipped, as its ticket reports
 * @MUSTER_SAVES_REPLACE: one waits while another is written. A third replaces the waiting one,
 * whose ticket reports that. If the third fails, the waiting one stays, unless its snapshot has
 * been overwritten: then it has failed, too. Two snapshots are held
 *
 * What happens when the previous save hasn't ended.
 */
typedef enum {
  MUSTER_SAVES_BLOCK,
  MUSTER_SAVES_SKIP,
  MUSTER_SAVES_REPLACE,
} MusterSavePolicy;

/**
 * muster_async_saver_new:
 * @saver: writes the checkpoints
 * @session: a session of the model
 * @policy: what happens when the previous save hasn't ended
 * @budget_bytes: the largest size of the snapshots that aren't durable yet: as many as fit, at most
 *   four. A model that is larger is saved synchronously. 0: one snapshot of any size, and a second
 *   for %MUSTER_SAVES_REPLACE
 * @error: return location for an error
 *
 * Creates an async saver; no thread, node or file before the first save. The last unref waits 5 s
 * for a running save; to wait for another time, call [method@AsyncSaver.shutdown] first.
 * `INVALID_ARGUMENT` for a saver without variables (allow_empty).
 *
 * Returns: (transfer full): the async saver
 */
MusterAsyncSaver *muster_async_saver_new (MusterSaver *saver, MusterSession *session,
                                          MusterSavePolicy policy, guint64 budget_bytes,
                                          GError **error);

/**
 * muster_async_saver_set_finished:
 * @self: an async saver, before its first save
 * @finished: (nullable) (scope notified) (closure user_data) (destroy destroy): called on the
 * saver's thread after each save there, before sync returns. A save that another replaced never
 * gets there: [method@SaveTicket.when_ended] tells the end of every save
 * @user_data: for @finished
 * @destroy: (nullable): called with @user_data when no save needs it any more
 *
 * Sets what is called after each save.
 */
void muster_async_saver_set_finished (MusterAsyncSaver *self, MusterSaveFinished finished,
                                      gpointer user_data, GDestroyNotify destroy);

/**
 * muster_async_saver_set_model:
 * @self: an async saver
 * @saver: writes the checkpoints
 * @session: a session of the model
 *
 * Sets the saver and session for later saves, after the graph changed or the master lost the
 * session. Running saves aren't affected.
 */
void muster_async_saver_set_model (MusterAsyncSaver *self, MusterSaver *saver,
                                   MusterSession *session);

/**
 * muster_async_saver_prepare:
 * @self: an async saver
 * @deadline_us: when to give up
 * @cancellable: (nullable): stops it
 * @error: return location for an error
 *
 * Optional, before training and after set_model: does the preparations of the first save. It adds
 * the nodes and makes the master allocate a snapshot's memory once, so that the first step after
 * the first save is as fast as after later ones.
 *
 * Returns: `TRUE` if it is prepared
 */
gboolean muster_async_saver_prepare (MusterAsyncSaver *self, gint64 deadline_us,
                                     GCancellable *cancellable, GError **error);

/**
 * muster_async_saver_save:
 * @self: an async saver
 * @directory: the directory of the checkpoints
 * @step: the global step, for the checkpoint's name; below 0: the save counter's next number
 * @deadline_us: when to give up
 * @cancellable: (nullable): stops it
 * @error: return location for an error
 *
 * Saves as `DIRECTORY/BASE-STEP`. Returns once the snapshot is staged, before any file exists. An
 * unreported error of an earlier background save is returned instead of saving.
 *
 * Returns: (transfer full): the save's ticket
 */
MusterSaveTicket *muster_async_saver_save (MusterAsyncSaver *self, const char *directory,
                                           gint64 step, gint64 deadline_us,
                                           GCancellable *cancellable, GError **error);

/**
 * muster_async_saver_save_in_tiers:
 * @self: an async saver
 * @directory: the durable tier
 * @step: the global step, for the checkpoint's name; below 0: the save counter's next number
 * @due: the tiers that are due, as in [method@Saver.save_with]
 * @deadline_us: when to give up
 * @cancellable: (nullable): stops it
 * @error: return location for an error
 *
 * [method@AsyncSaver.save] with fast tiers. The ticket's path is in the tier that was in use when
 * it was staged; its result names the one that has the checkpoint.
 *
 * Returns: (transfer full): the save's ticket
 */
MusterSaveTicket *muster_async_saver_save_in_tiers (MusterAsyncSaver *self, const char *directory,
                                                    gint64 step, MusterTierSet due,
                                                    gint64 deadline_us, GCancellable *cancellable,
                                                    GError **error);

/**
 * muster_async_saver_write:
 * @self: an async saver
 * @prefix: the checkpoint to be
 * @deadline_us: when to give up
 * @cancellable: (nullable): stops it
 * @error: return location for an error
 *
 * [method@AsyncSaver.save] to the given prefix, without counter, state file and retention.
 *
 * Returns: (transfer full): the save's ticket
 */
MusterSaveTicket *muster_async_saver_write (MusterAsyncSaver *self, const char *prefix,
                                            gint64 deadline_us, GCancellable *cancellable,
                                            GError **error);

/**
 * muster_async_saver_restore:
 * @self: an async saver
 * @options: the checkpoint or directory, and what is compatible
 * @restored: (nullable): set to what was restored; clear it
 * @deadline_us: when to give up
 * @cancellable: (nullable): stops it
 * @error: return location for an error
 *
 * Waits for running saves, then restores as [method@Saver.restore] does; a background error is kept
 * for the next save or sync. The counter continues from the number of the restored checkpoint, or
 * from its own if that is higher.
 *
 * Returns: `TRUE` if it was restored, or if there was nothing to restore
 */
gboolean muster_async_saver_restore (MusterAsyncSaver *self, const MusterRestoreOptions *options,
                                     MusterRestored *restored, gint64 deadline_us,
                                     GCancellable *cancellable, GError **error);

/**
 * muster_async_saver_read:
 * @self: an async saver
 * @prefix: a checkpoint
 * @deadline_us: when to give up
 * @cancellable: (nullable): stops it
 * @error: return location for an error
 *
 * [method@AsyncSaver.restore] from exactly this checkpoint.
 *
 * Returns: `TRUE` if it was restored
 */
gboolean muster_async_saver_read (MusterAsyncSaver *self, const char *prefix, gint64 deadline_us,
                                  GCancellable *cancellable, GError **error);

/**
 * muster_async_saver_sync:
 * @self: an async saver
 * @deadline_us: when to give up
 * @cancellable: (nullable): stops it
 * @error: return location for an error
 *
 * Waits until no save is running, and no copy to a lower tier. Returns the background error that
 * wasn't reported yet.
 *
 * Returns: `TRUE` if nothing has failed
 */
gboolean muster_async_saver_sync (MusterAsyncSaver *self, gint64 deadline_us,
                                  GCancellable *cancellable, GError **error);

/**
 * muster_async_saver_sync_saves:
 * @self: an async saver
 * @deadline_us: when to give up
 * @cancellable: (nullable): stops it
 * @error: return location for an error
 *
 * [method@AsyncSaver.sync] for saves alone, without copies.
 *
 * Returns: `TRUE` if nothing has failed
 */
gboolean muster_async_saver_sync_saves (MusterAsyncSaver *self, gint64 deadline_us,
                                        GCancellable *cancellable, GError **error);

/**
 * muster_async_saver_shutdown:
 * @self: an async saver
 * @deadline_us: when to give up
 * @cancellable: (nullable): stops it
 * @error: return location for an error
 *
 * Refuses new saves and waits until the deadline for running ones and their `finished`; then they
 * are cancelled, and `DEADLINE_EXCEEDED` names the one that may be missing. Returns background
 * errors like sync. May be called again; any other call that prepares, saves, restores or waits is
 * `FAILED_PRECONDITION` afterwards.
 *
 * Returns: `TRUE` if nothing has failed
 */
gboolean muster_async_saver_shutdown (MusterAsyncSaver *self, gint64 deadline_us,
                                      GCancellable *cancellable, GError **error);

/**
 * muster_async_saver_save_counter:
 * @self: an async saver
 *
 * The last number that was used for a save or restored. After a failure there may be gaps; no
 * number is used twice.
 *
 * Returns: the number; 0 initially
 */
gint64 muster_async_saver_save_counter (MusterAsyncSaver *self);

/**
 * muster_async_saver_set_save_counter:
 * @self: an async saver
 * @counter: the number
 *
 * Sets the counter after a restore by other means. A higher value is kept.
 */
void muster_async_saver_set_save_counter (MusterAsyncSaver *self, gint64 counter);

/**
 * muster_async_saver_last_failure:
 * @self: an async saver
 *
 * The last background error. This doesn't count as reporting it.
 *
 * Returns: (transfer full) (nullable): the error; `NULL` if there was none
 */
GError *muster_async_saver_last_failure (MusterAsyncSaver *self);

/**
 * muster_async_saver_status:
 * @self: an async saver
 * @status: set to the status; clear it
 *
 * [method@Saver.status] of its saver.
 */
void muster_async_saver_status (MusterAsyncSaver *self, MusterSaveStatus *status);

/**
 * muster_async_saver_metrics: (skip)
 * @self: an async saver
 *
 * The metrics of this saver. In other languages [method@AsyncSaver.dup_metrics].
 *
 * Returns: the metrics
 */
MusterSaveMetrics muster_async_saver_metrics (MusterAsyncSaver *self);

/**
 * muster_async_saver_dup_metrics:
 * @self: an async saver
 *
 * The metrics of this saver.
 *
 * Returns: (transfer full): the metrics
 */
MusterSaveMetrics *muster_async_saver_dup_metrics (MusterAsyncSaver *self);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/goodput.h"
#include "checkpoint/state/quarantine.h"
#include "graph/meta_graph/meta_graph.h"
#include "master/lease.h"
#include "saver/restore_options.h"
#include "saver/saver_options.h"

G_BEGIN_DECLS

/**
 * MusterSaver:
 *
 * Saves a session's variables as a checkpoint, restores them, and removes old checkpoints, like
 * `tf.compat.v1.train.Saver`.
 *
 * It runs the save and restore ops named in a MetaGraphDef's SaverDef, on any master. It manages
 * names, the state file and retention in the chief's file system, which the master must share. A
 * save is published atomically: written with a temporary prefix, synced, renamed, then named in the
 * state file.
 *
 * A loop that restores and then saves in one directory calls, in this order:
 *
 * 1. [method@Saver.adopt_for_job] (optional): refuses a directory whose checkpoints no state file
 *    lists, and removes files of savers that died; a restore doesn't
 * 2. [method@SessionManager.prepare_session] with the options' saver and checkpoint_dir, which
 *    restores, and taken_by (optional), which refuses a directory that another job uses before
 *    anything on the master is changed
 * 3. [method@Saver.set_lease] with [method@Session.manager_lease] (if the model has a name), so
 *    that a replaced chief can't save
 * 4. [method@Saver.begin_run] with [method@Session.manager_restored_from] and
 *    [method@Session.manager_continued_step] (optional), so that checkpoints of another run aren't
 *    taken for this one's
 * 5. its steps and [method@Saver.save], or a [class@AsyncSaver]
 * 6. [method@Saver.end_run] and [method@Saver.release_directory] (optional), once the job is over
 *
 * muster_train () and muster_monitored_training_session_new () do all of this.
 *
 * Any thread; saves run one at a time.
 */
#define MUSTER_TYPE_SAVER (muster_saver_get_type ())
G_DECLARE_FINAL_TYPE (MusterSaver, muster_saver, MUSTER, SAVER, GObject)

/**
 * muster_saver_new:
 * @meta_graph: the model
 * @options: (nullable): `NULL`: the defaults
 * @error: return location for an error
 *
 * Creates a saver. `INVALID_ARGUMENT` if the meta graph has no SaverDef (but see allow_empty) or
 * one without ops, and for invalid names.
 *
 * Returns: (transfer full): the saver
 */
MusterSaver *muster_saver_new (MusterMetaGraph *meta_graph, const MusterSaverOptions *options,
                               GError **error);

/**
 * muster_saver_set_lease:
 * @self: a saver
 * @lease: (nullable): the chief's lease on its model
 *
 * Sets the chief's lease. Each save checks with the master that it is held, before writing and
 * again before publishing. If it is lost, the save fails with `FAILED_PRECONDITION` and leaves no
 * files. Durable checkpoints are announced. The lease also claims directories: see
 * [method@Saver.claim_directory].
 */
void muster_saver_set_lease (MusterSaver *self, MusterLease *lease);

/**
 * muster_saver_claim_directory:
 * @self: a saver
 * @directory: a directory of checkpoints
 * @deadline_us: when to give up
 * @cancellable: (nullable): stops it
 * @error: return location for an error
 *
 * Claims a directory, in its side file, for the chief that holds the saver's lease. From then on an
 * earlier chief, at this or another master, is refused there (`FAILED_PRECONDITION`) before it
 * writes, and again before it publishes. A save claims by itself; a chief that trains claims before
 * its first step, and then announces it, so that the next chief knows that this directory is the
 * model's. Code that only restores doesn't claim: a job that reads another's checkpoints mustn't
 * prevent that one from saving.
 *
 * A job without a lease claims with an id of its own. On local files the claim holds the directory
 * for this process until [method@Saver.release_directory] or the saver's end: `FAILED_PRECONDITION`
 * while a job of another process lives that holds it, except between chiefs with leases. In a store
 * without locks the newer job takes over with a warning, and the older one's next save is refused.
 *
 * Returns: `TRUE` if the directory is claimed
 */
gboolean muster_saver_claim_directory (MusterSaver *self, const char *directory, gint64 deadline_us,
                                       GCancellable *cancellable, GError **error);

/**
 * muster_saver_take_directory:
 * @self: a saver
 * @lease: (nullable): the chief's lease, if it has one: [method@Saver.set_lease]
 * @directory: a directory of checkpoints
 * @deadline_us: when to give up
 * @cancellable: (nullable): stops it
 * @error: return location for an error
 *
 * Takes a directory for a job that will save there, before it changes anything on a master: fails
 * (`FAILED_PRECONDITION`) while another job uses it. Without a lease it is claimed at once
 * ([method@Saver.claim_directory]); with one, [method@Saver.begin_run] claims it.
 *
 * Returns: `TRUE` if the job may go on
 */
gboolean muster_saver_take_directory (MusterSaver *self, MusterLease *lease, const char *directory,
                                      gint64 deadline_us, GCancellable *cancellable,
                                      GError **error);

/**
 * muster_saver_release_directory:
 * @self: a saver
 * @directory: a directory of checkpoints
 * @deadline_us: when to give up telling it in a store without locks; 0: don't
 * @cancellable: (nullable): stops it
 *
 * Gives a directory back at the end of a job, so that another process may use it. Otherwise that is
 * done with the saver, or by the system with the process.
 */
void muster_saver_release_directory (MusterSaver *self, const char *directory, gint64 deadline_us,
                                     GCancellable *cancellable);

/**
 * muster_saver_is_taken_over:
 * @error: (nullable): why a claim or a save failed
 *
 * Tests whether the cause is that another chief has claimed the directory: this one was replaced.
 *
 * Returns: %TRUE if so
 */
gboolean muster_saver_is_taken_over (const GError *error);

/**
 * muster_saver_metric:
 * @self: a saver
 *
 * The name of the metric of its options, by which the best checkpoints are kept. A tensor `x:0` is
 * called `x`.
 *
 * Returns: (transfer none) (nullable): the name; `NULL` if the options name none
 */
const char *muster_saver_metric (MusterSaver *self);

/**
 * muster_saver_set_metric:
 * @self: a saver
 * @value: its metric's value for the model as it is now; NaN: none
 *
 * Sets the value that the next save records with its checkpoint. Another save of the same step
 * records it, too, until one in the directory itself is durable: the first may fail, or go to a
 * fast tier alone. Saves of other steps have none until it is set again. A save in the background
 * takes the value when it is requested. A value may also be given afterwards
 * ([func@checkpoint_set_metric]). Any thread.
 */
void muster_saver_set_metric (MusterSaver *self, double value);

/**
 * muster_saver_begin_run:
 * @self: a saver
 * @directory: a directory of checkpoints
 * @resumed_prefix: (nullable): the checkpoint that was restored
 * @resumed_step: without @resumed_prefix: 0 or above: the model was on the master at that step,
 * from the directory's run before; -1: the model was initialised
 * @deadline_us: when to give up
 * @cancellable: (nullable): stops it
 * @error: return location for an error
 *
 * Begins a run: claims the directory and notes in its side file a new run (a UUID) and the
 * checkpoint it starts from, so that checkpoints of another run aren't taken for this one's. A
 * program that trains calls it for each session, before its first step.
 *
 * Returns: `TRUE` if the run has begun
 */
gboolean muster_saver_begin_run (MusterSaver *self, const char *directory,
                                 const char *resumed_prefix, gint64 resumed_step,
                                 gint64 deadline_us, GCancellable *cancellable, GError **error);

/**
 * muster_saver_end_run:
 * @self: a saver
 * @directory: a directory of checkpoints
 * @step: the job's last step
 * @deadline_us: when to give up
 * @cancellable: (nullable): stops it
 * @error: return location for an error
 *
 * Notes in the directory's side file that its job is over, at that step, for those who see no more
 * of it than the directory: [func@evaluate] ends there. The next run that begins takes it back.
 *
 * Returns: `TRUE` if it is noted
 */
gboolean muster_saver_end_run (MusterSaver *self, const char *directory, gint64 step,
                               gint64 deadline_us, GCancellable *cancellable, GError **error);

/**
 * muster_saver_set_goodput:
 * @self: a saver
 * @goodput: the job's account of its time
 *
 * Sets what each later checkpoint's side file says of the job's time. Any thread.
 */
void muster_saver_set_goodput (MusterSaver *self, const MusterGoodput *goodput);

/**
 * muster_saver_write_goodput:
 * @self: a saver
 * @directory: a directory of checkpoints
 * @deadline_us: when to give up
 * @cancellable: (nullable): stops it
 * @error: return location for an error
 *
 * Writes the job's account of its time to a directory's side file at once, as a chief does that
 * ends.
 *
 * Returns: `TRUE` if it was written
 */
gboolean muster_saver_write_goodput (MusterSaver *self, const char *directory, gint64 deadline_us,
                                     GCancellable *cancellable, GError **error);

/**
 * muster_saver_read_goodput:
 * @self: a saver
 * @directory: a directory of checkpoints
 * @goodput: (out caller-allocates): the account, with its age
 *
 * Reads the job's account of its time.
 *
 * Returns: `FALSE` if the directory has none, or no side file that can be read
 */
gboolean muster_saver_read_goodput (MusterSaver *self, const char *directory,
                                    MusterGoodput *goodput);

/**
 * muster_saver_set_consistent_cut: (skip)
 * @self: a saver
 * @consistent_cut: (nullable): `NULL`: none
 * @user_data: for its functions
 * @destroy: called with @user_data when it isn't needed any more
 *
 * Uses a consistent cut for each later save, and for each snapshot of an async saver with this
 * saver. Call it only between saves.
 */
void muster_saver_set_consistent_cut (MusterSaver *self,
                                      const MusterSaverConsistentCut *consistent_cut,
                                      gpointer user_data, GDestroyNotify destroy);

/**
 * muster_saver_keep_cut:
 * @self: a saver
 * @keeps: whether it is kept
 *
 * With @keeps, the consistent cut of a later save isn't released, so that the tasks hold after that
 * save, until [method@Saver.release_cut]. A task that hadn't heard of the cut yet may make one more
 * step. Call it only between saves.
 */
void muster_saver_keep_cut (MusterSaver *self, gboolean keeps);

/**
 * muster_saver_release_cut:
 * @self: a saver
 * @session: the session of the save
 *
 * Releases a cut that was kept, and keeps no other.
 */
void muster_saver_release_cut (MusterSaver *self, MusterSession *session);

/**
 * muster_saver_add_saveable:
 * @self: a saver
 * @name: its name in the checkpoints
 * @saveable: state outside the graph
 * @flags: how it is treated
 * @error: return location for an error
 *
 * Adds state outside the graph to every later checkpoint and restore, as the tensors `NAME/…`.
 * `ALREADY_EXISTS` for a duplicate name; `FAILED_PRECONDITION` for a saver without variables
 * (allow_empty).
 *
 * Returns: `TRUE` if it was added
 */
gboolean muster_saver_add_saveable (MusterSaver *self, const char *name, MusterSaveable *saveable,
                                    MusterSaveableFlags flags, GError **error);

/**
 * muster_saver_save:
 * @self: a saver
 * @session: a session of the model
 * @directory: the directory of its checkpoints
 * @step: for the checkpoint's name; below 0: without a number
 * @deadline_us: when to give up
 * @cancellable: (nullable): stops it
 * @error: return location for an error
 *
 * Saves as `DIRECTORY/BASE-STEP`, and returns once that is durable and "latest". Steps of other
 * threads or tasks that run meanwhile can leave variables of different steps in it; a [iface@Cut]
 * stops them ([method@Saver.set_cut]). Before the first save in a directory, files of savers that
 * died are removed. `RESOURCE_EXHAUSTED` if the save is skipped for lack of space;
 * `FAILED_PRECONDITION` if there is nothing to save.
 *
 * Returns: (transfer full): the checkpoint's prefix
 */
char *muster_saver_save (MusterSaver *self, MusterSession *session, const char *directory,
                         gint64 step, gint64 deadline_us, GCancellable *cancellable,
                         GError **error);

/**
 * muster_saver_save_async:
 * @self: a saver
 * @session: a session of the model
 * @directory: the checkpoint directory
 * @step: the step in the checkpoint's name; below 0: none
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Saves the model on a thread of its own: muster_saver_save (). Steps that run meanwhile may change
 * what is saved.
 */
void muster_saver_save_async (MusterSaver *self, MusterSession *session, const char *directory,
                              gint64 step, gint64 deadline_us, GCancellable *cancellable,
                              GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_saver_save_finish:
 * @self: a saver
 * @result: what the callback was given
 *
 * The result of muster_saver_save_async ().
 *
 * Returns: (transfer full): the checkpoint
 */
char *muster_saver_save_finish (MusterSaver *self, GAsyncResult *result, GError **error);

/**
 * muster_saver_save_with:
 * @self: a saver
 * @session: a session of the model
 * @directory: the directory of its checkpoints
 * @step: for the checkpoint's name; below 0: without a number
 * @due: with fast tiers, those that are due. The checkpoint is written to the fastest tier in use;
 *   the other ones that are due get a copy in the background. 0: the directory itself
 * @saved: set to the result; clear it
 * @deadline_us: when to give up
 * @cancellable: (nullable): stops it
 * @error: return location for an error
 *
 * [method@Saver.save] into tiers and with the full result. A skipped save, and one with nothing to
 * save, is success.
 *
 * Returns: `TRUE` if @saved was set
 */
gboolean muster_saver_save_with (MusterSaver *self, MusterSession *session, const char *directory,
                                 gint64 step, MusterTierSet due, MusterSaved *saved,
                                 gint64 deadline_us, GCancellable *cancellable, GError **error);

/**
 * muster_saver_status:
 * @self: a saver
 * @status: set to the status; clear it
 *
 * How far the saver's saves have come since it was created, blocking and background ones alike. Any
 * thread.
 */
void muster_saver_status (MusterSaver *self, MusterSaveStatus *status);

/**
 * muster_saver_set_interval:
 * @self: a saver
 * @interval_us: in microseconds; 0: it is fixed
 *
 * Sets what the status says of the time between saves, for a program that chooses it. Any thread.
 */
void muster_saver_set_interval (MusterSaver *self, gint64 interval_us);

/**
 * muster_saver_check_compatible:
 * @self: a saver
 * @prefix: a checkpoint
 * @cancellable: (nullable): stops it
 * @error: return location for an error
 *
 * Compares a checkpoint with what the saver restores, and reads every tensor. `INVALID_ARGUMENT`
 * lists every missing tensor and every wrong shape or type, with the nearest name; `DATA_LOSS`
 * describes damage. Needs no session.
 *
 * Returns: `TRUE` if the checkpoint can be restored
 */
gboolean muster_saver_check_compatible (MusterSaver *self, const char *prefix,
                                        GCancellable *cancellable, GError **error);

/**
 * muster_saver_restore:
 * @self: a saver
 * @session: a session of the model
 * @options: (nullable): the checkpoint or directory, and what is compatible
 * @restored: (nullable): set to what was restored; clear it
 * @deadline_us: when to give up
 * @cancellable: (nullable): stops it
 * @error: return location for an error
 *
 * Restores a checkpoint, or the newest complete one in a directory.
 *
 * The result's prefix is `NULL`, which is success, if the state file names no checkpoint. Its
 * passed_over lists newer checkpoints that are missing or damaged; damaged ones are quarantined
 * ([func@checkpoint_quarantine]). Fails if a complete checkpoint is incompatible with the graph, if
 * the state file can't be read (`DATA_LOSS`), and, for a saver without variables (allow_empty), if
 * the directory has a checkpoint (`INVALID_ARGUMENT`). Afterwards the saver's list is that of the
 * state file.
 *
 * Returns: `TRUE` if it was restored, or if there was nothing to restore
 */
gboolean muster_saver_restore (MusterSaver *self, MusterSession *session,
                               const MusterRestoreOptions *options, MusterRestored *restored,
                               gint64 deadline_us, GCancellable *cancellable, GError **error);

/**
 * muster_saver_restore_async:
 * @self: a saver
 * @session: a session of the model
 * @options: (nullable): the checkpoint or directory, and what is compatible; copied
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Restores a checkpoint on a thread of its own: muster_saver_restore (). The progress function of
 * the options is called on other threads.
 */
void muster_saver_restore_async (MusterSaver *self, MusterSession *session,
                                 const MusterRestoreOptions *options, gint64 deadline_us,
                                 GCancellable *cancellable, GAsyncReadyCallback callback,
                                 gpointer user_data);

/**
 * muster_saver_restore_finish:
 * @self: a saver
 * @result: what the callback was given
 * @restored: (nullable): set to what was restored; clear it
 *
 * The result of muster_saver_restore_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_saver_restore_finish (MusterSaver *self, GAsyncResult *result,
                                      MusterRestored *restored, GError **error);

/**
 * muster_saver_latest_checkpoint:
 * @self: a saver
 * @directory: a directory of checkpoints
 * @error: return location for an error
 *
 * The checkpoint that the saver's state file (latest_filename) in a directory names; see
 * [func@latest_checkpoint].
 *
 * Returns: (transfer full) (nullable): its prefix; `NULL` without an error if there is no state
 */
char *muster_saver_latest_checkpoint (MusterSaver *self, const char *directory, GError **error);

/**
 * muster_saver_last_checkpoints:
 * @self: a saver
 *
 * The list that retention uses, like `Saver.last_checkpoints`.
 *
 * Returns: (transfer full) (array zero-terminated=1): the prefixes, oldest first
 */
char **muster_saver_last_checkpoints (MusterSaver *self);

/**
 * muster_saver_set_last_checkpoints: (skip)
 * @self: a saver
 * @prefixes: (array zero-terminated=1): checkpoints, oldest first
 * @times: (nullable): for each when it was saved, in seconds since 1970; `NULL`: they are never
 *   deleted (SAV.51)
 *
 * Replaces the list, like `Saver.set_last_checkpoints_with_time`. In other languages
 * [method@Saver.set_last_checkpoints_with_times].
 */
void muster_saver_set_last_checkpoints (MusterSaver *self, const char *const *prefixes,
                                        const double *times);

/**
 * muster_saver_set_last_checkpoints_with_times:
 * @self: a saver
 * @prefixes: (array zero-terminated=1): checkpoints, oldest first
 * @times: (array length=n_times) (nullable): for each when it was saved, in seconds since 1970
 * @n_times: their number; 0: the checkpoints are never deleted (SAV.51)
 * @error: return location for an error
 *
 * Replaces the list, like `Saver.set_last_checkpoints_with_time`. `INVALID_ARGUMENT` if there is
 * another number of times than of checkpoints.
 *
 * Returns: `TRUE` if the list was replaced
 */
gboolean muster_saver_set_last_checkpoints_with_times (MusterSaver *self,
                                                       const char *const *prefixes,
                                                       const double *times, gsize n_times,
                                                       GError **error);

/**
 * muster_saver_recover_last_checkpoints:
 * @self: a saver
 * @prefixes: (array zero-terminated=1): checkpoints
 *
 * Rebuilds the list from those whose files exist, in that order, with the files' times (SAV.50).
 */
void muster_saver_recover_last_checkpoints (MusterSaver *self, const char *const *prefixes);

/**
 * muster_saver_adopt_directory:
 * @self: a saver
 * @directory: a directory of checkpoints
 * @error: return location for an error
 *
 * Rebuilds the list from a directory, as a new process needs it before its first save, so that
 * earlier checkpoints are listed and later removed: those in the state file, and those with this
 * base name that the side file records (adopt_unknown: all). Preserved and quarantined ones are
 * left out. A file that neither names is never removed; a save of the same name sets it aside
 * first. Without a directory or state file the list is empty; a state file that can't be read is
 * `DATA_LOSS`. Removes files of savers that died: running savers hold a lock; if the store has no
 * locks, files changed within a day are kept.
 *
 * Returns: `TRUE` if the list was rebuilt
 */
gboolean muster_saver_adopt_directory (MusterSaver *self, const char *directory, GError **error);

/**
 * muster_saver_adopt_for_job:
 * @self: a saver
 * @directory: a directory of checkpoints
 * @from_files: the files stand in for a state file that is missing or can't be read, as with
 *   fall_back_to_files of [struct@RestoreOptions]
 * @error: return location for an error
 *
 * [method@Saver.adopt_directory] for a job that restores from a directory and then saves there. If
 * the directory has checkpoints with this saver's names, but no state file, and its side file knows
 * neither of them nor of a run, the job would start anew beside them: `FAILED_PRECONDITION`, which
 * names them, unless @from_files.
 *
 * Returns: `TRUE` if the list was rebuilt
 */
gboolean muster_saver_adopt_for_job (MusterSaver *self, const char *directory, gboolean from_files,
                                     GError **error);

/**
 * muster_saver_is_empty:
 * @self: a saver
 *
 * Whether the saver has nothing to save (allow_empty).
 *
 * Returns: `TRUE` if so
 */
gboolean muster_saver_is_empty (MusterSaver *self);

/**
 * muster_saver_estimate_bytes:
 * @self: a saver
 *
 * Estimates the size of the next checkpoint, from the graph and the last checkpoint, without
 * saveables. Any thread.
 *
 * Returns: the size in bytes
 */
guint64 muster_saver_estimate_bytes (MusterSaver *self);

/**
 * muster_saver_storage:
 * @self: a saver
 *
 * The store of its checkpoints.
 *
 * Returns: (transfer none): the store
 */
MusterStorage *muster_saver_storage (MusterSaver *self);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "callbacks/fit.h"
#include "master/session.h"
#include "saver/saver.h"

G_BEGIN_DECLS

/**
 * MusterProgram:
 * @is_built: (nullable): NULL: always built
 * @build_optimizer: (nullable): creates the optimizer's variables before a restore
 * @save: returns when the files are durable
 * @restore: all or nothing. After NOT_FOUND, DATA_LOSS or a file error another backup is tried
 * @user_data: passed to each function
 *
 * What a [struct@Backup] backs up. A backup's files are named PREFIX.SOMETHING. The functions must
 * return soon after deadline_us (an instant of g_get_monotonic_time ()), or when the nullable
 * cancellable is cancelled.
 */
typedef struct {
  gboolean (*is_built) (gpointer user_data);
  gboolean (*build_optimizer) (gint64 deadline_us, GCancellable *cancellable, gpointer user_data,
                               GError **error);
  gboolean (*save) (const char *prefix, gint64 deadline_us, GCancellable *cancellable,
                    gpointer user_data, GError **error);
  gboolean (*restore) (const char *prefix, gint64 deadline_us, GCancellable *cancellable,
                       gpointer user_data, GError **error);
  gpointer user_data;
} MusterProgram;

/**
 * MusterSessionProgram:
 *
 * A session's variables, saved by its graph's saver, as a [struct@Program]. Reference-counted.
 */
typedef struct _MusterSessionProgram MusterSessionProgram;

#define MUSTER_TYPE_SESSION_PROGRAM (muster_session_program_get_type ())
GType muster_session_program_get_type (void);

/**
 * muster_session_program_new:
 * @meta_graph: the model, with a saver
 * @session: its session
 * @storage: (nullable): NULL: local files
 * @clock: (nullable): NULL: the machine's
 *
 * The variables of a session.
 *
 * Returns: (transfer full): the program
 */
MusterSessionProgram *muster_session_program_new (MusterMetaGraph *meta_graph,
                                                  MusterSession *session, MusterStorage *storage,
                                                  MusterClock *clock, GError **error);

/**
 * muster_session_program_ref:
 * @self: the program
 *
 * Adds a reference.
 *
 * Returns: (transfer full): @self
 */
MusterSessionProgram *muster_session_program_ref (MusterSessionProgram *self);

/**
 * muster_session_program_free:
 * @self: (transfer full) (nullable): the program
 *
 * Drops a reference.
 */
void muster_session_program_free (MusterSessionProgram *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterSessionProgram, muster_session_program_free)

/**
 * muster_session_program_operations: (skip)
 * @self: the program
 *
 * Its functions.
 *
 * Returns: functions that are valid as long as @self
 */
MusterProgram muster_session_program_operations (MusterSessionProgram *self);

/**
 * MusterBackupOptions:
 * @backup_dir: where to back up
 * @save_freq: zeros: at the end of each epoch
 * @double_checkpoint: keep the previous backup, too
 * @keep: keep the backup after the training
 * @program: what is backed up, unless @session_program is set
 * @session_program: (nullable): what is backed up
 * @storage: (nullable): NULL: local files
 *
 * Options of a [struct@Backup].
 */
typedef struct {
  const char *backup_dir;
  MusterSaveFreq save_freq;
  gboolean double_checkpoint;
  gboolean keep;
  MusterProgram program;
  MusterSessionProgram *session_program;
  MusterStorage *storage;
} MusterBackupOptions;

#define MUSTER_TYPE_BACKUP_OPTIONS (muster_backup_options_get_type ())
GType muster_backup_options_get_type (void);

/**
 * muster_backup_options_new:
 * @backup_dir: where to back up
 * @program: what is backed up
 *
 * Options on the heap, for other languages: booleans are fields, the rest is set by methods.
 *
 * Returns: (transfer full): options
 */
MusterBackupOptions *muster_backup_options_new (const char *backup_dir,
                                                MusterSessionProgram *program);

/**
 * muster_backup_options_set_save_freq:
 * @self: options from new or copy
 * @save_freq: how often to save, copied
 *
 * Sets how often to save.
 */
void muster_backup_options_set_save_freq (MusterBackupOptions *self,
                                          const MusterSaveFreq *save_freq);

/**
 * MusterBackup:
 *
 * Backs up a training and restores it: Keras' `BackupAndRestore` as a callback of muster_fit ()
 * (behaviours B004). After an interruption the same program, run again, continues after the last
 * saved batch: with save_freq for every N batches, at most N - 1 are trained again, from the
 * restored variables. A training that succeeds removes its backup, and the directory if nothing
 * else is in it.
 *
 * DIRECTORY/latest-N.… are the variables. DIRECTORY/training_metadata.json.N is the position that
 * belongs to them. DIRECTORY/training_metadata.json, a copy written last, selects N. With
 * double_checkpoint the previous backup is kept too, its metadata also as
 * training_metadata.json.bkp. If the newest backup can't be read, isn't intact, or lacks its
 * metadata, the newest intact one is restored and a message describes the others; if none is
 * intact, the error describes each. During a training DIRECTORY/.backup.lock is held: a second
 * training is FAILED_PRECONDITION. Reference-counted. One thread.
 */
typedef struct _MusterBackup MusterBackup;

#define MUSTER_TYPE_BACKUP (muster_backup_get_type ())
GType muster_backup_get_type (void);

/**
 * muster_backup_new:
 * @options: (nullable): where, what and how often
 *
 * A backup. Does no I/O. INVALID_ARGUMENT ("Empty `backup_dir` argument passed").
 *
 * Returns: (transfer full): the backup
 */
MusterBackup *muster_backup_new (const MusterBackupOptions *options, GError **error);

/**
 * muster_backup_ref:
 * @self: the backup
 *
 * Adds a reference.
 *
 * Returns: (transfer full): @self
 */
MusterBackup *muster_backup_ref (MusterBackup *self);

/**
 * muster_backup_free:
 * @self: (transfer full) (nullable): the backup
 *
 * Drops a reference.
 */
void muster_backup_free (MusterBackup *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterBackup, muster_backup_free)

/**
 * muster_backup_callback: (skip)
 * @self: the backup
 *
 * For muster_fit (). A loop of your own may call these functions itself, in the same order:
 * train_begin, which sets where to start; for each epoch epoch_begin, batch_end after each batch
 * and epoch_end; at last train_end or train_failed. Those that are NULL aren't needed.
 *
 * Returns: functions that are valid as long as @self
 */
MusterFitCallback muster_backup_callback (MusterBackup *self);

/**
 * muster_backup_add_to:
 * @self: the backup, which the loop references
 * @fit: a loop from new or copy
 *
 * Adds the backup to a loop's callbacks.
 */
void muster_backup_add_to (MusterBackup *self, MusterFit *fit);

/**
 * muster_backup_save:
 * @self: the backup
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the save
 *
 * Saves the current position, between train_begin and train_end. For %MUSTER_SAVE_NEVER.
 *
 * Returns: FALSE with an error if nothing was saved
 */
gboolean muster_backup_save (MusterBackup *self, gint64 deadline_us, GCancellable *cancellable,
                             GError **error);

/**
 * muster_backup_position:
 * @self: the backup
 * @n_batches: in an epoch; 0: unknown
 * @found: (out): FALSE if there is no backup
 * @position: (out caller-allocates): the position; unchanged if there is none
 *
 * The position from which a training that restores this backup would start. It can be called
 * without a training. Only metadata is read: if the variables turn out to be damaged, the training
 * restores the backup before. An object store has a minute to answer. DATA_LOSS and file errors as
 * for a restore.
 *
 * Returns: FALSE with an error
 */
gboolean muster_backup_position (MusterBackup *self, gint64 n_batches, gboolean *found,
                                 MusterFitPosition *position, GError **error);

/**
 * MusterBackupCounters:
 * @since_save: batches since the last save
 * @n_batches: batches in this epoch, including the previous run's
 * @epoch: completed epochs
 *
 * Counters of a [struct@Backup], all 0 before training.
 */
typedef struct {
  gint64 since_save;
  gint64 n_batches;
  gint64 epoch;
} MusterBackupCounters;

/**
 * muster_backup_counters: (skip)
 * @self: the backup
 *
 * Its counters.
 *
 * Returns: the counters
 */
MusterBackupCounters muster_backup_counters (MusterBackup *self);

/**
 * muster_backup_read_counters:
 * @self: the backup
 * @counters: (out caller-allocates): where to return them
 *
 * muster_backup_counters () for other languages.
 */
void muster_backup_read_counters (MusterBackup *self, MusterBackupCounters *counters);

G_END_DECLS

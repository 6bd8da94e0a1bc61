// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "callbacks/fit.h"
#include "master/session.h"
#include "saver/saver.h"

G_BEGIN_DECLS

/* MusterBackup keeps one backup of a training, and brings it back: Keras' BackupAndRestore as a
 * callback of muster_fit () (behaviours B004). After an interruption the same program, run again,
 * goes on after the batch that was saved last, and trains none twice; a training that ends well
 * leaves nothing behind.
 *
 * DIRECTORY/latest-N.… are the variables, DIRECTORY/training_metadata.json.N says where training
 * stood then, and DIRECTORY/training_metadata.json which N counts: it is a copy and written last,
 * so that the two always belong together. With double_checkpoint the one before stays too, its
 * metadata also as training_metadata.json.bkp. Where the newest can't be read, isn't whole, or has
 * lost its metadata, the newest that is whole is restored, and a message says what is wrong with
 * the others; where none is, the error says so of each. For as long as it trains a run holds
 * DIRECTORY/.backup.lock: a second one is FAILED_PRECONDITION. One thread. */

/* What is backed up. Files of a backup are named PREFIX.SOMETHING. What waits comes back soon after
 * deadline_us (on muster_system_clock ()), or when the nullable cancellable is cancelled. */
typedef struct {
  gboolean (*is_built) (gpointer user_data); /* NULL: it is */
  /* (nullable) Makes the optimizer's variables, before a restore. */
  gboolean (*build_optimizer) (gint64 deadline_us, GCancellable *cancellable, gpointer user_data,
                               GError **error);
  /* Returns when the files are durable. */
  gboolean (*save) (const char *prefix, gint64 deadline_us, GCancellable *cancellable,
                    gpointer user_data, GError **error);
  /* All or nothing. NOT_FOUND, DATA_LOSS and file errors: this backup can't be read, and another
   * one is tried. */
  gboolean (*restore) (const char *prefix, gint64 deadline_us, GCancellable *cancellable,
                       gpointer user_data, GError **error);
  gpointer user_data;
} MusterProgram;

/* A session's variables, by the saver of its graph. */
typedef struct _MusterSessionProgram MusterSessionProgram;
/* storage and clock NULL: local files, the machine's. */
MusterSessionProgram *muster_session_program_new (MusterMetaGraph *meta_graph,
                                                  MusterSession *session, MusterStorage *storage,
                                                  MusterClock *clock, GError **error);
void muster_session_program_free (MusterSessionProgram *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterSessionProgram, muster_session_program_free)
/* Lives as long as self. */
MusterProgram muster_session_program_operations (MusterSessionProgram *self);

typedef struct {
  const char *backup_dir;
  MusterSaveFreq save_freq; /* zeros: at the end of each epoch */
  gboolean double_checkpoint;
  gboolean keep; /* the backup stays when training has ended */
  MusterProgram program;
  MusterStorage *storage; /* NULL: local files */
} MusterBackupOptions;

typedef struct _MusterBackup MusterBackup;

/* Touches nothing. INVALID_ARGUMENT ("Empty `backup_dir` argument passed"). */
MusterBackup *muster_backup_new (const MusterBackupOptions *options, GError **error);
void muster_backup_free (MusterBackup *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterBackup, muster_backup_free)

/* For muster_fit (); lives as long as self. */
MusterFitCallback muster_backup_callback (MusterBackup *self);

/* Saves where training stands, between train_begin and train_end: what NEVER leaves to the
 * caller. */
gboolean muster_backup_save (MusterBackup *self, gint64 deadline_us, GCancellable *cancellable,
                             GError **error);

/* Where a training would begin that restores the backup: also without one, as now. *found FALSE:
 * there is none to restore, and *position stays as it is. n_batches as in callbacks/fit.h. Only
 * metadata are read: variables that turn out damaged when they are restored take training back to
 * the backup before. DATA_LOSS and file errors as for restoring. */
gboolean muster_backup_position (MusterBackup *self, gint64 n_batches, gboolean *found,
                                 MusterFitPosition *position, GError **error);

/* Plain counters, all 0 before training. */
typedef struct {
  gint64 since_save; /* batches */
  gint64 n_batches;  /* seen in this epoch, also by the run before */
  gint64 epoch;      /* epochs that have ended */
} MusterBackupCounters;
MusterBackupCounters muster_backup_counters (MusterBackup *self);

G_END_DECLS

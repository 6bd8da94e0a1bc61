// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "callbacks/fit.h"
#include "master/session.h"
#include "saver/saver.h"

G_BEGIN_DECLS

/* MusterBackup backs up a training and restores it: Keras' BackupAndRestore as a callback of
 * muster_fit () (behaviours B004). After an interruption the same program, run again, continues
 * after the last saved batch and trains none twice. A training that succeeds removes its backup.
 *
 * DIRECTORY/latest-N.… are the variables. DIRECTORY/training_metadata.json.N is the position that
 * belongs to them. DIRECTORY/training_metadata.json, a copy written last, selects N. With
 * double_checkpoint the previous backup is kept too, its metadata also as
 * training_metadata.json.bkp. If the newest backup can't be read, isn't whole, or lacks its
 * metadata, the newest whole one is restored and a message describes the others; if none is whole,
 * the error describes each. During a training DIRECTORY/.backup.lock is held: a second training is
 * FAILED_PRECONDITION. One thread. */

/* What is backed up. A backup's files are named PREFIX.SOMETHING. The functions must return soon
 * after deadline_us (on muster_system_clock ()), or when the nullable cancellable is cancelled. */
typedef struct {
  gboolean (*is_built) (gpointer user_data); /* NULL: always built */
  /* (nullable) Creates the optimizer's variables before a restore. */
  gboolean (*build_optimizer) (gint64 deadline_us, GCancellable *cancellable, gpointer user_data,
                               GError **error);
  /* Returns when the files are durable. */
  gboolean (*save) (const char *prefix, gint64 deadline_us, GCancellable *cancellable,
                    gpointer user_data, GError **error);
  /* All or nothing. After NOT_FOUND, DATA_LOSS or a file error another backup is tried. */
  gboolean (*restore) (const char *prefix, gint64 deadline_us, GCancellable *cancellable,
                       gpointer user_data, GError **error);
  gpointer user_data;
} MusterProgram;

/* A session's variables, saved by its graph's saver. */
typedef struct _MusterSessionProgram MusterSessionProgram;
/* storage and clock may be NULL: local files, the machine's. */
MusterSessionProgram *muster_session_program_new (MusterMetaGraph *meta_graph,
                                                  MusterSession *session, MusterStorage *storage,
                                                  MusterClock *clock, GError **error);
void muster_session_program_free (MusterSessionProgram *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterSessionProgram, muster_session_program_free)
/* Valid as long as self. */
MusterProgram muster_session_program_operations (MusterSessionProgram *self);

typedef struct {
  const char *backup_dir;
  MusterSaveFreq save_freq; /* zeros: at the end of each epoch */
  gboolean double_checkpoint;
  gboolean keep; /* keep the backup after the training */
  MusterProgram program;
  MusterStorage *storage; /* NULL: local files */
} MusterBackupOptions;

typedef struct _MusterBackup MusterBackup;

/* Does no I/O. INVALID_ARGUMENT ("Empty `backup_dir` argument passed"). */
MusterBackup *muster_backup_new (const MusterBackupOptions *options, GError **error);
void muster_backup_free (MusterBackup *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterBackup, muster_backup_free)

/* For muster_fit (). Valid as long as self. */
MusterFitCallback muster_backup_callback (MusterBackup *self);

/* Saves the current position, between train_begin and train_end. For MUSTER_SAVE_NEVER. */
gboolean muster_backup_save (MusterBackup *self, gint64 deadline_us, GCancellable *cancellable,
                             GError **error);

/* The position from which a training that restores this backup would start. It can be called
 * without a training. *found is FALSE, and *position unchanged, if there is no backup. n_batches as
 * in callbacks/fit.h. Only metadata is read: if the variables turn out to be damaged, the training
 * restores the backup before. DATA_LOSS and file errors as for a restore. */
gboolean muster_backup_position (MusterBackup *self, gint64 n_batches, gboolean *found,
                                 MusterFitPosition *position, GError **error);

/* Counters, all 0 before training. */
typedef struct {
  gint64 since_save; /* batches since the last save */
  gint64 n_batches;  /* batches in this epoch, including the previous run's */
  gint64 epoch;      /* completed epochs */
} MusterBackupCounters;
MusterBackupCounters muster_backup_counters (MusterBackup *self);

G_END_DECLS

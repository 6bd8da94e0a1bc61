// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/async/async_saver.h"

G_BEGIN_DECLS

/* MusterCheckpointManager numbers one model's checkpoints in a directory, DIRECTORY/ckpt-1 and so
 * on, like TensorFlow's CheckpointManager: a saver with its retention rules, a save counter and an
 * interval in steps. Checkpoints are written in the background (saver/async/async_saver.h). Any
 * thread; saves run one at a time, so a save waits for the one before. */

#define MUSTER_TYPE_CHECKPOINT_MANAGER (muster_checkpoint_manager_get_type ())
G_DECLARE_FINAL_TYPE (MusterCheckpointManager, muster_checkpoint_manager, MUSTER,
                      CHECKPOINT_MANAGER, GObject)

/* Reads the training's step, in which the interval counts. */
typedef gboolean (*MusterReadStep) (MusterSession *session, gint64 *step, gint64 deadline_us,
                                    GCancellable *cancellable, gpointer user_data, GError **error);

/* Waits until no other background save is running, for example by muster_async_saver_sync (). */
typedef gboolean (*MusterWaitForSaves) (gint64 deadline_us, GCancellable *cancellable,
                                        gpointer user_data, GError **error);

/* Initialises a model that has no checkpoint. */
typedef gboolean (*MusterInitialize) (MusterSession *session, gint64 deadline_us,
                                      GCancellable *cancellable, gpointer user_data,
                                      GError **error);

typedef struct {
  int max_to_keep;            /* 0: the SaverDef's; MUSTER_KEEP_ALL: all */
  double keep_every_n_hours;  /* 0: none is preserved beyond max_to_keep */
  const char *name;           /* NULL: "ckpt" */
  gint64 checkpoint_interval; /* in steps; 0: none, and read_step isn't called */
  MusterReadStep read_step;   /* required with checkpoint_interval */
  gpointer step_data;
  MusterInitialize initialize; /* (nullable) */
  gpointer initialize_data;
  MusterWaitForSaves wait_for_saves; /* (nullable) before a restore, besides its own saves */
  gpointer wait_data;
  gboolean is_blocking;        /* TRUE: each save returns once its checkpoint is durable */
  MusterSaveFinished finished; /* (nullable) called on the manager's thread after each save there */
  gpointer finished_data;
  MusterWhenFull when_full;
  MusterStorage *storage; /* NULL: local files */
  MusterClock *clock;     /* NULL: the machine's */
} MusterCheckpointManagerOptions;

/* Continues from the directory's state: its list, the time of the last preserved checkpoint, and
 * the counter from the latest. Checkpoints that may be as old as the last preserved one are left
 * alone. */
MusterCheckpointManager *
muster_checkpoint_manager_new (MusterMetaGraph *meta_graph, const char *directory,
                               const MusterCheckpointManagerOptions *options, GError **error);

/* Its saver, to set a lease, saveables or background saves; borrowed. */
MusterSaver *muster_checkpoint_manager_saver (MusterCheckpointManager *self);
const char *muster_checkpoint_manager_directory (MusterCheckpointManager *self); /* borrowed */

/* Saves as DIRECTORY/ckpt-NUMBER; number below 0: the save counter, which increases in both cases.
 * Returns when the snapshot is staged, with the prefix to be; with is_blocking, and for a model
 * that has no snapshots, when the checkpoint is durable. An unreported error of an earlier save is
 * returned instead of saving. Skipped (saved->skipped) at the step of the last save, and with
 * check_interval if fewer than checkpoint_interval steps have passed since; a save that failed
 * doesn't count there. */
gboolean muster_checkpoint_manager_save (MusterCheckpointManager *self, MusterSession *session,
                                         gint64 number, gboolean check_interval, MusterSaved *saved,
                                         gint64 deadline_us, GCancellable *cancellable,
                                         GError **error);

/* Waits until no save is running. Returns the error of a background save that wasn't reported yet.
 * Call it before the end of the program: the last unref waits 5 s at most. */
gboolean muster_checkpoint_manager_sync (MusterCheckpointManager *self, gint64 deadline_us,
                                         GCancellable *cancellable, GError **error);

/* Waits for background saves, then restores the newest checkpoint that is whole; *restored
 * (nullable out) (transfer full) is its prefix. If there is none: calls initialize, if set, and
 * returns NULL there. */
gboolean muster_checkpoint_manager_restore_or_initialize (MusterCheckpointManager *self,
                                                          MusterSession *session, char **restored,
                                                          gint64 deadline_us,
                                                          GCancellable *cancellable,
                                                          GError **error);

/* The list of durable checkpoints, oldest first (transfer full) NULL-terminated; and the newest, or
 * NULL. */
char **muster_checkpoint_manager_checkpoints (MusterCheckpointManager *self);
char *muster_checkpoint_manager_latest_checkpoint (MusterCheckpointManager *self);

G_END_DECLS

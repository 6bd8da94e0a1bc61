// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/saver.h"

G_BEGIN_DECLS

/* MusterCheckpointManager numbers one model's checkpoints in one directory, DIRECTORY/ckpt-1 and
 * on, as TensorFlow's does: a saver with CheckpointManager's rules of keeping, a save counter, and
 * an interval of steps. Any thread; saves take turns. */

#define MUSTER_TYPE_CHECKPOINT_MANAGER (muster_checkpoint_manager_get_type ())
G_DECLARE_FINAL_TYPE (MusterCheckpointManager, muster_checkpoint_manager, MUSTER,
                      CHECKPOINT_MANAGER, GObject)

/* Reads the step that the interval counts in: that of the training. */
typedef gboolean (*MusterReadStep) (MusterSession *session, gint64 *step, gint64 deadline_us,
                                    GCancellable *cancellable, gpointer user_data, GError **error);

/* Waits until nothing is being saved in the background: muster_async_saver_sync (), say. */
typedef gboolean (*MusterWaitForSaves) (gint64 deadline_us, GCancellable *cancellable,
                                        gpointer user_data, GError **error);

/* Gives a model without a checkpoint its first values. */
typedef gboolean (*MusterInitialize) (MusterSession *session, gint64 deadline_us,
                                      GCancellable *cancellable, gpointer user_data,
                                      GError **error);

typedef struct {
  int max_to_keep;            /* 0: as the SaverDef says; MUSTER_KEEP_ALL: all */
  double keep_every_n_hours;  /* 0: none is kept for good beyond them */
  const char *name;           /* NULL: "ckpt" */
  gint64 checkpoint_interval; /* in steps; 0: none, and read_step isn't asked */
  MusterReadStep read_step;   /* with checkpoint_interval */
  gpointer step_data;
  MusterInitialize initialize; /* (nullable) */
  gpointer initialize_data;
  MusterWaitForSaves wait_for_saves; /* (nullable) */
  gpointer wait_data;
  MusterWhenFull when_full;
  MusterStorage *storage; /* NULL: local files */
  MusterClock *clock;     /* NULL: the machine's */
} MusterCheckpointManagerOptions;

/* Goes on where the directory stands: its list, its mark, and the counter from the latest. What may
 * be as old as the last one kept for good is left alone. */
MusterCheckpointManager *
muster_checkpoint_manager_new (MusterMetaGraph *meta_graph, const char *directory,
                               const MusterCheckpointManagerOptions *options, GError **error);

/* Its saver: for a lease, saveables, or saving in the background; borrowed. */
MusterSaver *muster_checkpoint_manager_saver (MusterCheckpointManager *self);
const char *muster_checkpoint_manager_directory (MusterCheckpointManager *self); /* borrowed */

/* Saves as DIRECTORY/ckpt-NUMBER; number below 0: the save counter, which counts up in any case,
 * once the checkpoint is durable. Skipped (saved->skipped) at the step of the last save; and with
 * check_interval where fewer than checkpoint_interval steps have passed since. */
gboolean muster_checkpoint_manager_save (MusterCheckpointManager *self, MusterSession *session,
                                         gint64 number, gboolean check_interval, MusterSaved *saved,
                                         gint64 deadline_us, GCancellable *cancellable,
                                         GError **error);

/* Restores the newest checkpoint that is whole, after what is being saved in the background has
 * ended; *restored (nullable out) (transfer full) is its prefix. Where there is none: initialize,
 * if there is one, and NULL. */
gboolean muster_checkpoint_manager_restore_or_initialize (MusterCheckpointManager *self,
                                                          MusterSession *session, char **restored,
                                                          gint64 deadline_us,
                                                          GCancellable *cancellable,
                                                          GError **error);

/* Oldest first, (transfer full) NULL-terminated; and the last of them, or NULL. */
char **muster_checkpoint_manager_checkpoints (MusterCheckpointManager *self);
char *muster_checkpoint_manager_latest_checkpoint (MusterCheckpointManager *self);

G_END_DECLS

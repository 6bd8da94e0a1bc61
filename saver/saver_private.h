// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_reader.h"
#include "saver/builder/restore_plan_private.h"
#include "saver/builder/saveable_private.h"
#include "saver/directory/checkpoint_directory_private.h"
#include "saver/directory/free_space_private.h"
#include "saver/probe_memory_private.h"
#include "saver/saver.h"

G_BEGIN_DECLS

struct _MusterSaver {
  GObject parent;
  MusterMetaGraph *meta_graph; /* (owned) */
  MusterSaverInfo info;        /* its strings are the meta graph's */
  gboolean pad_step_number;
  gboolean is_empty;                   /* there is no SaverDef: info is zeroed */
  gint64 save_timeout_us;              /* 0: any time */
  MusterStorage *storage;              /* (owned) */
  MusterClock *clock;                  /* (owned) */
  MusterCheckpointDirectory directory; /* (owned) any thread */
  MusterFreeSpace free_space;          /* constant */
  MusterSaveables *saveables;          /* (owned) any thread */
  MusterProbe *probe;                  /* (owned) any thread */
  gboolean no_probe;
  MusterSaverConsistentCut consistent_cut; /* without functions: none */
  gpointer consistent_cut_data;
  GDestroyNotify consistent_cut_destroy;
  guint64 graph_bytes;             /* what a checkpoint of the graph takes; constant */
  MusterRestorePlan *restore_plan; /* (owned) (nullable) constant; NULL: see restore_flaw */
  GError *restore_flaw; /* (owned) (nullable) why the graph can't be restored; constant */
  GMutex lock;
  /* guarded by lock */
  char *crash_loop_directory; /* (owned) (nullable) where the life is noted that this saver began */
  char *life;                 /* (owned) (nullable) the base name of its checkpoint */
  gboolean is_saving;         /* somebody has the lock of saves */
  GCancellable
      *save_unlocked; /* (owned) (nullable) somebody waits for it: cancelled when it is free */
};

/* The prefix that a save of that step has (transfer full): INVALID_ARGUMENT for one that collides
 * with the state file. */
char *muster_saver_prefix_for (MusterSaver *self, const char *directory, gint64 step,
                               GError **error);

/* INVALID_ARGUMENT where one of the two is missing. */
gboolean muster_saver_check_session (MusterSaver *self, MusterSession *session, GError **error);
/* INVALID_ARGUMENT without a saver, and for a directory that its store doesn't take. */
gboolean muster_saver_check_directory (MusterSaver *self, const char *directory, GError **error);

/* Does the work, again where the model has moved meanwhile; without a cut once. *step (nullable)
 * becomes what the cut calls it, or stays. */
typedef gboolean (*MusterSaverWork) (gpointer data, GError **error);
gboolean muster_saver_work_in_consistent_cut (MusterSaver *self, MusterSession *session,
                                              MusterSaverWork work, gpointer data, gint64 *step,
                                              gint64 deadline_us, GCancellable *cancellable,
                                              GError **error);

/* What a checkpoint with tensors (nullable) will take, as far as the graph and the last one tell.
 */
guint64 muster_saver_estimate (MusterSaver *self, const GPtrArray *tensors);

G_END_DECLS

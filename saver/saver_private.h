// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_reader.h"
#include "saver/builder/restore_plan_private.h"
#include "saver/builder/saveable_private.h"
#include "saver/directory/checkpoint_directory_private.h"
#include "saver/directory/free_space_private.h"
#include "saver/probe_memory_private.h"
#include "saver/save_how_private.h"
#include "saver/tiers/tiers_private.h"

G_BEGIN_DECLS

struct _MusterSaver {
  GObject parent;
  MusterMetaGraph *meta_graph; /* (owned) */
  MusterSaverInfo info;        /* its strings are the meta graph's */
  gboolean pad_step_number;
  gboolean is_empty;                   /* there is no SaverDef, so info is zeroed */
  gint64 save_timeout_us;              /* 0: no limit */
  MusterStorage *storage;              /* (owned) */
  MusterClock *clock;                  /* (owned) */
  MusterCheckpointDirectory directory; /* (owned) any thread */
  MusterFreeSpace free_space;          /* constant */
  GBytes *paused_owner;                /* (owned) (nullable) its callback's data */
  MusterTiers *tiers;                  /* (owned) any thread */
  MusterSaveables *saveables;          /* (owned) any thread */
  MusterProbe *probe;                  /* (owned) any thread */
  MusterSaveLog *log;                  /* (owned) any thread */
  gboolean no_probe;
  gboolean gathered;  /* it never asks the master to write */
  GPtrArray *gathers; /* (owned) (nullable) (element-type MusterGather) of one session; with the
                         lock on saves */
  MusterSaverConsistentCut consistent_cut; /* without functions: none */
  gpointer consistent_cut_data;
  GDestroyNotify consistent_cut_destroy;
  gboolean keeps_cut;              /* it isn't released after a save */
  guint64 graph_bytes;             /* the size of a checkpoint of the graph; constant */
  MusterRestorePlan *restore_plan; /* (owned) (nullable) constant; NULL: see restore_flaw */
  GError *restore_flaw; /* (owned) (nullable) why the graph can't be restored; constant */
  GMutex lock;
  /* guarded by lock */
  char *crash_loop_directory; /* (owned) (nullable) the directory of the crash loop record that this
                                 saver wrote */
  char *life;    /* (owned) (nullable) the base name of the checkpoint in that record */
  char *staging; /* (owned) (nullable) a directory for what masters write that can't write into an
                    object store; removed at the end */
  gboolean is_saving;          /* the lock on saves is held */
  GCancellable *save_unlocked; /* (owned) (nullable) a waiter's; cancelled when the lock on saves is
                                  released */
};

/* Returns the prefix of a save at that step (transfer full). INVALID_ARGUMENT if it collides with
 * the state file. */
char *muster_saver_prefix_for (MusterSaver *self, const char *directory, gint64 step,
                               GError **error);

/* The directory in which masters leave what they can't write into an object store; made at the
 * first call, and borrowed. */
const char *muster_saver_staging (MusterSaver *self, GError **error);

/* Fails with INVALID_ARGUMENT if either is NULL. */
gboolean muster_saver_check_session (MusterSaver *self, MusterSession *session, GError **error);
/* Fails with INVALID_ARGUMENT if the saver is NULL or its storage doesn't support the directory. */
gboolean muster_saver_check_directory (MusterSaver *self, const char *directory, GError **error);

/* tiered.c: the tier with this number, its directory and its rules for lack of space. directory is
 * the durable one. */
MusterCheckpointDirectory *muster_saver_tier (MusterSaver *self, guint tier, const char **directory,
                                              const MusterFreeSpace **free_space);
/* The directory that a save with these tiers due goes to: borrowed. */
const char *muster_saver_place (MusterSaver *self, const char *directory, MusterTierSet due);
/* Claims all tiers, the fastest first, with one epoch. A fast tier that can't be claimed is
 * dropped, unless another chief holds it. */
gboolean muster_saver_claim_tiers (MusterSaver *self, const char *directory, gint64 deadline_us,
                                   GCancellable *cancellable, GError **error);
/* Rebuilds the lists of all tiers in use. A fast tier's failure isn't an error. */
gboolean muster_saver_adopt_tiers (MusterSaver *self, const char *directory, MusterAdoptFlags flags,
                                   gint64 deadline_us, GCancellable *cancellable, GError **error);
/* The store for an operation that has no deadline of its own: bound to a minute (transfer full). */
MusterStorage *muster_saver_bound_storage (MusterSaver *self);
/* restore.c: whether prefix, restored from a fast tier while the directory couldn't be read, is the
 * job's newest now that it can. UNAVAILABLE: restore again. */
gboolean muster_saver_check_restored (MusterSaver *self, const char *directory, const char *prefix,
                                      gint64 deadline_us, GCancellable *cancellable,
                                      GError **error);
/* The size of the last checkpoint, in any tier. */
guint64 muster_saver_last_bytes (MusterSaver *self);
/* Queues copies of a checkpoint to the tiers of to that are slower than its own. storage is the
 * saver's, bound. */
void muster_saver_queue_copies (MusterSaver *self, MusterStorage *storage, const char *directory,
                                const char *prefix, gint64 step, MusterTierSet to);

/* The estimated size in bytes of a checkpoint with tensors (nullable), from the graph and the last
 * checkpoint. */
guint64 muster_saver_estimate (MusterSaver *self, const GPtrArray *tensors);

G_END_DECLS

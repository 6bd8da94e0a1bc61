// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_reader.h"
#include "checkpoint/state/checkpoint_record.h"
#include "saver/builder/restore_plan_private.h"
#include "saver/builder/saveable_private.h"
#include "saver/probe_private.h"
#include "saver/saver.h"

G_BEGIN_DECLS

typedef struct {
  char *prefix; /* (owned) */
  double time;  /* seconds since 1970; INFINITY: it is never deleted */
} MusterKept;

/* What of a directory is this chief's. */
typedef struct {
  char *directory; /* (owned) */
  gint64 epoch;    /* in its side file */
} MusterClaimed;

struct _MusterSaver {
  GObject parent;
  MusterMetaGraph *meta_graph; /* (owned) */
  MusterSaverInfo info;        /* its strings are the meta graph's */
  int max_to_keep;             /* 0: all */
  char *base_name;             /* (owned) */
  gboolean with_meta_graph;
  double keep_seconds; /* 0: none is kept for good */
  MusterKeepRule keep_rule;
  gboolean absolute_paths;
  char *latest_filename; /* (owned) (nullable) */
  gboolean pad_step_number;
  gboolean unlisted;
  gboolean is_empty; /* there is no SaverDef: info is zeroed */
  gboolean adopt_unknown;
  MusterWhenFull when_full;
  gint64 save_timeout_us;   /* 0: any time */
  MusterSaverPaused paused; /* (nullable) */
  gpointer paused_data;
  MusterStorage *storage;     /* (owned) */
  MusterClock *clock;         /* (owned) */
  MusterSaveables *saveables; /* (owned) any thread */
  MusterProbe *probe;         /* (owned) any thread */
  gboolean no_probe;
  MusterSaverCut cut; /* without functions: none */
  gpointer cut_data;
  GDestroyNotify cut_destroy;
  GHashTable *swept; /* (owned) (element-type utf8) directories; whoever has the turn's */
  GMutex lock;
  GCond turn_ended;
  /* guarded by lock */
  char *life_directory; /* (owned) (nullable) where the life is noted that this saver began */
  char *life;           /* (owned) (nullable) the base name of its checkpoint */
  gboolean is_saving;   /* somebody has the turn */
  MusterLease *lease;   /* (owned) (nullable) */
  GArray *claimed;      /* (owned) (element-type MusterClaimed) under that lease */
  double mark;          /* what is kept for good goes by it: seconds since 1970 */
  guint64 last_bytes;   /* the last checkpoint's */
  gint64 graph_bytes;   /* what the graph's variables take; -1: not counted yet */
  GPtrArray *kept;      /* (owned) (element-type MusterKept) oldest first */
  MusterRestorePlan *restore_plan; /* (owned) (nullable) once made; constant */
  GPtrArray *doomed; /* (owned) (element-type utf8) prefixes that could not be removed yet */
};

/* One save that isn't the SaverDef's plain one: a snapshot's, or one under a name of the caller's.
 * A zeroed struct is the plain one. All of it is the caller's, until the save has ended. */
typedef struct {
  const char *save_tensor;         /* (nullable) runs in place of the SaverDef's; it takes the same
                                      filename tensor */
  gboolean unlisted;               /* no state file, no list, nothing announced */
  gboolean keeps_name;             /* whatever step the cut says: the caller has told the name */
  const GPtrArray *tensors;        /* (nullable) (element-type MusterNamedTensor) from outside the
                                      graph: they go into the same checkpoint */
  void (*written) (gpointer data); /* (nullable) the master has written all; not published yet */
  gpointer written_data;
  MusterSaved *saved; /* (nullable) what became of it; without, a skipped one is an error */
} MusterSaveHow;

/* muster_saver_save (), in that way. */
gboolean muster_saver_save_how (MusterSaver *self, MusterSession *session, const char *prefix,
                                gint64 step, const MusterSaveHow *how, gint64 deadline_us,
                                GCancellable *cancellable, GError **error);
/* The prefix that a save of that step has (transfer full): INVALID_ARGUMENT for one that collides
 * with the state file. */
char *muster_saver_prefix_for (MusterSaver *self, const char *directory, gint64 step,
                               GError **error);

/* INVALID_ARGUMENT where one of the two is missing. */
gboolean muster_saver_check_session (MusterSaver *self, MusterSession *session, GError **error);
/* INVALID_ARGUMENT without a saver, and for a directory that its store doesn't take. */
gboolean muster_saver_check_directory (MusterSaver *self, const char *directory, GError **error);

/* A path as the master is to be told of it: another process has another working directory. */
char *muster_saver_path_for_master (MusterSaver *self, const char *path);

/* The plan of the saver's restore op, made when first asked for; the saver's. */
const MusterRestorePlan *muster_saver_restore_plan (MusterSaver *self, GError **error);

double muster_saver_wall_seconds (MusterSaver *self);

/* Does the work, again where the model has moved meanwhile; without a cut once. *step (nullable)
 * becomes what the cut calls it, or stays. */
typedef gboolean (*MusterSaverWork) (gpointer data, GError **error);
gboolean muster_saver_work_in_cut (MusterSaver *self, MusterSession *session, MusterSaverWork work,
                                   gpointer data, gint64 *step, gint64 deadline_us,
                                   GCancellable *cancellable, GError **error);

/* adopt.c: in the turn, before the saver's saves there, takes away what dead savers left in a
 * directory, under its lock, until it has been done once. */
void muster_saver_sweep_once (MusterSaver *self, const char *directory);
/* What tells that the files of a save are a living saver's (transfer full); NULL: it couldn't be
 * had, and they are young until a day has passed. */
MusterStorageLock *muster_saver_mark_alive (MusterSaver *self, const char *temporary);
void muster_saver_unmark_alive (MusterSaver *self, const char *temporary, MusterStorageLock *lock);

/* fence.c: takes the directory for the lease's chief, or finds that it has it still; under the
 * directory's lock, with its record. *changed: the record is to be written. No lease: TRUE. */
gboolean muster_saver_check_claim (MusterSaver *self, MusterLease *lease, const char *directory,
                                   MusterCheckpointRecord *record, gboolean *changed,
                                   GError **error);
gboolean muster_saver_claim_with (MusterSaver *self, MusterLease *lease, const char *directory,
                                  gint64 deadline_us, GCancellable *cancellable, GError **error);
void muster_claimed_clear (gpointer claimed);
/* The lease's epoch in the directory; 0 without one. */
gint64 muster_saver_claimed_epoch (MusterSaver *self, const char *directory);

/* free_space.c: a save that looks for room, by the saver's when_full. */
typedef struct {
  const char *directory;
  guint64 bytes; /* that it needs */
  gint64 deadline_us;
  GCancellable *cancellable; /* (nullable) */
  gint64 started_us;
  gint64 pause_us; /* the next one */
  char *why;       /* (owned) (nullable) the save is to be skipped, and why */
} MusterRoom;

/* FALSE with an error: there is none. TRUE: there is, unless it has a why. */
gboolean muster_saver_find_room (MusterSaver *self, MusterRoom *room, GError **error);
/* TRUE if that is what failed, as far as can be told before its files are taken away. */
gboolean muster_saver_was_full (MusterSaver *self, const MusterRoom *room, const GError *failure);
/* After such a failure (transfer full): as muster_saver_find_room (), for another try. */
gboolean muster_saver_after_full (MusterSaver *self, MusterRoom *room, GError *failure,
                                  GError **error);
/* What a checkpoint will take, as far as the graph and the last one tell. */
guint64 muster_saver_estimate (MusterSaver *self, const GPtrArray *tensors);

/* retention.c: makes prefix the latest, in the state file, the list and the record, and then
 * removes what leaves the list; under the directory's lock. *trouble (nullable out) (transfer full)
 * is what went wrong with the record: the save is well. */
gboolean muster_saver_record (MusterSaver *self, const char *directory, const char *prefix,
                              gint64 step, MusterCheckpointRecord *record, guint64 *bytes,
                              char **trouble, GError **error);
MusterKept *muster_kept_new (const char *prefix, double time);
void muster_kept_free (gpointer kept);

G_END_DECLS

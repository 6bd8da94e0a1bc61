// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/state/quarantine.h"
#include "graph/meta_graph/meta_graph.h"
#include "master/lease.h"
#include "saver/builder/keep.h"
#include "saver/builder/saveable.h"
#include "saver/directory/free_space.h"
#include "saver/restore_options.h"

G_BEGIN_DECLS

/* MusterSaver keeps a model: it saves a session's variables as a checkpoint, restores them, and
 * forgets old checkpoints. It drives the save and restore ops that a MetaGraphDef's SaverDef names,
 * on any master; names, the state file and retention are its own, in the chief's file system, which
 * the master must share. A save is published whole: under a temporary prefix, synced, renamed, then
 * named in the state file. One saver may be used from any thread; saves take turns. */

#define MUSTER_TYPE_SAVER (muster_saver_get_type ())
G_DECLARE_FINAL_TYPE (MusterSaver, muster_saver, MUSTER, SAVER, GObject)

typedef struct {
  int max_to_keep;        /* 0: as the SaverDef says; MUSTER_KEEP_ALL: all */
  const char *base_name;  /* NULL: "model.ckpt" */
  gboolean no_meta_graph; /* TRUE: no PREFIX.meta beside the checkpoint */
  gboolean no_probe; /* TRUE: the first save doesn't ask who sees the directory (saver/probe.h) */
  MusterStorage *storage;    /* NULL: local files */
  MusterClock *clock;        /* NULL: the machine's */
  double keep_every_n_hours; /* 0: what the SaverDef says; below 0: none is kept for good */
  MusterKeepRule keep_rule;
  gboolean absolute_paths; /* TRUE: as they are, in the state file; else a directory can be moved */
  const char *latest_filename; /* the state file's name; NULL: "checkpoint" */
  gboolean pad_step_number;    /* TRUE: "model.ckpt-00001200" */
  gboolean unlisted;           /* TRUE: no state file is written, no list kept, nothing deleted */
  gboolean allow_empty; /* a meta graph without a SaverDef, for want of variables: a save writes the
                           meta graph alone and counts as skipped, a restore does nothing; a
                           directory with a checkpoint is refused */
  gboolean adopt_unknown; /* TRUE: what lies in a directory under this base name is the saver's,
                             to list and delete, even where no state and no record names it */
  MusterWhenFull when_full;
  /* What a save may take, whatever deadline it is given, so that a master that stands still doesn't
   * keep it for ever; longer than the longest, and than a pause for room. 0: any time. */
  gint64 save_timeout_us;
  MusterSaverPaused paused; /* (nullable) on the saving thread, at each look that finds no room */
  gpointer paused_data;
} MusterSaverOptions;

/* What became of a save. Clear with muster_saved_clear (). */
typedef struct {
  char *prefix;   /* (owned) (nullable) NULL where it was skipped */
  gint64 step;    /* -1: none */
  guint64 bytes;  /* of its files; 0 where it isn't listed */
  gint64 took_us; /* waiting for the save before and for room among it */
  gboolean skipped;
  char *
      why; /* (owned) (nullable) why it was skipped; else what, beside the checkpoint, went wrong */
} MusterSaved;

/**
 * muster_saved_clear: (skip)
 */
void muster_saved_clear (MusterSaved *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterSaved, muster_saved_clear)

/**
 * muster_saver_new:
 * @options: (nullable)
 *
 * INVALID_ARGUMENT where the meta graph has no SaverDef (but see allow_empty), or one that names no
 * ops, and for names that can't be. options may be NULL.
 *
 * Returns: (transfer full)
 */
MusterSaver *muster_saver_new (MusterMetaGraph *meta_graph, const MusterSaverOptions *options,
                               GError **error);

/**
 * muster_saver_set_lease:
 * @lease: (nullable)
 *
 * The chief's hold on its model, from now on: (nullable). Each save asks the master whether it is
 * held, before anything is written and again before the checkpoint is published; one that is lost
 * is FAILED_PRECONDITION, and nothing is left behind. What is durable is announced. A directory is
 * claimed with it: see muster_saver_claim_directory ().
 */
void muster_saver_set_lease (MusterSaver *self, MusterLease *lease);

/* Takes a directory for the chief whose lease the saver has, in its side file: from then on a chief
 * that had it before, at this master or at one that is gone, is refused there (FAILED_PRECONDITION)
 * before it writes anything, and again before it publishes. A save does it by itself; a chief that
 * trains does it before its first step. Who only restores doesn't: a job that looks at another's
 * checkpoints must not keep that one from saving. Without a lease nothing is claimed and nobody is
 * refused. */
gboolean muster_saver_claim_directory (MusterSaver *self, const char *directory, gint64 deadline_us,
                                       GCancellable *cancellable, GError **error);

/* How a model that several tasks train is saved as it is at one moment. All of it is called on the
 * saving thread, in the save's turn. */
typedef struct {
  /* Brings the model to rest; before each try to write it. */
  gboolean (*quiesce) (MusterSession *session, gint64 deadline_us, GCancellable *cancellable,
                       gpointer user_data, GError **error);
  /* After the master has written: *is_consistent FALSE throws away what was written, which is never
   * published, and another try is made, five at most. */
  gboolean (*check) (MusterSession *session, gboolean *is_consistent, gint64 deadline_us,
                     GCancellable *cancellable, gpointer user_data, GError **error);
  /* (nullable) The step that the checkpoint is named by, whatever step the save was given; before
   * check, so that it is that of what was written. What an async saver saves isn't named so. */
  gboolean (*number) (MusterSession *session, gint64 *step, gint64 deadline_us,
                      GCancellable *cancellable, gpointer user_data, GError **error);
  /* Lets the model go on: once after the tries, however they ended, and before what was written is
   * synced and published. */
  void (*release) (MusterSession *session, gpointer user_data);
} MusterSaverConsistentCut;

/**
 * muster_saver_set_consistent_cut: (skip)
 *
 * Each save from now on, and each snapshot of an async saver over this one, is made so; NULL
 * for consistent_cut (nullable) ends that. Call it between saves only.
 */
void muster_saver_set_consistent_cut (MusterSaver *self,
                                      const MusterSaverConsistentCut *consistent_cut,
                                      gpointer user_data, GDestroyNotify destroy);

/**
 * muster_saver_add_saveable: (skip)
 *
 * State outside the graph that goes into every checkpoint from now on, and is handed out by every
 * restore, as the tensors NAME/… (saver/builder/saveable.h). ALREADY_EXISTS for a name that is
 * taken; FAILED_PRECONDITION for a saver that saves nothing (allow_empty).
 */
gboolean muster_saver_add_saveable (MusterSaver *self, const char *name, MusterSaveable *saveable,
                                    MusterSaveableFlags flags, GError **error);

/* Saves as DIRECTORY/BASE-STEP (step below 0: without a number) and returns that prefix (transfer
 * full), after it is durable and "latest". What savers that died have left half written in the
 * directory is taken away before the first save there. One that is skipped for want of room is
 * RESOURCE_EXHAUSTED here; a saver with nothing to save is FAILED_PRECONDITION. */
char *muster_saver_save (MusterSaver *self, MusterSession *session, const char *directory,
                         gint64 step, gint64 deadline_us, GCancellable *cancellable,
                         GError **error);

/* How a save may differ from the plain one: a snapshot's, or one under a name of the caller's. A
 * zeroed struct is the plain one. All of it is the caller's, until the save has ended. */
typedef struct {
  const char *prefix; /* (nullable) in place of DIRECTORY/BASE-STEP, whatever step the cut says */
  const char *save_tensor;  /* (nullable) runs in place of the SaverDef's, on what is at rest
                               already; it takes the same filename tensor */
  const GPtrArray *tensors; /* (nullable) (element-type MusterNamedTensor) from outside the graph,
                               in place of what the saveables hold now */
  gboolean unlisted;        /* no state file, no list, nothing announced */
  void (*written) (
      gpointer user_data); /* (nullable) the master has written all; not published yet */
  gpointer written_data;
} MusterSaveHow;

/**
 * muster_saver_save_with: (skip)
 *
 * The same, as how (nullable) says, and with all there is to tell: a skipped save is success, and
 * so is that of a saver with nothing to save.
 */
gboolean muster_saver_save_with (MusterSaver *self, MusterSession *session, const char *directory,
                                 gint64 step, const MusterSaveHow *how, MusterSaved *saved,
                                 gint64 deadline_us, GCancellable *cancellable, GError **error);

/* Compares a checkpoint with what the saver restores and reads every tensor: one error lists every
 * missing, wrongly shaped and wrongly typed tensor with the nearest name (INVALID_ARGUMENT), or the
 * damage (DATA_LOSS). Touches no session. */
gboolean muster_saver_check_compatible (MusterSaver *self, const char *prefix,
                                        GCancellable *cancellable, GError **error);

/**
 * muster_saver_restore:
 * @options: (nullable): what is restored, and how
 * @restored: (nullable): what was
 *
 * Restores the checkpoint that options name, or the newest of their directory that is whole. All of
 * it is read and compared with the graph before the first variable changes, also by a master that
 * reads for itself: what it alone finds damaged is DATA_LOSS, too. Nothing is assigned unless
 * everything fits. While it runs, the checkpoint is kept from being removed. restored (nullable) is
 * filled.
 *
 * INVALID_ARGUMENT where options name neither a prefix nor a directory, or both. A saver that
 * restores nothing (allow_empty) takes any prefix, or none.
 *
 * In a directory: restored->prefix is NULL where its state file names none, which is success, and
 * passed_over says which newer ones were missing or damaged: those damaged are set aside
 * (checkpoint/state/quarantine.h). One that is whole and doesn't fit the graph is an error, and so
 * is a state file that can't be read (DATA_LOSS); a saver that restores nothing refuses a directory
 * with a checkpoint (INVALID_ARGUMENT). A checkpoint that a saver at work removes before it is
 * locked doesn't count: the directory is looked at again, until the deadline, and what it names now
 * is taken. Afterwards the state file's list is the saver's.
 */
gboolean muster_saver_restore (MusterSaver *self, MusterSession *session,
                               const MusterRestoreOptions *options, MusterRestored *restored,
                               gint64 deadline_us, GCancellable *cancellable, GError **error);

/**
 * muster_saver_latest_checkpoint:
 *
 * The checkpoint that the saver's state file (latest_filename) names in a directory: see
 * muster_latest_checkpoint ().
 *
 * Returns: (transfer full) (nullable)
 */
char *muster_saver_latest_checkpoint (MusterSaver *self, const char *directory, GError **error);

/**
 * muster_saver_last_checkpoints:
 *
 * The list that retention works on, oldest first: (transfer full) NULL-terminated.
 *
 * Returns: (transfer full) (array zero-terminated=1)
 */
char **muster_saver_last_checkpoints (MusterSaver *self);

/**
 * muster_saver_set_last_checkpoints: (skip)
 *
 * Puts others in its place (prefixes is NULL-terminated). times (nullable) has one for each, in
 * seconds since 1970; NULL: they are never deleted (SAV.51).
 */
void muster_saver_set_last_checkpoints (MusterSaver *self, const char *const *prefixes,
                                        const double *times);

/**
 * muster_saver_recover_last_checkpoints:
 * @prefixes: (array zero-terminated=1)
 *
 * Rebuilds the list: those whose files exist, in that order, as old as their files (SAV.50).
 */
void muster_saver_recover_last_checkpoints (MusterSaver *self, const char *const *prefixes);

/* The same from a directory, as a saver of a new process needs it before its first save, so that
 * the checkpoints before are still listed, and forgotten in their turn: those that its state file
 * names, and those of this base name that the side file knows for a muster's (adopt_unknown: all).
 * Those kept for good or set aside never. No directory and no state file is no list; DATA_LOSS for
 * a state file that can't be read. Takes away what savers that died have left half written: a saver
 * at work holds a lock, and where the store has none, what was touched within a day stays. */
gboolean muster_saver_adopt_directory (MusterSaver *self, const char *directory, GError **error);

/* How many bytes the next checkpoint will take, as far as the graph and the last one tell, without
 * what saveables add. Any thread. */
guint64 muster_saver_estimate_bytes (MusterSaver *self);

/**
 * muster_saver_storage: (skip)
 *
 * Where its checkpoints are; borrowed.
 */
MusterStorage *muster_saver_storage (MusterSaver *self);

G_END_DECLS

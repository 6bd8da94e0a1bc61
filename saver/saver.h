// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/goodput.h"
#include "checkpoint/state/quarantine.h"
#include "graph/meta_graph/meta_graph.h"
#include "master/lease.h"
#include "master/save_status.h"
#include "saver/builder/keep.h"
#include "saver/builder/saveable.h"
#include "saver/directory/free_space.h"
#include "saver/restore_options.h"
#include "saver/tiers/tier.h"

G_BEGIN_DECLS

/* MusterSaver saves a session's variables as a checkpoint, restores them, and removes old
 * checkpoints. It runs the save and restore ops named in a MetaGraphDef's SaverDef, on any master.
 * It manages names, the state file and retention in the chief's file system, which the master must
 * share. A save is published atomically: written with a temporary prefix, synced, renamed, then
 * named in the state file. Any thread; saves run one at a time. */

#define MUSTER_TYPE_SAVER (muster_saver_get_type ())
G_DECLARE_FINAL_TYPE (MusterSaver, muster_saver, MUSTER, SAVER, GObject)

typedef struct {
  int max_to_keep;           /* 0: the SaverDef's; MUSTER_KEEP_ALL: all */
  const char *base_name;     /* NULL: "model.ckpt" */
  gboolean no_meta_graph;    /* TRUE: write no PREFIX.meta */
  gboolean no_probe;         /* TRUE: the first save doesn't check which devices see the directory
                                (saver/probe.h) */
  MusterStorage *storage;    /* NULL: local files */
  MusterClock *clock;        /* NULL: the machine's */
  double keep_every_n_hours; /* 0: the SaverDef's; below 0: none is preserved */
  MusterKeepRule keep_rule;
  gboolean absolute_paths; /* TRUE: absolute paths in the state file; otherwise the directory can be
                              moved */
  const char *latest_filename; /* the state file's name; NULL: "checkpoint" */
  gboolean pad_step_number;    /* TRUE: "model.ckpt-00001200" */
  gboolean unlisted;           /* TRUE: no state file, no list, no deletion */
  gboolean allow_empty;   /* allows a meta graph without a SaverDef, for lack of variables: a save
                             writes only the meta graph and is skipped, a restore does nothing; a
                             directory with a checkpoint is refused */
  gboolean adopt_unknown; /* TRUE: the saver lists and deletes all checkpoints with this base name
                             in a directory, even if no state file or record names them */
  MusterWhenFull when_full;
  /* Maximum duration of a save, whatever its deadline, so that a master that hangs doesn't block it
   * forever. Should exceed the longest save and the longest wait for space. 0: no limit. */
  gint64 save_timeout_us;
  MusterSaverPaused
      paused; /* (nullable) called on the saving thread at each check that finds no space */
  gpointer paused_data;
  /* Fast tiers in front of the directory of a save, fastest first: (nullable) copied. A restore of
   * the directory also looks there; saves go there by MusterSaveHow.due. */
  const MusterTier *fast;
  gsize n_fast; /* MUSTER_MAX_FAST_TIERS at most */
} MusterSaverOptions;

/* The result of a save. Clear with muster_saved_clear (). */
typedef struct {
  char *prefix;   /* (owned) (nullable) NULL if skipped */
  gint64 step;    /* -1: none */
  guint tier;     /* the fast tier it is in; the number of them: the directory of the save */
  guint64 bytes;  /* of its files; 0 if unlisted */
  gint64 took_us; /* includes waiting for the previous save and for space */
  /* When it was requested (in the background: by the caller), staged, written and durable, on the
   * saver's clock; -1: never. */
  gint64 at_us[MUSTER_N_SAVE_STATES];
  gboolean skipped;
  char *why; /* (owned) (nullable) why it was skipped; otherwise what failed after the checkpoint
                was saved */
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
 * INVALID_ARGUMENT if the meta graph has no SaverDef (but see allow_empty) or one without ops, and
 * for invalid names. options may be NULL.
 *
 * Returns: (transfer full)
 */
MusterSaver *muster_saver_new (MusterMetaGraph *meta_graph, const MusterSaverOptions *options,
                               GError **error);

/**
 * muster_saver_set_lease:
 * @lease: (nullable)
 *
 * Sets the chief's lease on its model (nullable). Each save checks with the master that it is held,
 * before writing and again before publishing. If it is lost, the save fails with
 * FAILED_PRECONDITION and leaves no files. Durable checkpoints are announced. The lease also claims
 * directories: see muster_saver_claim_directory ().
 */
void muster_saver_set_lease (MusterSaver *self, MusterLease *lease);

/* Claims a directory, in its side file, for the chief that holds the saver's lease. From then on an
 * earlier chief, at this or another master, is refused there (FAILED_PRECONDITION) before it
 * writes, and again before it publishes. A save claims by itself; a chief that trains claims before
 * its first step, and then announces it, so that the next chief knows that this directory is the
 * model's. Code that only restores doesn't claim: a job that reads another's checkpoints
 * mustn't prevent that one from saving. Without a lease this does nothing. */
gboolean muster_saver_claim_directory (MusterSaver *self, const char *directory, gint64 deadline_us,
                                       GCancellable *cancellable, GError **error);

/* Begins a run: claims the directory and notes in its side file a new run (a UUID) and the
 * checkpoint it starts from, so that checkpoints of another run aren't taken for this one's. A
 * program that trains calls it for each session, before its first step.
 * - resumed_prefix (nullable): the checkpoint that was restored.
 * - NULL with a resumed_step of 0 or above: the model was on the master at that step, from the
 *   directory's run before.
 * - NULL with -1: the model was initialised. */
gboolean muster_saver_begin_run (MusterSaver *self, const char *directory,
                                 const char *resumed_prefix, gint64 resumed_step,
                                 gint64 deadline_us, GCancellable *cancellable, GError **error);

/**
 * muster_saver_set_goodput: (skip)
 *
 * Sets what each later checkpoint's side file says of the job's time. Any thread.
 */
void muster_saver_set_goodput (MusterSaver *self, const MusterGoodput *goodput);

/**
 * muster_saver_write_goodput: (skip)
 *
 * Writes it to a directory's side file at once, as a chief does that ends.
 */
gboolean muster_saver_write_goodput (MusterSaver *self, const char *directory, gint64 deadline_us,
                                     GCancellable *cancellable, GError **error);

/**
 * muster_saver_read_goodput: (skip)
 *
 * Reads it, with its age. FALSE if the directory has none, or no side file that can be read.
 */
gboolean muster_saver_read_goodput (MusterSaver *self, const char *directory,
                                    MusterGoodput *goodput);

/* Makes a consistent save of a model that several tasks train. All functions are called on the
 * saving thread, while no other save runs. */
typedef struct {
  /* Stops changes of the model, before each attempt to write it. */
  gboolean (*quiesce) (MusterSession *session, gint64 deadline_us, GCancellable *cancellable,
                       gpointer user_data, GError **error);
  /* Called after the master has written. *is_consistent FALSE discards the files, which are never
   * published, and another attempt is made, at most five. */
  gboolean (*check) (MusterSession *session, gboolean *is_consistent, gint64 deadline_us,
                     GCancellable *cancellable, gpointer user_data, GError **error);
  /* (nullable) The step for the checkpoint's name, instead of the save's step. Called before check,
   * so that it matches what was written. */
  gboolean (*number) (MusterSession *session, gint64 *step, gint64 deadline_us,
                      GCancellable *cancellable, gpointer user_data, GError **error);
  /* Allows changes again: once after the attempts, also on failure, before the files are synced and
   * published. */
  void (*release) (MusterSession *session, gpointer user_data);
} MusterSaverConsistentCut;

/**
 * muster_saver_set_consistent_cut: (skip)
 *
 * Uses consistent_cut (nullable: none) for each later save, and for each snapshot of an async saver
 * with this saver. Call it only between saves.
 */
void muster_saver_set_consistent_cut (MusterSaver *self,
                                      const MusterSaverConsistentCut *consistent_cut,
                                      gpointer user_data, GDestroyNotify destroy);

/**
 * muster_saver_add_saveable: (skip)
 *
 * Adds state outside the graph to every later checkpoint and restore, as the tensors NAME/…
 * (saver/builder/saveable.h). ALREADY_EXISTS for a duplicate name; FAILED_PRECONDITION for a saver
 * without variables (allow_empty).
 */
gboolean muster_saver_add_saveable (MusterSaver *self, const char *name, MusterSaveable *saveable,
                                    MusterSaveableFlags flags, GError **error);

/* Saves as DIRECTORY/BASE-STEP (step below 0: without a number), and returns that prefix (transfer
 * full) once it is durable and "latest". Before the first save in a directory, files of savers that
 * died are removed. RESOURCE_EXHAUSTED if the save is skipped for lack of space;
 * FAILED_PRECONDITION if there is nothing to save. */
char *muster_saver_save (MusterSaver *self, MusterSession *session, const char *directory,
                         gint64 step, gint64 deadline_us, GCancellable *cancellable,
                         GError **error);

/* Options of a save: of a snapshot, or with the caller's prefix. A zeroed struct is a plain save.
 * The caller keeps everything valid until the save has ended. */
typedef struct {
  const char *prefix;       /* (nullable) instead of DIRECTORY/BASE-STEP and the step of a cut */
  const char *save_tensor;  /* (nullable) instead of the SaverDef's, for values that no longer
                               change; it uses the same filename tensor */
  const GPtrArray *tensors; /* (nullable) (element-type MusterNamedTensor) from outside the graph,
                               instead of the saveables' current values */
  gboolean unlisted;        /* no state file, no list, no announcement */
  /* With fast tiers, those that are due. The checkpoint is written to the fastest tier in use; the
   * other ones that are due get a copy in the background (saver/tiered.h). 0: the directory
   * itself. */
  MusterTierSet due;
  void (*written) (gpointer user_data); /* (nullable) called when the master has written everything,
                                           before publishing */
  gpointer written_data;
} MusterSaveHow;

/**
 * muster_saver_save_with: (skip)
 *
 * The same with the options how (nullable) and the full result. A skipped save, and one with
 * nothing to save, is success.
 */
gboolean muster_saver_save_with (MusterSaver *self, MusterSession *session, const char *directory,
                                 gint64 step, const MusterSaveHow *how, MusterSaved *saved,
                                 gint64 deadline_us, GCancellable *cancellable, GError **error);

/**
 * muster_saver_status: (skip)
 *
 * Sets *status (out), which the caller clears: how far the saver's saves have come since it was
 * created, blocking and background ones alike. Any thread.
 */
void muster_saver_status (MusterSaver *self, MusterSaveStatus *status);

/**
 * muster_saver_set_interval: (skip)
 *
 * Sets what the status says of the time between saves, for a program that chooses it; 0: it is
 * fixed. Any thread.
 */
void muster_saver_set_interval (MusterSaver *self, gint64 interval_us);

/* Compares a checkpoint with what the saver restores, and reads every tensor. INVALID_ARGUMENT
 * lists every missing tensor and every wrong shape or type, with the nearest name; DATA_LOSS
 * describes damage. Needs no session. */
gboolean muster_saver_check_compatible (MusterSaver *self, const char *prefix,
                                        GCancellable *cancellable, GError **error);

/**
 * muster_saver_restore:
 * @options: (nullable): the checkpoint or directory, and what is compatible
 * @restored: (nullable): what was restored
 *
 * Restores a checkpoint, or the newest complete one in a directory. restored->prefix (transfer
 * full) is NULL, which is success, if the state file names no checkpoint. restored->passed_over
 * (transfer full) lists newer checkpoints that are missing or damaged; damaged ones are
 * quarantined (checkpoint/state/quarantine.h; saver/restore_options.h has the options). Fails if a
 * complete checkpoint is incompatible with the graph, if the state file can't be read (DATA_LOSS),
 * and, for a saver without variables (allow_empty), if the directory has a checkpoint
 * (INVALID_ARGUMENT). Afterwards the saver's list is that of the state file.
 */
gboolean muster_saver_restore (MusterSaver *self, MusterSession *session,
                               const MusterRestoreOptions *options, MusterRestored *restored,
                               gint64 deadline_us, GCancellable *cancellable, GError **error);

/**
 * muster_saver_latest_checkpoint:
 *
 * The checkpoint that the saver's state file (latest_filename) in a directory names; see
 * muster_latest_checkpoint ().
 *
 * Returns: (transfer full) (nullable)
 */
char *muster_saver_latest_checkpoint (MusterSaver *self, const char *directory, GError **error);

/**
 * muster_saver_last_checkpoints:
 *
 * The list that retention uses, oldest first: (transfer full) NULL-terminated.
 *
 * Returns: (transfer full) (array zero-terminated=1)
 */
char **muster_saver_last_checkpoints (MusterSaver *self);

/**
 * muster_saver_set_last_checkpoints: (skip)
 *
 * Replaces the list (prefixes is NULL-terminated). times (nullable) has one for each, in seconds
 * since 1970; NULL: they are never deleted (SAV.51).
 */
void muster_saver_set_last_checkpoints (MusterSaver *self, const char *const *prefixes,
                                        const double *times);

/**
 * muster_saver_recover_last_checkpoints:
 * @prefixes: (array zero-terminated=1)
 *
 * Rebuilds the list from those whose files exist, in that order, with the files' times (SAV.50).
 */
void muster_saver_recover_last_checkpoints (MusterSaver *self, const char *const *prefixes);

/* Rebuilds the list from a directory, as a new process needs it before its first save, so that
 * earlier checkpoints are listed and later removed: those in the state file, and those with this
 * base name that the side file records (adopt_unknown: all). Preserved and quarantined ones are
 * left out. Without a directory or state file the list is empty; a state file that can't be read is
 * DATA_LOSS. Removes files of savers that died: running savers hold a lock; if the store has no
 * locks, files changed within a day are kept. */
gboolean muster_saver_adopt_directory (MusterSaver *self, const char *directory, GError **error);

/* TRUE for a saver with nothing to save (allow_empty). */
gboolean muster_saver_is_empty (MusterSaver *self);

/* Estimates the size of the next checkpoint in bytes, from the graph and the last checkpoint,
 * without saveables. Any thread. */
guint64 muster_saver_estimate_bytes (MusterSaver *self);

/**
 * muster_saver_storage: (skip)
 *
 * The store of its checkpoints; borrowed.
 */
MusterStorage *muster_saver_storage (MusterSaver *self);

G_END_DECLS

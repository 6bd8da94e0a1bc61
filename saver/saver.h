// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bundle/set_aside.h"
#include "graph/meta_graph.h"
#include "master/lease.h"
#include "saver/saveable.h"

G_BEGIN_DECLS

/* MusterSaver keeps a model: it saves a session's variables as a checkpoint, restores them, and
 * forgets old checkpoints. It drives the save and restore ops that a MetaGraphDef's SaverDef names,
 * on any master; names, the state file and retention are its own, in the chief's file system, which
 * the master must share. A save is published whole: under a temporary prefix, synced, renamed, then
 * named in the state file. One saver may be used from any thread; saves take turns. */

#define MUSTER_TYPE_SAVER (muster_saver_get_type ())
G_DECLARE_FINAL_TYPE (MusterSaver, muster_saver, MUSTER, SAVER, GObject)

typedef struct {
  int max_to_keep; /* 0: what the SaverDef says (which may be 0: keep all); below 0: keep all */
  const char *base_name;  /* NULL: "model.ckpt" */
  gboolean no_meta_graph; /* TRUE: no PREFIX.meta beside the checkpoint */
  gboolean no_probe; /* TRUE: the first save doesn't ask who sees the directory (saver/probe.h) */
  MusterStorage *storage; /* NULL: local files */
  MusterClock *clock;     /* NULL: the machine's */
} MusterSaverOptions;

/* INVALID_ARGUMENT where the meta graph has no SaverDef, or one that names no ops. options may be
 * NULL. */
MusterSaver *muster_saver_new (MusterMetaGraph *meta_graph, const MusterSaverOptions *options,
                               GError **error);

/* The chief's hold on its model, from now on: (nullable). Each save asks the master whether it is
 * held, before anything is written and again before the checkpoint is published; one that is lost
 * is FAILED_PRECONDITION, and nothing is left behind. What is durable is announced. */
void muster_saver_set_lease (MusterSaver *self, MusterLease *lease);

/* State outside the graph that goes into every checkpoint from now on, and is handed out by every
 * restore, as the tensors NAME/… (saver/saveable.h). ALREADY_EXISTS for a name that is taken. */
gboolean muster_saver_add_saveable (MusterSaver *self, const char *name, MusterSaveable *saveable,
                                    MusterSaveableFlags flags, GError **error);

/* Saves as DIRECTORY/BASE-STEP (step below 0: without a number) and returns that prefix (transfer
 * full), after it is durable and "latest". */
char *muster_saver_save (MusterSaver *self, MusterSession *session, const char *directory,
                         gint64 step, gint64 deadline_us, GCancellable *cancellable,
                         GError **error);

/* Compares a checkpoint with what the saver restores and reads every tensor: one error lists every
 * missing, wrongly shaped and wrongly typed tensor with the nearest name (INVALID_ARGUMENT), or the
 * damage (DATA_LOSS). Touches no session. */
gboolean muster_saver_preflight (MusterSaver *self, const char *prefix, GCancellable *cancellable,
                                 GError **error);

/* Restores: preflight, then the restore op. Nothing is assigned unless everything fits. */
gboolean muster_saver_restore (MusterSaver *self, MusterSession *session, const char *prefix,
                               gint64 deadline_us, GCancellable *cancellable, GError **error);

/* Restores the newest checkpoint of a directory that is whole. *restored (transfer full) is its
 * prefix, or NULL where the directory's state file names none: that is success. *passed_over
 * (nullable) (transfer full) says which newer ones were missing or damaged, else NULL. One that is
 * whole and doesn't fit the graph is an error, and so is a state file that can't be read
 * (DATA_LOSS). Afterwards the state file's list is the saver's. */
gboolean muster_saver_restore_latest (MusterSaver *self, MusterSession *session,
                                      const char *directory, char **restored, char **passed_over,
                                      gint64 deadline_us, GCancellable *cancellable,
                                      GError **error);

/* The list that retention works on, oldest first: (transfer full) NULL-terminated. */
char **muster_saver_last_checkpoints (MusterSaver *self);
/* Rebuilds the list from a state file's paths: those whose files exist, in that order (SAV.50). */
void muster_saver_recover_last_checkpoints (MusterSaver *self, const char *const *prefixes);

/* The same from a directory's state file, as a saver of a new process needs it before its first
 * save: so that the checkpoints before are still listed, and forgotten in their turn. No state file
 * is no list. DATA_LOSS for one that can't be read. */
gboolean muster_saver_adopt_directory (MusterSaver *self, const char *directory, GError **error);

/* Where its checkpoints are; borrowed. */
MusterStorage *muster_saver_storage (MusterSaver *self);

G_END_DECLS

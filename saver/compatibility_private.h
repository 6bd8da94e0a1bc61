// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/object_graph.h"
#include "saver/builder/restore_plan_private.h"
#include "saver/saver_private.h"

G_BEGIN_DECLS

typedef enum {
  MUSTER_INCOMPATIBLE_MISSING,    /* not in the checkpoint */
  MUSTER_INCOMPATIBLE_UNEXPECTED, /* not restored by the graph */
  MUSTER_INCOMPATIBLE_SHAPE,
  MUSTER_INCOMPATIBLE_DTYPE
} MusterIncompatibilityKind;

typedef struct {
  MusterIncompatibilityKind kind;
  gboolean is_fault; /* by the options: it prevents the restore */
  char *name;        /* in the graph; UNEXPECTED: in the checkpoint */
  char *key;         /* (nullable) in the checkpoint, if different */
  char *suggestion;  /* (nullable) MISSING: a similar name */
  guint n_called;    /* MISSING: the number of objects with that name, if ambiguous */
  MusterDType there_dtype, here_dtype; /* MUSTER_INVALID: none */
  int n_there, n_here;                 /* ranks; -1: unknown */
  gint64 *there, *here;                /* (nullable) shapes; -1: unknown */
} MusterIncompatibility;

/* The comparison of a checkpoint with a graph, and what the restore needs. */
typedef struct {
  MusterBundleReader *reader;      /* (owned) */
  const MusterRestorePlan *plan;   /* the saver's */
  GHashTable *names;               /* (owned) (nullable) a set: the names wanted, once needed */
  GHashTable *renamed;             /* (owned) (nullable) wanted names to those in the checkpoint */
  MusterObjectNames *object_names; /* (owned) (nullable) of TensorFlow 2's format, which is read by
                                      the variables' names */
  const MusterBundleEntry **there; /* (owned) all tensors of the file, by name */
  gsize n_there;
  guint8 *is_read;                   /* (owned) by there: the graph restores it */
  const MusterBundleEntry **entries; /* (owned) by wanted: it in the file, NULL: it isn't there */
  guint64 *sizes;                    /* (owned) by wanted: about how many bytes it has in memory */
  GArray *incompatibilities; /* (owned) (element-type MusterIncompatibility) the graph's in its
                                order, then the UNEXPECTED ones by name */
  guint n_faults;            /* of the incompatibilities */
  guint64 bytes;             /* of the tensors that fit */
  gboolean is_plain;         /* the graph's own restore op suffices */
} MusterMatch;

void muster_match_clear (MusterMatch *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterMatch, muster_match_clear)

/* Opens the checkpoint in a store, the saver's or that with a deadline, and compares. A misfit is
 * no error; see muster_match_check (). After a failure the checkpoint may be open. */
gboolean muster_match_make (MusterMatch *self, MusterSaver *saver, MusterStorage *storage,
                            const char *prefix, const MusterRestoreOptions *options,
                            GError **error);

/* Whether the checkpoint has none of the variables that it may lack, of which name is one. */
gboolean muster_match_may_lack (MusterMatch *self, const MusterRestoreOptions *options,
                                const char *name);

/* FALSE with INVALID_ARGUMENT, which lists all, where there is a fault. */
gboolean muster_match_check (MusterMatch *self, GError **error);

/* Sets *error from a failure to read (transfer full). A missing data file is DATA_LOSS, since the
 * index exists. Always returns FALSE. */
gboolean muster_match_judge (const MusterMatch *self, GError *failure, GError **error);

/* Reads and checks the whole checkpoint. */
gboolean muster_match_verify (const MusterMatch *self, const MusterRestoreOptions *options,
                              GCancellable *cancellable, GError **error);

G_END_DECLS

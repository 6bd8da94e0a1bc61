// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/restore_options.h"
#include "saver/saver.h"

G_BEGIN_DECLS

/* MusterCompatibility is how a checkpoint compares with what a graph restores, as data: text and
 * JSON are drawn from it. A plain struct; clear it. */

typedef enum {
  MUSTER_INCOMPATIBLE_MISSING,    /* the checkpoint lacks it */
  MUSTER_INCOMPATIBLE_UNEXPECTED, /* the graph doesn't restore it */
  MUSTER_INCOMPATIBLE_SHAPE,
  MUSTER_INCOMPATIBLE_DTYPE
} MusterIncompatibilityKind;

typedef struct {
  MusterIncompatibilityKind kind;
  gboolean is_fault; /* by the options: it keeps the checkpoint from being restored */
  char *name;        /* in the graph; UNEXPECTED: in the checkpoint */
  char *key;         /* (nullable) in the checkpoint, where that is another */
  char *suggestion;  /* (nullable) MISSING: what may be meant */
  guint n_called;    /* MISSING: so many objects are called that, and which is meant isn't known */
  MusterDType there_dtype, here_dtype; /* MUSTER_INVALID: none */
  int n_there, n_here;                 /* ranks; -1: unknown */
  gint64 *there, *here;                /* (nullable) shapes; -1: unknown */
} MusterIncompatibility;

typedef struct {
  GArray *incompatibilities; /* of MusterIncompatibility: the graph's in its order, then the
                                unexpected by name */
  guint n_wanted;            /* tensors that the graph restores */
  guint n_faults;            /* of the incompatibilities */
  guint64 bytes;             /* of what fits */
  gboolean object_based;     /* TensorFlow 2's: it is read by the variables' own names */
} MusterCompatibility;

void muster_compatibility_clear (MusterCompatibility *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterCompatibility, muster_compatibility_clear)

/* Compares, from the index alone. options are nullable. FALSE only where the checkpoint can't be
 * read or the graph or options are wrong: a misfit is a result. */
gboolean muster_saver_compare (MusterSaver *self, const char *prefix,
                               const MusterRestoreOptions *options,
                               MusterCompatibility *compatibility, GError **error);

/* "shape [64,128] in the checkpoint, [64,256] in the graph" (transfer full) */
char *muster_incompatibility_to_text (const MusterIncompatibility *self);

/* The faults, each a line "\n  NAME  TEXT", the texts below one another; "" for none. After a
 * thousand it only counts them. (transfer full) */
char *muster_compatibility_faults_to_text (const MusterCompatibility *self);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/restore_options.h"
#include "saver/saver.h"

G_BEGIN_DECLS

/* MusterCompatibility is the result of comparing a checkpoint with what a graph restores, the
 * source of text and JSON. A plain struct; clear it. */

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

typedef struct {
  GArray *incompatibilities; /* of MusterIncompatibility: the graph's in its order, then the
                                UNEXPECTED ones by name */
  guint n_wanted;            /* tensors that the graph restores */
  guint n_faults;            /* of the incompatibilities */
  guint64 bytes;             /* of the tensors that fit */
  gboolean object_based;     /* TensorFlow 2's format, read by the variables' names */
} MusterCompatibility;

void muster_compatibility_clear (MusterCompatibility *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterCompatibility, muster_compatibility_clear)

/* Compares using the index only. options are nullable. FALSE only if the checkpoint can't be read
 * or the graph or options are invalid; an incompatibility is a result. */
gboolean muster_saver_compare (MusterSaver *self, const char *prefix,
                               const MusterRestoreOptions *options,
                               MusterCompatibility *compatibility, GError **error);

G_END_DECLS

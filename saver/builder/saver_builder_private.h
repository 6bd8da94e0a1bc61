// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/builder/saver_builder.h"

G_BEGIN_DECLS

/* One tensor of a checkpoint: a variable's value or part, or another tensor, such as a table's
 * keys. */
typedef struct {
  char *key;                          /* (owned) */
  const MusterVariableInfo *variable; /* (not owned) (nullable) */
  const char *slice;                  /* (not owned) "": the whole variable */
  const char *tensor;                 /* (not owned) (nullable) the other tensor */
  const char *device;                 /* (not owned) (nullable) the other tensor's */
  MusterDType dtype;                  /* the other tensor's */
  gboolean is_kept;                   /* the saver before restores it */
} MusterSaveable;

/* Adds the nodes that save and restore saveables (element-type MusterSaveable, in the order of the
 * checkpoint, at least one) under scope, which must be unused. Those that are kept are restored by
 * the saver before (nullable), whose op runs as well, and at least one isn't. Sets *info, whose
 * strings are (transfer full). */
MusterGraph *muster_saver_add_nodes (MusterGraph *graph, const char *scope, GArray *saveables,
                                     const MusterSaverBuild *how, const MusterSaverInfo *before,
                                     MusterSaverInfo *info, GError **error);

/* The meta graph with a saver of saveables, which are sorted by key; before as above. */
MusterMetaGraph *muster_saver_build_saveables (MusterMetaGraph *meta_graph, GArray *saveables,
                                               const MusterSaverBuild *how,
                                               const MusterSaverInfo *before, GError **error);

G_END_DECLS

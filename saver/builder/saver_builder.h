// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph/meta_graph.h"
#include "saver/builder/keep.h"

G_BEGIN_DECLS

/* Adds the save and restore nodes of tf.compat.v1.train.Saver to a graph, with the same operations
 * and names, so that TensorFlow can import the result, and graphs from both are equal. Only the V2
 * format. Any thread.
 *
 * In Python a Saver can be created before the variables (defer_build). Here the meta graph is
 * complete when the saver is built. restore_sequentially, which TensorFlow ignores, isn't
 * supported. */

/* An entry of a map from the checkpoint's names to variables. */
typedef struct {
  const char *key;
  const char *variable; /* as in MusterSaverBuild.variables; a part given alone is saved as a whole
                           variable */
} MusterSaverKey;

typedef struct {
  /* What to save: a list (NULL-terminated), a map, or, with neither, all global variables. A
   * variable is named by its op, "dense/kernel". The name of a partitioned variable, "embedding"
   * for "embedding/part_0", stands for all its parts. In a list the checkpoint's name is the
   * variable's; for a part, that of the partitioned variable. */
  const char *const *variables; /* (nullable) */
  const MusterSaverKey *map;    /* (nullable) */
  gsize n_map;

  gboolean sharded;          /* one part of the checkpoint for each device with variables */
  gboolean reshape;          /* restore values of another shape with the same number of elements */
  gboolean allow_empty;      /* nothing to save isn't an error */
  gboolean collect;          /* also add the saver to the collection "savers" */
  int max_to_keep;           /* 0: 5; MUSTER_KEEP_ALL: all */
  double keep_every_n_hours; /* 0: 10000 */
  int version;               /* 0 or 2: V2. Anything else is UNIMPLEMENTED */
  const char *scope;         /* NULL: "save". If it exists, "save_1" and so on */
  const char *filename;      /* the prefix if nothing is fed. NULL: "model" */
} MusterSaverBuild;

/* The meta graph with the saver's nodes, and that saver as its own (a previous one stays in the
 * collection "savers"). Pass it to muster_saver_new (), and create sessions with its graph. how
 * NULL: defaults. With allow_empty and nothing to save, the meta graph itself, which may have no
 * saver. INVALID_ARGUMENT, with TensorFlow's text, names the variable that can't be saved under
 * that name. */
MusterMetaGraph *muster_saver_build (MusterMetaGraph *meta_graph, const MusterSaverBuild *how,
                                     GError **error);

/* The meta graph with a saver: its own, or the only one in its collection "savers" (several:
 * FAILED_PRECONDITION). If it has none, a sharded saver for all global variables is built and added
 * to the collection, unless it has no variables. */
MusterMetaGraph *muster_saver_default (MusterMetaGraph *meta_graph, GError **error);

G_END_DECLS

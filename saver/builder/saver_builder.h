// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph/meta_graph.h"
#include "saver/builder/keep.h"

G_BEGIN_DECLS

/* The save and restore part of a graph, as tf.compat.v1.train.Saver builds it: the same operations
 * under the same names, so that TensorFlow imports what is built here, and a graph built here
 * equals one that TensorFlow built. Values of the V2 format alone. Any thread.
 *
 * Python's Saver may be made before the variables are (defer_build) and built later. Here a meta
 * graph is complete and a saver is built into it when this is called: to build later is to call
 * later. restore_sequentially, which TensorFlow itself ignores, isn't offered. */

/* An entry of a map: the variable's name in the file. */
typedef struct {
  const char *key;
  const char *variable; /* as in MusterSaverBuild.variables; a part alone is saved as a whole */
} MusterSaverKey;

typedef struct {
  /* What is saved: a list (NULL-terminated), a map, or, with neither, all global variables. A
   * variable is named by its op, "dense/kernel". The name of a partitioned variable, "embedding" of
   * "embedding/part_0", stands for all its parts. In a list the key is the variable's own name, and
   * for a part the whole's. */
  const char *const *variables; /* (nullable) */
  const MusterSaverKey *map;    /* (nullable) */
  gsize n_map;

  gboolean sharded;          /* one part of the checkpoint for each device that holds variables */
  gboolean reshape;          /* a value of another shape fits if it has as many elements */
  gboolean allow_empty;      /* nothing to save is no error */
  gboolean collect;          /* add the saver to the collection "savers" as well */
  int max_to_keep;           /* 0: 5; MUSTER_KEEP_ALL: all */
  double keep_every_n_hours; /* 0: 10000 */
  int version;               /* 0 or 2: V2. Anything else is UNIMPLEMENTED */
  const char *scope;         /* NULL: "save". Where it is taken, "save_1" and so on */
  const char *filename;      /* where the op saves if nothing is fed. NULL: "model" */
} MusterSaverBuild;

/* The meta graph with a saver's nodes added and that saver as its own (one that it had before stays
 * in its collection "savers"): muster_saver_new () takes it, and sessions must be made with its
 * graph. how NULL: all defaults. With allow_empty and nothing to save it is the meta graph itself,
 * which may have no saver at all: there is nothing to save or restore. INVALID_ARGUMENT says, in
 * TensorFlow's words, which variable can't be saved under which name. */
MusterMetaGraph *muster_saver_build (MusterMetaGraph *meta_graph, const MusterSaverBuild *how,
                                     GError **error);

/* The meta graph with the saver that it has: its own, or the only one of its collection "savers"
 * (several: FAILED_PRECONDITION). One that has none gets a sharded one for all global variables,
 * added to the collection too, unless it has no variables. */
MusterMetaGraph *muster_saver_default (MusterMetaGraph *meta_graph, GError **error);

G_END_DECLS

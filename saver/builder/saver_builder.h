// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph/meta_graph.h"
#include "saver/builder/keep.h"

G_BEGIN_DECLS

/**
 * MusterSaverKey:
 * @key: the name in the checkpoint
 * @variable: as in [struct@SaverBuild]; a part given alone is saved as a whole variable
 *
 * An entry of a map from the checkpoint's names to variables.
 */
typedef struct {
  const char *key;
  const char *variable;
} MusterSaverKey;

/**
 * MusterSaverBuild:
 * @variables: (nullable) (array zero-terminated=1): what to save, as a list. In it the checkpoint's
 *   name is the variable's; for a part, that of the partitioned variable
 * @map: (nullable) (skip): or as a map
 * @n_map: the number of its entries
 * @sharded: one part of the checkpoint for each device with variables
 * @reshape: restore values of another shape with the same number of elements
 * @allow_empty: nothing to save isn't an error
 * @collect: also add the saver to the collection `savers`
 * @max_to_keep: 0: 5; %MUSTER_KEEP_ALL: all
 * @keep_every_n_hours: 0: 10000
 * @version: 0 or 2: V2. Anything else is `UNIMPLEMENTED`
 * @scope: (nullable): `NULL`: `save`. If it exists, `save_1` and so on
 * @filename: (nullable): the prefix if nothing is fed. `NULL`: `model`
 *
 * What a saver saves, for [func@saver_build]: a list, a map, or, with neither, all global
 * variables.
 *
 * A variable is named by its op, `dense/kernel`. The name of a partitioned variable, `embedding`
 * for `embedding/part_0`, stands for all its parts.
 */
typedef struct {
  const char *const *variables;
  const MusterSaverKey *map;
  gsize n_map;

  gboolean sharded;
  gboolean reshape;
  gboolean allow_empty;
  gboolean collect;
  int max_to_keep;
  double keep_every_n_hours;
  int version;
  const char *scope;
  const char *filename;
} MusterSaverBuild;

#define MUSTER_TYPE_SAVER_BUILD (muster_saver_build_get_type ())
GType muster_saver_build_get_type (void);

/**
 * muster_saver_build_add_key:
 * @self: options, zeroed by g_new0 () or a copy
 * @key: the name in the checkpoint
 * @variable: the variable's name
 *
 * Adds to the map of variables to save.
 */
void muster_saver_build_add_key (MusterSaverBuild *self, const char *key, const char *variable);

/**
 * muster_saver_build:
 * @meta_graph: a meta graph
 * @how: (nullable): what to save; `NULL`: the defaults
 * @error: return location for an error
 *
 * Adds the save and restore nodes of `tf.compat.v1.train.Saver` to a graph, with the same
 * operations and names, so that TensorFlow can import the result, and graphs from both are equal.
 * Only the V2 format. Pass the result to [ctor@Saver.new], and create sessions with its graph. Any
 * thread.
 *
 * In Python a `tf.train.Saver` can be created before the variables (defer_build). Here the meta
 * graph is complete when the saver is built. restore_sequentially, which TensorFlow ignores, isn't
 * supported. `INVALID_ARGUMENT`, with TensorFlow's text, names the variable that can't be saved
 * under that name.
 *
 * Returns: (transfer full): the meta graph with the saver's nodes, and that saver as its own (a
 *   previous one stays in the collection `savers`); with allow_empty and nothing to save, the meta
 *   graph itself, which may have no saver
 */
MusterMetaGraph *muster_saver_build (MusterMetaGraph *meta_graph, const MusterSaverBuild *how,
                                     GError **error);

/**
 * muster_saver_default:
 * @meta_graph: a meta graph
 * @error: return location for an error
 *
 * The meta graph with a saver: its own, or the only one in its collection `savers` (several:
 * `FAILED_PRECONDITION`). If it has none, a sharded saver for all global variables is built and
 * added to the collection, unless it has no variables.
 *
 * Returns: (transfer full): the meta graph
 */
MusterMetaGraph *muster_saver_default (MusterMetaGraph *meta_graph, GError **error);

G_END_DECLS

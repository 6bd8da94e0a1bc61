// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph_builder.h"
#include "graph/meta_graph/meta_graph.h"
#include "tests/doubles/fake_master.h"

G_BEGIN_DECLS

/* A small model with a saver, as TensorFlow would export it: reference variables, "init" (all
 * initialisers), "save/control_dependency:0", "save/restore_all" and "save/Const:0". It runs on the
 * engine; on the fake master after muster_small_model_play (). */

typedef struct {
  const char *name;
  MusterDType dtype;
  int n_dims;
  gint64 dims[2];
} MusterSmallVariable;

/* "v", float [2], and "w", int64 []. */
extern const MusterSmallVariable muster_small_variables[2];

/* max_to_keep goes into the SaverDef. */
MusterMetaGraph *muster_small_model_new (const MusterSmallVariable *variables, gsize n,
                                         int max_to_keep);

/* Writes a checkpoint of these variables, every element (or byte) being value. */
gboolean muster_small_model_write (const char *prefix, const MusterSmallVariable *variables,
                                   gsize n, int value, GError **error);

/* The names of a checkpoint's entries, with spaces between them. */
char *muster_small_model_names (const char *prefix);

/* Scripts the fake master: "init" and "save/restore_all" give the muster_small_variables values,
 * "save/control_dependency" writes their files where it is told to. */
void muster_small_model_play (MusterFakeMaster *master);

/* Parts of a saver's graph, for other models. */

/* An Identity of a string that waits for another node. */
void muster_saver_graph_add_after (MusterGraphBuilder *builder, const char *name, const char *input,
                                   const char *node);
/* Assigns output i of a RestoreV2. */
void muster_saver_graph_add_assign (MusterGraphBuilder *builder, const char *name,
                                    const char *variable, MusterDType dtype, const char *restore,
                                    gsize i);
/* The meta graph, with a saver of "save/Const:0", save and "save/restore_all". */
MusterMetaGraph *muster_saver_graph_end (MusterGraphBuilder *builder, const char *save,
                                         gboolean is_sharded, int max_to_keep);

G_END_DECLS

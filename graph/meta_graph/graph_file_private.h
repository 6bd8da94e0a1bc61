// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph/meta_graph.h"

G_BEGIN_DECLS

/* A file that somebody names as a graph: which form of one it has, or what else it is. The file
 * itself decides, not its name. */

typedef enum {
  MUSTER_GRAPH_FILE_META, /* a serialised MetaGraphDef, if anything */
  MUSTER_GRAPH_FILE_META_TEXT,
  MUSTER_GRAPH_FILE_SAVED_MODEL,
  MUSTER_GRAPH_FILE_SAVED_MODEL_TEXT,
  MUSTER_GRAPH_FILE_GRAPH,
  MUSTER_GRAPH_FILE_GRAPH_TEXT,
  MUSTER_GRAPH_FILE_OTHER,
} MusterGraphFileForm;

typedef struct {
  MusterGraphFileForm form;
  const char *what;   /* "a Git LFS pointer"; NULL: what has a meta graph */
  const char *remedy; /* the same */
} MusterGraphFileKind;

MusterGraphFileKind muster_graph_file_kind (const char *path, const char *data, gsize size);

G_END_DECLS

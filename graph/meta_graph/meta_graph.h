// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph.h"

G_BEGIN_DECLS

/* MusterMetaGraph is a .meta file: a graph, its collections (which op initialises, which says
 * ready, what the variables are) and its SaverDef. It is read once, immutable and counted, and is
 * written out as the bytes that came in. Strings and arrays that come out are borrowed from it. */

typedef struct _MusterMetaGraph MusterMetaGraph;

#define MUSTER_TYPE_META_GRAPH (muster_meta_graph_get_type ())
GType muster_meta_graph_get_type (void);

/* A variable as the collections tell of it. */
typedef struct {
  const char *name; /* the op: "dense/kernel" (TensorFlow's "dense/kernel:0" less the output) */
  const char *initializer; /* the op that gives it its first value (nullable) */
  const char *snapshot;    /* the tensor that reads it (nullable) */
  gboolean is_resource;
  gboolean is_local; /* from local_variables */
  gboolean is_trainable;
  MusterDType dtype; /* from the node; MUSTER_INVALID where the graph has no such node */
  int n_dims;        /* -1: unknown */
  const gint64 *dims;
  const char *device; /* the node's device, "" for none */
  /* Of a part of a partitioned variable; else NULL: */
  const char *full_name; /* the whole's, "embedding" of "embedding/part_0" */
  const char *slice;     /* where it lies, as SaveV2 has it: "10 4 0,5:0,4" */
} MusterVariableInfo;

/* A SaverDef. */
typedef struct {
  const char *filename_tensor; /* "save/Const:0" */
  const char *save_tensor;     /* "save/control_dependency:0" */
  const char *restore_op;      /* "save/restore_all" */
  int max_to_keep;
  gboolean sharded;
  float keep_every_n_hours;
  int version; /* 2: V2; 0 and 1: the older format, which muster doesn't run */
} MusterSaverInfo;

/* INVALID_ARGUMENT says what is wrong with the bytes. The graph inside is checked too. */
MusterMetaGraph *muster_meta_graph_new (GBytes *bytes, GError **error);

/* Reads a .meta file; errors are prefixed with its path. */
MusterMetaGraph *muster_meta_graph_load (const char *path, GError **error);

/* One without collections, around a graph of one's own. */
MusterMetaGraph *muster_meta_graph_new_for_graph (MusterGraph *graph);

MusterMetaGraph *muster_meta_graph_ref (MusterMetaGraph *self);
void muster_meta_graph_unref (MusterMetaGraph *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterMetaGraph, muster_meta_graph_unref)

/**
 * muster_meta_graph_bytes:
 *
 * Returns: (transfer none)
 */
GBytes *muster_meta_graph_bytes (MusterMetaGraph *self);

/**
 * muster_meta_graph_graph:
 *
 * Returns: (transfer none)
 */
MusterGraph *muster_meta_graph_graph (MusterMetaGraph *self);

/**
 * muster_meta_graph_collection:
 *
 * The names of a collection of nodes ("init_op", "local_init_op", "ready_op",
 * "ready_for_local_init_op", "summary_op", "train_op", "global_step", …): NULL-terminated; NULL
 * where there is none. An item that TensorFlow wrote as bytes is given as text; a VariableDef as
 * its name.
 *
 * Returns: (transfer none) (array zero-terminated=1) (nullable)
 */
const char *const *muster_meta_graph_collection (MusterMetaGraph *self, const char *key);

/**
 * muster_meta_graph_op:
 *
 * The first of a collection, or NULL.
 *
 * Returns: (nullable)
 */
const char *muster_meta_graph_op (MusterMetaGraph *self, const char *key);

/**
 * muster_meta_graph_variables: (skip)
 *
 * Global variables, then local ones, each once, in the collections' order; *n is their number. A
 * graph without collections gives its variable nodes.
 */
const MusterVariableInfo *muster_meta_graph_variables (MusterMetaGraph *self, gsize *n);

/**
 * muster_meta_graph_saver: (skip)
 *
 * The meta graph's own saver, else the first of its collection "savers", or NULL if it has none.
 */
const MusterSaverInfo *muster_meta_graph_saver (MusterMetaGraph *self);

/**
 * muster_meta_graph_savers: (skip)
 *
 * Those of the collection "savers", *n of them: a graph may have several, each with nodes of its
 * own.
 */
const MusterSaverInfo *muster_meta_graph_savers (MusterMetaGraph *self, gsize *n);

G_END_DECLS

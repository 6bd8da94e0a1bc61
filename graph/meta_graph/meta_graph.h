// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph.h"

G_BEGIN_DECLS

/* MusterMetaGraph is a .meta file: a graph, its collections (init op, ready op, variables, …) and
 * its SaverDef. It is read once, immutable, reference-counted, and written as the bytes that were
 * read. Returned strings and arrays are borrowed from it. Any thread. */

typedef struct _MusterMetaGraph MusterMetaGraph;

#define MUSTER_TYPE_META_GRAPH (muster_meta_graph_get_type ())
GType muster_meta_graph_get_type (void);

/* A variable, from the collections. */
typedef struct {
  const char *name; /* the op: "dense/kernel" (TensorFlow's "dense/kernel:0" less the output) */
  const char *initializer; /* (nullable) the op that assigns its first value */
  const char *snapshot;    /* (nullable) the tensor that reads it */
  gboolean is_resource;
  gboolean is_local; /* is in the collection local_variables */
  gboolean is_trainable;
  MusterDType dtype; /* from the node; MUSTER_INVALID if the graph has no such node */
  int n_dims;        /* -1: unknown */
  const gint64 *dims;
  const char *device; /* the node's device, "" for none */
  /* For a part of a partitioned variable; otherwise NULL: */
  const char *full_name; /* the variable: "embedding" for "embedding/part_0" */
  const char *slice;     /* the part's place in it, in SaveV2's form: "10 4 0,5:0,4" */
} MusterVariableInfo;

/* A SaverDef. */
typedef struct {
  const char *filename_tensor; /* "save/Const:0" */
  const char *save_tensor;     /* "save/control_dependency:0" */
  const char *restore_op;      /* "save/restore_all" */
  int max_to_keep;
  gboolean sharded;
  float keep_every_n_hours;
  int version; /* 2: V2; 0 and 1: the old format, which muster can't run */
} MusterSaverInfo;

/* INVALID_ARGUMENT describes what is wrong with the bytes. The graph is checked too. */
MusterMetaGraph *muster_meta_graph_new (GBytes *bytes, GError **error);

/* Reads a .meta file. Errors begin with its path. */
MusterMetaGraph *muster_meta_graph_load (const char *path, GError **error);

/* A meta graph of the given graph, without collections. */
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
 * The names in a collection of nodes ("init_op", "local_init_op", "ready_op",
 * "ready_for_local_init_op", "summary_op", "train_op", "global_step", …), NULL-terminated; NULL if
 * there is none. Items that TensorFlow stores as bytes are returned as text, a VariableDef as its
 * name.
 *
 * Returns: (transfer none) (array zero-terminated=1) (nullable)
 */
const char *const *muster_meta_graph_collection (MusterMetaGraph *self, const char *key);

/**
 * muster_meta_graph_op:
 *
 * The first name in a collection, or NULL.
 *
 * Returns: (nullable)
 */
const char *muster_meta_graph_op (MusterMetaGraph *self, const char *key);

/**
 * muster_meta_graph_variables: (skip)
 *
 * The global variables, then the local ones, each once, in the collections' order. *n is their
 * number. Without collections of variables: the graph's variable nodes.
 */
const MusterVariableInfo *muster_meta_graph_variables (MusterMetaGraph *self, gsize *n);

/**
 * muster_meta_graph_saver: (skip)
 *
 * The meta graph's saver, or the first in its collection "savers", or NULL if it has neither.
 */
const MusterSaverInfo *muster_meta_graph_saver (MusterMetaGraph *self);

/**
 * muster_meta_graph_savers: (skip)
 *
 * The *n savers in the collection "savers". A graph may have several, each with its own nodes.
 */
const MusterSaverInfo *muster_meta_graph_savers (MusterMetaGraph *self, gsize *n);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph.h"

G_BEGIN_DECLS

/**
 * MusterMetaGraph:
 *
 * A .meta file: a graph, its collections (init op, ready op, variables, …) and its SaverDef. It is
 * read once, immutable, reference-counted, and written as the bytes that were read. Returned
 * strings and arrays are borrowed from it. Any thread.
 */
typedef struct _MusterMetaGraph MusterMetaGraph;

#define MUSTER_TYPE_META_GRAPH (muster_meta_graph_get_type ())
GType muster_meta_graph_get_type (void);

/**
 * MusterVariableInfo:
 * @name: the op: "dense/kernel" (TensorFlow's "dense/kernel:0" less the output)
 * @initializer: the op that assigns its first value (nullable)
 * @snapshot: the tensor that reads it (nullable)
 * @is_resource: it is a resource variable, not a reference
 * @is_local: is in the collection local_variables
 * @is_trainable: it is in the collection trainable_variables
 * @dtype: from the node; MUSTER_INVALID if the graph has no such node
 * @n_dims: its rank; -1: unknown
 * @dims: (array length=n_dims): the sizes of its dimensions; other languages read
 *   [method@VariableInfo.shape]
 * @device: the node's device, "" for none
 * @full_name: of a part of a partitioned variable: that variable, "embedding" for
 *   "embedding/part_0"; otherwise %NULL
 * @slice: of a part: its place in the variable, in SaveV2's form: "10 4 0,5:0,4"; otherwise %NULL
 *
 * A variable of a meta graph, from its collections.
 */
typedef struct {
  const char *name;
  const char *initializer;
  const char *snapshot;
  gboolean is_resource;
  gboolean is_local;
  gboolean is_trainable;
  MusterDType dtype;
  int n_dims;
  const gint64 *dims;
  const char *device;
  const char *full_name;
  const char *slice;
} MusterVariableInfo;

/**
 * MusterSaverInfo:
 * @filename_tensor: "save/Const:0"
 * @save_tensor: "save/control_dependency:0"
 * @restore_op: "save/restore_all"
 * @max_to_keep: the number of checkpoints to keep
 * @sharded: each device's variables are saved in a file of their own
 * @keep_every_n_hours: a checkpoint is preserved each time this many hours have passed
 * @version: 2: V2; 0 and 1: the old format, which muster can't run
 *
 * A SaverDef: the names of a saver's nodes, and its settings.
 */
typedef struct {
  const char *filename_tensor;
  const char *save_tensor;
  const char *restore_op;
  int max_to_keep;
  gboolean sharded;
  float keep_every_n_hours;
  int version;
} MusterSaverInfo;

#define MUSTER_TYPE_VARIABLE_INFO (muster_variable_info_get_type ())
GType muster_variable_info_get_type (void);

/**
 * muster_variable_info_new:
 *
 * Creates an empty description.
 *
 * Returns: (transfer full): a description
 */
MusterVariableInfo *muster_variable_info_new (void);

/**
 * muster_variable_info_shape:
 * @self: a description
 * @n_dims: (out): the rank; -1: unknown
 *
 * The sizes of its dimensions as a list. %NULL if the rank is unknown.
 *
 * Returns: (array length=n_dims) (transfer full) (nullable): the sizes; -1 for an unknown one
 */
gint64 *muster_variable_info_shape (const MusterVariableInfo *self, int *n_dims);

#define MUSTER_TYPE_SAVER_INFO (muster_saver_info_get_type ())
GType muster_saver_info_get_type (void);

/**
 * muster_meta_graph_new:
 * @bytes: a serialised MetaGraphDef, which is referenced
 *
 * Reads a meta graph. INVALID_ARGUMENT describes what is wrong with the bytes. The graph is checked
 * too.
 *
 * Returns: (transfer full): a meta graph
 */
MusterMetaGraph *muster_meta_graph_new (GBytes *bytes, GError **error);

/**
 * muster_meta_graph_load:
 * @path: a file with a MetaGraphDef, or a SavedModel: its directory, as "DIR" or "DIR:TAGS", or its
 *   file
 *
 * Reads a meta graph, serialised or in protobuf's text format, whose unknown fields are skipped:
 * the contents decide, not the name. TAGS, separated by commas, choose a meta graph of the
 * SavedModel, which has exactly those; one that has a single meta graph needs none. Errors begin
 * with the path. INVALID_ARGUMENT names what else the file is: a GraphDef, a V1 checkpoint, a Git
 * LFS pointer, ….
 *
 * Returns: (transfer full): a meta graph
 */
MusterMetaGraph *muster_meta_graph_load (const char *path, GError **error);

/**
 * muster_meta_graph_new_for_graph:
 * @graph: a graph
 *
 * Creates a meta graph of the given graph, without collections. [method@MetaGraph.with_op] adds
 * some, muster_saver_default () a saver.
 *
 * Returns: (transfer full): a meta graph
 */
MusterMetaGraph *muster_meta_graph_new_for_graph (MusterGraph *graph);

/**
 * muster_meta_graph_ref: (skip)
 * @self: a meta graph
 *
 * Adds a reference.
 *
 * Returns: @self
 */
MusterMetaGraph *muster_meta_graph_ref (MusterMetaGraph *self);

/**
 * muster_meta_graph_unref: (skip)
 * @self: (nullable): a meta graph
 *
 * Drops a reference; the last one frees it.
 */
void muster_meta_graph_unref (MusterMetaGraph *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterMetaGraph, muster_meta_graph_unref)

/**
 * muster_meta_graph_bytes:
 * @self: a meta graph
 *
 * The serialised MetaGraphDef: the contents of a .meta file.
 *
 * Returns: (transfer none): the bytes
 */
GBytes *muster_meta_graph_bytes (MusterMetaGraph *self);

/**
 * muster_meta_graph_graph:
 * @self: a meta graph
 *
 * Its graph.
 *
 * Returns: (transfer none): the graph
 */
MusterGraph *muster_meta_graph_graph (MusterMetaGraph *self);

/**
 * muster_meta_graph_collection:
 * @self: a meta graph
 * @key: the collection: "init_op", "local_init_op", "ready_op", "ready_for_local_init_op",
 *   "summary_op", "train_op", "global_step", …
 *
 * The names in a collection of nodes, NULL-terminated. Items that TensorFlow stores as bytes are
 * returned as text, a VariableDef as its name.
 *
 * Returns: (transfer none) (array zero-terminated=1) (nullable): the names; %NULL if there is no
 *   such collection
 */
const char *const *muster_meta_graph_collection (MusterMetaGraph *self, const char *key);

/**
 * muster_meta_graph_op:
 * @self: a meta graph
 * @key: a collection
 *
 * The first name in a collection.
 *
 * Returns: (nullable): the name; %NULL if there is none
 */
const char *muster_meta_graph_op (MusterMetaGraph *self, const char *key);

/**
 * muster_meta_graph_variables:
 * @self: a meta graph
 * @n: (out): their number
 *
 * The global variables, then the local ones, each once, in the collections' order. Without
 * collections of variables: the graph's variable nodes.
 *
 * Returns: (array length=n) (transfer none): the variables
 */
const MusterVariableInfo *muster_meta_graph_variables (MusterMetaGraph *self, gsize *n);

/**
 * muster_meta_graph_saver:
 * @self: a meta graph
 *
 * The meta graph's saver, or the first in its collection "savers".
 *
 * Returns: (nullable) (transfer none): the saver; %NULL if it has neither
 */
const MusterSaverInfo *muster_meta_graph_saver (MusterMetaGraph *self);

/**
 * muster_meta_graph_savers:
 * @self: a meta graph
 * @n: (out): their number
 *
 * The savers in the collection "savers". A graph may have several, each with its own nodes.
 *
 * Returns: (array length=n) (transfer none): the savers
 */
const MusterSaverInfo *muster_meta_graph_savers (MusterMetaGraph *self, gsize *n);

G_END_DECLS

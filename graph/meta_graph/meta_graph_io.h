// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph/meta_graph.h"

G_BEGIN_DECLS

/**
 * MusterExport:
 * @clear_devices: remove the nodes' devices; the next master places them
 * @clear_extraneous_savers: remove the nodes of other savers (those in a scope that contains a
 *   SaveV2 or RestoreV2), and their entries in the collection "savers"
 * @strip_default_attrs: remove attributes that have their default value, according to the meta
 *   graph's own op list, since an older program may not know them. Function bodies aren't changed
 * @export_scope: export only nodes below "SCOPE/", without that prefix; %NULL: all. A value from
 *   outside becomes a placeholder "unbound_inputs_NAME", to be fed; a control input from outside is
 *   removed. The saver is kept if all of its nodes are inside
 *
 * The options of TensorFlow's export_meta_graph. What they don't name is copied unchanged (op list,
 * function library, signatures).
 */
typedef struct {
  gboolean clear_devices;
  gboolean clear_extraneous_savers;
  gboolean strip_default_attrs;
  const char *export_scope;
} MusterExport;

#define MUSTER_TYPE_EXPORT (muster_export_get_type ())
GType muster_export_get_type (void);

/**
 * muster_meta_graph_export:
 * @self: a meta graph
 * @how: (nullable): what to change; %NULL: nothing
 *
 * Exports a meta graph as TensorFlow's export_meta_graph does. INVALID_ARGUMENT if the result isn't
 * a valid graph.
 *
 * Returns: (transfer full): a new meta graph
 */
MusterMetaGraph *muster_meta_graph_export (MusterMetaGraph *self, const MusterExport *how,
                                           GError **error);

/**
 * MusterImport:
 * @clear_devices: remove the nodes' devices; the next master places them
 * @import_scope: prefix for all names, the saver's too; %NULL: none
 *
 * The options of TensorFlow's import_meta_graph.
 */
typedef struct {
  gboolean clear_devices;
  const char *import_scope;
} MusterImport;

#define MUSTER_TYPE_IMPORT (muster_import_get_type ())
GType muster_import_get_type (void);

/**
 * muster_meta_graph_import:
 * @self: a meta graph
 * @how: (nullable): what to change; %NULL: nothing
 *
 * Imports a meta graph as TensorFlow's import_meta_graph does. If the result has no saver, create
 * one with muster_saver_default ().
 *
 * Returns: (transfer full): a new meta graph
 */
MusterMetaGraph *muster_meta_graph_import (MusterMetaGraph *self, const MusterImport *how,
                                           GError **error);

/**
 * muster_export_meta_graph:
 * @self: a meta graph
 * @how: (nullable): what to change; %NULL: nothing
 * @path: the file
 * @as_text: whether to write protobuf's text format instead of binary
 *
 * Exports a meta graph to a file. As text, objects (object_graph_def) and messages of unknown type
 * (any_list, any_info) are UNIMPLEMENTED.
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_export_meta_graph (MusterMetaGraph *self, const MusterExport *how, const char *path,
                                   gboolean as_text, GError **error);

/**
 * muster_import_meta_graph:
 * @path: what muster_meta_graph_load () reads
 * @how: (nullable): what to change; %NULL: nothing
 *
 * Imports a meta graph from a file.
 *
 * Returns: (transfer full): a meta graph
 */
MusterMetaGraph *muster_import_meta_graph (const char *path, const MusterImport *how,
                                           GError **error);

/**
 * muster_graph_print:
 * @self: a graph
 *
 * Formats a graph in protobuf's text format, as TensorFlow's write_graph writes "graph.pbtxt".
 * UNIMPLEMENTED for messages of unknown type.
 *
 * Returns: (transfer full): the text
 */
GString *muster_graph_print (MusterGraph *self, GError **error);

/**
 * muster_graph_load:
 * @path: a file
 *
 * Reads a GraphDef, serialised or in protobuf's text format, or the graph of what
 * muster_meta_graph_load () reads.
 *
 * Returns: (transfer full): the graph
 */
MusterGraph *muster_graph_load (const char *path, GError **error);

G_END_DECLS

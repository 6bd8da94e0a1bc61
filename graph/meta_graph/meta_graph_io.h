// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph/meta_graph.h"

G_BEGIN_DECLS

/* Exports and imports meta graphs with the options of TensorFlow's export_meta_graph and
 * import_meta_graph. Each function returns a new meta graph; everything that the options don't name
 * is copied unchanged (op list, function library, signatures). how NULL changes nothing. */

typedef struct {
  gboolean clear_devices; /* removes the nodes' devices; the next master places them */
  /* Removes the nodes of other savers (those in a scope that contains a SaveV2 or RestoreV2), and
   * their entries in the collection "savers". */
  gboolean clear_extraneous_savers;
  /* Removes attributes that have their default value, according to the meta graph's own op list,
   * since an older program may not know them. Function bodies aren't changed. */
  gboolean strip_default_attrs;
  /* (nullable) Exports only nodes below "SCOPE/", without that prefix. A value from outside becomes
   * a placeholder "unbound_inputs_NAME", to be fed; a control input from outside is removed. The
   * saver is kept if all of its nodes are inside. */
  const char *export_scope;
} MusterExport;

/* INVALID_ARGUMENT if the result isn't a valid graph. */
MusterMetaGraph *muster_meta_graph_export (MusterMetaGraph *self, const MusterExport *how,
                                           GError **error);

typedef struct {
  gboolean clear_devices;
  const char *import_scope; /* (nullable) prefix for all names, the saver's too */
} MusterImport;

/* If the result has no saver, create one with muster_saver_default (). */
MusterMetaGraph *muster_meta_graph_import (MusterMetaGraph *self, const MusterImport *how,
                                           GError **error);

/* The same to and from a file: PATH.meta, binary or in protobuf's text format. As text, objects
 * (object_graph_def) and messages of unknown type (any_list, any_info) are UNIMPLEMENTED. The form
 * of a file is detected from its beginning. INVALID_ARGUMENT for a file that has neither form, and
 * for text with an unknown field (those above included), which the error names with its line. */
gboolean muster_export_meta_graph (MusterMetaGraph *self, const MusterExport *how, const char *path,
                                   gboolean as_text, GError **error);
MusterMetaGraph *muster_import_meta_graph (const char *path, const MusterImport *how,
                                           GError **error);

/* A graph in protobuf's text format, as TensorFlow's write_graph writes "graph.pbtxt" (transfer
 * full). UNIMPLEMENTED as above. */
GString *muster_graph_print (MusterGraph *self, GError **error);

/* Reads the serialised GraphDef, or the graph of the MetaGraphDef, in a file. */
MusterGraph *muster_graph_load (const char *path, GError **error);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph/meta_graph.h"

G_BEGIN_DECLS

/* Meta graphs on their way out and in, as TensorFlow's export_meta_graph and import_meta_graph
 * change them. Nothing is changed in place; what isn't spoken of goes along as it came (the op
 * list, the library of functions, signatures). how NULL: nothing is changed at all. */

typedef struct {
  gboolean clear_devices; /* nodes go wherever the next master likes */
  /* Leaves out the nodes of other savers, those in whose scope a SaveV2 or RestoreV2 stands, and
   * their entries in the collection "savers". */
  gboolean clear_extraneous_savers;
  /* Leaves out attributes that say what an absent one means, by the op list that the meta graph
   * came with: an older program may not know them. Bodies of functions are left as they are. */
  gboolean strip_default_attrs;
  /* (nullable) Only what is below "SCOPE/", with that taken off the names. A value from outside
   * becomes a placeholder, "unbound_inputs_NAME", to be fed; a control input from outside goes. The
   * saver stays if all its names are inside. */
  const char *export_scope;
} MusterExport;

/* INVALID_ARGUMENT where the outcome would be no graph. */
MusterMetaGraph *muster_meta_graph_export (MusterMetaGraph *self, const MusterExport *how,
                                           GError **error);

typedef struct {
  gboolean clear_devices;
  const char *import_scope; /* (nullable) all names, those of the saver too, come to lie below it */
} MusterImport;

/* Without a saver in it, muster_saver_default () makes one. */
MusterMetaGraph *muster_meta_graph_import (MusterMetaGraph *self, const MusterImport *how,
                                           GError **error);

/* The same to and from a file: PATH.meta, binary, or protobuf's text form of all that a
 * MetaGraphDef holds but objects (object_graph_def) and messages of unknown type (any_list,
 * any_info). A graph with those can't be written as text: UNIMPLEMENTED. Which form a file has is
 * seen from its beginning; one that is neither, and text with a name that isn't known, those among
 * them, is INVALID_ARGUMENT, which names it and its line. */
gboolean muster_export_meta_graph (MusterMetaGraph *self, const MusterExport *how, const char *path,
                                   gboolean as_text, GError **error);
MusterMetaGraph *muster_import_meta_graph (const char *path, const MusterImport *how,
                                           GError **error);

/* A graph in protobuf's text form, as TensorFlow's write_graph writes "graph.pbtxt" (transfer
 * full). UNIMPLEMENTED as above. */
GString *muster_graph_print (MusterGraph *self, GError **error);

/* Reads a serialised GraphDef, or the graph of a MetaGraphDef, from a file. */
MusterGraph *muster_graph_load (const char *path, GError **error);

G_END_DECLS

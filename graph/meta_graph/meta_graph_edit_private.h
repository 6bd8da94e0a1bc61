// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unpack_private.h"
#include "graph/meta_graph/meta_graph.h"
#include "graph/proto/graph.pb-c.h"
#include "graph/proto/meta_graph.pb-c.h"

G_BEGIN_DECLS

/* A meta graph as protobuf messages that can be changed. What is added must be in the arena. */
typedef struct {
  MusterArena *arena;            /* (owned) */
  Tensorflow__MetaGraphDef *def; /* its graph_def is empty */
} MusterMetaGraphEdit;

gboolean muster_meta_graph_edit_begin (MusterMetaGraphEdit *self, MusterMetaGraph *meta_graph,
                                       GError **error);
/* Packs the changed messages with graph, the bytes of a GraphDef, and reads the result. */
MusterMetaGraph *muster_meta_graph_edit_end (MusterMetaGraphEdit *self, GBytes *graph,
                                             GError **error);
void muster_meta_graph_edit_clear (MusterMetaGraphEdit *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterMetaGraphEdit, muster_meta_graph_edit_clear)

/* Copies into the arena. */
char *muster_meta_graph_edit_copy (MusterMetaGraphEdit *self, const char *text);
ProtobufCBinaryData muster_meta_graph_edit_pack (MusterMetaGraphEdit *self,
                                                 const ProtobufCMessage *message);

/* A collection, or NULL. */
Tensorflow__CollectionDef *muster_meta_graph_edit_collection (MusterMetaGraphEdit *self,
                                                              const char *key);

G_END_DECLS

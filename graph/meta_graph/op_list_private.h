// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unpack.h"
#include "graph/dtype.h"
#include "graph/proto/graph.pb-c.h"

G_BEGIN_DECLS

/* The operations that a meta graph says it uses, as its writer knew them ("stripped_op_list").
 * Lives in the arena, but for the table. */
typedef struct {
  GHashTable *ops; /* (owned) name -> Tensorflow__OpDef */
} MusterOpList;

/* From a MetaInfoDef's bytes, whatever else these hold. */
gboolean muster_op_list_init (MusterOpList *self, const ProtobufCBinaryData *meta_info,
                              MusterArena *arena, GError **error);
void muster_op_list_clear (MusterOpList *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterOpList, muster_op_list_clear)

/* Whether the attribute says what an absent one means. */
gboolean muster_op_list_is_default (const MusterOpList *self, const Tensorflow__NodeDef *node,
                                    const Tensorflow__NodeDef__AttrEntry *attr);

/* What the node takes there; INVALID where the list doesn't know. */
MusterDType muster_op_list_input_dtype (const MusterOpList *self, const Tensorflow__NodeDef *node,
                                        gsize input);

G_END_DECLS

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unpack_private.h"
#include "graph/dtype.h"
#include "graph/proto/graph.pb-c.h"

G_BEGIN_DECLS

/* The definitions of the operations that a meta graph uses, from its "stripped_op_list". In the
 * arena, except the table. */
typedef struct {
  GHashTable *ops; /* (owned) name -> Tensorflow__OpDef */
} MusterOpList;

/* Reads them from the bytes of a MetaInfoDef. */
gboolean muster_op_list_init (MusterOpList *self, const ProtobufCBinaryData *meta_info,
                              MusterArena *arena, GError **error);
void muster_op_list_clear (MusterOpList *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterOpList, muster_op_list_clear)

/* TRUE if the attribute has its default value. */
gboolean muster_op_list_is_default (const MusterOpList *self, const Tensorflow__NodeDef *node,
                                    const Tensorflow__NodeDef__AttrEntry *attr);

/* The type of a node's input; MUSTER_INVALID if the list lacks the op or the input. */
MusterDType muster_op_list_input_dtype (const MusterOpList *self, const Tensorflow__NodeDef *node,
                                        gsize input);

G_END_DECLS

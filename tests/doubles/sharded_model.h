// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph/meta_graph.h"
#include "master/session.h"

G_BEGIN_DECLS

/* A model whose saver writes two shards and merges them, as TensorFlow's sharded saver does: "v"
 * (float [2]) and the first half of the partitioned variable "p" (float [2 rows, 2]) in one, "w"
 * (int64) and the other half in the other; each is restored by a RestoreV2 of its own. Every byte
 * of it has one value, so that a mixture of two saves shows. */
typedef struct {
  gboolean is_whole; /* one SaveV2 writes all, and nothing is merged */
  gint64 rows;       /* of each half of "p"; 0: 2 */
  int max_to_keep;   /* goes into the SaverDef */
} MusterShardedModel;

MusterMetaGraph *muster_sharded_model_new (const MusterShardedModel *model);

/* Gives every byte of every variable this value. */
gboolean muster_sharded_model_set (const MusterShardedModel *model, MusterSession *session,
                                   guint8 value, GError **error);

/* The value that every byte has; -1 and an error where they differ, or a variable has none. */
int muster_sharded_model_get (MusterSession *session, GError **error);

G_END_DECLS
